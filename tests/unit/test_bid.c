/* One bid, from the first question to the last, over a store that loses answers (C2, C6). */
#include <unistd.h>

#include "unit/bid_stage.h"

static int store_is_empty(void *arg)
{
    return in_store(arg) == 0;
}

static void c6_a_lost_answer_is_asked_for_again_by_ticket(void **state)
{
    struct stage *s = *state;
    struct asker a;

    atomic_store(&s->store->lose[PUPPET_ATTEMPT], 1);
    start(&a, s->client, HF_FOREVER);
    finish(s, &a);
    assert_int_equal(a.r, 0);
    assert_int_equal(atomic_load(&s->store->calls[PUPPET_ATTEMPT]), 2);
    assert_int_equal(in_store(s), 1);
    assert_int_equal(hf_lock_release(a.lock, NULL), 0);
    assert_int_equal(in_store(s), 0);
}

static void c6_a_store_that_stays_away_is_unknown_and_undone_later(void **state)
{
    struct stage *s = *state;
    struct asker a;

    atomic_store(&s->store->lose[PUPPET_ATTEMPT], 1000000);
    atomic_store(&s->store->fail[PUPPET_WITHDRAW], 2);
    start(&a, s->client, HF_FOREVER);
    finish(s, &a);
    assert_int_equal(a.r, HF_UNKNOWN);
    assert_int_equal(a.err.code, HF_UNKNOWN);
    assert_true(a.err.may_hold_ms > 0);
    assert_true(fake_clock_run(&s->clock, a.err.may_hold_ms, store_is_empty, s));
}

static void c6_withdrawn_in_time_is_a_plain_no(void **state)
{
    struct stage *s = *state;
    struct asker a;

    atomic_store(&s->store->lose[PUPPET_ATTEMPT], 1000000);
    start(&a, s->client, HF_FOREVER);
    finish(s, &a);
    assert_int_equal(a.r, HF_UNAVAILABLE);
    assert_int_equal(in_store(s), 0);
}

static void c5_a_line_that_moves_is_waited_in_as_long_as_for_the_lock(void **state)
{
    struct stage *s = *state;
    struct asker a;

    atomic_store(&s->store->slow[PUPPET_ATTEMPT], 1);
    atomic_store(&s->store->crowded, 1);
    start(&a, s->client, HF_FOREVER);
    assert_false(fake_clock_run(&s->clock, 120000, has_ended, &a));
    atomic_store(&s->store->slow[PUPPET_ATTEMPT], 0);
    finish(s, &a);
    assert_int_equal(a.r, 0);
    assert_int_equal(hf_lock_release(a.lock, NULL), 0);
}

static void c5_who_does_not_wait_waits_in_no_line(void **state)
{
    struct stage *s = *state;
    struct asker a;

    atomic_store(&s->store->slow[PUPPET_ATTEMPT], 1);
    atomic_store(&s->store->crowded, 1);
    start(&a, s->client, 0);
    finish(s, &a);
    assert_int_equal(a.r, HF_UNAVAILABLE);
    atomic_store(&s->store->slow[PUPPET_ATTEMPT], 0);
    assert_int_equal(in_store(s), 0);
}

static void c2_a_retried_release_is_not_an_error(void **state)
{
    struct stage *s = *state;
    hf_lock *lock = take(s->client);

    atomic_store(&s->store->lose[PUPPET_RELEASE], 1);
    assert_int_equal(hf_lock_release(lock, NULL), 0);
    assert_int_equal(atomic_load(&s->store->calls[PUPPET_RELEASE]), 2);
    assert_int_equal(in_store(s), 0);
}

static void c2_a_retry_of_what_was_not_sent_tells_that_it_was_not_ours(void **state)
{
    struct stage *s = *state;
    hf_lock *lock = take(s->client), *next;

    assert_int_equal(hf_break(s->other, "x", HF_NTS, hf_lock_ticket(lock), 1, NULL), 0);
    next = take(s->other);
    atomic_store(&s->store->fail[PUPPET_RELEASE], 1);
    assert_int_equal(hf_lock_release(lock, NULL), HF_STALE);
    assert_int_equal(hf_lock_release(next, NULL), 0);
}

static void c6_a_release_that_stays_unanswered_goes_on_in_the_background(void **state)
{
    struct stage *s = *state;
    hf_lock *lock = take(s->client);
    hf_error err;

    atomic_store(&s->store->fail[PUPPET_RELEASE], 5);
    assert_int_equal(hf_lock_release(lock, &err), HF_UNKNOWN);
    assert_in_range(err.may_hold_ms, 29000, 30001);
    assert_int_equal(in_store(s), 1);
    assert_true(fake_clock_run(&s->clock, 10000, store_is_empty, s));
}

static int64_t left_in_store(struct stage *s)
{
    hf_view *view;

    assert_int_equal(hf_inspect(s->other, NULL, &view, NULL), 0);
    assert_int_equal(hf_view_count(view), 1);
    int64_t left_ms = hf_view_entry(view, 0)->remaining_ms;
    hf_view_free(view);
    return left_ms;
}

static int is_renewed_unheard(void *arg)
{
    struct stage *s = arg;

    return atomic_load(&s->store->calls[PUPPET_RENEW]) > 0 && left_in_store(s) > 25000;
}

