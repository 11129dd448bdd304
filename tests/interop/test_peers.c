/* One lock, shared with a client that somebody else wrote: they hold, we hold, either crashes,
 * either's key is deleted.
 *
 *     test_peers PEER
 *
 * The peer's name decides the key on which we meet it. */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "interop/peer.h"
#include "redis/live.h"

#define LONG_MS 60000 /* longer than any test */

static const char *prefix = "";                /* of the peer's keys */
static const char *format = "key_format=%25s"; /* the same for us */
static struct peer peer;

static int start_all(void **state)
{
    (void)state;
    redis = stranger();
    peer_start(&peer);
    return 0;
}

static int stop_all(void **state)
{
    (void)state;
    peer_kill(&peer);
    redisFree(redis);
    return 0;
}

static int empty_server(void **state)
{
    (void)state;
    freeReplyObject(ask(redis, "FLUSHALL"));
    return 0;
}

static hf_client *open_with(const char *more)
{
    char options[200];

    snprintf(options, sizeof options, "%s%s", format, more);
    return open_live(options);
}

static int64_t now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000) + t.tv_nsec / 1000;
}

static hf_lock *hold(hf_client *client, const char *name)
{
    hf_lock *lock = NULL;

    assert_int_equal(try_lock(client, name, LONG_MS, &lock), HF_OK);
    return lock;
}

static void let_go(hf_lock *lock)
{
    assert_int_equal(hf_lock_release(lock, NULL), HF_OK);
}

static long long del(const char *name)
{
    return ask_number(redis, "DEL %s%s", prefix, name);
}

/* The peer has been refused once since the figures were reset, so it waits now. */
static int has_tried(void *ctx)
{
    (void)ctx;
    return calls_of("set") + calls_of("evalsha") > 0;
}

/* The client looks by itself after 45 s at the earliest: who gets the lock before was told. */
static void wait_for_message(struct waiter *w, hf_client *client)
{
    w->opt = (hf_options)HF_OPTIONS_INIT;
    w->opt.wait_ms = 20000;
    wait_in_thread(w, client, "a");
}

static void c1_they_hold_we_wait(void **state)
{
    enum { WAITERS = 5 };
    hf_client *clients[WAITERS];
    struct waiter w[WAITERS] = {0};
    hf_lock *lock = NULL;

    (void)state;
    peer_ask(&peer, "held", "try a %d", LONG_MS);
    for (size_t i = 0; i < WAITERS; i++) {
        clients[i] = open_with("&recheck=60s");
        assert_int_equal(try_lock(clients[i], "a", LONG_MS, &lock), HF_BUSY);
        wait_for_message(&w[i], clients[i]);
        await_waiting(clients[i], "a", i + 1);
    }
    await("the key to be watched", is_watched, NULL);
    assert_int_equal(info_number("clients", "tracking_clients:"), 1); /* the head alone */
    freeReplyObject(ask(redis, "CONFIG RESETSTAT"));
    int64_t from_us = peer_ask(&peer, "released", "release a");
    for (size_t i = 0; i < WAITERS; i++) {
        assert_int_equal(join_waiter(&w[i]), HF_OK);
        if (i == 0)
            print_message("woken within %lld us of their release\n",
                          (long long)(now_us() - from_us));
        let_go(w[i].lock);
    }
    /* Their release; one look by the head; for each of ours a release and at most one claim. */
    assert_true(calls_of("evalsha") <= 2 + 2 * WAITERS);
    for (size_t i = 0; i < WAITERS; i++)
        hf_close(clients[i]);
}

static void c1_we_hold_they_wait(void **state)
{
    hf_client *client = open_with("");
    hf_lock *lock = hold(client, "a");

    (void)state;
    peer_ask(&peer, "busy", "try a %d", LONG_MS);
    freeReplyObject(ask(redis, "CONFIG RESETSTAT"));
    peer_tell(&peer, "wait a %d", LONG_MS);
    await("the peer's first attempt", has_tried, NULL);
    int64_t from_us = now_us();
    let_go(lock);
    int64_t held_us = peer_says(&peer, "held");
    print_message("they got it %lld us after our release\n", (long long)(held_us - from_us));
    assert_true(held_us >= from_us);
    assert_int_equal(try_lock(client, "a", LONG_MS, &lock), HF_BUSY);
    peer_ask(&peer, "released", "release a");
    let_go(hold(client, "a"));
    hf_close(client);
}

