/* Locks shared with clients that know nothing but SET NX PX: the key is the truth, the rest are
 * notes. */
#include <pthread.h>
#include <stdlib.h>

#include "redis/live.h"

static long long set_nx(const char *key, const char *value, int px)
{
    redisReply *reply = ask(redis, "SET %s %s NX PX %d", key, value, px);
    bool set = reply->type == REDIS_REPLY_STATUS;

    freeReplyObject(reply);
    return set;
}

static hf_lock *hold(hf_client *client, const char *name, hf_options *opt)
{
    hf_lock *lock = NULL;
    hf_error err;

    if (hf_acquire(client, name, HF_NTS, opt, &lock, &err) != HF_OK)
        fail_msg("acquire: %s", err.text);
    return lock;
}

static void c1_the_record_is_the_plain_key(void **state)
{
    hf_client *client = open_live("");
    hf_lock *lock = NULL;

    (void)state;
    assert_int_equal(try_lock(client, "a", 30000, &lock), HF_OK);
    char *value = ask_text(redis, "GET holdfast:a");
    assert_string_equal(value, hf_lock_ticket(lock));
    long long pttl = ask_number(redis, "PTTL holdfast:a");
    assert_true(pttl > 25000 && pttl <= 30000);
    assert_false(set_nx("holdfast:a", "stranger", 1000));
    assert_int_equal(hf_lock_release(lock, NULL), HF_OK);
    assert_true(set_nx("holdfast:a", "stranger", 100000));
    assert_int_equal(try_lock(client, "a", 30000, &lock), HF_BUSY);
    free(value);
    hf_close(client);
}

/* Of another version, or of somebody who has written where he should not. */
static void c1_book_that_cannot_be_read_says_nothing(void **state)
{
    static const char *const books[] = {
        "0000000000000042b1 2 3 4 5 0:0 0123456789abcdef0123456789abcdef",
        "0000000000000042b",
        "0000000000000042b1 2 3 4 5 6 0:0 0123456789abcdef0123456789abcdef rubbish",
        "0000000000000042Hrubbish",
        "0000000000000042d",
        "rubbish",
    };
    hf_client *client = open_live("");
    uint64_t generation = 0;
    hf_lock *lock = NULL;

    (void)state;
    for (size_t i = 0; i < sizeof books / sizeof books[0]; i++) {
        freeReplyObject(ask(redis, "SET holdfast.b:{holdfast:a} %s", books[i]));
        assert_true(set_nx("holdfast:a", "0123456789abcdef0123456789abcdef", 100000));
        check_number(books[i], try_lock(client, "a", 30000, &lock), HF_BUSY);
        freeReplyObject(ask(redis, "SET holdfast.b:{holdfast:a} %s", books[i]));
        freeReplyObject(ask(redis, "DEL holdfast:a"));
        check_number(books[i], try_lock(client, "a", 30000, &lock), HF_OK);
        assert_int_equal(hf_lock_generation(lock, &generation), HF_OK);
        assert_true(generation > 42);
        assert_int_equal(hf_lock_release(lock, NULL), HF_OK);
    }
    hf_close(client);
}

static void c1_key_format_meets_others_on_their_keys(void **state)
{
    hf_client *bare = open_live("key_format=%25s"), *prefixed = open_live("key_format=lock:%25s");
    hf_lock *lock = NULL, *other = NULL;

    (void)state;
    assert_int_equal(try_lock(bare, "lock:job", 30000, &lock), HF_OK);
    assert_int_equal(try_lock(prefixed, "job", 30000, &other), HF_BUSY);
    assert_int_equal(hf_lock_release(lock, NULL), HF_OK);
    assert_int_equal(try_lock(prefixed, "job", 30000, &other), HF_OK);
    assert_false(set_nx("lock:job", "x", 1000));
    hf_lock_release(other, NULL);
    assert_int_equal(try_lock(bare, "holdfast.b:{x}", 30000, &lock), HF_INVALID);
    hf_close(bare);
    hf_close(prefixed);
}