static void release_after_lost_renewals(struct stage *s, hf_lock *lock)
{
    hf_error err;

    atomic_store(&s->store->fail[PUPPET_RELEASE], 1000000);
    assert_int_equal(hf_lock_release(lock, &err), HF_UNKNOWN);
    assert_true(err.may_hold_ms >= left_in_store(s));
    fake_clock_advance(&s->clock, 20000); /* longer than the lease that the client knows of */
    assert_true(left_in_store(s) > 5000);
    atomic_store(&s->store->fail[PUPPET_RELEASE], 0);
    assert_true(fake_clock_run(&s->clock, 4000, store_is_empty, s)); /* by the keeper */
}

static void c6_a_renewal_that_may_have_arrived_counts_for_how_long(void **state)
{
    struct stage *s = *state;
    hf_lock *lock = take(s->client);

    atomic_store(&s->store->lose[PUPPET_RENEW], 1000000);
    assert_true(fake_clock_run(&s->clock, 15000, is_renewed_unheard, s));
    release_after_lost_renewals(s, lock);
}

static void c6_so_does_one_by_hand(void **state)
{
    struct stage *s = *state;
    hf_options opt = HF_OPTIONS_INIT;
    hf_lock *lock;

    opt.by_hand = 1;
    assert_int_equal(hf_acquire(s->client, "x", HF_NTS, &opt, &lock, NULL), 0);
    fake_clock_advance(&s->clock, 15000);
    atomic_store(&s->store->lose[PUPPET_RENEW], 1);
    assert_int_equal(hf_lock_renew(lock, NULL), HF_UNKNOWN);
    assert_int_equal(hf_lock_error(lock, NULL), HF_UNKNOWN);
    release_after_lost_renewals(s, lock);
}

static int has_claimed(void *arg)
{
    struct stage *s = arg;

    return atomic_load(&s->store->calls[PUPPET_RENEW]) > 0;
}

static void c6_so_does_the_claim_of_what_was_handed_over(void **state)
{
    struct stage *s = *state;
    hf_lock *before = take(s->other);
    struct asker a;

    atomic_store(&s->store->lose[PUPPET_RENEW], 1000000);
    start(&a, s->client, HF_FOREVER);
    while (in_store(s) < 2)
        usleep(1000);
    assert_int_equal(hf_lock_release(before, NULL), 0);
    finish(s, &a);
    assert_int_equal(a.r, 0);
    assert_true(fake_clock_run(&s->clock, 5000, has_claimed, s));
    assert_true(fake_clock_stand(is_renewed_unheard, s));
    release_after_lost_renewals(s, a.lock);
}

/* How long it may be held if a bid that never expires is neither claimed nor withdrawn. */
static int64_t bid_for_ever_in_vain(struct stage *s)
{
    struct asker a = {.client = s->client, .opt = HF_OPTIONS_INIT};

    a.opt.ttl_ms = HF_NEVER;
    atomic_store(&s->store->fail[PUPPET_WITHDRAW], 1000000);
    assert_int_equal(pthread_create(&a.thread, NULL, ask, &a), 0);
    finish(s, &a);
    assert_int_equal(a.r, HF_UNKNOWN);
    return a.err.may_hold_ms;
}

static void c6_a_grant_that_was_surely_not_claimed_ends_by_itself(void **state)
{
    struct stage *s = *state;

    atomic_store(&s->store->fail[PUPPET_RENEW], 1000000);
    assert_in_range(bid_for_ever_in_vain(s), 1, 10000);
    fake_clock_advance(&s->clock, 10000);
    assert_int_equal(in_store(s), 0);
}

/* It never expires once it is claimed: nobody else would ever end it. */
static void c6_a_claim_for_ever_that_may_have_arrived_is_withdrawn_as_long_as_it_takes(void **state)
{
    struct stage *s = *state;

    atomic_store(&s->store->lose[PUPPET_RENEW], 1000000);
    assert_int_equal(bid_for_ever_in_vain(s), HF_NEVER);
    fake_clock_advance(&s->clock, 3600000);
    assert_int_equal(in_store(s), 1);
    atomic_store(&s->store->fail[PUPPET_WITHDRAW], 0);
    assert_true(fake_clock_run(&s->clock, 5000, store_is_empty, s));
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(c6_a_lost_answer_is_asked_for_again_by_ticket),
        CASE(c6_a_store_that_stays_away_is_unknown_and_undone_later),
        CASE(c6_withdrawn_in_time_is_a_plain_no),
        CASE(c5_a_line_that_moves_is_waited_in_as_long_as_for_the_lock),
        CASE(c5_who_does_not_wait_waits_in_no_line),
        CASE(c2_a_retried_release_is_not_an_error),
        CASE(c2_a_retry_of_what_was_not_sent_tells_that_it_was_not_ours),
        CASE(c6_a_release_that_stays_unanswered_goes_on_in_the_background),
        CASE(c6_a_renewal_that_may_have_arrived_counts_for_how_long),
        CASE(c6_so_does_one_by_hand),
        CASE(c6_so_does_the_claim_of_what_was_handed_over),
        CASE(c6_a_grant_that_was_surely_not_claimed_ends_by_itself),
        CASE(c6_a_claim_for_ever_that_may_have_arrived_is_withdrawn_as_long_as_it_takes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
