/* One lock on five servers, shared with node-redlock: they hold, we hold, either crashes, either's
 * keys are deleted, two of the servers stand still. */
#include <holdfast.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "interop/peer.h"
#include "lib/check.h"
#include "redlock/nodes.h"

#define LONG_MS 20000 /* longer than any test */

static struct peer peer;
static hf_client *client;

static hf_client *open_client(void)
{
    char url[600];
    hf_client *opened = NULL;
    hf_error err;

    snprintf(url, sizeof url, "redlock://%s?restart_guard=off&op_timeout=2s&key_format=%%25s",
             nodes_list());
    if (hf_open(url, NULL, &opened, &err) != 0)
        fail_msg("open: %s", err.text);
    return opened;
}

static int set_up(void **state)
{
    (void)state;
    nodes_reset();
    peer_start(&peer);
    client = open_client();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    hf_close(client);
    peer_kill(&peer);
    return 0;
}

static int64_t now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000) + t.tv_nsec / 1000;
}

static int take(hf_client *by, int64_t ttl_ms, int64_t wait_ms, hf_lock **ret_lock)
{
    hf_options opt = HF_OPTIONS_INIT;

    opt.ttl_ms = ttl_ms;
    opt.wait_ms = wait_ms;
    return hf_acquire(by, "a", HF_NTS, &opt, ret_lock, NULL);
}

/* On a majority at least: that decides a bid, and the others may hear of it later or never. */
static void delete_keys(void)
{
    size_t deleted = 0;

    for (size_t i = 0; i < NODES || deleted <= NODES / 2; i++) {
        assert_true(i < 2000);
        deleted += strcmp(node_ask(i % NODES, "DEL", "a"), "1") == 0;
    }
}

struct turn {
    pthread_t thread;
    int64_t ttl_ms;
    hf_lock *lock;
    int64_t got_us;
};

static void *wait_for_turn(void *arg)
{
    struct turn *turn = arg;

    if (take(client, turn->ttl_ms, LONG_MS, &turn->lock) != HF_OK)
        abort();
    turn->got_us = now_us();
    return NULL;
}

static void start_waiting(struct turn *turn)
{
    turn->ttl_ms = LONG_MS;
    assert_int_equal(pthread_create(&turn->thread, NULL, wait_for_turn, turn), 0);
}

/* Somebody has asked all servers since the figures were reset: refused once, it waits now. */
static void forget_who_asked(void)
{
    for (size_t i = 0; i < NODES; i++)
        check_text("CONFIG", node_ask(i, "CONFIG", "RESETSTAT"), "OK");
}

static void await_asked(void)
{
    for (size_t i = 0, tries = 0; i < NODES; tries++) {
        assert_true(tries < 2000);
        if (strstr(node_ask(i, "INFO", "commandstats"), "cmdstat_evalsha:") != NULL)
            i++;
        else
            poll(NULL, 0, 5);
    }
}

static void c1_they_hold_we_wait(void **state)
{
    struct turn turn = {0};
    hf_lock *lock;

    (void)state;
    peer_ask(&peer, "held", "try a %d", LONG_MS);
    assert_int_equal(take(client, LONG_MS, 0, &lock), HF_BUSY);
    forget_who_asked();
    start_waiting(&turn);
    await_asked();
    int64_t from_us = peer_ask(&peer, "released", "release a");
    pthread_join(turn.thread, NULL);
    print_message("we got it %lld us after their release\n", (long long)(turn.got_us - from_us));
    assert_true(turn.got_us >= from_us);
    peer_ask(&peer, "busy", "try a %d", LONG_MS);
    assert_int_equal(hf_lock_release(turn.lock, NULL), HF_OK);
}

static void c1_we_hold_they_wait(void **state)
{
    hf_lock *lock;

    (void)state;
    assert_int_equal(take(client, LONG_MS, 0, &lock), HF_OK);
    peer_ask(&peer, "busy", "try a %d", LONG_MS);
    assert_int_equal(hf_lock_renew(lock, NULL), HF_OK);
    forget_who_asked();
    peer_tell(&peer, "wait a %d", LONG_MS);
    await_asked();
    int64_t from_us = now_us();
    assert_int_equal(hf_lock_release(lock, NULL), HF_OK);
    int64_t held_us = peer_says(&peer, "held");
    print_message("they got it %lld us after our release\n", (long long)(held_us - from_us));
    assert_true(held_us >= from_us);
    assert_int_equal(take(client, LONG_MS, 0, &lock), HF_BUSY);
    peer_ask(&peer, "released", "release a");
}

