/* A bid that gets nowhere: answers later than the lease, claims that come too late, a store that is
 * away for a while. It ends when its caller wants it to, leaves nothing behind, and nothing of a
 * ticket that is spent is carried over to the next one. */
#include <stdlib.h>
#include <unistd.h>

#include "live.h"

static void count_loss(hf_lock *lock, hf_cause cause, void *arg)
{
    (void)lock, (void)cause;
    atomic_fetch_add((atomic_int *)arg, 1);
}

static void c7_a_loss_is_told_although_an_earlier_ticket_was_lost(void **state)
{
    hf_client *client = open_store("s1", "slow=renew:1:6s&op_timeout=10s");
    hf_client *other = open_store("s1", NULL);
    hf_options opt = HF_OPTIONS_INIT;
    atomic_int losses = 0;

    (void)state;
    opt.ttl_ms = HF_NEVER; /* its first claim is answered after the grant is over */
    opt.on_lost = count_loss;
    opt.arg = &losses;
    hf_lock *lock = take(client, "a", &opt);
    struct pollfd lost = {.fd = hf_lock_fd(lock), .events = POLLIN};
    assert_int_equal(hf_break(other, "a", HF_NTS, hf_lock_ticket(lock), 1, NULL), 0);
    assert_int_equal(poll(&lost, 1, PATIENCE_MS), 1);
    AWAIT(atomic_load(&losses) == 1);
    assert_int_equal(hf_lock_state(lock), HF_STATE_LOST);
    hf_lock_release(lock, NULL);
    hf_close(client);
    hf_close(other);
}

/* Every answer comes after the lease that it grants. */
static const char late[] = "slow=attempt:*:150ms&op_timeout=1s";

static struct call late_call(const char *store, int64_t wait_ms)
{
    struct call call = {.client = open_store(store, late), .name = "a", .opt = HF_OPTIONS_INIT};

    call.opt.ttl_ms = 100;
    call.opt.wait_ms = wait_ms;
    return call;
}

static void c5_grants_that_are_always_late_end_a_bid_that_does_not_wait(void **state)
{
    struct call call = late_call("s2", 0);
    hf_client *other = open_store("s2", NULL);

    (void)state;
    start(&call, call_acquire);
    finish(&call);
    assert_int_equal(call.r, HF_UNAVAILABLE);
    check_contains("what to do", call.err.text, "longer ttl");
    assert_int_equal(in_store(other, NULL), 0);
    hf_close(call.client);
    hf_close(other);
}

static void c5_and_one_whose_time_is_up(void **state)
{
    struct call call = late_call("s3", 400);
    hf_client *other = open_store("s3", NULL);

    (void)state;
    start(&call, call_acquire);
    finish(&call);
    assert_true(call.r == HF_TIMEOUT || call.r == HF_UNAVAILABLE);
    assert_int_equal(in_store(other, NULL), 0);
    hf_close(call.client);
    hf_close(other);
}

static void c5_and_one_that_is_cancelled(void **state)
{
    struct call call = late_call("s4", HF_FOREVER);
    hf_client *other = open_store("s4", NULL);

    (void)state;
    call.opt.patience_ms = HF_FOREVER;
    assert_int_equal(hf_cancel_new(&call.opt.cancel), 0);
    start(&call, call_acquire);
    AWAIT(in_store(other, "a") == 1);
    hf_cancel_fire(call.opt.cancel);
    finish(&call);
    assert_int_equal(call.r, HF_CANCELLED);
    assert_int_equal(in_store(other, NULL), 0);
    hf_cancel_free(call.opt.cancel);
    hf_close(call.client);
    hf_close(other);
}

static void c13_and_one_whose_client_is_closed(void **state)
{
    struct call call = late_call("s5", HF_FOREVER);
    struct call closing = {.client = call.client};
    hf_client *other = open_store("s5", NULL);

    (void)state;
    call.opt.patience_ms = HF_FOREVER;
    start(&call, call_acquire);
    AWAIT(in_store(other, "a") == 1);
    start(&closing, call_close);
    finish(&call);
    finish(&closing);
    assert_int_equal(call.r, HF_CLOSED);
    assert_int_equal(in_store(other, NULL), 0);
    hf_close(other);
}

