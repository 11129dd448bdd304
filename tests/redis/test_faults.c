/* What goes wrong on one server and on the way to it (C6, C7): replies that are lost, requests that
 * come late, servers that die, pause, are full, read-only or loading. */
#include <stdlib.h>
#include <unistd.h>

#include "lib/proxy.h"
#include "redis/live.h"

static struct proxy *proxy;

static int set_up_proxy(void **state)
{
    proxy = proxy_start(getenv("HOLDFAST_TEST_REDIS"));
    return set_up(state);
}

static int tear_down_proxy(void **state)
{
    proxy_stop(proxy);
    return tear_down(state);
}

/* A client behind the proxy that has a connection in its pool. */
static hf_client *open_behind(const char *options)
{
    hf_client *client = open_url(url_of(proxy_port(proxy), options));
    hf_lock *lock = NULL;

    assert_int_equal(try_lock(client, "warm", 30000, &lock), HF_OK);
    assert_int_equal(hf_lock_release(lock, NULL), HF_OK);
    return client;
}

static int is_free(void *name)
{
    return ask_number(redis, "EXISTS holdfast:%s", name) == 0;
}

static void c6_reply_lost_after_the_script_ran_is_adopted(void **state)
{
    hf_client *client = open_behind("op_timeout=300ms");
    hf_lock *lock = NULL;

    (void)state;
    proxy_set(proxy, PROXY_S2C_HOLE, 0);
    assert_int_equal(try_lock(client, "a", 30000, &lock), HF_OK);
    char *value = ask_text(redis, "GET holdfast:a");
    assert_string_equal(value, hf_lock_ticket(lock));
    proxy_set(proxy, PROXY_S2C_HOLE, 0);
    /* "Stale" to the second try: the first one arrived (C2). */
    assert_int_equal(hf_lock_release(lock, NULL), HF_OK);
    assert_int_equal(ask_number(redis, "EXISTS holdfast:a"), 0);
    free(value);
    hf_close(client);
}

static int was_called(void *ctx)
{
    char *stats = ask_text(redis, "INFO commandstats");
    bool called = strstr(stats, "cmdstat_evalsha:calls=") != NULL;

    (void)ctx;
    free(stats);
    return called;
}

static void late_attempt(int64_t ttl_ms)
{
    hf_client *client = open_behind("op_timeout=300ms");
    hf_lock *lock = NULL;

    proxy_set(proxy, PROXY_C2S_HOLE, 0);
    size_t before = proxy_connections(proxy);
    assert_int_equal(try_lock(client, "a", ttl_ms, &lock), HF_OK); /* on another connection */
    assert_true(proxy_connections(proxy) > before);
    assert_int_equal(hf_lock_release(lock, NULL), HF_OK);
    freeReplyObject(ask(redis, "CONFIG RESETSTAT"));
    proxy_set(proxy, PROXY_PASS, 0);
    await("the first attempt to come, late", was_called, NULL);
    assert_int_equal(ask_number(redis, "EXISTS holdfast:a"), 0);
    hf_close(client);
}

static void c5_attempt_that_comes_after_its_withdraw_is_not_granted(void **state)
{
    (void)state;
    late_attempt(30000);
}

static void c5_late_attempt_for_ever_is_not_granted_either(void **state)
{
    (void)state;
    late_attempt(HF_NEVER);
}

static void c6_server_that_stays_away_is_unknown_or_unavailable(void **state)
{
    hf_client *client = open_behind("op_timeout=200ms");
    hf_lock *lock = NULL;
    hf_error err;
    hf_options opt = HF_OPTIONS_INIT;

    (void)state;
    opt.wait_ms = 0;
    proxy_set(proxy, PROXY_HOLE, 0);
    assert_int_equal(hf_acquire(client, "a", HF_NTS, &opt, &lock, &err), HF_UNKNOWN);
    assert_true(err.may_hold_ms > 0);
    proxy_set(proxy, PROXY_RST, 0);
    int code = hf_acquire(client, "b", HF_NTS, &opt, &lock, &err);
    assert_true(code == HF_UNAVAILABLE || code == HF_UNKNOWN);
    proxy_set(proxy, PROXY_PASS, 0);
    await("nothing to be left", is_free, (char[]){"a"});
    assert_int_equal(try_lock(client, "c", 30000, &lock), HF_OK);
    hf_lock_release(lock, NULL);
    hf_close(client);
}

