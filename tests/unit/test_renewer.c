/* Renewing (C3, C7): when the store is asked, how often, and what becomes of its answers. */
#include "unit/keeper_stage.h"

static void c3_the_keeper_renews_for_as_long_as_it_is_held(void **state)
{
    struct stage *s = *state;

    take(s, 6000, 0);
    assert_false(fake_clock_run(&s->clock, 60000, is_lost, s));
    assert_int_equal(hf_lock_state(s->lock), HF_STATE_HELD);
    assert_int_equal(hf_lock_release(s->lock, NULL), 0);
    s->lock = NULL;
}

static void c7_a_failed_renewal_is_tried_again_and_at_risk_passes(void **state)
{
    struct stage *s = *state;

    take(s, 3000, 0);
    atomic_store(&s->store->fail[PUPPET_RENEW], 1000000);
    assert_true(fake_clock_run(&s->clock, 2500, is_at_risk, s));
    assert_int_equal(hf_lock_state(s->lock), HF_STATE_AT_RISK);
    assert_true(hf_lock_remaining_ms(s->lock) > 0);
    atomic_store(&s->store->fail[PUPPET_RENEW], 0);
    assert_true(fake_clock_run(&s->clock, 900, is_safe_again, s));
    assert_int_equal(atomic_load(&s->losses), 0);
    /* The next time it is told again. */
    atomic_store(&s->risks, 0);
    atomic_store(&s->store->fail[PUPPET_RENEW], 1000000);
    assert_true(fake_clock_run(&s->clock, 3000, is_at_risk, s));
}

static int is_in_trouble(void *arg)
{
    struct stage *s = arg;

    return hf_lock_error(s->lock, NULL) != HF_OK;
}

static int is_well(void *arg)
{
    return !is_in_trouble(arg);
}

static void c7_the_reason_of_a_failed_renewal_is_told_until_one_succeeds(void **state)
{
    struct stage *s = *state;
    hf_error err = {0};

    take(s, 12000, 0);
    assert_int_equal(hf_lock_error(s->lock, &err), HF_OK);
    assert_int_equal(err.code, HF_OK);
    atomic_store(&s->store->fail[PUPPET_RENEW], 1000000);
    assert_true(fake_clock_run(&s->clock, 10000, is_in_trouble, s));
    assert_int_equal(hf_lock_error(s->lock, &err), HF_UNAVAILABLE);
    assert_int_equal(err.code, HF_UNAVAILABLE);
    assert_string_equal(err.text, "the store is away");
    atomic_store(&s->store->fail[PUPPET_RENEW], 0);
    assert_true(fake_clock_run(&s->clock, 10000, is_well, s));
    atomic_store(&s->store->fail[PUPPET_RENEW], 1000000);
    assert_true(fake_clock_run(&s->clock, 14000, is_lost, s));
    assert_int_equal(hf_lock_error(s->lock, NULL), HF_UNAVAILABLE);
    assert_int_equal(hf_lock_error(NULL, NULL), HF_INVALID);
}

static void c7_a_broken_lock_that_never_expires_is_noticed(void **state)
{
    struct stage *s = *state;

    take(s, HF_NEVER, 0);
    assert_int_equal(hf_lock_remaining_ms(s->lock), INT64_MAX);
    assert_int_equal(hf_break(s->client, "x", HF_NTS, hf_lock_ticket(s->lock), 1, NULL), 0);
    assert_true(fake_clock_run(&s->clock, 12000, is_lost, s));
    assert_int_equal(s->cause, HF_CAUSE_GONE);
}

static void a_lock_that_never_expires_is_looked_at_every_five_seconds(void **state)
{
    struct stage *s = *state;

    take(s, HF_NEVER, 0);
    int before = atomic_load(&s->store->calls[PUPPET_RENEW]);
    assert_false(fake_clock_run(&s->clock, 60000, is_lost, s));
    assert_in_range(atomic_load(&s->store->calls[PUPPET_RENEW]) - before, 10, 16);
    assert_int_equal(hf_lock_release(s->lock, NULL), 0);
    s->lock = NULL;
}

/* Long before the renewal is due, with whatever is asked next; and once more if the store did not
 * answer. */