static void c1_foreign_type_is_held_by_somebody_else(void **state)
{
    hf_client *client = open_live("");
    hf_lock *lock = NULL;

    (void)state;
    freeReplyObject(ask(redis, "HSET holdfast:a owner 1"));
    assert_int_equal(try_lock(client, "a", 30000, &lock), HF_BUSY);
    freeReplyObject(ask(redis, "DEL holdfast:a"));
    assert_int_equal(try_lock(client, "a", 30000, &lock), HF_OK);
    assert_int_equal(hf_lock_release(lock, NULL), HF_OK);
    hf_close(client);
}

static void c7_key_deleted_by_a_stranger_is_lost(void **state)
{
    hf_client *client = open_live("");
    hf_lock *lock = NULL;
    hf_error err;

    (void)state;
    assert_int_equal(try_lock(client, "a", 3000, &lock), HF_OK);
    freeReplyObject(ask(redis, "DEL holdfast:a"));
    assert_int_equal(hf_lock_renew(lock, &err), HF_LOST);
    assert_int_equal(hf_lock_release(lock, NULL), HF_STALE);
    hf_close(client);
}

static void c2_key_taken_by_a_stranger_is_left_alone(void **state)
{
    hf_client *client = open_live("");
    hf_lock *lock = NULL;

    (void)state;
    assert_int_equal(try_lock(client, "a", 6000, &lock), HF_OK); /* renewed after 2 s */
    freeReplyObject(ask(redis, "SET holdfast:a thief PX 100000"));
    await_lost(lock);
    assert_int_equal(hf_lock_cause(lock), HF_CAUSE_GONE);
    assert_int_equal(hf_lock_release(lock, NULL), HF_STALE);
    char *value = ask_text(redis, "GET holdfast:a");
    assert_string_equal(value, "thief");
    free(value);
    hf_close(client);
}

static void c9_marker_of_readers_lasts_as_long_as_the_longest(void **state)
{
    hf_client *client = open_live("");
    hf_options opt = HF_OPTIONS_INIT;
    hf_lock *shorter, *longer, *again;

    (void)state;
    opt.mode = HF_SHARED;
    opt.by_hand = 1;
    opt.owner = 1;
    opt.ttl_ms = 100000;
    longer = hold(client, "a", &opt);
    opt.owner = 2;
    opt.ttl_ms = 50000;
    shorter = hold(client, "a", &opt);
    assert_true(ask_number(redis, "PTTL holdfast:a") > 90000);
    assert_false(set_nx("holdfast:a", "writer", 1000));
    assert_int_equal(hf_lock_release(longer, NULL), HF_OK);
    long long pttl = ask_number(redis, "PTTL holdfast:a");
    assert_true(pttl > 40000 && pttl <= 50000);
    opt.owner = 3;
    again = hold(client, "a", &opt);
    assert_int_equal(hf_lock_release(again, NULL), HF_OK);
    assert_int_equal(hf_lock_release(shorter, NULL), HF_OK);
    assert_int_equal(ask_number(redis, "EXISTS holdfast:a"), 0);
    hf_close(client);
}

static void c9_missing_marker_voids_the_readers(void **state)
{
    hf_client *client = open_live(""), *other = open_live("");
    hf_options opt = HF_OPTIONS_INIT;
    hf_lock *reader, *writer = NULL;

    (void)state;
    opt.mode = HF_SHARED;
    opt.by_hand = 1;
    reader = hold(client, "a", &opt);
    freeReplyObject(ask(redis, "DEL holdfast:a"));
    assert_int_equal(try_lock(other, "a", 30000, &writer), HF_OK);
    assert_int_equal(hf_lock_renew(reader, NULL), HF_LOST);
    char *value = ask_text(redis, "GET holdfast:a");
    assert_string_equal(value, hf_lock_ticket(writer));
    free(value);
    hf_lock_release(reader, NULL);
    assert_int_equal(hf_lock_release(writer, NULL), HF_OK);
    hf_close(client);
    hf_close(other);
}