static void c6_bad_ways_change_nothing(void **state)
{
    static const enum proxy_mode modes[] = {PROXY_SPLIT, PROXY_DELAY};
    hf_client *client = open_behind("op_timeout=5s");
    hf_lock *lock = NULL;

    (void)state;
    for (size_t i = 0; i < COUNT(modes); i++) {
        proxy_set(proxy, modes[i], 20);
        for (int n = 0; n < 10; n++) {
            assert_int_equal(try_lock(client, "a", 30000, &lock), HF_OK);
            assert_int_equal(hf_lock_release(lock, NULL), HF_OK);
        }
    }
    proxy_set(proxy, PROXY_PASS, 0);
    hf_close(client);
}

static void c6_connection_cut_anywhere_leaves_one_outcome(void **state)
{
    hf_client *client = open_behind("op_timeout=300ms");
    hf_lock *lock = NULL;

    (void)state;
    for (int bytes = 1; bytes < 40; bytes += 3) {
        proxy_set(proxy, PROXY_CUT, bytes);
        int code = try_lock(client, "a", 30000, &lock);
        proxy_set(proxy, PROXY_PASS, 0);
        if (code == HF_OK)
            assert_int_equal(hf_lock_release(lock, NULL), HF_OK);
        else
            assert_true(code == HF_UNAVAILABLE || code == HF_UNKNOWN);
        await("nothing to be left", is_free, (char[]){"a"});
    }
    hf_close(client);
}

static void c6_scripts_that_were_flushed_are_taught_again(void **state)
{
    hf_client *client = open_live("");
    hf_lock *lock = NULL;

    (void)state;
    freeReplyObject(ask(redis, "SCRIPT FLUSH"));
    assert_int_equal(try_lock(client, "a", 30000, &lock), HF_OK);
    freeReplyObject(ask(redis, "SCRIPT FLUSH"));
    assert_int_equal(hf_lock_renew(lock, NULL), HF_OK);
    freeReplyObject(ask(redis, "SCRIPT FLUSH"));
    assert_int_equal(hf_lock_release(lock, NULL), HF_OK);
    hf_close(client);
}

static void c6_killed_connections_are_replaced(void **state)
{
    hf_client *client = open_live("");
    hf_lock *lock = NULL;

    (void)state;
    for (int i = 0; i < 5; i++) {
        ask_number(redis, "CLIENT KILL TYPE normal SKIPME yes");
        assert_int_equal(try_lock(client, "a", 30000, &lock), HF_OK);
        ask_number(redis, "CLIENT KILL TYPE normal SKIPME yes");
        assert_int_equal(hf_lock_renew(lock, NULL) == HF_LOST, 0);
        ask_number(redis, "CLIENT KILL TYPE normal SKIPME yes");
        assert_int_equal(hf_lock_release(lock, NULL), HF_OK);
    }
    hf_close(client);
}

static void c7_pause_of_twice_the_ttl_is_a_loss_told_in_time(void **state)
{
    hf_client *client = open_live("op_timeout=200ms"), *patient = open_live("op_timeout=20s");
    hf_lock *lock = NULL, *other = NULL;
    struct waiter w = {0};

    (void)state;
    assert_int_equal(try_lock(client, "a", 600, &lock), HF_OK);
    freeReplyObject(ask(redis, "CLIENT PAUSE 1200 ALL"));
    wait_in_thread(&w, patient, "a");
    assert_true(try_lock(client, "b", HF_NEVER, &other) < 0);
    assert_int_equal(join_waiter(&w), HF_OK);
    assert_int_equal(hf_lock_state(lock), HF_STATE_LOST); /* before the server gave it away */
    assert_int_equal(hf_lock_release(lock, NULL), HF_STALE);
    assert_int_equal(hf_lock_release(w.lock, NULL), HF_OK);
    await("nothing to be left", is_free, (char[]){"b"});
    await("nothing to be left", is_free, (char[]){"a"});
    hf_close(client);
    hf_close(patient);
}

