/* Releases by somebody whose lock is not its own any more and who does not know it yet: nothing is
 * handed over by them. */
#include "etcd/line.h"

/* Nobody is inside, and the next one is first: it is let in, but the release is none. */
static void c2_release_of_a_deleted_place_is_stale(void **state)
{
    struct line line = {0};
    (void)state;

    line_up(&line, "stale");
    delete_place("stale", 0);
    assert_int_equal(hf_lock_release(line.held, NULL), HF_STALE);
    release_all(&line);
    assert_int_equal(count_keys("test/stale/"), 0);
    assert_int_equal(count_keys("test/.holdfast/inside/stale/"), 0);
    disperse(&line);
}

/* The next one has found out and entered by itself: a release that comes then does not make it one
 * that was handed the lock and may be removed if it is silent. */
static void c1_late_release_of_a_deleted_place_takes_nothing_away(void **state)
{
    struct line line = {0};
    (void)state;

    line_up(&line, "late release");
    delete_place("late release", 0);
    assert_int_equal(join_waiter(&line.first), HF_OK);
    assert_true(is_claimed(&(struct place){line.clients[2], "late release"}));
    assert_int_equal(hf_lock_release(line.held, NULL), HF_STALE);
    assert_true(is_claimed(&(struct place){line.clients[2], "late release"}));
    assert_int_equal(hf_lock_renew(line.first.lock, NULL), HF_OK);
    release_all(&line);
    assert_int_equal(count_keys("test/.holdfast/inside/late release/"), 0);
    disperse(&line);
}

/* It stays closed until its lease is over. --now opens it. */
static void c2_broken_lock_is_not_handed_over(void **state)
{
    struct line line = {.clients[0] = open_deaf()};
    char ticket[HF_TICKET_SIZE];
    (void)state;

    line_up(&line, "broken");
    snprintf(ticket, sizeof ticket, "%s", hf_lock_ticket(line.held));
    assert_int_equal(hf_break(line.clients[2], "broken", HF_NTS, ticket, 0, NULL), HF_OK);
    assert_int_equal(hf_lock_state(line.held), HF_STATE_HELD); /* it has not heard of it */
    assert_int_equal(hf_lock_release(line.held, NULL), HF_STALE);
    assert_int_equal(count_entries(line.clients[2], "broken"), 3);
    assert_int_equal(count_keys("test/.holdfast/inside/broken/"), 1);
    assert_int_equal(hf_break(line.clients[2], "broken", HF_NTS, ticket, 1, NULL), HF_OK);
    release_all(&line);
    disperse(&line);
}

/* The lock-delay of a lock that was broken runs, whatever its holder does. */
static void c8_lock_delay_of_a_broken_lock_is_not_handed_over(void **state)
{
    struct line line = {.clients[0] = open_deaf()};
    hf_options opt = HF_OPTIONS_INIT;
    char ticket[HF_TICKET_SIZE];
    (void)state;

    opt.ttl_ms = HELD_MS;
    opt.lock_delay_ms = 2000;
    assert_int_equal(hf_acquire(line.clients[0], "delay", HF_NTS, &opt, &line.held, NULL), HF_OK);
    line.clients[1] = open_live("");
    wait_in_thread(&line.first, line.clients[1], "delay");
    await_waiting(line.clients[1], "delay", 1);
    await_watchers(1);
    snprintf(ticket, sizeof ticket, "%s", hf_lock_ticket(line.held));
    int64_t broken_ms = now_ms();
    assert_int_equal(hf_break(line.clients[1], "delay", HF_NTS, ticket, 1, NULL), HF_OK);
    assert_int_equal(hf_lock_release(line.held, NULL), HF_STALE);
    assert_int_equal(join_waiter(&line.first), HF_OK);
    assert_true(line.first.got_ms - broken_ms >= 2000);
    assert_int_equal(hf_lock_release(line.first.lock, NULL), HF_OK);
    hf_close(line.clients[0]);
    hf_close(line.clients[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(c2_release_of_a_deleted_place_is_stale),
        cmocka_unit_test(c1_late_release_of_a_deleted_place_takes_nothing_away),
        cmocka_unit_test(c2_broken_lock_is_not_handed_over),
        cmocka_unit_test(c8_lock_delay_of_a_broken_lock_is_not_handed_over),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