static void c3_they_crash_and_their_time_runs_out(void **state)
{
    hf_client *client = open_with("");
    struct waiter w = {0};
    int64_t from_ms = now_ms();

    (void)state;
    peer_ask(&peer, "held", "try a 700");
    peer_kill(&peer);
    wait_in_thread(&w, client, "a");
    assert_int_equal(join_waiter(&w), HF_OK);
    assert_true(w.got_ms - from_ms >= 699); /* not before */
    let_go(w.lock);
    hf_close(client);
    peer_start(&peer);
}

/* In a process of its own, which then stands still: holds a lock for 500 ms and keeps it closed for
 * 600 ms more. */
static pid_t hold_in_child(const char *name)
{
    int ready[2];
    char byte;

    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        hf_options opt = HF_OPTIONS_INIT;
        hf_lock *lock;

        opt.ttl_ms = 500;
        opt.lock_delay_ms = 600;
        opt.by_hand = 1;
        if (hf_acquire(open_with(""), name, HF_NTS, &opt, &lock, NULL) != HF_OK)
            _exit(1);
        while (write(ready[1], "", 1) == 1)
            pause();
        _exit(0);
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    return pid;
}

static void c8_we_crash_and_they_wait_out_lease_and_delay(void **state)
{
    int64_t from_us = now_us();
    pid_t pid = hold_in_child("a");

    (void)state;
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    peer_tell(&peer,
              "wait a 2000"); /* nobody tells those who sleep: they look after their own ttl */
    assert_true(peer_says(&peer, "held") - from_us >= 1099000);
    peer_ask(&peer, "released", "release a");
}

static void c7_our_key_deleted_is_lost_and_theirs_is_left_alone(void **state)
{
    hf_client *client = open_with("");
    hf_lock *lock = NULL;

    (void)state;
    assert_int_equal(try_lock(client, "a", 6000, &lock), HF_OK); /* renewed after 2 s */
    assert_int_equal(del("a"), 1);
    peer_ask(&peer, "held", "try a %d", LONG_MS);
    await_lost(lock);
    assert_int_equal(hf_lock_cause(lock), HF_CAUSE_GONE);
    assert_int_equal(hf_lock_release(lock, NULL), HF_STALE);
    peer_ask(&peer, "released", "release a"); /* it was still theirs */
    hf_close(client);
}

static void c2_their_late_release_does_not_free_ours(void **state)
{
    hf_client *client = open_with("");

    (void)state;
    peer_ask(&peer, "held", "try a %d", LONG_MS);
    assert_int_equal(del("a"), 1);
    hf_lock *lock = hold(client, "a");
    peer_ask(&peer, "gone", "release a");
    assert_int_equal(hf_lock_renew(lock, NULL), HF_OK);
    let_go(lock);
    hf_close(client);
}

static void c9_our_readers_are_one_holder_to_them(void **state)
{
    hf_client *client = open_with("");
    hf_options opt = HF_OPTIONS_INIT;
    hf_lock *readers[2], *late = NULL;

    (void)state;
    opt.mode = HF_SHARED;
    opt.wait_ms = 0;
    for (size_t i = 0; i < 2; i++) {
        opt.owner = i + 1;
        assert_int_equal(hf_acquire(client, "a", HF_NTS, &opt, &readers[i], NULL), HF_OK);
    }
    peer_ask(&peer, "busy", "try a %d", LONG_MS);
    let_go(readers[0]);
    peer_ask(&peer, "busy", "try a %d", LONG_MS);
    let_go(readers[1]);
    peer_ask(&peer, "held", "try a %d", LONG_MS);
    assert_int_equal(hf_acquire(client, "a", HF_NTS, &opt, &late, NULL), HF_BUSY);
    peer_ask(&peer, "released", "release a");
    assert_int_equal(hf_acquire(client, "a", HF_NTS, &opt, &late, NULL), HF_OK);
    let_go(late);
    hf_close(client);
}

