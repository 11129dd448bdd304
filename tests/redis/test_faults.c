/* What goes wrong on the way to a server (C6, C7): replies that are lost, requests that come late,
 * connections that are cut, a server that pauses or forgets its scripts. */
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
    hf_client *client = open_behind("op_timeout=2s");
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
    opt.patience_ms = AWAIT_MS;
    assert_int_equal(hf_acquire(client, "c", HF_NTS, &opt, &lock, &err), HF_OK);
    hf_lock_release(lock, NULL);
    hf_close(client);
}

/* A link whose round trip is longer than the lease: nothing that is granted lasts until it is known.
 * The wait ends by its limit, and nothing is left. */
static void c5_link_slower_than_the_lease_ends_with_the_wait(void **state)
{
    hf_client *client = open_behind("op_timeout=2s");
    hf_options opt = HF_OPTIONS_INIT;
    hf_lock *lock = NULL;
    hf_cancel *cancel;
    struct waiter w = {0};

    (void)state;
    opt.ttl_ms = 300;
    opt.wait_ms = 1500;
    proxy_set(proxy, PROXY_DELAY, 200);
    int code = hf_acquire(client, "a", HF_NTS, &opt, &lock, NULL);
    assert_true(code != HF_OK);
    assert_int_equal(hf_cancel_new(&cancel), HF_OK);
    w.opt = (hf_options)HF_OPTIONS_INIT;
    w.opt.ttl_ms = 300;
    w.opt.cancel = cancel;
    wait_in_thread(&w, client, "b");
    sleep_ms(1000); /* it goes on asking */
    hf_cancel_fire(cancel);
    assert_int_not_equal(join_waiter(&w), HF_OK);
    hf_cancel_free(cancel);
    proxy_set(proxy, PROXY_PASS, 0);
    await("nothing to be left", is_free, (char[]){"a"});
    await("nothing to be left", is_free, (char[]){"b"});
    hf_close(client);
}

/* Whoever has many keys for other things: going through them takes longer than one request may. */
static void many_keys_are_gone_through_page_by_page(void **state)
{
    static const char fill[] = "for i = 1, 10000 do redis.call('SET', 'x' .. i, '') end";
    hf_client *client = open_behind("op_timeout=1s");
    hf_query all = {.size = sizeof all};
    hf_view *view = NULL;
    hf_error err = {0};
    uint64_t purged;

    (void)state;
    freeReplyObject(ask(redis, "EVAL %s 0", fill));
    hf_lock *lock = take_free(client, "a", 60000);
    proxy_set(proxy, PROXY_DELAY, 40); /* 80 ms a page, of which there are about twenty */
    int listed = hf_inspect(client, &all, &view, &err);
    int gone = hf_purge(client, 1, &purged, &err);
    proxy_set(proxy, PROXY_PASS, 0);
    check_number(err.text, listed, HF_OK);
    check_number("entries", (int64_t)hf_view_count(view), 1);
    hf_view_free(view);
    check_number(err.text, gone, HF_OK);
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

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_proxy, tear_down_proxy)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(c6_reply_lost_after_the_script_ran_is_adopted),
        TEST(c5_attempt_that_comes_after_its_withdraw_is_not_granted),
        TEST(c5_late_attempt_for_ever_is_not_granted_either),
        TEST(c6_server_that_stays_away_is_unknown_or_unavailable),
        TEST(c5_link_slower_than_the_lease_ends_with_the_wait),
        TEST(many_keys_are_gone_through_page_by_page),
        TEST(c6_bad_ways_change_nothing),
        TEST(c6_connection_cut_anywhere_leaves_one_outcome),
        TEST(c6_scripts_that_were_flushed_are_taught_again),
        TEST(c6_killed_connections_are_replaced),
        TEST(c7_pause_of_twice_the_ttl_is_a_loss_told_in_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
