/* fault+: each option does what its README says, to the calls it names and to no other. */
#include <poll.h>

#include "lib/operate.h"
#include "wrapped.h"

static void nth_call_fails_and_is_not_applied(void **state)
{
    struct hf__store *store = wrapped_open("fault+memory://f1?fail=attempt:2");
    struct hf__store *inner = wrapped_open("memory://f1");
    struct hf__bid first = wrapped_bid(1, false), second = wrapped_bid(2, false);

    (void)state;
    assert_int_equal(wrapped_attempt(store, &first), GRANTED);
    assert_int_equal(wrapped_release(store, &first), DONE);
    assert_int_equal(wrapped_attempt(store, &second), HF_UNAVAILABLE);
    assert_int_equal(wrapped_release(inner, &second), STALE);
    assert_int_equal(wrapped_attempt(store, &second), GRANTED);
    assert_int_equal(wrapped_release(store, &second), DONE);
    wrapped_close(store);
    wrapped_close(inner);
}

static void lost_answer_was_applied(void **state)
{
    struct hf__store *store = wrapped_open("fault+memory://f2?lose=attempt:1,release:1");
    struct hf__bid bid = wrapped_bid(1, false), other = wrapped_bid(2, false);

    (void)state;
    assert_int_equal(wrapped_attempt(store, &bid), HF_UNKNOWN);
    assert_int_equal(wrapped_attempt(store, &other), BUSY);
    assert_int_equal(wrapped_release(store, &bid), HF_UNKNOWN);
    assert_int_equal(wrapped_attempt(store, &other), GRANTED);
    assert_int_equal(wrapped_release(store, &other), DONE);
    wrapped_close(store);
}

static void hanging_call_ends_with_its_deadline(void **state)
{
    struct hf__store *store = wrapped_open("fault+memory://f3?hang=attempt:1");
    struct hf__bid bid = wrapped_bid(1, false);
    int64_t deadline_ns = wrapped_in(300);

    (void)state;
    assert_int_equal(wrapped_attempt(store, &bid), HF_UNKNOWN);
    assert_true(wrapped_in(0) >= deadline_ns);
    assert_int_equal(wrapped_release(store, &bid), STALE); /* it was not applied */
    wrapped_close(store);
}

static void delayed_call_waits_and_slow_answer_is_late(void **state)
{
    struct hf__store *store =
        wrapped_open("fault+memory://f4?delay=attempt:1:50ms,attempt:2:2s&slow=release:1:2s");
    struct hf__bid bid = wrapped_bid(1, false), other = wrapped_bid(2, false);
    int64_t due_ns = wrapped_in(50);

    (void)state;
    assert_int_equal(wrapped_attempt(store, &bid), GRANTED);
    assert_true(wrapped_in(0) >= due_ns);
    assert_int_equal(wrapped_attempt(store, &other), HF_UNAVAILABLE); /* beyond the deadline */
    assert_int_equal(wrapped_release(store, &bid), HF_UNKNOWN);
    assert_int_equal(wrapped_release(store, &bid), STALE); /* but it was applied */
    wrapped_close(store);
}

static void late_call_is_made_at_the_latest_when_the_store_is_closed(void **state)
{
    struct hf__store *store = wrapped_open("fault+memory://f5?late=attempt:1:1h");
    struct hf__store *inner = wrapped_open("memory://f5");
    struct hf__bid bid = wrapped_bid(1, false), other = wrapped_bid(2, false);

    (void)state;
    assert_int_equal(wrapped_attempt(store, &bid), HF_UNKNOWN);
    assert_int_equal(wrapped_attempt(inner, &other), GRANTED);
    assert_int_equal(wrapped_release(inner, &other), DONE);
    wrapped_close(store);
    assert_int_equal(wrapped_attempt(inner, &other), BUSY); /* it has arrived */
    assert_int_equal(wrapped_release(inner, &bid), DONE);
    wrapped_close(inner);
}

static void ranges_and_stars_count_each_operation_by_itself(void **state)
{
    struct hf__store *store = wrapped_open("fault+memory://f6?fail=attempt:2-3,*:5-");
    struct hf__bid bid = wrapped_bid(1, false);
    static const int expected[] = {GRANTED, HF_UNAVAILABLE, HF_UNAVAILABLE,
                                   GRANTED, HF_UNAVAILABLE, HF_UNAVAILABLE};

    (void)state;
    for (size_t i = 0; i < COUNT(expected); i++)
        check_number("attempt", wrapped_attempt(store, &bid), expected[i]);
    assert_int_equal(wrapped_release(store, &bid), DONE); /* the first release */
    wrapped_close(store);
}

static void count_wake(void *ctx, const struct hf__ticket *ticket, uint64_t generation)
{
    (void)ticket;
    (void)generation;
    ++*(int *)ctx;
}

/* How many wake-ups arrive for one hand-over, once there is something to take. */
static int wakes_of(const char *url, const char *plain, int wait_ms)
{
    struct hf__store *store = wrapped_open(url), *inner = wrapped_open(plain);
    struct hf__bid holder = wrapped_bid(1, false), waiter = wrapped_bid(2, true);
    struct pollfd p = {.fd = store->type->wake_fd(store), .events = POLLIN};
    int woken = 0;

    assert_true(p.fd >= 0);
    assert_int_equal(wrapped_attempt(inner, &holder), GRANTED);
    assert_int_equal(wrapped_attempt(store, &waiter), QUEUED);
    assert_int_equal(wrapped_release(inner, &holder), DONE);
    for (int left = 3; left > 0 && woken == 0 && poll(&p, 1, wait_ms) == 1; left--)
        store->type->wake(store, count_wake, &woken);
    assert_int_equal(wrapped_release(store, &waiter), DONE);
    wrapped_close(store);
    wrapped_close(inner);
    return woken;
}