static int lingers(void *client)
{
    hf_query query = {.size = sizeof query, .name = "a", .name_len = HF_NTS};
    hf_view *view = NULL;

    assert_int_equal(hf_inspect(client, &query, &view, NULL), HF_OK);
    assert_int_equal(hf_view_count(view), 1);
    bool yes = hf_view_entry(view, 0)->place == HF_PLACE_LINGERING;
    hf_view_free(view);
    return yes;
}

static void c8_expired_lease_is_not_renewed_during_its_delay(void **state)
{
    hf_client *client = open_live(""), *other = open_live("");
    hf_options opt = HF_OPTIONS_INIT;
    hf_lock *lock, *second = NULL;

    (void)state;
    opt.ttl_ms = 200;
    opt.lock_delay_ms = 100000;
    opt.by_hand = 1;
    lock = hold(client, "a", &opt);
    char *ticket = strdup(hf_lock_ticket(lock));
    await_lost(lock);
    hf_lock_release(lock, NULL);
    await("the lease to end in the store", lingers, other);
    /* The key is still there, with our value: the lock-delay. Its ticket holds nothing any more. */
    char *value = ask_text(redis, "GET holdfast:a");
    assert_string_equal(value, ticket);
    assert_int_equal(hf_adopt(other, "a", HF_NTS, ticket, NULL, &second, NULL), HF_STALE);
    assert_int_equal(try_lock(other, "a", 30000, &second), HF_BUSY);
    assert_true(ask_number(redis, "PTTL holdfast:a") > 60000);
    free(value);
    free(ticket);
    hf_close(client);
    hf_close(other);
}

static void c5_lock_without_time_is_neither_spun_on_nor_repaired(void **state)
{
    hf_client *client = open_live("recheck=200ms");
    struct waiter w = {0};

    (void)state;
    freeReplyObject(ask(redis, "SET holdfast:a for-ever"));
    wait_in_thread(&w, client, "a");
    await_waiting(client, "a", 1);
    freeReplyObject(ask(redis, "CONFIG RESETSTAT"));
    int64_t from_ms = now_ms();
    while (now_ms() < from_ms + 600)
        ask_number(redis, "PTTL holdfast:a");
    long long calls = calls_of("evalsha");
    int64_t looks = (now_ms() - from_ms) / 200 + 1; /* as many as there was time for */
    assert_true(calls <= 4 * looks);
    assert_int_equal(ask_number(redis, "PTTL holdfast:a"), -1);
    freeReplyObject(ask(redis, "DEL holdfast:a"));
    assert_int_equal(join_waiter(&w), HF_OK);
    hf_lock_release(w.lock, NULL);
    hf_close(client);
}

static void c12_release_by_a_stranger_wakes_the_first_waiter(void **state)
{
    hf_client *client = open_live("recheck=60s");
    struct waiter w = {0};

    (void)state;
    assert_true(set_nx("holdfast:a", "stranger", 100000));
    w.opt = (hf_options)HF_OPTIONS_INIT;
    w.opt.wait_ms = 30000; /* less than the recheck: it must be told */
    wait_in_thread(&w, client, "a");
    await_waiting(client, "a", 1);
    await("the key to be watched", is_watched, NULL); /* that follows the answer */
    freeReplyObject(ask(redis, "DEL holdfast:a"));
    assert_int_equal(join_waiter(&w), HF_OK);
    hf_lock_release(w.lock, NULL);
    hf_close(client);
}

