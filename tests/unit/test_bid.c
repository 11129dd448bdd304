/* One bid, from the first question to the handle, over a store that loses answers (C2, C5, C6), on
 * a clock that the test owns. */
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/check.h"
#include "lib/fake_clock.h"
#include "lib/puppet.h"

struct stage {
    struct fake_clock clock;
    struct puppet *store;
    char url[32];
    hf_client *client, *other; /* the other one speaks to the store directly */
};

static int set_up(void **state)
{
    static struct stage stage;

    static int number;

    stage = (struct stage){0};
    snprintf(stage.url, sizeof stage.url, "memory://bid%d", ++number);
    fake_clock_init(&stage.clock);
    stage.store = puppet_open(stage.url, &stage.clock.env, &stage.client);
    *state = &stage;
    return stage.store == NULL ||
           hf__open(stage.url, NULL, &stage.clock.env, &stage.other, NULL) < 0;
}

static int tear_down(void **state)
{
    struct stage *s = *state;

    puppet_close(s->client);
    hf_close(s->other);
    return 0;
}

/* Who holds or waits for "x", by the store's account. */
static size_t in_store(struct stage *s)
{
    hf_view *view;

    assert_int_equal(hf_inspect(s->other, NULL, &view, NULL), 0);
    size_t count = hf_view_count(view);
    hf_view_free(view);
    return count;
}

static hf_lock *take(hf_client *client)
{
    hf_lock *lock;

    assert_int_equal(hf_acquire(client, "x", HF_NTS, NULL, &lock, NULL), 0);
    return lock;
}

/* An acquire on a thread of its own. */
struct asker {
    hf_client *client;
    hf_options opt;
    pthread_t thread;
    hf_lock *lock;
    hf_error err;
    atomic_int ended;
    int r;
};

static void *ask(void *arg)
{
    struct asker *a = arg;

    a->r = hf_acquire(a->client, "x", HF_NTS, &a->opt, &a->lock, &a->err);
    atomic_store(&a->ended, 1);
    return NULL;
}

static void start(struct asker *a, hf_client *client, int64_t wait_ms)
{
    *a = (struct asker){.client = client, .opt = HF_OPTIONS_INIT};
    a->opt.wait_ms = wait_ms;
    assert_int_equal(pthread_create(&a->thread, NULL, ask, a), 0);
}

static int has_ended(void *arg)
{
    return atomic_load(&((struct asker *)arg)->ended);
}

static void finish(struct stage *s, struct asker *a)
{
    assert_true(fake_clock_run(&s->clock, 60000, has_ended, a));
    pthread_join(a->thread, NULL);
}

static int two_in_store(void *arg)
{
    return in_store(arg) == 2;
}

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

