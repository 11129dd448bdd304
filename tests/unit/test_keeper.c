/* The keeper, on a clock that the test owns: renewing, warning, and declaring lost (C3, C7,
 * C13). */
#include <poll.h>
#include <stdatomic.h>
#include <unistd.h>

#include "lib/check.h"
#include "lib/fake_clock.h"
#include "lib/puppet.h"

struct stage {
    struct fake_clock clock;
    struct puppet *store;
    hf_client *client;
    char url[32];
    hf_lock *lock, *other;
    bool refused;
    atomic_int risks, losses;
    hf_cause cause;
};

static void on_at_risk(hf_lock *lock, hf_cause cause, void *arg)
{
    struct stage *s = arg;

    (void)lock, (void)cause;
    atomic_fetch_add(&s->risks, 1);
}

static void on_lost(hf_lock *lock, hf_cause cause, void *arg)
{
    struct stage *s = arg;

    (void)lock;
    s->cause = cause;
    atomic_fetch_add(&s->losses, 1);
}

static int set_up(void **state)
{
    static struct stage stage;

    static int number;

    stage = (struct stage){0};
    snprintf(stage.url, sizeof stage.url, "memory://keeper%d", ++number);
    fake_clock_init(&stage.clock);
    stage.store = puppet_open(stage.url, &stage.clock.env, &stage.client);
    *state = &stage;
    return stage.store == NULL;
}

static int tear_down(void **state)
{
    struct stage *s = *state;

    hf_lock_release(s->lock, NULL);
    puppet_close(s->client);
    return 0;
}

static void take(struct stage *s, int64_t ttl_ms, int64_t max_hold_ms)
{
    hf_options opt = HF_OPTIONS_INIT;

    opt.ttl_ms = ttl_ms;
    opt.max_hold_ms = max_hold_ms;
    opt.on_at_risk = on_at_risk;
    opt.on_lost = on_lost;
    opt.arg = s;
    assert_int_equal(hf_acquire(s->client, "x", HF_NTS, &opt, &s->lock, NULL), 0);
}

static int is_lost(void *arg)
{
    struct stage *s = arg;

    return atomic_load(&s->losses) > 0;
}

static int is_at_risk(void *arg)
{
    struct stage *s = arg;

    return atomic_load(&s->risks) > 0;
}

static int is_safe_again(void *arg)
{
    struct stage *s = arg;

    return hf_lock_state(s->lock) == HF_STATE_HELD;
}

static int hangs(void *arg)
{
    struct stage *s = arg;

    return atomic_load(&s->store->held[PUPPET_RENEW]) > 0;
}

static int never(void *arg)
{
    (void)arg;
    return 0;
}

static bool is_readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    return poll(&p, 1, 0) == 1;
}

static void c3_the_keeper_renews_for_as_long_as_it_is_held(void **state)
{
    struct stage *s = *state;

    take(s, 6000, 0);
    assert_false(fake_clock_run(&s->clock, 60000, is_lost, s));
    assert_int_equal(hf_lock_state(s->lock), HF_STATE_HELD);
    assert_int_equal(hf_lock_release(s->lock, NULL), 0);
    s->lock = NULL;
}

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

static void c7_a_broken_lock_that_never_expires_is_noticed(void **state)
{
    struct stage *s = *state;

    take(s, HF_NEVER, 0);
    assert_int_equal(hf_lock_remaining_ms(s->lock), INT64_MAX);
    assert_int_equal(hf_break(s->client, "x", HF_NTS, hf_lock_ticket(s->lock), 1, NULL), 0);
    assert_true(fake_clock_run(&s->clock, 12000, is_lost, s));
    assert_int_equal(s->cause, HF_CAUSE_GONE);
}

static void a_lock_that_never_expires_is_looked_at_now_and_then(void **state)
{
    struct stage *s = *state;

    take(s, HF_NEVER, 0);
    assert_false(fake_clock_run(&s->clock, 30000, is_lost, s));
    assert_in_range(atomic_load(&s->store->calls[PUPPET_RENEW]), 4, 9); /* its claim is one */
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
        stop = client->stop;
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
        CASE(c3_the_keeper_renews_for_as_long_as_it_is_held),
        CASE(c7_lost_is_told_in_all_three_ways_while_a_renewal_hangs),
        CASE(c7_the_client_gives_up_before_the_store_does),
        CASE(c7_a_failed_renewal_is_tried_again_and_at_risk_passes),
        CASE(c7_the_reason_of_a_failed_renewal_is_told_until_one_succeeds),
        CASE(c13_a_long_sleep_shows_lost_on_the_first_call),
        CASE(c13_max_hold_ends_it_although_renewals_work),
        CASE(c7_a_broken_lock_that_never_expires_is_noticed),
        CASE(a_lock_that_never_expires_is_looked_at_now_and_then),
        CASE(c7_a_store_that_moved_is_asked_about_all_that_is_held),
        CASE(c4_a_store_without_tokens_shows_none),
        CASE(renewals_of_many_locks_share_a_call),
        CASE(a_lock_renewed_by_hand_is_left_alone),
        CASE(a_callback_may_not_wait_for_itself),
        CASE(c11_a_lock_lost_before_its_detach_is_still_known_to_its_owner),
        CASE(a_release_after_max_hold_opens_at_once),
        CASE(c7_what_is_undone_does_not_keep_others_from_being_renewed),
        CASE(c7_a_loss_that_was_to_be_told_is_told_before_the_close_returns),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
