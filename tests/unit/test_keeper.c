/* Losing (C7, C13): when it is declared, and how it is told. */
#include <unistd.h>

#include "unit/keeper_stage.h"

static void c7_lost_is_told_in_all_three_ways_while_a_renewal_hangs(void **state)
{
    struct stage *s = *state;

    take(s, 3000, 0);
    int fd = hf_lock_fd(s->lock);
    atomic_store(&s->store->hold[PUPPET_RENEW], 1);
    assert_true(fake_clock_run(&s->clock, 1500, hangs, s));
    assert_true(fake_clock_run(&s->clock, 3000, is_lost, s));

    assert_int_equal(hf_lock_state(s->lock), HF_STATE_LOST);
    assert_int_equal(hf_lock_cause(s->lock), HF_CAUSE_EXPIRED);
    assert_int_equal(hf_lock_remaining_ms(s->lock), 0);
    assert_true(is_readable(fd));
    assert_int_equal(atomic_load(&s->risks), 1);
    /* The renewal gets through after all: too late. LOST never turns back. */
    atomic_store(&s->store->hold[PUPPET_RENEW], 0);
    assert_false(fake_clock_run(&s->clock, 500, is_safe_again, s));
    assert_int_equal(atomic_load(&s->losses), 1);
}

static void c7_the_client_gives_up_before_the_store_does(void **state)
{
    struct stage *s = *state;
    hf_options opt = HF_OPTIONS_INIT;
    hf_client *other;
    hf_lock *theirs;

    take(s, 3000, 0);
    atomic_store(&s->store->fail[PUPPET_RENEW], 1000000);
    assert_true(fake_clock_run(&s->clock, 6000, is_lost, s));
    opt.wait_ms = 0;
    assert_int_equal(hf__open(s->url, NULL, &s->clock.env, &other, NULL), 0);
    assert_int_equal(hf_acquire(other, "x", HF_NTS, &opt, &theirs, NULL), HF_BUSY);
    fake_clock_advance(&s->clock, 100); /* 1 % and 1/50 of the lease */
    assert_int_equal(hf_acquire(other, "x", HF_NTS, &opt, &theirs, NULL), 0);
    hf_lock_release(theirs, NULL);
    hf_close(other);
}

static void c13_a_long_sleep_shows_lost_on_the_first_call(void **state)
{
    struct stage *s = *state;

    take(s, 5000, 0);
    pthread_mutex_lock(&s->clock.mutex); /* no timer fires: the machine slept */
    s->clock.now_ns += INT64_C(3600000) * HF__NS_PER_MS;
    pthread_mutex_unlock(&s->clock.mutex);
    assert_int_equal(hf_lock_remaining_ms(s->lock), 0);
    assert_int_equal(hf_lock_state(s->lock), HF_STATE_LOST);
    assert_int_equal(hf_lock_renew(s->lock, NULL), HF_LOST);
}

static void c13_max_hold_ends_it_although_renewals_work(void **state)
{
    struct stage *s = *state;

    take(s, 6000, 20000);
    assert_true(hf_lock_remaining_ms(s->lock) <= 6000);
    assert_true(fake_clock_run(&s->clock, 25000, is_lost, s));
    assert_int_equal(s->cause, HF_CAUSE_MAX_HOLD);
    assert_int_equal(hf_lock_release(s->lock, NULL), HF_STALE);
    s->lock = NULL;
}

static void c4_a_store_without_tokens_shows_none(void **state)
{
    struct stage *s = *state;
    char sequencer[HF_SEQUENCER_MAX];
    uint64_t generation = 0;

    s->client->capabilities &= ~(uint32_t)HF_CAN_TOKEN;
    take(s, 3000, 0);
    assert_int_equal(hf_lock_generation(s->lock, &generation), HF_UNSUPPORTED);
    assert_int_equal(hf_lock_sequencer(s->lock, sequencer, sizeof sequencer), HF_UNSUPPORTED);
    assert_int_equal(generation, 0);
    assert_false(fake_clock_run(&s->clock, 10000, is_lost, s)); /* its renewals name the grant */
    assert_true(atomic_load(&s->store->calls[PUPPET_RENEW]) > 0);
}

static void what_a_callback_must_not_do_is_refused(hf_lock *lock, hf_cause cause, void *arg)
{
    struct stage *s = arg;

    s->refused = hf_lock_release(lock, NULL) == HF_DEADLOCK &&
                 hf_lock_detach(lock, NULL) == HF_DEADLOCK && hf_lock_release(s->other, NULL) == 0;
    hf_close(s->client); /* does nothing */
    on_lost(lock, cause, arg);
}

