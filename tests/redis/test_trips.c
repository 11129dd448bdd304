/* One round trip per operation: what the server is sent, as MONITOR shows it, counted. */
#include <stdlib.h>

#include "redis/live.h"

static redisContext *monitor;

static int set_up_monitor(void **state)
{
    set_up(state);
    monitor = stranger();
    freeReplyObject(ask(monitor, "MONITOR"));
    return 0;
}

static int tear_down_monitor(void **state)
{
    redisFree(monitor);
    return tear_down(state);
}

/* What came since the last look. Our clients come by TCP; the test by the socket, and what a script
 * calls has "lua" there. */
struct seen {
    size_t commands; /* of any kind */
    size_t scripts;  /* by their digest */
    size_t keys;     /* most of one call */
};

static void note_line(struct seen *seen, const char *line)
{
    static const char script[] = "] \"EVALSHA\" \"";
    const char *at = strstr(line, script);

    if (strstr(line, " 127.0.0.1:") == NULL)
        return;
    seen->commands++;
    if (at == NULL)
        return;
    seen->scripts++;
    size_t keys = strtoul(at + sizeof script - 1 + 40 + 3, NULL, 10); /* behind the digest */
    seen->keys = keys > seen->keys ? keys : seen->keys;
}

static struct seen look(void)
{
    struct seen seen = {0};
    bool over = false;

    freeReplyObject(ask(redis, "ECHO that-is-all"));
    while (!over) {
        redisReply *reply = NULL;
        assert_int_equal(redisGetReply(monitor, (void **)&reply), REDIS_OK);
        note_line(&seen, reply->str);
        over = strstr(reply->str, "\"that-is-all\"") != NULL;
        freeReplyObject(reply);
    }
    return seen;
}

static void assert_one_trip(const char *what)
{
    struct seen seen = look();

    check_number(what, (int64_t)seen.commands, 1);
    check_number(what, (int64_t)seen.scripts, 1);
}

/* Nobody asserts while the server is taught the scripts, and connections are made. */
static void check_trip(const char *what, bool warm)
{
    if (warm)
        assert_one_trip(what);
    else
        look();
}

struct two {
    hf_client *client, *other;
};

/* What only some ask for. */
static void do_more(const struct two *two, bool warm)
{
    char value[HF_VALUE_MAX], *text;
    hf_lock *lock;
    size_t len;

    assert_int_equal(try_lock(two->client, "c", 60000, &lock), HF_OK);
    text = ask_text(redis, "GET holdfast.b:{holdfast:c}");
    assert_int_equal(text[16], 'H'); /* as quiet as ever */
    free(text);
    look();
    assert_int_equal(hf_lock_value(lock, value, sizeof value, &len, NULL, NULL), HF_OK);
    check_trip("read", warm);
    assert_int_equal(hf_lock_set_value(lock, "x", 1, NULL), HF_OK);
    check_trip("write", warm);
    assert_int_equal(hf_lock_set_value(lock, NULL, 0, NULL), HF_OK);
    look();
    assert_int_equal(hf_lock_release_after(lock, 1000000, NULL), HF_OK);
    check_trip("release after", warm);
    assert_true(ask_number(redis, "PTTL holdfast:c") > 900000);
    freeReplyObject(ask(redis, "DEL holdfast:c holdfast.b:{holdfast:c}"));
    look();
}

static void do_each(const struct two *two, bool warm)
{
    hf_query query = {.size = sizeof query, .name = "a", .name_len = HF_NTS};
    char sequencer[HF_SEQUENCER_MAX];
    hf_lock *lock, *none;
    hf_view *view;

    assert_int_equal(try_lock(two->client, "a", 60000, &lock), HF_OK);
    check_trip("attempt", warm);
    assert_int_equal(try_lock(two->other, "a", 60000, &none), HF_BUSY);
    check_trip("attempt that is busy", warm);
    assert_int_equal(hf_lock_renew(lock, NULL), HF_OK);
    check_trip("renew", warm);
    assert_int_equal(hf_inspect(two->client, &query, &view, NULL), HF_OK);
    hf_view_free(view);
    check_trip("inspect", warm);
    assert_int_equal(hf_lock_sequencer(lock, sequencer, sizeof sequencer), HF_OK);
    assert_int_equal(hf_check(two->client, sequencer, NULL), HF_OK);
    check_trip("check", warm);
    assert_int_equal(hf_lock_release(lock, NULL), HF_OK);
    check_trip("release", warm);
    do_more(two, warm);
    assert_int_equal(try_lock(two->client, "b", 60000, &lock), HF_OK);
    look();
    assert_int_equal(hf_break(two->other, "b", HF_NTS, hf_lock_ticket(lock), 1, NULL), HF_OK);
    check_trip("break", warm);
    assert_int_equal(hf_lock_release(lock, NULL), HF_STALE);
    look();
}