static void c7_a_store_that_moved_is_asked_about_all_that_is_held(void **state)
{
    struct stage *s = *state;
    hf_lock *other;

    take(s, 60000, 0);
    atomic_store(&s->store->fail[PUPPET_RENEW], 2);
    assert_int_equal(hf_break(s->client, "x", HF_NTS, hf_lock_ticket(s->lock), 1, NULL), 0);
    s->store->base.moved = true;
    assert_int_equal(hf_acquire(s->client, "y", HF_NTS, NULL, &other, NULL), 0);
    assert_true(fake_clock_run(&s->clock, 1000, is_lost, s));
    assert_int_equal(s->cause, HF_CAUSE_GONE);
    assert_false(s->store->base.moved);
    assert_int_equal(hf_lock_state(other), HF_STATE_HELD);
    assert_int_equal(hf_lock_release(other, NULL), 0);
}

static void renewals_of_many_locks_share_a_call(void **state)
{
    enum { MANY = 1000 };
    struct stage *s = *state;
    static hf_lock *locks[MANY];
    hf_options opt = HF_OPTIONS_INIT;

    opt.ttl_ms = 24000;
    for (int i = 0; i < MANY; i++) {
        char name[16];
        snprintf(name, sizeof name, "n%d", i);
        assert_int_equal(hf_acquire(s->client, name, HF_NTS, &opt, &locks[i], NULL), 0);
        if (i % 100 == 99)
            fake_clock_advance(&s->clock, 100); /* they were not taken at the same time */
    }
    assert_int_equal(atomic_load(&s->store->calls[PUPPET_RENEW]), 0);
    assert_false(fake_clock_run(&s->clock, 9000, never, s));
    /* Each once, 256 in a call, in two groups of a 24th of the lease. */
    assert_in_range(atomic_load(&s->store->calls[PUPPET_RENEW]), 4, 8);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(hf_lock_release(locks[i], NULL), 0);
}

static void a_lock_renewed_by_hand_is_left_alone(void **state)
{
    struct stage *s = *state;
    hf_options opt = HF_OPTIONS_INIT;

    opt.ttl_ms = 3000;
    opt.by_hand = 1;
    assert_int_equal(hf_acquire(s->client, "x", HF_NTS, &opt, &s->lock, NULL), 0);
    fake_clock_advance(&s->clock, 2000);
    assert_int_equal(hf_lock_state(s->lock), HF_STATE_AT_RISK);
    assert_int_equal(hf_lock_renew(s->lock, NULL), 0);
    assert_int_equal(hf_lock_state(s->lock), HF_STATE_HELD);
    assert_int_equal(atomic_load(&s->store->calls[PUPPET_RENEW]), 1);
    fake_clock_advance(&s->clock, 3000);
    assert_int_equal(hf_lock_state(s->lock), HF_STATE_LOST);
}

/* One thread does both, and a request that hangs is perhaps alone in that: a dead connection. */
static void c7_what_is_undone_does_not_keep_others_from_being_renewed(void **state)
{
    struct stage *s = *state;
    hf_lock *undone;

    assert_int_equal(hf_acquire(s->client, "y", HF_NTS, NULL, &undone, NULL), 0);
    take(s, 3000, 0);
    atomic_store(&s->store->fail[PUPPET_RELEASE], 2);
    assert_int_equal(hf_lock_release(undone, NULL), HF_UNKNOWN);
    atomic_store(&s->store->slow[PUPPET_RELEASE], 1);
    bool lost = fake_clock_run(&s->clock, 12000, is_lost, s);
    atomic_store(&s->store->slow[PUPPET_RELEASE], 0);
    assert_false(lost);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(c3_the_keeper_renews_for_as_long_as_it_is_held),
        CASE(c7_a_failed_renewal_is_tried_again_and_at_risk_passes),
        CASE(c7_the_reason_of_a_failed_renewal_is_told_until_one_succeeds),
        CASE(c7_a_broken_lock_that_never_expires_is_noticed),
        CASE(a_lock_that_never_expires_is_looked_at_every_five_seconds),
        CASE(c7_a_store_that_moved_is_asked_about_all_that_is_held),
        CASE(renewals_of_many_locks_share_a_call),
        CASE(a_lock_renewed_by_hand_is_left_alone),
        CASE(c7_what_is_undone_does_not_keep_others_from_being_renewed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