static void c6_full_server_refuses_bids_and_lets_go(void **state)
{
    hf_client *client = open_live("");
    hf_lock *lock = NULL, *other = NULL;
    hf_options no_wait = {.size = sizeof no_wait};
    struct waiter w = {0};
    hf_error err;

    (void)state;
    assert_int_equal(try_lock(client, "a", 30000, &lock), HF_OK);
    w.opt = (hf_options)HF_OPTIONS_INIT;
    w.opt.owner = 2;
    wait_in_thread(&w, client, "a");
    await_waiting(client, "a", 1);
    freeReplyObject(ask(redis, "CONFIG SET maxmemory 1"));
    int refused = hf_acquire(client, "b", HF_NTS, &no_wait, &other, &err);
    int renewed = hf_lock_renew(lock, NULL);
    int released = hf_lock_release(lock, NULL);
    int waited = join_waiter(&w);
    int second = waited == HF_OK ? hf_lock_release(w.lock, NULL) : HF_OK;
    freeReplyObject(ask(redis, "CONFIG SET maxmemory 0"));
    assert_int_equal(refused, HF_FULL);
    check_text("text", err.text, "acquire 'b': the server's memory is full; raise maxmemory");
    assert_int_equal(renewed, HF_OK);
    assert_int_equal(released, HF_OK);
    assert_int_equal(waited, HF_OK);
    assert_int_equal(second, HF_OK);
    hf_close(client);
}

/* Who waits already asks again now and then, and needs no more memory for it. */
static void c6_full_server_keeps_those_who_wait(void **state)
{
    hf_client *holder = open_live(""), *client = open_live("recheck=100ms");
    hf_lock *lock = NULL;
    struct waiter w = {0};

    (void)state;
    assert_int_equal(try_lock(holder, "a", 30000, &lock), HF_OK);
    wait_in_thread(&w, client, "a");
    await_waiting(holder, "a", 1);
    freeReplyObject(ask(redis, "CONFIG SET maxmemory 1"));
    freeReplyObject(ask(redis, "CONFIG RESETSTAT"));
    await("the waiter to ask again", was_called, NULL);
    int released = hf_lock_release(lock, NULL);
    int waited = join_waiter(&w);
    freeReplyObject(ask(redis, "CONFIG SET maxmemory 0"));
    assert_int_equal(released, HF_OK);
    assert_int_equal(waited, HF_OK);
    assert_int_equal(hf_lock_release(w.lock, NULL), HF_OK);
    hf_close(client);
    hf_close(holder);
}

static void c6_read_only_replica_says_so(void **state)
{
    hf_client *client = open_live("op_timeout=300ms");
    hf_options opt = HF_OPTIONS_INIT;
    hf_lock *lock = NULL;
    hf_error err;

    (void)state;
    opt.wait_ms = 0;
    freeReplyObject(ask(redis, "REPLICAOF 127.0.0.1 1"));
    int code = hf_acquire(client, "a", HF_NTS, &opt, &lock, &err);
    freeReplyObject(ask(redis, "REPLICAOF NO ONE"));
    assert_int_equal(code, HF_UNAVAILABLE);
    check_contains("text", err.text, "READONLY");
    assert_int_equal(try_lock(client, "a", 30000, &lock), HF_OK);
    hf_lock_release(lock, NULL);
    hf_close(client);
}

static const char *const durable[] = {"--appendonly", "yes", "--appendfsync", "always", NULL};

