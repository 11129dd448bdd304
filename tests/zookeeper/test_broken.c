/* A lock that is broken is lost as soon as its holder's client has heard of it (C7): the requests are
 * watched, not read with the next renewal. And what becomes of a lock-delay when the client is
 * closed (C8). */
#include <dirent.h>
#include <stdlib.h>

#include "zookeeper/live.h"

#define LONG_TTL_MS 60000
#define SOON_MS     (LONG_TTL_MS / 3 / 4) /* long before the first renewal of such a lease */

static hf_lock *take_with(hf_client *client, const char *name, const hf_options *opt)
{
    hf_lock *lock = NULL;
    hf_error err;

    if (hf_acquire(client, name, HF_NTS, opt, &lock, &err) != HF_OK)
        fail_msg("%s", err.text);
    return lock;
}

/* By its descriptor, so that asking does not make it so. */
static void assert_lost_soon(hf_lock *lock, int64_t since_ms)
{
    await_lost(lock);
    assert_in_range(now_ms() - since_ms, 0, SOON_MS);
    assert_int_equal(hf_lock_cause(lock), HF_CAUSE_GONE);
}

/* A mark is read by every client that holds or waits, until somebody purges it. */
static void assert_no_requests(void)
{
    zhandle_t *zh = stranger();

    assert_int_equal(child_count(zh, "/locks/%break"), 0);
    zookeeper_close(zh);
}

static void break_of_another(int64_t ttl_ms, int now)
{
    hf_client *holder = open_at(servers(), ""), *other = open_at(servers(), "");
    hf_lock *lock = take(holder, "broken", ttl_ms), *kept = take(holder, "kept", ttl_ms);

    int64_t began_ms = now_ms();
    assert_int_equal(hf_break(other, "broken", HF_NTS, hf_lock_ticket(lock), now, NULL), HF_OK);
    assert_lost_soon(lock, began_ms);
    assert_int_equal(hf_lock_state(kept), HF_STATE_HELD);
    assert_int_equal(hf_lock_release(lock, NULL), HF_STALE);
    assert_int_equal(hf_lock_release(kept, NULL), HF_OK);
    /* Asked politely, the node stays for as long as the holder might not have heard. */
    hf_lock *next = NULL;
    bool open = now || ttl_ms == HF_NEVER;
    assert_int_equal(try_lock(other, "broken", 1000, &next), open ? HF_OK : HF_BUSY);
    if (open)
        assert_int_equal(hf_lock_release(next, NULL), HF_OK);
    hf_close(holder);
    assert_no_requests();
    hf_close(other);
    if (!open) { /* with its session, which was closed */
        other = open_at(servers(), "");
        assert_int_equal(try_lock(other, "broken", 1000, &next), HF_OK);
        assert_int_equal(hf_lock_release(next, NULL), HF_OK);
        hf_close(other);
    }
}

static void c7_holder_is_told_of_a_break_before_its_renewal(void **state)
{
    (void)state;
    break_of_another(LONG_TTL_MS, 0);
}

static void c7_holder_is_told_of_a_break_now_before_its_renewal(void **state)
{
    (void)state;
    break_of_another(LONG_TTL_MS, 1);
}

static void c7_holder_without_a_lease_is_told_of_a_break_at_once(void **state)
{
    (void)state;
    break_of_another(HF_NEVER, 0);
}

static void c7_waiter_that_became_a_holder_is_told_too(void **state)
{
    hf_client *holder = open_at(servers(), ""), *other = open_at(servers(), "");
    hf_lock *first = take(other, "after", LONG_TTL_MS);
    struct waiter w;

    (void)state;
    send_waiter(&w, holder, "after", LONG_TTL_MS, NULL);
    await_waiting(other, "after", 1);
    assert_int_equal(hf_lock_release(first, NULL), HF_OK);
    assert_int_equal(join_waiter(&w), HF_OK);
    int64_t began_ms = now_ms();
    assert_int_equal(hf_break(other, "after", HF_NTS, hf_lock_ticket(w.lock), 1, NULL), HF_OK);
    assert_lost_soon(w.lock, began_ms);
    assert_int_equal(hf_lock_release(w.lock, NULL), HF_STALE);
    hf_close(holder);
    hf_close(other);
}

