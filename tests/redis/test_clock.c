/* The generation that a bid brings along: what a connection knows of the server's clock (clock.c),
 * and that nothing hangs on it but the short way. */
#include "lib/proxy.h"
#include "live.h"

/* A client whose connection knows the time. */
static hf_client *open_knowing(const char *url)
{
    hf_client *client = open_url(url);
    hf_lock *lock = NULL;

    assert_int_equal(try_lock(client, "first", 30000, &lock), HF_OK);
    hf_lock_release(lock, NULL);
    return client;
}

static void c4_a_quiet_pair_is_five_commands_and_reads_no_clock(void **state)
{
    hf_client *client = open_knowing(url_of(0, ""));
    uint64_t last = 0, generation = 0;
    hf_lock *lock = NULL;

    (void)state;
    freeReplyObject(ask(redis, "CONFIG RESETSTAT"));
    for (int i = 0; i < 50; i++) {
        assert_int_equal(try_lock(client, "a", 30000, &lock), HF_OK);
        hf_lock_generation(lock, &generation);
        assert_true(generation > last);
        last = generation;
        assert_int_equal(hf_lock_release(lock, NULL), HF_OK);
    }
    check_number("scripts", calls_of("evalsha"), 100);
    check_number("keys set", calls_of("set"), 50);
    check_number("books written", calls_of("getset"), 50);
    check_number("keys compared", calls_of("get"), 50);
    check_number("books freed", calls_of("setbit"), 50);
    check_number("keys deleted", calls_of("del"), 50);
    check_number("clocks read", calls_of("time"), 0);
    hf_close(client);
}

/* Somebody was let in by a clock that is ahead of ours. */
static void c4_generations_rise_beyond_what_the_clock_says(void **state)
{
    hf_client *client = open_knowing(url_of(0, ""));
    uint64_t generation = 0;
    hf_lock *lock = NULL;

    (void)state;
    freeReplyObject(ask(redis, "SET holdfast.b:{holdfast:a} 8000000000000000h"));
    for (uint64_t next = 8000000000000001; next <= 8000000000000003; next++) {
        assert_int_equal(try_lock(client, "a", 30000, &lock), HF_OK);
        hf_lock_generation(lock, &generation);
        check_number("generation", (int64_t)generation, (int64_t)next);
        assert_int_equal(hf_lock_release(lock, NULL), HF_OK);
    }
    hf_close(client);
}

/* What the short way began is undone where it cannot be taken. */
static void c2_a_book_that_is_none_leaves_no_key(void **state)
{
    hf_client *client = open_knowing(url_of(0, ""));
    hf_lock *lock = NULL;

    (void)state;
    freeReplyObject(ask(redis, "LPUSH holdfast.b:{holdfast:a} somebody's"));
    assert_int_not_equal(try_lock(client, "a", 30000, &lock), HF_OK);
    check_number("keys", ask_number(redis, "EXISTS holdfast:a"), 0);
    check_number("entries", ask_number(redis, "LLEN holdfast.b:{holdfast:a}"), 1);
    hf_close(client);
}

/* A bid that was long on its way brings an old time along. Its lease counts from when it
 * arrived. */
static void c3_a_late_bid_has_its_whole_lease(void **state)
{
    struct proxy *proxy = proxy_start(getenv("HOLDFAST_TEST_REDIS"));
    hf_client *client = open_knowing(url_of(proxy_port(proxy), ""));
    hf_query query = {.size = sizeof query, .name = "a", .name_len = HF_NTS};
    hf_lock *lock = NULL;
    hf_view *view = NULL;

    (void)state;
    proxy_set(proxy, PROXY_DELAY, 700);
    assert_int_equal(try_lock(client, "a", 30000, &lock), HF_OK);
    proxy_set(proxy, PROXY_PASS, 0);
    long long before = ask_number(redis, "PTTL holdfast:a");
    assert_int_equal(hf_inspect(client, &query, &view, NULL), HF_OK);
    long long after = ask_number(redis, "PTTL holdfast:a");
    const hf_entry *e = hf_view_entry(view, 0);
    assert_non_null(e);
    assert_true(e->remaining_ms <= before + 1 && e->remaining_ms >= after - 1);
    hf_view_free(view);
    hf_lock_release(lock, NULL);
    hf_close(client);
    proxy_stop(proxy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(c4_a_quiet_pair_is_five_commands_and_reads_no_clock, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(c4_generations_rise_beyond_what_the_clock_says, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(c2_a_book_that_is_none_leaves_no_key, set_up, tear_down),
        cmocka_unit_test_setup_teardown(c3_a_late_bid_has_its_whole_lease, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