static void c3_they_crash_and_their_time_runs_out(void **state)
{
    int64_t from_us = now_us();
    hf_lock *lock;

    (void)state;
    peer_ask(&peer, "held", "try a 700");
    peer_kill(&peer);
    assert_int_equal(take(client, LONG_MS, LONG_MS, &lock), HF_OK);
    assert_true(now_us() - from_us >= 699000); /* not before */
    assert_int_equal(hf_lock_release(lock, NULL), HF_OK);
    peer_start(&peer);
}

static void c3_we_crash_and_our_time_runs_out(void **state)
{
    int64_t from_us = now_us();
    int status;
    pid_t pid = fork();

    (void)state;
    assert_true(pid >= 0);
    if (pid == 0) {
        hf_lock *lock;
        _exit(take(open_client(), 700, 0, &lock) == HF_OK ? 0 : 1); /* without a word to anybody */
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    peer_ask(&peer, "busy", "try a %d", LONG_MS);
    peer_tell(&peer, "wait a %d", LONG_MS);
    assert_true(peer_says(&peer, "held") - from_us >= 699000);
    peer_ask(&peer, "released", "release a");
}

static void c7_our_keys_deleted_are_lost_and_theirs_are_left_alone(void **state)
{
    hf_lock *lock;

    (void)state;
    assert_int_equal(take(client, LONG_MS, 0, &lock), HF_OK);
    delete_keys();
    peer_ask(&peer, "held", "try a %d", LONG_MS);
    assert_int_equal(hf_lock_renew(lock, NULL), HF_LOST);
    assert_int_equal(hf_lock_release(lock, NULL), HF_STALE);
    peer_ask(&peer, "released", "release a"); /* it was still theirs */
}

static void c2_their_late_release_does_not_free_ours(void **state)
{
    hf_lock *lock;

    (void)state;
    peer_ask(&peer, "held", "try a %d", LONG_MS);
    delete_keys();
    assert_int_equal(take(client, LONG_MS, 0, &lock), HF_OK);
    peer_ask(&peer, "gone", "release a");
    assert_int_equal(hf_lock_renew(lock, NULL), HF_OK);
    assert_int_equal(hf_lock_release(lock, NULL), HF_OK);
}

/* Three of five decide, for both of us alike. */
static void c1_two_servers_stand_still(void **state)
{
    hf_lock *lock;

    (void)state;
    node_freeze(0);
    node_freeze(1);
    peer_ask(&peer, "held", "try a %d", LONG_MS);
    assert_int_equal(take(client, LONG_MS, 0, &lock), HF_BUSY);
    peer_ask(&peer, "released", "release a");
    assert_int_equal(take(client, LONG_MS, LONG_MS, &lock), HF_OK);
    node_thaw(0);
    node_thaw(1);
    peer_ask(&peer, "busy", "try a %d", LONG_MS);
    assert_int_equal(hf_lock_release(lock, NULL), HF_OK);
}

static void c1_nobody_is_inside_with_them(void **state)
{
    (void)state;
    for (int i = 0; i < 10; i++) {
        struct turn turn = {0};
        int64_t from_us = peer_ask(&peer, "held", "wait a %d", LONG_MS);
        start_waiting(&turn);
        int64_t until_us = peer_ask(&peer, "released", "release a");
        pthread_join(turn.thread, NULL);
        assert_true(turn.got_us >= until_us && until_us >= from_us);
        peer_tell(&peer, "wait a %d", LONG_MS);
        int64_t our_end_us = now_us();
        assert_int_equal(hf_lock_release(turn.lock, NULL), HF_OK);
        assert_true(peer_says(&peer, "held") >= our_end_us);
        peer_ask(&peer, "released", "release a");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(c1_they_hold_we_wait, set_up, tear_down),
        cmocka_unit_test_setup_teardown(c1_we_hold_they_wait, set_up, tear_down),
        cmocka_unit_test_setup_teardown(c3_they_crash_and_their_time_runs_out, set_up, tear_down),
        cmocka_unit_test_setup_teardown(c3_we_crash_and_our_time_runs_out, set_up, tear_down),
        cmocka_unit_test_setup_teardown(c7_our_keys_deleted_are_lost_and_theirs_are_left_alone,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(c2_their_late_release_does_not_free_ours, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(c1_two_servers_stand_still, set_up, tear_down),
        cmocka_unit_test_setup_teardown(c1_nobody_is_inside_with_them, set_up, tear_down),
    };

    if (!nodes_find())
        return 77;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    nodes_stop();
    return failed;
}
