/* Notes of names that nobody uses go by themselves, and none that is needed does. */
#include <stdlib.h>

#include "redis/live.h"

/* The least time to live among all keys; -1: one has no end, INT64_MAX: there are none. */
static long long least_pttl(void)
{
    redisReply *keys = ask(redis, "KEYS *");
    long long least = INT64_MAX;

    for (size_t i = 0; i < keys->elements; i++) {
        long long ms = ask_number(redis, "PTTL %s", keys->element[i]->str);
        if (ms == -1)
            print_message("%s has no end\n", keys->element[i]->str);
        least = ms != -2 && ms < least ? ms : least;
    }
    freeReplyObject(keys);
    return least;
}

static int is_empty(void *unused)
{
    (void)unused;
    return ask_number(redis, "DBSIZE") == 0;
}

static hf_lock *hold(hf_client *client, const char *name, hf_mode mode, int64_t ttl_ms)
{
    hf_options opt = HF_OPTIONS_INIT;
    hf_lock *lock = NULL;
    hf_error err;

    opt.mode = mode;
    opt.ttl_ms = ttl_ms;
    opt.wait_ms = 0;
    if (hf_acquire(client, name, HF_NTS, &opt, &lock, &err) != HF_OK)
        fail_msg("acquire: %s", err.text);
    return lock;
}

/* Everything that leaves something behind. */
static void use(hf_client *client, hf_client *other)
{
    struct waiter w = {0}, gives_up = {0};
    hf_options opt = HF_OPTIONS_INIT;

    for (int i = 0; i < 3; i++) { /* by the rules, and the short way */
        hf_lock_release(hold(client, "quick", HF_EXCLUSIVE, 1000), NULL);
        hf_lock_release(hold(client, "shared", HF_SHARED, 1000), NULL);
        hf_lock_release(hold(client, "never", HF_EXCLUSIVE, HF_NEVER), NULL);
        hf_lock_release(hold(client, "never-shared", HF_SHARED, HF_NEVER), NULL);
    }
    hf_lock *lock = hold(client, "queue", HF_EXCLUSIVE, 1000);
    wait_in_thread(&w, other, "queue");
    await_waiting(client, "queue", 1);
    opt.wait_ms = 50;
    gives_up.opt = opt;
    wait_in_thread(&gives_up, client, "quick2");
    join_waiter(&gives_up);
    hf_lock_release(gives_up.lock, NULL);
    hf_lock_release(lock, NULL);
    assert_int_equal(join_waiter(&w), HF_OK);
    hf_lock_release(w.lock, NULL);
    lock = hold(client, "broken", HF_EXCLUSIVE, 1000);
    assert_int_equal(hf_break(other, "broken", HF_NTS, hf_lock_ticket(lock), 1, NULL), HF_OK);
    hf_lock_release(lock, NULL);
}

static void notes_go_by_themselves(void **state)
{
    hf_client *client = open_live("retain=1s&op_timeout=200ms"),
              *other = open_live("retain=1s&op_timeout=200ms");

    (void)state;
    use(client, other);
    hf_lock *abandoned = hold(client, "abandoned", HF_SHARED, 500);
    (void)abandoned;
    hf_close(client); /* leaves no word */
    hf_close(other);
    long long pttl = least_pttl();
    assert_true(pttl >= 0);
}

static void notes_of_plain_use_are_gone_soon(void **state)
{
    hf_client *client = open_live("retain=1s");

    (void)state;
    for (int i = 0; i < 3; i++) {
        hf_lock_release(hold(client, "quick", HF_EXCLUSIVE, 1000), NULL);
        hf_lock_release(hold(client, "shared", HF_SHARED, 1000), NULL);
        hf_lock_release(hold(client, "never", HF_EXCLUSIVE, HF_NEVER), NULL);
    }
    await("all notes to go", is_empty, NULL);
    hf_close(client);
}