static void wake_ups_are_dropped_doubled_and_held_back(void **state)
{
    (void)state;
    check_number("plain", wakes_of("fault+memory://w1", "memory://w1", 5000), 1);
    check_number("drop", wakes_of("fault+memory://w2?drop_wakes=1", "memory://w2", 0), 0);
    check_number("dup", wakes_of("fault+memory://w3?dup_wakes=1", "memory://w3", 5000), 2);
    int64_t due_ns = wrapped_in(80);
    check_number("late", wakes_of("fault+memory://w4?late_wakes=*:80ms", "memory://w4", 5000), 1);
    assert_true(wrapped_in(0) >= due_ns);
}

static void keep_wake(void *ctx, const struct hf__ticket *ticket, uint64_t generation)
{
    (void)ticket;
    *(uint64_t *)ctx = generation;
}

static void stale_wake_names_what_was_told_before(void **state)
{
    struct hf__store *store = wrapped_open("fault+memory://w5?stale_wake=1");
    struct hf__bid holder = wrapped_bid(1, false), waiter = wrapped_bid(2, true);
    struct hf__answer answer = {0};
    uint64_t called = 0;

    (void)state;
    assert_true(store->type->wake_fd(store) >= 0);
    assert_int_equal(wrapped_attempt(store, &holder), GRANTED);
    assert_int_equal(ask_store(store, op_attempt(&waiter), wrapped_in(300), &answer, NULL), 0);
    store->type->wake(store, keep_wake, &called);
    assert_int_equal(called, 0);
    assert_int_equal(wrapped_attempt(store, &waiter), QUEUED);
    store->type->wake(store, keep_wake, &called);
    assert_true(called != 0 && called == answer.generation);
    assert_int_equal(wrapped_release(store, &holder), DONE);
    assert_int_equal(wrapped_release(store, &waiter), DONE);
    wrapped_close(store);
}

/* The outcomes of a hundred attempts as a row of letters. */
static void roll(const char *url, char row[101])
{
    struct hf__store *store = wrapped_open(url);
    struct hf__bid bid = wrapped_bid(1, false);

    for (int i = 0; i < 100; i++) {
        int r = wrapped_attempt(store, &bid);
        row[i] = r == HF_UNAVAILABLE ? 'f' : r == HF_UNKNOWN ? 'u' : '.';
    }
    row[100] = '\0';
    wrapped_close(store);
}

static void chaos_is_the_same_for_the_same_seed(void **state)
{
    char first[101], second[101], other[101];

    (void)state;
    roll("fault+memory://c1?chaos=7&chaos_percent=50", first);
    roll("fault+memory://c2?chaos=7&chaos_percent=50", second);
    roll("fault+memory://c3?chaos=8&chaos_percent=50", other);
    assert_string_equal(first, second);
    assert_string_not_equal(first, other);
    assert_non_null(strchr(first, 'f'));
    assert_non_null(strchr(first, 'u'));
    assert_non_null(strchr(first, '.'));
    roll("fault+memory://c4?chaos=7&chaos_percent=0", first);
    assert_null(strchr(first, 'f'));
}

static void wrong_rules_are_refused_with_what_to_write(void **state)
{
    static const char *const wrong[] = {
        "fail=attempt",      "fail=attempt:",    "fail=attempt:0",
        "fail=attempt:x",    "fail=attempt:2-1", "fail=attempt:1-2x",
        "fail=attempt:1:2s", "fail=sing:1",      "fail=",
        "fail=attempt:1,",   "delay=attempt:1",  "delay=attempt:1:soon",
        "late=renew:1:1s",   "late=*:1:1s",      "drop_wakes=attempt:1",
        "late_wakes=1",      "stale_wake=-1",    "chaos=x",
        "chaos_percent=101", "chaos=1&chaos=2",
    };
    struct hf__store *store;
    hf_error err;
    char url[200];

    (void)state;
    for (size_t i = 0; i < COUNT(wrong); i++) {
        snprintf(url, sizeof url, "fault+memory://x?%s", wrong[i]);
        check_number(wrong[i], hf__store_open(&wrapped_host, url, &store, &err), HF_INVALID);
        check_contains(wrong[i], err.text, "fault: ");
    }
}

static void options_of_the_inner_store_pass_through(void **state)
{
    struct hf__store *store;
    hf_error err;

    (void)state;
    wrapped_close(wrapped_open("fault+memory://x?op_timeout=2s&fail=attempt:9&retain=1h"));
    wrapped_close(wrapped_open("fault+trace+memory://x?retain=1h&trace=fd:2&fail=attempt:9"));
    assert_int_equal(
        hf__store_open(&wrapped_host, "fault+memory://x?fail=attempt:1&color=blue", &store, &err),
        HF_INVALID);
    check_contains("inner", err.text, "fault: memory: ");
    check_contains("inner", err.text, "color");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nth_call_fails_and_is_not_applied),
        cmocka_unit_test(lost_answer_was_applied),
        cmocka_unit_test(hanging_call_ends_with_its_deadline),
        cmocka_unit_test(delayed_call_waits_and_slow_answer_is_late),
        cmocka_unit_test(late_call_is_made_at_the_latest_when_the_store_is_closed),
        cmocka_unit_test(ranges_and_stars_count_each_operation_by_itself),
        cmocka_unit_test(wake_ups_are_dropped_doubled_and_held_back),
        cmocka_unit_test(stale_wake_names_what_was_told_before),
        cmocka_unit_test(chaos_is_the_same_for_the_same_seed),
        cmocka_unit_test(wrong_rules_are_refused_with_what_to_write),
        cmocka_unit_test(options_of_the_inner_store_pass_through),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
