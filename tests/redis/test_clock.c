/* The generation that a bid brings along: what a connection knows of the server's clock (clock.c),
 * and that nothing hangs on it but the short way. */
#include <stdlib.h>

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
    for (int i = -1; i < 50; i++) {
        if (i ==
            0) { /* without a book the server's clock was read, which is a little ahead of ours */
            sleep_ms(50);
            freeReplyObject(ask(redis, "CONFIG RESETSTAT"));
        }
        assert_int_equal(try_lock(client, "a", 30000, &lock), HF_OK);
        hf_lock_generation(lock, &generation);
        assert_true(generation > last);
        last = generation;
        assert_int_equal(hf_lock_release(lock, NULL), HF_OK);
    }
    check_number("scripts", calls_of("evalsha"), 100);
    check_number("keys set, and books", calls_of("set"), 100);
    check_number("keys compared", calls_of("get"), 50);
    check_number("books freed", calls_of("setbit"), 50);
    check_number("keys deleted", calls_of("del"), 50);
    check_number("clocks read", calls_of("time"), 0);
    hf_close(client);
}

static uint64_t token_of(hf_lock *lock)
{
    uint64_t generation = 0;

    assert_int_equal(hf_lock_generation(lock, &generation), HF_OK);
    assert_int_equal(hf_lock_release(lock, NULL), HF_OK);
    return generation;
}

static void forget_all(hf_client *client)
{
    (void)client;
    freeReplyObject(ask(redis, "FLUSHALL"));
}

static void purge_all(hf_client *client)
{
    int64_t until_ms = now_ms() + AWAIT_MS;
    uint64_t purged;

    while (ask_number(redis, "EXISTS holdfast.b:{holdfast:a}") == 1 && now_ms() < until_ms)
        assert_int_equal(hf_purge(client, 1, &purged, NULL), HF_OK);
}

/* A client that was told the time late (it was frozen, or its link is slow) believes that it is
 * earlier than it is. */
static void late_reading(void (*lose_book)(hf_client *))
{
    struct proxy *proxy = proxy_start(getenv("HOLDFAST_TEST_REDIS"));
    hf_client *late = open_url(url_of(proxy_port(proxy), "op_timeout=20s"));
    hf_client *other = open_knowing(url_of(0, ""));

    proxy_set(proxy, PROXY_DELAY, 1500);
    token_of(take_free(late, "first", 30000));
    proxy_set(proxy, PROXY_PASS, 0);
    uint64_t before = token_of(take_free(other, "a", 30000));
    lose_book(other);
    uint64_t after = token_of(take_free(late, "a", 30000));
    assert_true(after > before);
    hf_close(other);
    hf_close(late);
    proxy_stop(proxy);
}

/* A bid that looked at the clock long before it arrives: its client was frozen, or the network was. */
static void late_bid(void (*lose_book)(hf_client *))
{
    struct proxy *proxy = proxy_start(getenv("HOLDFAST_TEST_REDIS"));
    hf_client *late = open_knowing(url_of(proxy_port(proxy), "op_timeout=20s"));
    hf_client *other = open_knowing(url_of(0, ""));
    struct waiter w = {0};
    size_t sent = proxy_sent(proxy);
    int64_t until_ms = now_ms() + AWAIT_MS;

    proxy_set(proxy, PROXY_C2S_HOLE, 0);
    wait_in_thread(&w, late, "a");
    while (proxy_sent(proxy) == sent && now_ms() < until_ms)
        sleep_ms(1);
    uint64_t before = token_of(take_free(other, "a", 30000));
    lose_book(other);
    proxy_set(proxy, PROXY_PASS, 0);
    assert_int_equal(join_waiter(&w), HF_OK);
    assert_true(token_of(w.lock) > before);
    hf_close(other);
    hf_close(late);
    proxy_stop(proxy);
}

static void c4_late_reading_and_lost_data(void **state)
{
    (void)state;
    late_reading(forget_all);
}

static void c4_late_reading_and_purged_book(void **state)
{
    (void)state;
    late_reading(purge_all);
}

static void c4_late_bid_and_lost_data(void **state)
{
    (void)state;
    late_bid(forget_all);
}

static void c4_late_bid_and_purged_book(void **state)
{
    (void)state;
    late_bid(purge_all);
}

/* Where the book is there, one that is behind goes on from it, and stays on the short way. */
static void c4_late_reading_goes_on_from_the_book(void **state)
{
    hf_client *client = open_knowing(url_of(0, ""));
    char *text = ask_text(redis, "GET holdfast.b:{holdfast:first}");
    uint64_t last = strtoull(text, NULL, 10) + 3000000; /* 3 s ahead of what the client knows */

    (void)state;
    free(text);
    freeReplyObject(ask(redis,
                        "SET holdfast.b:{holdfast:a} %llu"
                        "h",
                        (unsigned long long)last));
    freeReplyObject(ask(redis, "CONFIG RESETSTAT"));
    check_number("token", (int64_t)token_of(take_free(client, "a", 30000)), (int64_t)last + 1);
    check_number("token", (int64_t)token_of(take_free(client, "a", 30000)), (int64_t)last + 2);
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
        cmocka_unit_test_setup_teardown(c4_late_reading_and_lost_data, set_up, tear_down),
        cmocka_unit_test_setup_teardown(c4_late_reading_and_purged_book, set_up, tear_down),
        cmocka_unit_test_setup_teardown(c4_late_bid_and_lost_data, set_up, tear_down),
        cmocka_unit_test_setup_teardown(c4_late_bid_and_purged_book, set_up, tear_down),
        cmocka_unit_test_setup_teardown(c4_late_reading_goes_on_from_the_book, set_up, tear_down),
        cmocka_unit_test_setup_teardown(c4_generations_rise_beyond_what_the_clock_says, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(c2_a_book_that_is_none_leaves_no_key, set_up, tear_down),
        cmocka_unit_test_setup_teardown(c3_a_late_bid_has_its_whole_lease, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