static void notes_of_a_lock_without_end_have_none(void **state)
{
    hf_client *client = open_live("retain=1s"), *other = open_live("retain=1s");
    hf_lock *lock = hold(client, "a", HF_EXCLUSIVE, HF_NEVER);
    hf_lock *reader = hold(client, "b", HF_SHARED, HF_NEVER);
    struct waiter w = {0}, v = {0};

    (void)state;
    assert_int_equal(hf_lock_renew(lock, NULL), HF_OK); /* it is claimed */
    assert_int_equal(hf_lock_renew(reader, NULL), HF_OK);
    check_number("book", ask_number(redis, "PTTL holdfast.b:{holdfast:a}"), -1);
    check_number("book", ask_number(redis, "PTTL holdfast.b:{holdfast:b}"), -1);
    check_number("readers", ask_number(redis, "PTTL holdfast.i:{holdfast:b}"), -1);
    wait_in_thread(&w, other, "a");
    wait_in_thread(&v, other, "b");
    await_waiting(client, "a", 1);
    await_waiting(client, "b", 1);
    sleep_ms(2500); /* longer than notes are kept */
    check_number("book", ask_number(redis, "PTTL holdfast.b:{holdfast:a}"), -1);
    check_number("readers", ask_number(redis, "PTTL holdfast.i:{holdfast:b}"), -1);
    assert_int_equal(hf_lock_release(lock, NULL), HF_OK);
    assert_int_equal(hf_lock_release(reader, NULL), HF_OK);
    assert_int_equal(join_waiter(&w), HF_OK);
    assert_int_equal(join_waiter(&v), HF_OK);
    assert_int_equal(hf_lock_release(w.lock, NULL), HF_OK);
    assert_int_equal(hf_lock_release(v.lock, NULL), HF_OK);
    assert_true(least_pttl() >= 0);
    hf_close(other);
    hf_close(client);
}

/* Who waits or holds for longer than notes are kept is not forgotten. */
static void c5_long_waits_outlast_retain(void **state)
{
    hf_client *client = open_live("retain=1s"), *other = open_live("retain=1s");
    hf_lock *lock = hold(client, "a", HF_EXCLUSIVE, 1000), *readers[2];
    struct waiter w[3] = {0}, v = {0};

    (void)state;
    readers[0] = hold(client, "b", HF_SHARED, 900);
    hf_options opt = HF_OPTIONS_INIT;
    opt.mode = HF_SHARED;
    opt.ttl_ms = 60000;
    opt.owner = 7;
    assert_int_equal(hf_acquire(client, "b", HF_NTS, &opt, &readers[1], NULL), HF_OK);
    wait_in_thread(&v, other, "b");
    for (size_t i = 0; i < COUNT(w); i++) {
        w[i].opt = (hf_options)HF_OPTIONS_INIT;
        w[i].opt.owner = 10 + i;
        wait_in_thread(&w[i], other, "a");
        await_waiting(client, "a", (long)i + 1);
    }
    sleep_ms(3500);
    assert_int_equal(hf_lock_state(lock), HF_STATE_HELD);
    check_number("waiting", count_entries(client, "a"), 4);
    check_number("at b", count_entries(client, "b"), 3);
    assert_int_equal(hf_lock_release(lock, NULL), HF_OK);
    for (size_t i = 0; i < COUNT(w); i++) {
        assert_int_equal(join_waiter(&w[i]), HF_OK);
        assert_int_equal(hf_lock_release(w[i].lock, NULL), HF_OK);
    }
    assert_int_equal(hf_lock_release(readers[0], NULL), HF_OK);
    assert_int_equal(hf_lock_release(readers[1], NULL), HF_OK);
    assert_int_equal(join_waiter(&v), HF_OK);
    assert_int_equal(hf_lock_release(v.lock, NULL), HF_OK);
    hf_close(other);
    hf_close(client);
}

/* The default is a month, for all of them. */
static void notes_are_kept_for_a_month(void **state)
{
    hf_client *client = open_live(""), *other = open_live("");

    (void)state;
    use(client, other);
    long long least = least_pttl();
    assert_true(least > 29 * 86400000LL && least < 31 * 86400000LL);
    hf_close(other);
    hf_close(client);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(notes_go_by_themselves),
        TEST(notes_of_plain_use_are_gone_soon),
        TEST(notes_of_a_lock_without_end_have_none),
        TEST(c5_long_waits_outlast_retain),
        TEST(notes_are_kept_for_a_month),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