/* Another client's node: it knows no such requests, so nobody can ask it to leave. */
static void c7_stranger_is_broken_by_now_only(void **state)
{
    const char *ticket = "00112233445566778899aabbccddeeff";
    hf_client *client = open_at(servers(), "");
    zhandle_t *zh = stranger();
    hf_lock *lock = NULL;
    char path[100];
    hf_error err;

    (void)state;
    assert_int_equal(hf_lock_release(take(client, "foreign", 1000), NULL), HF_OK); /* makes it */
    snprintf(path, sizeof path, "/locks/foreign/%s__lock__", ticket);
    assert_int_equal(
        zoo_create(zh, path, "x", 1, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL | ZOO_SEQUENCE, NULL, 0),
        ZOK);
    assert_int_equal(hf_break(client, "foreign", HF_NTS, ticket, 0, &err), HF_UNSUPPORTED);
    check_contains("text", err.text, "cannot be asked to leave");
    assert_int_equal(try_lock(client, "foreign", 1000, &lock), HF_BUSY);
    assert_int_equal(hf_break(client, "foreign", HF_NTS, ticket, 1, NULL), HF_OK);
    assert_int_equal(try_lock(client, "foreign", 1000, &lock), HF_OK);
    assert_int_equal(hf_lock_release(lock, NULL), HF_OK);
    zookeeper_close(zh);
    hf_close(client);
}

static size_t count_threads(void)
{
    DIR *dir = opendir("/proc/self/task");
    size_t count = 0;

    assert_non_null(dir);
    while (readdir(dir) != NULL)
        count++;
    closedir(dir);
    return count;
}

/* The session is let go of: hf_close() returns, nothing of ours runs on, and the server counts. */
static void c8_close_lets_go_of_a_session_whose_delay_runs(void **state)
{
    hf_client *other = open_at(servers(), "");
    hf_lock *lock = take(other, "unrelated", 10000), *none = NULL;
    assert_int_equal(hf_lock_release(lock, NULL), HF_OK);
    size_t threads = count_threads();
    hf_client *client = open_at(servers(), "");
    hf_options opt = HF_OPTIONS_INIT;

    (void)state;
    opt.ttl_ms = 500;
    opt.lock_delay_ms = 4000;
    opt.by_hand = 1;
    lock = take_with(client, "delay", &opt);
    await_lost(lock);
    int64_t lost_ms = now_ms();
    assert_int_equal(hf_lock_release(lock, NULL), HF_STALE);
    hf_close(client);
    int64_t closed_ms = now_ms();
    assert_in_range(closed_ms - lost_ms, 0, 2000);
    assert_int_equal(count_threads(), threads);
    assert_int_equal(try_lock(other, "delay", 1000, &none), HF_BUSY);
    lock = take(other, "delay", 1000);
    assert_true(now_ms() - lost_ms >= 4000);
    assert_in_range(now_ms() - closed_ms, 0, 4500 + 3000); /* ttl + delay, and the server's ticks */
    assert_int_equal(hf_lock_release(lock, NULL), HF_OK);
    hf_close(other);
}

/* What was released in good order leaves no delay behind, although it is in the same session. */
static void c8_close_takes_the_others_out_of_that_session(void **state)
{
    hf_client *client = open_at(servers(), ""), *other = open_at(servers(), "");
    hf_options opt = HF_OPTIONS_INIT;

    (void)state;
    opt.ttl_ms = 500;
    opt.lock_delay_ms = 20000;
    opt.by_hand = 1;
    hf_lock *lost = take_with(client, "delays", &opt);
    opt.by_hand = 0;
    opt.ttl_ms = 10000;
    opt.lock_delay_ms =
        10500; /* a session of the same length, and a lease that a busy machine can keep */
    hf_lock *held = take_with(client, "held", &opt);
    await_lost(lost);
    assert_int_equal(hf_lock_state(held), HF_STATE_HELD);
    hf_close(client); /* gives back what is held */
    hf_lock *next = NULL;
    assert_int_equal(try_lock(other, "held", 1000, &next), HF_OK);
    assert_int_equal(hf_lock_release(next, NULL), HF_OK);
    assert_int_equal(try_lock(other, "delays", 1000, &next), HF_BUSY);
    hf_lock_release(lost, NULL);
    hf_lock_release(held, NULL);
    hf_close(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(c7_holder_is_told_of_a_break_before_its_renewal),
        cmocka_unit_test(c7_holder_is_told_of_a_break_now_before_its_renewal),
        cmocka_unit_test(c7_holder_without_a_lease_is_told_of_a_break_at_once),
        cmocka_unit_test(c7_waiter_that_became_a_holder_is_told_too),
        cmocka_unit_test(c7_stranger_is_broken_by_now_only),
        cmocka_unit_test(c8_close_lets_go_of_a_session_whose_delay_runs),
        cmocka_unit_test(c8_close_takes_the_others_out_of_that_session),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