static void c5_yield_lets_a_polling_stranger_in(void **state)
{
    hf_client *client = open_live("yield=2&yield_for=3s");
    struct waiter w[6] = {0};
    hf_lock *lock = NULL;
    bool stranger_was_in = false;

    (void)state;
    assert_int_equal(try_lock(client, "a", 30000, &lock), HF_OK);
    for (size_t i = 0; i < COUNT(w); i++) {
        w[i].opt = (hf_options)HF_OPTIONS_INIT;
        w[i].opt.owner = 10 + i;
        wait_in_thread(&w[i], client, "a");
        await_waiting(client, "a", i + 1);
    }
    hf_lock_release(lock, NULL);
    int64_t until_ms = now_ms() + 10000;
    for (size_t i = 0; i < COUNT(w); i++) {
        while (i == 2 && !stranger_was_in && now_ms() < until_ms)
            stranger_was_in = set_nx("holdfast:a", "poller", 100);
        assert_int_equal(join_waiter(&w[i]), HF_OK);
        hf_lock_release(w[i].lock, NULL);
    }
    assert_true(stranger_was_in);
    hf_close(client);
}

static void c3_stranger_is_shown_and_can_be_broken(void **state)
{
    const char *token = "00112233445566778899aabbccddeeff";
    hf_client *client = open_live("");
    hf_query query = {.size = sizeof query, .name = "a", .name_len = HF_NTS};
    hf_view *view = NULL;
    hf_error err;

    (void)state;
    assert_true(set_nx("holdfast:a", token, 100000));
    assert_int_equal(hf_inspect(client, &query, &view, NULL), HF_OK);
    assert_int_equal(hf_view_count(view), 1);
    assert_string_equal(hf_view_entry(view, 0)->note, token);
    assert_int_equal(hf_view_entry(view, 0)->generation, 0);
    hf_view_free(view);
    assert_int_equal(hf_break(client, "a", HF_NTS, token, 0, &err), HF_UNSUPPORTED);
    check_contains("text", err.text, "cannot be asked to leave");
    assert_int_equal(ask_number(redis, "EXISTS holdfast:a"), 1);
    assert_int_equal(hf_break(client, "a", HF_NTS, token, 1, NULL), HF_OK);
    assert_int_equal(ask_number(redis, "EXISTS holdfast:a"), 0);
    hf_close(client);
}

/* What it is broken by, as `show` tells it; freed by the caller. */
static char *shown_ticket(hf_client *client)
{
    hf_query query = {.size = sizeof query, .name = "a", .name_len = HF_NTS};
    hf_view *view = NULL;

    assert_int_equal(hf_inspect(client, &query, &view, NULL), HF_OK);
    assert_int_equal(hf_view_count(view), 1);
    char *ticket = strdup(hf_view_entry(view, 0)->ticket);
    hf_view_free(view);
    return ticket;
}

static void c3_any_stranger_has_a_ticket_by_which_it_is_broken(void **state)
{
    static const char *const commands[] = {
        "SET holdfast:a d41d8cd9-8f00-b204-e980-0998ecf8427e",
        "SET holdfast:a 00112233445566778899AABBCCDDEEFF",
        "HSET holdfast:a 5b0f:1 1",
        "SET holdfast:a x",
    };
    hf_client *client = open_live("");
    hf_lock *lock = NULL;
    char *last = strdup("");

    (void)state;
    for (size_t i = 0; i < COUNT(commands); i++) {
        freeReplyObject(ask(redis, commands[i]));
        freeReplyObject(ask(redis, "PEXPIRE holdfast:a 100000"));
        char *ticket = shown_ticket(client);
        assert_string_not_equal(ticket, "00000000000000000000000000000000");
        assert_string_not_equal(ticket, last);
        assert_int_equal(hf_break(client, "a", HF_NTS, last, 1, NULL) == HF_OK, 0); /* another's */
        assert_int_equal(hf_break(client, "a", HF_NTS, ticket, 0, NULL), HF_UNSUPPORTED);
        assert_int_equal(ask_number(redis, "EXISTS holdfast:a"), 1);
        assert_int_equal(hf_break(client, "a", HF_NTS, ticket, 1, NULL), HF_OK);
        assert_int_equal(ask_number(redis, "EXISTS holdfast:a"), 0);
        free(last);
        last = ticket;
    }
    free(last);
    assert_int_equal(try_lock(client, "a", 30000, &lock), HF_OK);
    hf_lock_release(lock, NULL);
    hf_close(client);
}