static void each_operation_is_one_round_trip(void **state)
{
    struct two two = {open_live(""), open_live("")};

    (void)state;
    do_each(&two, false);
    do_each(&two, true);
    hf_close(two.client);
    hf_close(two.other);
}

static void give_up(const struct two *two, bool warm)
{
    struct waiter w = {0};
    hf_cancel *cancel;

    assert_int_equal(hf_cancel_new(&cancel), HF_OK);
    w.opt = (hf_options)HF_OPTIONS_INIT;
    w.opt.cancel = cancel;
    wait_in_thread(&w, two->other, "a");
    await_waiting(two->client, "a", 1);
    for (int64_t until_ms = now_ms() + AWAIT_MS; look().commands > 0;) { /* until it only waits */
        assert_true(now_ms() < until_ms);
        sleep_ms(50);
    }
    hf_cancel_fire(cancel);
    assert_int_equal(join_waiter(&w), HF_CANCELLED);
    check_trip("withdraw", warm);
    hf_cancel_free(cancel);
}

static void withdraw_is_one_round_trip(void **state)
{
    struct two two = {open_live(""), open_live("")};
    hf_lock *lock;

    (void)state;
    assert_int_equal(try_lock(two.client, "a", 60000, &lock), HF_OK);
    give_up(&two, false);
    give_up(&two, true);
    assert_int_equal(hf_lock_release(lock, NULL), HF_OK);
    hf_close(two.other);
    hf_close(two.client);
}

#define LOCKS 20

static int all_are_renewed(void *ctx)
{
    hf_lock **locks = ctx;

    for (int i = 0; i < LOCKS; i++) {
        if (ask_number(redis, "PTTL holdfast:n%d", i) < 2000)
            return 0;
        assert_int_not_equal(hf_lock_state(locks[i]), HF_STATE_LOST);
    }
    return 1;
}

static int one_is_due(void *ctx)
{
    (void)ctx;
    return ask_number(redis, "PTTL holdfast:n0") < 2000;
}

static void many_locks_are_renewed_in_one_call(void **state)
{
    hf_client *client = open_live("");
    hf_lock *locks[LOCKS];
    char name[16];

    (void)state;
    for (size_t i = 0; i < LOCKS; i++) {
        snprintf(name, sizeof name, "n%zu", i);
        assert_int_equal(try_lock(client, name, 2400, &locks[i]), HF_OK);
    }
    await("a renewal to be near", one_is_due, NULL);
    look();
    await("all to be renewed", all_are_renewed, locks);
    struct seen seen = look();
    assert_in_range(seen.scripts, 1, LOCKS / 4);
    assert_true(seen.keys > 2); /* key and book of each */
    for (size_t i = 0; i < LOCKS; i++)
        assert_int_equal(hf_lock_release(locks[i], NULL), HF_OK);
    hf_close(client);
}

static void flushed_script_costs_one_more_trip_once(void **state)
{
    hf_client *client = open_live("");
    hf_lock *lock;

    (void)state;
    for (int round = 0; round < 3; round++) {
        if (round == 1)
            freeReplyObject(ask(redis, "SCRIPT FLUSH"));
        look();
        assert_int_equal(try_lock(client, "a", 60000, &lock), HF_OK);
        if (round > 0) /* by its digest, and then by its text */
            assert_int_equal(look().commands, round == 1 ? 2 : 1);
        assert_int_equal(hf_lock_release(lock, NULL), HF_OK);
    }
    hf_close(client);
}

/* What a trail costs is in the same round trips, and its key is there only for who asks for it. */
static void trail_costs_no_round_trip(void **state)
{
    hf_client *plain = open_live(""), *writer = open_live("history=5");
    hf_lock *lock;

    (void)state;
    for (int round = 0; round < 10; round++) {
        hf_client *client = round < 5 ? plain : writer;
        assert_int_equal(try_lock(client, "t", 60000, &lock), HF_OK);
        check_trip("attempt", round % 5 > 0);
        assert_int_equal(hf_lock_release(lock, NULL), HF_OK);
        check_trip("release", round % 5 > 0);
        int64_t entries = ask_number(redis, "XLEN holdfast.h:{holdfast:t}");
        check_number("entries", entries, round < 5 ? 0 : round - 4);
        look();
    }
    assert_true(ask_number(redis, "PTTL holdfast.h:{holdfast:t}") > 0);
    hf_close(writer);
    hf_close(plain);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_monitor, tear_down_monitor)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_operation_is_one_round_trip),   TEST(withdraw_is_one_round_trip),
        TEST(many_locks_are_renewed_in_one_call), TEST(flushed_script_costs_one_more_trip_once),
        TEST(trail_costs_no_round_trip),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