static void c4_token_rises_across_their_turns(void **state)
{
    hf_client *client = open_with("");
    uint64_t last = 0, generation;

    (void)state;
    for (int i = 0; i < 20; i++) {
        hf_lock *lock = hold(client, "a");
        assert_int_equal(hf_lock_generation(lock, &generation), HF_OK);
        assert_true(generation > last);
        last = generation;
        let_go(lock);
        peer_ask(&peer, "held", "try a %d", LONG_MS);
        if (i % 2 == 0)
            peer_ask(&peer, "released", "release a");
        else
            assert_int_equal(del("a"), 1);
    }
    hf_close(client);
}

struct turns {
    hf_client *client;
    atomic_int inside;
    atomic_bool done;
};

static void *take_turns(void *arg)
{
    struct turns *turns = arg;
    hf_lock *lock;

    while (!turns->done) {
        if (hf_acquire(turns->client, "a", HF_NTS, NULL, &lock, NULL) != HF_OK)
            abort();
        turns->inside++;
        sched_yield();
        turns->inside--;
        hf_lock_release(lock, NULL);
    }
    return NULL;
}

static void c1_nobody_is_inside_with_them(void **state)
{
    struct turns turns = {.client = open_with("&yield=20&yield_for=400ms")};
    pthread_t threads[3];

    (void)state;
    for (size_t i = 0; i < COUNT(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_turns, &turns), 0);
    for (int i = 0; i < 3; i++) {
        peer_ask(&peer, "held", "wait a %d", LONG_MS);
        assert_int_equal(turns.inside, 0);
        peer_ask(&peer, "released", "release a");
    }
    turns.done = true;
    for (size_t i = 0; i < COUNT(threads); i++)
        pthread_join(threads[i], NULL);
    hf_close(turns.client);
}

static void c5_they_hold_without_end(void **state)
{
    hf_client *client = open_with("&recheck=60s");
    struct waiter w = {0};
    hf_lock *lock = NULL;

    (void)state;
    peer_ask(&peer, "held", "try a 0");
    assert_int_equal(try_lock(client, "a", LONG_MS, &lock), HF_BUSY);
    wait_for_message(&w, client);
    await_waiting(client, "a", 1);
    await("the key to be watched", is_watched, NULL);
    assert_int_equal(ask_number(redis, "PTTL a"), -1);
    peer_ask(&peer, "released", "release a");
    assert_int_equal(join_waiter(&w), HF_OK);
    let_go(w.lock);
    hf_close(client);
}

#define TEST(name) cmocka_unit_test_setup(name, empty_server)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(c1_they_hold_we_wait),
        TEST(c1_we_hold_they_wait),
        TEST(c3_they_crash_and_their_time_runs_out),
        TEST(c8_we_crash_and_they_wait_out_lease_and_delay),
        TEST(c7_our_key_deleted_is_lost_and_theirs_is_left_alone),
        TEST(c2_their_late_release_does_not_free_ours),
        TEST(c9_our_readers_are_one_holder_to_them),
        TEST(c4_token_rises_across_their_turns),
        TEST(c1_nobody_is_inside_with_them),
    };
    const struct CMUnitTest endless[] = {TEST(c5_they_hold_without_end)};

    if (argc != 2)
        return 64;
    signal(SIGPIPE, SIG_IGN);
    if (strcmp(argv[1], "redis-semaphore") == 0) {
        prefix = "mutex:";
        format = "key_format=mutex:%25s";
    }
    if (strcmp(argv[1], "python-redis-lock") == 0) { /* it sleeps until it is signalled */
        prefix = "lock:";
        format = "key_format=lock:%25s&signal=python-redis-lock";
    }
    if (strcmp(argv[1], "spring") == 0) { /* likewise */
        prefix = "spring:";
        format = "key_format=spring:%25s&signal=spring";
    }
    int failed = cmocka_run_group_tests(tests, start_all, stop_all);
    if (strcmp(argv[1], "redis-py") == 0) /* the others always set a time */
        failed += cmocka_run_group_tests(endless, start_all, stop_all);
    return failed;
}
