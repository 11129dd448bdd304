/* Those who wait: how the wait ends (C5, C12), and what ends it from outside. */
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit/bid_stage.h"

static int two_in_store(void *arg)
{
    return in_store(arg) == 2;
}

static int listens(void *arg)
{
    hf_client *client = arg;

    hf__lock_client(client);
    bool yes = hf__wake_reader_listens(client);
    hf__unlock_client(client);
    return yes;
}

static void c5_a_wait_ends_by_the_clock_and_leaves_nothing(void **state)
{
    struct stage *s = *state;
    hf_lock *lock = take(s->other);
    struct asker a;

    start(&a, s->client, 60000);
    assert_true(fake_clock_stand(two_in_store, s));
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
    assert_true(fake_clock_stand(two_in_store, s));
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
    assert_true(fake_clock_stand(two_in_store, s));
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
    assert_true(fake_clock_stand(two_in_store, s));
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
    assert_true(fake_clock_stand(two_in_store, s));
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
    assert_true(fake_clock_stand(two_in_store, s));
    pthread_cancel(a.thread); /* takes effect when the call is over */
    finish(s, &a);
    assert_int_equal(a.r, HF_TIMEOUT);
    assert_int_equal(hf_lock_release(lock, NULL), 0);
    lock = take(s->client);
    assert_int_equal(hf_lock_release(lock, NULL), 0);
}

/* A client that found no descriptor free when it waited for the first time does not poll for ever. */
static void c12_push_is_asked_for_again_when_descriptors_are_free(void **state)
{
    struct stage *s = *state;
    struct rlimit before, none;
    struct asker a;

    assert_int_equal(hf_lock_release(take(s->client), NULL), 0); /* its keeper runs */
    hf_lock *lock = take(s->other);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = (struct rlimit){.rlim_cur = 1, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    start(&a, s->client, 500);
    finish(s, &a);
    setrlimit(RLIMIT_NOFILE, &before);
    assert_int_equal(a.r, HF_TIMEOUT);
    assert_false(hf__wake_reader_listens(s->client));

    fake_clock_advance(&s->clock, 1000);
    start(&a, s->client, HF_FOREVER);
    assert_true(fake_clock_stand(listens, s->client));
    assert_int_equal(hf_lock_release(lock, NULL), 0);
    finish(s, &a);
    assert_int_equal(a.r, 0);
    assert_int_equal(hf_lock_release(a.lock, NULL), 0);
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
        CASE(c5_a_wait_ends_by_the_clock_and_leaves_nothing),
        CASE(c5_a_cancelled_wait_leaves_nothing),
        CASE(closing_wakes_those_who_wait),
        CASE(c12_a_hand_over_is_pushed_and_claimed),
        CASE(c12_a_call_before_the_waiter_sleeps_is_the_grant),
        CASE(c5_a_lock_that_never_expires_is_claimed_before_it_is_had),
        CASE(a_wait_without_end_in_milliseconds_does_not_end_at_once),
        CASE(closing_and_releasing_at_once_ends),
        CASE(a_cancelled_thread_leaves_the_client_whole),
        CASE(c12_push_is_asked_for_again_when_descriptors_are_free),
        CASE(c13_a_childs_cancel_is_not_the_parents),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