static void c6_a_bid_that_is_given_up_after_a_late_grant_is_withdrawn(void **state)
{
    struct call call = {.client = open_store("s6", "delay=attempt:1:2500ms&fail=attempt:2-"),
                        .name = "a",
                        .opt = HF_OPTIONS_INIT};
    hf_client *other = open_store("s6", NULL);
    hf_options now = HF_OPTIONS_INIT;

    (void)state;
    call.opt.ttl_ms = 2000; /* over when the grant comes, by our account but not by the store's */
    call.opt.lock_delay_ms = 60000; /* would keep it closed for long */
    assert_int_equal(hf_cancel_new(&call.opt.cancel), 0);
    start(&call, call_acquire);
    AWAIT(in_store(other, "a") == 1);
    pause_ms(50); /* the late grant has come, and nothing is answered any more */
    hf_cancel_fire(call.opt.cancel);
    finish(&call);
    assert_int_equal(call.r, HF_CANCELLED);
    now.wait_ms = 0;
    hf_lock_release(take(other, "a", &now), NULL);
    hf_cancel_free(call.opt.cancel);
    hf_close(call.client);
    hf_close(other);
}

static void c7_failures_while_waiting_do_not_count_for_keeping(void **state)
{
    hf_client *holder = open_store("s7", NULL);
    struct call call = {
        .client = open_store("s7", "fail=renew:1-8"), .name = "a", .opt = HF_OPTIONS_INIT};
    hf_lock *lock = take(holder, "a", NULL);

    (void)state;
    call.opt.ttl_ms = 1000;
    start(&call, call_acquire);
    pause_ms(2800); /* for 8 signs of life that fail, with a pause after each */
    hf_lock_release(lock, NULL);
    finish(&call);
    assert_int_equal(call.r, 0);
    pause_ms(1500); /* longer than its lease: it was renewed */
    assert_int_not_equal(hf_lock_state(call.lock), HF_STATE_LOST);
    hf_lock_release(call.lock, NULL);
    hf_close(call.client);
    hf_close(holder);
}

/* on_wait that takes its time once. */
struct slow_wait {
    int call_number, ms;
    atomic_int calls;
};

static void wait_slowly(size_t position, void *arg)
{
    struct slow_wait *slow = arg;

    (void)position;
    if (atomic_fetch_add(&slow->calls, 1) + 1 == slow->call_number)
        pause_ms(slow->ms);
}

static size_t count_lines(const char *path, const char *word)
{
    FILE *file = fopen(path, "r");
    char line[512];
    size_t count = 0;

    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL)
        count += strstr(line, word) != NULL;
    fclose(file);
    return count;
}

static void c12_a_grant_during_on_wait_is_renewed_and_no_more_than_that(void **state)
{
    char path[] = "/tmp/holdfast-setbacks-XXXXXX", url[100];
    int fd = mkstemp(path);
    hf_client *holder = open_store("s8", NULL);
    struct slow_wait slow = {.call_number = 2, .ms = 2500};
    struct call call = {.name = "a", .opt = HF_OPTIONS_INIT};
    hf_lock *lock = take(holder, "a", NULL);

    (void)state;
    assert_true(fd >= 0);
    snprintf(url, sizeof url, "trace+memory://s8?trace=%s", path);
    assert_int_equal(hf_open(url, NULL, &call.client, NULL), 0);
    call.opt.ttl_ms = 1000;
    call.opt.on_wait = wait_slowly;
    call.opt.arg = &slow;
    start(&call, call_acquire);
    AWAIT(atomic_load(&slow.calls) == 2);
    hf_lock_release(lock, NULL);
    finish(&call);
    assert_int_equal(call.r, 0);
    assert_int_equal(hf_lock_state(call.lock), HF_STATE_HELD);
    hf_lock_release(call.lock, NULL);
    hf_close(call.client);
    assert_in_range(count_lines(path, " renew "), 2, 40);
    close(fd);
    unlink(path);
    hf_close(holder);
}