static void c7_restart_without_data_is_a_loss(void **state)
{
    struct server server = {0};
    hf_lock *lock = NULL, *other = NULL;
    uint64_t first, second;

    (void)state;
    server_start(&server, NULL);
    hf_client *client = open_url(url_of(server.port, "op_timeout=500ms"));
    assert_int_equal(try_lock(client, "a", 60000, &lock), HF_OK);
    hf_lock_generation(lock, &first);
    server_kill(&server);
    int code = hf_lock_renew(lock, NULL);
    assert_true(code == HF_UNAVAILABLE || code == HF_UNKNOWN);
    assert_int_equal(hf_lock_state(lock) == HF_STATE_LOST,
                     0); /* perhaps it comes back with its data */
    server_start(&server, NULL);
    assert_int_equal(hf_lock_renew(lock, NULL), HF_LOST);
    assert_int_equal(hf_lock_release(lock, NULL), HF_STALE);
    assert_int_equal(try_lock(client, "a", 60000, &other), HF_OK);
    hf_lock_generation(other, &second);
    assert_true(second > first); /* C4, although the counter was lost */
    hf_lock_release(other, NULL);
    hf_close(client);
    server_clear(&server);
}

static void c3_restart_with_data_keeps_locks(void **state)
{
    struct server server = {0};
    hf_lock *lock = NULL, *never = NULL, *other = NULL;

    (void)state;
    server_start(&server, durable);
    hf_client *client = open_url(url_of(server.port, "op_timeout=500ms"));
    assert_int_equal(try_lock(client, "a", 60000, &lock), HF_OK);
    assert_int_equal(try_lock(client, "n", HF_NEVER, &never), HF_OK);
    server_kill(&server);
    server_start(&server, durable);
    hf_client *stranger_client = open_url(url_of(server.port, ""));
    assert_int_equal(try_lock(stranger_client, "a", 60000, &other), HF_BUSY);
    assert_int_equal(try_lock(stranger_client, "n", 60000, &other), HF_BUSY);
    assert_int_equal(hf_lock_renew(lock, NULL), HF_OK);
    assert_int_equal(hf_lock_release(lock, NULL), HF_OK);
    assert_int_equal(hf_lock_release(never, NULL), HF_OK);
    hf_close(stranger_client);
    hf_close(client);
    server_clear(&server);
}

static void c6_loading_server_is_waited_for(void **state)
{
    static const char *const slow[] = {"--key-load-delay", "10000",
                                       "--loading-process-events-interval-bytes", "1024", NULL};
    struct server server = {0};
    hf_lock *lock = NULL;
    hf_options opt = HF_OPTIONS_INIT;
    hf_error err;

    (void)state;
    opt.wait_ms = 0;
    server_start(&server, (const char *const[]){"--enable-debug-command", "local", NULL});
    redisContext *plain = server_stranger(&server);
    freeReplyObject(ask(plain, "DEBUG POPULATE 400 x 100"));
    freeReplyObject(ask(plain, "SAVE"));
    redisFree(plain);
    server_kill(&server);
    server_start(&server, slow); /* answers, but says LOADING */
    hf_client *hasty = open_url(url_of(server.port, "op_timeout=1s"));
    assert_int_equal(hf_acquire(hasty, "a", HF_NTS, &opt, &lock, &err), HF_UNAVAILABLE);
    check_contains("text", err.text, "LOADING");
    hf_client *patient = open_url(url_of(server.port, "op_timeout=20s"));
    assert_int_equal(try_lock(patient, "a", 60000, &lock), HF_OK);
    assert_int_equal(hf_lock_release(lock, NULL), HF_OK);
    hf_close(hasty);
    hf_close(patient);
    server_clear(&server);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_proxy, tear_down_proxy)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(c6_reply_lost_after_the_script_ran_is_adopted),
        TEST(c5_attempt_that_comes_after_its_withdraw_is_not_granted),
        TEST(c5_late_attempt_for_ever_is_not_granted_either),
        TEST(c6_server_that_stays_away_is_unknown_or_unavailable),
        TEST(c6_bad_ways_change_nothing),
        TEST(c6_connection_cut_anywhere_leaves_one_outcome),
        TEST(c6_scripts_that_were_flushed_are_taught_again),
        TEST(c6_killed_connections_are_replaced),
        TEST(c7_pause_of_twice_the_ttl_is_a_loss_told_in_time),
        TEST(c6_full_server_refuses_bids_and_lets_go),
        TEST(c6_full_server_keeps_those_who_wait),
        TEST(c6_read_only_replica_says_so),
        TEST(c7_restart_without_data_is_a_loss),
        TEST(c3_restart_with_data_keeps_locks),
        TEST(c6_loading_server_is_waited_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