static void a_long_value_of_a_stranger_is_cut(void **state)
{
    hf_client *client = open_live("");
    const size_t size = 20 << 20;
    char *value = malloc(size);

    (void)state;
    memset(value, 'x', size);
    freeReplyObject(ask(redis, "SET holdfast:a %b", value, size));
    free(value);
    free(shown_ticket(client));
    hf_close(client);
}

struct turns {
    hf_client *client;
    _Atomic int ours;
    _Atomic bool done;
};

static void *take_turns(void *arg)
{
    struct turns *turns = arg;
    hf_options opt = HF_OPTIONS_INIT;
    hf_lock *lock;

    opt.owner = (uint64_t)(uintptr_t)&lock;
    while (!turns->done) {
        if (hf_acquire(turns->client, "a", HF_NTS, &opt, &lock, NULL) != HF_OK)
            abort();
        turns->ours++;
        sleep_ms(2);
        hf_lock_release(lock, NULL);
    }
    return NULL;
}

/* A stranger polls and our queue is never empty: of five turns it has one with yield=4, half of them
 * with yield=1. */
static double share_of_a_stranger(const char *options)
{
    struct turns turns = {.client = open_live(options)};
    pthread_t threads[4];
    int theirs = 0;

    for (size_t i = 0; i < COUNT(threads); i++)
        pthread_create(&threads[i], NULL, take_turns, &turns);
    int64_t until_ms = now_ms() + LONGEST_WAIT_MS;
    while (theirs < 25 && now_ms() < until_ms) {
        if (set_nx("holdfast:a", "poller", 10000)) {
            theirs++;
            sleep_ms(2);
            ask_number(redis, "DEL holdfast:a");
        }
        sleep_ms(1);
    }
    turns.done = true;
    for (size_t i = 0; i < COUNT(threads); i++)
        pthread_join(threads[i], NULL);
    hf_close(turns.client);
    print_message("%s: %d turns of theirs, %d of ours\n", options, theirs, turns.ours);
    assert_int_equal(theirs, 25);
    return (double)theirs / (theirs + turns.ours);
}

static void c5_yield_sets_the_share_of_those_who_poll(void **state)
{
    (void)state;
    double half = share_of_a_stranger("yield=1&yield_for=5s");
    double fifth = share_of_a_stranger("yield=4&yield_for=5s");
    assert_true(half > 0.25 && half < 0.75);
    assert_true(fifth > 0.1 && fifth < 0.35);
}

static void c1_lost_notes_leave_the_key_in_force(void **state)
{
    hf_client *client = open_live(""), *other = open_live("");
    hf_lock *lock = NULL, *second = NULL;

    (void)state;
    assert_int_equal(try_lock(client, "a", 30000, &lock), HF_OK);
    freeReplyObject(ask(redis, "DEL holdfast.b:{holdfast:a}"));
    assert_int_equal(try_lock(other, "a", 30000, &second), HF_BUSY);
    assert_int_equal(hf_lock_release(lock, NULL), HF_OK);
    assert_int_equal(try_lock(other, "a", 30000, &second), HF_OK);
    hf_lock_release(second, NULL);
    hf_close(client);
    hf_close(other);
}