static void a_callback_may_not_wait_for_itself(void **state)
{
    struct stage *s = *state;
    hf_options opt = HF_OPTIONS_INIT;

    opt.ttl_ms = 3000;
    opt.on_lost = what_a_callback_must_not_do_is_refused;
    opt.arg = s;
    assert_int_equal(hf_acquire(s->client, "y", HF_NTS, NULL, &s->other, NULL), 0);
    assert_int_equal(hf_acquire(s->client, "x", HF_NTS, &opt, &s->lock, NULL), 0);
    assert_int_equal(hf_break(s->client, "x", HF_NTS, hf_lock_ticket(s->lock), 1, NULL), 0);
    assert_true(fake_clock_run(&s->clock, 5000, is_lost, s));
    assert_true(s->refused);
}

static void c11_a_lock_lost_before_its_detach_is_still_known_to_its_owner(void **state)
{
    struct stage *s = *state;
    hf_options opt = HF_OPTIONS_INIT;
    hf_lock *again;

    opt.ttl_ms = 3000;
    opt.reentrant = opt.by_hand = 1;
    assert_int_equal(hf_acquire(s->client, "x", HF_NTS, &opt, &s->lock, NULL), 0);
    fake_clock_advance(&s->clock, 4000);
    assert_int_equal(hf_lock_detach(s->lock, NULL), HF_LOST);
    assert_int_equal(hf_acquire(s->client, "x", HF_NTS, &opt, &again, NULL), HF_LOST);
}

static void a_release_after_max_hold_opens_at_once(void **state)
{
    struct stage *s = *state;
    hf_options opt = HF_OPTIONS_INIT;

    take(s, 60000, 1000);
    fake_clock_advance(&s->clock, 2000);
    assert_int_equal(hf_lock_release(s->lock, NULL), HF_STALE);
    opt.wait_ms = 0;
    assert_int_equal(hf_acquire(s->client, "x", HF_NTS, &opt, &s->lock, NULL), 0);
}

/* Two locks of one client are lost; the first of their callbacks takes its time. */
struct slow {
    hf_client *client;
    atomic_int begun, go_on, told;
};

static void on_lost_slowly(hf_lock *lock, hf_cause cause, void *arg)
{
    struct slow *slow = arg;

    (void)lock, (void)cause;
    atomic_store(&slow->begun, 1);
    while (!atomic_load(&slow->go_on))
        usleep(1000);
    atomic_fetch_add(&slow->told, 1);
}

static void *close_client(void *arg)
{
    struct slow *slow = arg;

    hf_close(slow->client);
    return NULL;
}

static int callback_has_begun(void *arg)
{
    struct slow *slow = arg;

    return atomic_load(&slow->begun);
}

static void await_all_given_back(hf_client *client)
{
    bool stop = false;

    while (!stop) {
        usleep(1000);
        hf__lock_client(client);
        stop = client->notifier.stop;
        hf__unlock_client(client);
    }
}

static void c7_a_loss_that_was_to_be_told_is_told_before_the_close_returns(void **state)
{
    struct stage *s = *state;
    static struct slow slow;
    hf_options opt = HF_OPTIONS_INIT;
    hf_lock *locks[2];
    pthread_t closer;

    opt.ttl_ms = 3000;
    opt.by_hand = 1;
    opt.on_lost = on_lost_slowly;
    opt.arg = &slow;
    assert_int_equal(hf__open(s->url, NULL, &s->clock.env, &slow.client, NULL), 0);
    assert_int_equal(hf_acquire(slow.client, "a", HF_NTS, &opt, &locks[0], NULL), 0);
    assert_int_equal(hf_acquire(slow.client, "b", HF_NTS, &opt, &locks[1], NULL), 0);
    assert_true(fake_clock_run(&s->clock, 5000, callback_has_begun, &slow));
    fake_clock_advance(&s->clock, 1000);
    assert_int_equal(hf_lock_state(locks[0]), HF_STATE_LOST);
    assert_int_equal(hf_lock_state(locks[1]), HF_STATE_LOST);

    assert_int_equal(pthread_create(&closer, NULL, close_client, &slow), 0);
    await_all_given_back(slow.client);
    atomic_store(&slow.go_on, 1);
    pthread_join(closer, NULL);
    assert_int_equal(atomic_load(&slow.told), 2);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(hf_lock_release(locks[i], NULL), HF_CLOSED);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(c7_lost_is_told_in_all_three_ways_while_a_renewal_hangs),
        CASE(c7_the_client_gives_up_before_the_store_does),
        CASE(c13_a_long_sleep_shows_lost_on_the_first_call),
        CASE(c13_max_hold_ends_it_although_renewals_work),
        CASE(c4_a_store_without_tokens_shows_none),
        CASE(a_callback_may_not_wait_for_itself),
        CASE(c11_a_lock_lost_before_its_detach_is_still_known_to_its_owner),
        CASE(a_release_after_max_hold_opens_at_once),
        CASE(c7_a_loss_that_was_to_be_told_is_told_before_the_close_returns),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