static void c5_a_slow_first_on_wait_keeps_its_place(void **state)
{
    hf_client *holder = open_store("s9", NULL);
    struct slow_wait slow = {.call_number = 1, .ms = 3000};
    struct call first = {.client = open_store("s9", NULL), .name = "a", .opt = HF_OPTIONS_INIT};
    hf_lock *lock = take(holder, "a", NULL);
    hf_view *view;

    (void)state;
    first.opt.ttl_ms = 1000;
    first.opt.on_wait = wait_slowly;
    first.opt.arg = &slow;
    start(&first, call_acquire);
    AWAIT(in_store(holder, "a") == 2);
    assert_int_equal(hf_inspect(holder, NULL, &view, NULL), 0);
    char ticket[HF_TICKET_SIZE];
    snprintf(ticket, sizeof ticket, "%s", hf_view_entry(view, 1)->ticket);
    hf_view_free(view);
    pause_ms(2000); /* its own lease is of one second */
    assert_int_equal(hf_inspect(holder, NULL, &view, NULL), 0);
    assert_int_equal(hf_view_count(view), 2);
    assert_string_equal(hf_view_entry(view, 1)->ticket, ticket);
    hf_view_free(view);
    hf_lock_release(lock, NULL);
    finish(&first);
    assert_int_equal(first.r, 0);
    hf_lock_release(first.lock, NULL);
    hf_close(first.client);
    hf_close(holder);
}

static void c5_no_wait_does_not_wait_for_a_store_that_is_away(void **state)
{
    hf_client *client = open_store("s10", "fail=attempt:1-2"); /* once is no proof */
    hf_options opt = HF_OPTIONS_INIT;
    hf_lock *lock;

    (void)state;
    opt.wait_ms = 0;
    assert_int_equal(hf_acquire(client, "a", HF_NTS, &opt, &lock, NULL), HF_UNAVAILABLE);
    hf_close(client);
}

static void c5_patience_outlasts_an_outage(void **state)
{
    hf_client *client = open_store("s11", "fail=attempt:1-9&op_timeout=100ms");
    hf_options opt = HF_OPTIONS_INIT;
    hf_lock *lock;

    (void)state;
    assert_int_equal(hf_acquire(client, "a", HF_NTS, &opt, &lock, NULL), HF_UNAVAILABLE);
    opt.patience_ms = HF_FOREVER;
    hf_lock_release(take(client, "a", &opt), NULL);
    hf_close(client);
}

static void c5_and_so_does_a_wait_with_a_limit(void **state)
{
    hf_client *client = open_store("s12", "fail=attempt:1-6&op_timeout=100ms");
    hf_options opt = HF_OPTIONS_INIT;

    (void)state;
    opt.wait_ms = PATIENCE_MS;
    hf_lock_release(take(client, "a", &opt), NULL);
    hf_close(client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(c7_a_loss_is_told_although_an_earlier_ticket_was_lost),
        cmocka_unit_test(c5_grants_that_are_always_late_end_a_bid_that_does_not_wait),
        cmocka_unit_test(c5_and_one_whose_time_is_up),
        cmocka_unit_test(c5_and_one_that_is_cancelled),
        cmocka_unit_test(c13_and_one_whose_client_is_closed),
        cmocka_unit_test(c6_a_bid_that_is_given_up_after_a_late_grant_is_withdrawn),
        cmocka_unit_test(c7_failures_while_waiting_do_not_count_for_keeping),
        cmocka_unit_test(c12_a_grant_during_on_wait_is_renewed_and_no_more_than_that),
        cmocka_unit_test(c5_a_slow_first_on_wait_keeps_its_place),
        cmocka_unit_test(c5_no_wait_does_not_wait_for_a_store_that_is_away),
        cmocka_unit_test(c5_patience_outlasts_an_outage),
        cmocka_unit_test(c5_and_so_does_a_wait_with_a_limit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