/* Whoever deletes some of the notes costs others their place, not their turn. */
static void c5_meddled_notes_keep_nobody_out(void **state)
{
    static const char kinds[] = "btqwilr";

    (void)state;
    for (size_t k = 0; k < 2 * (sizeof kinds - 1); k++) {
        hf_client *client = open_live("recheck=200ms"), *other = open_live("recheck=200ms");
        hf_options opt = HF_OPTIONS_INIT;
        struct waiter w[3] = {0};
        opt.mode = k % 2 == 0 ? HF_EXCLUSIVE : HF_SHARED;
        opt.ttl_ms = 2000;
        hf_lock *lock = hold(client, "a", &opt);
        for (size_t i = 0; i < COUNT(w); i++) {
            w[i].opt = (hf_options)HF_OPTIONS_INIT;
            w[i].opt.ttl_ms = 2000;
            w[i].opt.owner = 10 + i;
            w[i].releases = true;
            wait_in_thread(&w[i], other, "a");
            await_waiting(client, "a", (long)i + 1);
        }
        char kind[] = {kinds[k / 2], '\0'};
        ask_number(redis, "DEL holdfast.%s:{holdfast:a}", kind);
        hf_lock_release(lock, NULL); /* it may be lost */
        for (size_t i = 0; i < COUNT(w); i++) {
            if (join_waiter(&w[i]) != HF_OK)
                fail_msg("without holdfast.%c: %s", kinds[k / 2], w[i].err.text);
        }
        hf_close(other);
        hf_close(client);
        freeReplyObject(ask(redis, "FLUSHALL"));
    }
}

static void c4_token_rises_after_the_notes_were_purged(void **state)
{
    hf_client *client = open_live("");
    hf_lock *lock = NULL;
    uint64_t first, second, purged = 0;

    (void)state;
    assert_int_equal(try_lock(client, "a", 30000, &lock), HF_OK);
    hf_lock_generation(lock, &first);
    hf_lock_release(lock, NULL);
    int64_t until_ms = now_ms() + AWAIT_MS;
    while (ask_number(redis, "EXISTS holdfast.b:{holdfast:a}") == 1 && now_ms() < until_ms)
        assert_int_equal(hf_purge(client, 1, &purged, NULL), HF_OK);
    assert_int_equal(purged, 1);
    assert_int_equal(ask_number(redis, "DBSIZE"), 0);
    assert_int_equal(try_lock(client, "a", 30000, &lock), HF_OK);
    hf_lock_generation(lock, &second);
    assert_true(second > first);
    hf_lock_release(lock, NULL);
    hf_close(client);
}

static void purge_leaves_the_notes_of_another_key_format_alone(void **state)
{
    hf_client *client = open_live(""), *other = open_live("key_format=lock:%25s");
    uint64_t purged = 1;
    hf_error err = {0};

    (void)state;
    assert_int_equal(hf_lock_release(take_free(other, "a", 60000), NULL), HF_OK);
    assert_int_equal(hf_purge(client, 0, &purged, &err), HF_OK);
    assert_int_equal(purged, 0);
    assert_int_equal(ask_number(redis, "EXISTS holdfast.b:{lock:a}"), 1);
    hf_close(other);
    hf_close(client);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(c1_the_record_is_the_plain_key),
        TEST(c1_book_that_cannot_be_read_says_nothing),
        TEST(c1_key_format_meets_others_on_their_keys),
        TEST(c1_foreign_type_is_held_by_somebody_else),
        TEST(c7_key_deleted_by_a_stranger_is_lost),
        TEST(c2_key_taken_by_a_stranger_is_left_alone),
        TEST(c9_marker_of_readers_lasts_as_long_as_the_longest),
        TEST(c9_missing_marker_voids_the_readers),
        TEST(c8_expired_lease_is_not_renewed_during_its_delay),
        TEST(c5_lock_without_time_is_neither_spun_on_nor_repaired),
        TEST(c12_release_by_a_stranger_wakes_the_first_waiter),
        TEST(c5_yield_lets_a_polling_stranger_in),
        TEST(c3_stranger_is_shown_and_can_be_broken),
        TEST(c3_any_stranger_has_a_ticket_by_which_it_is_broken),
        TEST(a_long_value_of_a_stranger_is_cut),
        TEST(c5_yield_sets_the_share_of_those_who_poll),
        TEST(c1_lost_notes_leave_the_key_in_force),
        TEST(c5_meddled_notes_keep_nobody_out),
        TEST(c4_token_rises_after_the_notes_were_purged),
        TEST(purge_leaves_the_notes_of_another_key_format_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