static void c2_a_retried_release_is_not_an_error(void **state)
{
    struct stage *s = *state;
    hf_lock *lock = take(s->client);

    atomic_store(&s->store->lose[PUPPET_RELEASE], 1);
    assert_int_equal(hf_lock_release(lock, NULL), 0);
    assert_int_equal(atomic_load(&s->store->calls[PUPPET_RELEASE]), 2);
    assert_int_equal(in_store(s), 0);
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
    atomic_store(&s->store->fail[PUPPET_RELEASE], 0);
    assert_true(left_in_store(s) > 5000);
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

static void c5_a_wait_ends_by_the_clock_and_leaves_nothing(void **state)
{
    struct stage *s = *state;
    hf_lock *lock = take(s->other);
    struct asker a;

    start(&a, s->client, 60000);
    assert_true(fake_clock_run(&s->clock, 1000, two_in_store, s));
    assert_false(fake_clock_run(&s->clock, 20000, has_ended, &a));
    assert_int_equal(in_store(s), 2); /* its signs of life kept it in the queue */
    finish(s, &a);
    assert_int_equal(a.r, HF_TIMEOUT);
    assert_int_equal(in_store(s), 1);
    assert_int_equal(hf_lock_release(lock, NULL), 0);
    assert_int_equal(in_store(s), 0);
}

static void c5_a_cancelled_wait_leaves_nothing(void **state)
{
    struct stage *s = *state;
    hf_lock *lock = take(s->other);
    struct asker a = {.client = s->client, .opt = HF_OPTIONS_INIT};

    assert_int_equal(hf_cancel_new(&a.opt.cancel), 0);
    assert_int_equal(pthread_create(&a.thread, NULL, ask, &a), 0);
    assert_true(fake_clock_run(&s->clock, 1000, two_in_store, s));
    hf_cancel_fire(a.opt.cancel);
    finish(s, &a);
    assert_int_equal(a.r, HF_CANCELLED);
    assert_int_equal(in_store(s), 1);
    /* Once fired it stays fired. */
    assert_int_equal(hf_acquire(s->client, "y", HF_NTS, &a.opt, &a.lock, NULL), HF_CANCELLED);
    hf_cancel_free(a.opt.cancel);
    hf_lock_release(lock, NULL);
}

static void closing_wakes_those_who_wait(void **state)
{
    struct stage *s = *state;
    hf_lock *lock = take(s->other);
    hf_client *third;
    struct asker a;

    assert_int_equal(hf__open(s->url, NULL, &s->clock.env, &third, NULL), 0);
    start(&a, third, HF_FOREVER);
    assert_true(fake_clock_run(&s->clock, 1000, two_in_store, s));
    hf_close(third);
    finish(s, &a);
    assert_int_equal(a.r, HF_CLOSED);
    assert_int_equal(in_store(s), 1);
    hf_lock_release(lock, NULL);
}

static void c12_a_hand_over_is_pushed_and_claimed(void **state)
{
    struct stage *s = *state;
    hf_lock *lock = take(s->other);
    struct asker a;
    uint64_t first, second;

    start(&a, s->client, HF_FOREVER);
    assert_true(fake_clock_run(&s->clock, 1000, two_in_store, s));
    int asked = atomic_load(&s->store->calls[PUPPET_ATTEMPT]);
    assert_int_equal(hf_lock_generation(lock, &first), 0);
    assert_int_equal(hf_lock_release(lock, NULL), 0);
    finish(s, &a);
    assert_int_equal(a.r, 0);
    /* The wake-up was the grant: nobody asked again, or once if the first ask was still under
     * way. */
    assert_in_range(atomic_load(&s->store->calls[PUPPET_ATTEMPT]), asked, asked + 1);
    assert_int_equal(hf_lock_generation(a.lock, &second), 0);
    assert_true(second > first);
    hf_lock_release(a.lock, NULL);
}

/* Two locks of the other client, and a waiter of this one for the second. */
struct early {
    hf_lock *first, *second;
    pthread_t waiter;
    struct stage *stage;
};

static void *wait_for_second(void *arg)
{
    struct early *e = arg;
    hf_lock *lock;

    if (hf_acquire(e->stage->client, "second", HF_NTS, NULL, &lock, NULL) == 0)
        hf_lock_release(lock, NULL);
    return NULL;
}

/* The keeper takes calls in their order: when the second one has arrived, so has the first. */
static void let_both_go(size_t position, void *arg)
{
    struct early *e = arg;

    (void)position;
    if (e->first == NULL)
        return;
    hf_lock_release(e->first, NULL);
    hf_lock_release(e->second, NULL);
    e->first = NULL;
    pthread_join(e->waiter, NULL);
}

/* Without moving the clock: a waiter that missed its call would sleep for ever. */
static bool ends_by_itself(struct asker *a)
{
    for (int tries = 0; tries < 20000 && !has_ended(a); tries++)
        usleep(1000);
    return has_ended(a) && pthread_join(a->thread, NULL) == 0;
}

static void c12_a_call_before_the_waiter_sleeps_is_the_grant(void **state)
{
    struct stage *s = *state;
    struct early early = {.stage = s, .first = take(s->other)};
    struct asker a;

    assert_int_equal(hf_acquire(s->other, "second", HF_NTS, NULL, &early.second, NULL), 0);
    assert_int_equal(pthread_create(&early.waiter, NULL, wait_for_second, &early), 0);
    start(&a, s->client, 10); /* from then on the client listens */
    finish(s, &a);
    assert_int_equal(a.r, HF_TIMEOUT);

    a = (struct asker){.client = s->client, .opt = HF_OPTIONS_INIT};
    a.opt.on_wait = let_both_go;
    a.opt.arg = &early;
    assert_int_equal(pthread_create(&a.thread, NULL, ask, &a), 0);
    assert_true(ends_by_itself(&a));
    assert_int_equal(a.r, 0);
    hf_lock_release(a.lock, NULL);
}

static void c5_a_lock_that_never_expires_is_claimed_before_it_is_had(void **state)
{
    struct stage *s = *state;
    struct asker a;

    a = (struct asker){.client = s->client, .opt = HF_OPTIONS_INIT};
    a.opt.ttl_ms = HF_NEVER;
    atomic_store(&s->store->fail[PUPPET_RENEW], 1);
    assert_int_equal(pthread_create(&a.thread, NULL, ask, &a), 0);
    finish(s, &a);
    assert_int_equal(a.r, 0);
    assert_int_equal(atomic_load(&s->store->calls[PUPPET_RENEW]), 2);
    fake_clock_advance(&s->clock, 3600000);
    assert_int_equal(hf_lock_state(a.lock), HF_STATE_HELD);
    assert_int_equal(hf_lock_release(a.lock, NULL), 0);
}

static void a_wait_without_end_in_milliseconds_does_not_end_at_once(void **state)
{
    struct stage *s = *state;
    hf_lock *lock = take(s->other);
    struct asker a;

    start(&a, s->client, INT64_MAX);
    assert_true(fake_clock_run(&s->clock, 1000, two_in_store, s));
    hf_lock_release(lock, NULL);
    finish(s, &a);
    assert_int_equal(a.r, 0);
    hf_lock_release(a.lock, NULL);
    a.opt.max_hold_ms = INT64_MAX;
    assert_int_equal(hf_acquire(s->client, "x", HF_NTS, &a.opt, &lock, NULL), 0);
    assert_int_equal(hf_lock_state(lock), HF_STATE_HELD);
    hf_lock_release(lock, NULL);
}

static void *release_one(void *arg)
{
    hf_lock_release(arg, NULL);
    return NULL;
}

/* A handle may be given back while, and after, its client is closed. */
static void closing_and_releasing_at_once_ends(void **state)
{
    struct stage *s = *state;
    pthread_t threads[8];

    for (int round = 0; round < 20; round++) {
        hf_client *client;
        assert_int_equal(hf__open(s->url, NULL, &s->clock.env, &client, NULL), 0);
        for (int i = 0; i < 8; i++) {
            char name[8];
            hf_lock *lock;
            snprintf(name, sizeof name, "n%d", i);
            assert_int_equal(hf_acquire(client, name, HF_NTS, NULL, &lock, NULL), 0);
            assert_int_equal(pthread_create(&threads[i], NULL, release_one, lock), 0);
        }
        hf_close(client);
        for (int i = 0; i < 8; i++)
            pthread_join(threads[i], NULL);
    }
    assert_int_equal(in_store(s), 0);
}

static void a_cancelled_thread_leaves_the_client_whole(void **state)
{
    struct stage *s = *state;
    hf_lock *lock = take(s->other);
    struct asker a;

    start(&a, s->client, 5000);
    assert_true(fake_clock_run(&s->clock, 1000, two_in_store, s));
    pthread_cancel(a.thread); /* takes effect when the call is over */
    finish(s, &a);
    assert_int_equal(a.r, HF_TIMEOUT);
    assert_int_equal(hf_lock_release(lock, NULL), 0);
    lock = take(s->client);
    assert_int_equal(hf_lock_release(lock, NULL), 0);
}

static void c13_a_childs_cancel_is_not_the_parents(void **state)
{
    hf_cancel *cancel;
    int status;

    (void)state;
    assert_int_equal(hf_cancel_new(&cancel), 0);
    pid_t child = fork();
    if (child == 0) {
        hf_cancel_fire(cancel);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_false(hf__cancel_fired(cancel));
    hf_cancel_free(cancel);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(c6_a_lost_answer_is_asked_for_again_by_ticket),
        CASE(c6_a_store_that_stays_away_is_unknown_and_undone_later),
        CASE(c6_withdrawn_in_time_is_a_plain_no),
        CASE(c2_a_retried_release_is_not_an_error),
        CASE(c6_a_release_that_stays_unanswered_goes_on_in_the_background),
        CASE(c6_a_renewal_that_may_have_arrived_counts_for_how_long),
        CASE(c6_so_does_one_by_hand),
        CASE(c5_a_wait_ends_by_the_clock_and_leaves_nothing),
        CASE(c5_a_cancelled_wait_leaves_nothing),
        CASE(closing_wakes_those_who_wait),
        CASE(c12_a_hand_over_is_pushed_and_claimed),
        CASE(c12_a_call_before_the_waiter_sleeps_is_the_grant),
        CASE(c5_a_lock_that_never_expires_is_claimed_before_it_is_had),
        CASE(a_wait_without_end_in_milliseconds_does_not_end_at_once),
        CASE(closing_and_releasing_at_once_ends),
        CASE(a_cancelled_thread_leaves_the_client_whole),
        CASE(c13_a_childs_cancel_is_not_the_parents),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
