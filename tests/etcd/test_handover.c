/* The direct hand-over, where it could go wrong: to somebody who is not there any more, and by
 * somebody whose lock is not its own any more and who does not know it yet. */
#include <unistd.h>

#include "etcd/live.h"
#include "lib/proxy.h"

#define HELD_MS 60000

static uint64_t generation_of(const hf_lock *lock)
{
    uint64_t generation = 0;

    assert_int_equal(hf_lock_generation(lock, &generation), HF_OK);
    return generation;
}

/* A holder of its own client, and two who wait, one behind the other. Clients that are there already
 * are used. */
struct line {
    hf_client *clients[3];
    hf_lock *held;
    uint64_t generation;
    struct waiter first, second;
};

static void line_up(struct line *line, const char *name)
{
    hf_error err;

    for (int i = 0; i < 3; i++) {
        if (line->clients[i] == NULL)
            line->clients[i] = open_at(url_of(0, ""));
    }
    assert_int_equal(try_lock(line->clients[0], name, HELD_MS, &line->held, &err), HF_OK);
    line->generation = generation_of(line->held);
    wait_in_thread(&line->first, line->clients[1], name);
    await_waiting(line->clients[0], name, 1);
    await_watchers(1);
    wait_in_thread(&line->second, line->clients[2], name);
    await_waiting(line->clients[0], name, 2);
    await_watchers(2);
}

static void disperse(struct line *line)
{
    for (int i = 0; i < 3; i++)
        hf_close(line->clients[i]);
}

/* The waiter that is next does not know yet that its place was deleted, by an operator say. */
static void c4_deleted_place_is_handed_nothing(void **state)
{
    struct line line = {0};
    hf_error err;
    (void)state;

    line_up(&line, "deleted");
    delete_place("deleted", 1);
    assert_int_equal(hf_lock_release(line.held, &err), HF_OK);
    assert_int_equal(join_waiter(&line.second), HF_OK); /* the other one has lost its turn */
    uint64_t second = generation_of(line.second.lock);
    assert_true(second > line.generation);
    await_waiting(line.clients[0], "deleted", 1);
    assert_int_equal(hf_lock_release(line.second.lock, &err), HF_OK);
    assert_int_equal(join_waiter(&line.first), HF_OK); /* it has lined up anew */
    assert_true(generation_of(line.first.lock) > second);
    assert_int_equal(hf_lock_release(line.first.lock, &err), HF_OK);
    disperse(&line);
}

/* Nobody tells who waits at its slot; its next sign of life shows it. */
static void c12_holder_deleted_by_hand_is_missed(void **state)
{
    struct line line = {0};
    hf_error err;
    (void)state;

    line_up(&line, "by hand");
    delete_place("by hand", 0);
    assert_int_equal(join_waiter(&line.first), HF_OK);
    assert_true(generation_of(line.first.lock) > line.generation);
    assert_int_equal(hf_lock_release(line.held, &err), HF_STALE);
    assert_int_equal(hf_lock_release(line.first.lock, &err), HF_OK);
    assert_int_equal(join_waiter(&line.second), HF_OK);
    assert_int_equal(hf_lock_release(line.second.lock, &err), HF_OK);
    disperse(&line);
}

/* It was let in and never heard of it. The next one need not wait for the whole lease. */
static void c5_hand_over_to_the_dead_costs_its_own_lease(void **state)
{
    struct proxy *proxy = proxy_start(server_address());
    struct line line = {0};
    hf_error err;
    (void)state;

    assert_non_null(proxy);
    line.clients[1] = open_at(url_of(proxy_port(proxy), ""));
    line_up(&line, "dead");
    proxy_set(proxy, PROXY_RST, 0);
    int64_t released_ms = now_ms();
    assert_int_equal(hf_lock_release(line.held, &err), HF_OK);
    assert_int_equal(count_entries(line.clients[0], "dead"), 2);
    assert_int_equal(join_waiter(&line.second), HF_OK);
    print_message("after %lld ms\n", (long long)(line.second.got_ms - released_ms));
    assert_true(line.second.got_ms - released_ms < HF_TTL_DEFAULT_MS);
    uint64_t second = generation_of(line.second.lock);
    assert_true(second > line.generation);
    proxy_set(proxy, PROXY_PASS, 0);
    assert_int_equal(hf_lock_release(line.second.lock, &err), HF_OK);
    if (join_waiter(&line.first) == HF_OK) { /* or it has given up, for its server was away */
        assert_true(generation_of(line.first.lock) > second);
        assert_int_equal(hf_lock_release(line.first.lock, &err), HF_OK);
    }
    disperse(&line);
    proxy_stop(proxy);
}

static bool is_claimed(hf_client *client, const char *name)
{
    hf_query query = {.size = sizeof query, .name = name, .name_len = HF_NTS};
    hf_view *view = NULL;

    assert_int_equal(hf_inspect(client, &query, &view, NULL), HF_OK);
    bool claimed = hf_view_count(view) > 0 && hf_view_entry(view, 0)->claimed;
    hf_view_free(view);
    return claimed;
}

/* Once it is claimed its holder may be silent for as long as its lease lasts. */
static void c3_claimed_hand_over_lasts_for_its_lease(void **state)
{
    struct proxy *proxy = proxy_start(server_address());
    struct line line = {0};
    hf_error err;
    (void)state;

    assert_non_null(proxy);
    line.clients[1] = open_at(url_of(proxy_port(proxy), ""));
    line_up(&line, "claimed");
    assert_int_equal(hf_lock_release(line.held, &err), HF_OK);
    assert_int_equal(join_waiter(&line.first), HF_OK);
    int64_t until_ms = now_ms() + 15000;
    while (!is_claimed(line.clients[0], "claimed") && now_ms() < until_ms)
        usleep(20000);
    assert_true(is_claimed(line.clients[0], "claimed"));
    proxy_set(proxy, PROXY_RST, 0);
    until_ms = now_ms() + 2 * HF_TTL_DEFAULT_MS;
    while (hf_lock_state(line.first.lock) != HF_STATE_LOST && now_ms() < until_ms)
        usleep(20000);
    assert_int_equal(hf_lock_state(line.first.lock), HF_STATE_LOST);
    int64_t lost_ms = now_ms();
    proxy_set(proxy, PROXY_PASS, 0);
    assert_int_equal(join_waiter(&line.second), HF_OK);
    assert_true(line.second.got_ms >= lost_ms);
    assert_true(generation_of(line.second.lock) > generation_of(line.first.lock));
    hf_lock_release(line.first.lock, NULL);
    assert_int_equal(hf_lock_release(line.second.lock, &err), HF_OK);
    disperse(&line);
    proxy_stop(proxy);
}

/* By somebody whose lock is not its own any more. ---------------------------------------------- */

/* A client that is not called: neither that it was let in, nor that its lock was broken. */
static hf_client *open_deaf(void)
{
    char url[420];

    snprintf(url, sizeof url, "fault+%s", url_of(0, "drop_wakes=*"));
    return open_at(url);
}

static void release_all(struct line *line)
{
    hf_error err;

    assert_int_equal(join_waiter(&line->first), HF_OK);
    uint64_t first = generation_of(line->first.lock);
    assert_true(first > line->generation);
    assert_int_equal(hf_lock_release(line->first.lock, &err), HF_OK);
    assert_int_equal(join_waiter(&line->second), HF_OK);
    assert_true(generation_of(line->second.lock) > first);
    assert_int_equal(hf_lock_release(line->second.lock, &err), HF_OK);
}

/* Nobody is inside, and the next one is first: it is let in, but the release is none. */
static void c2_release_of_a_deleted_place_is_stale(void **state)
{
    struct line line = {0};
    hf_error err;
    (void)state;

    line_up(&line, "stale");
    delete_place("stale", 0);
    assert_int_equal(hf_lock_release(line.held, &err), HF_STALE);
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
    hf_error err;
    (void)state;

    line_up(&line, "late release");
    delete_place("late release", 0);
    assert_int_equal(join_waiter(&line.first), HF_OK);
    assert_true(is_claimed(line.clients[2], "late release"));
    assert_int_equal(hf_lock_release(line.held, &err), HF_STALE);
    assert_true(is_claimed(line.clients[2], "late release"));
    assert_int_equal(hf_lock_renew(line.first.lock, &err), HF_OK);
    release_all(&line);
    assert_int_equal(count_keys("test/.holdfast/inside/late release/"), 0);
    disperse(&line);
}

/* It stays closed until its lease is over. --now opens it. */
static void c2_broken_lock_is_not_handed_over(void **state)
{
    struct line line = {.clients[0] = open_deaf()};
    char ticket[HF_TICKET_SIZE];
    hf_error err;
    (void)state;

    line_up(&line, "broken");
    snprintf(ticket, sizeof ticket, "%s", hf_lock_ticket(line.held));
    assert_int_equal(hf_break(line.clients[2], "broken", HF_NTS, ticket, 0, &err), HF_OK);
    assert_int_equal(hf_lock_state(line.held), HF_STATE_HELD); /* it has not heard of it */
    assert_int_equal(hf_lock_release(line.held, &err), HF_STALE);
    assert_int_equal(count_entries(line.clients[2], "broken"), 3);
    assert_int_equal(count_keys("test/.holdfast/inside/broken/"), 1);
    assert_int_equal(hf_break(line.clients[2], "broken", HF_NTS, ticket, 1, &err), HF_OK);
    release_all(&line);
    disperse(&line);
}

/* The lock-delay of a lock that was broken runs, whatever its holder does. */
static void c8_lock_delay_of_a_broken_lock_is_not_handed_over(void **state)
{
    struct line line = {.clients[0] = open_deaf()};
    hf_options opt = HF_OPTIONS_INIT;
    char ticket[HF_TICKET_SIZE];
    hf_error err;
    (void)state;

    opt.ttl_ms = HELD_MS;
    opt.lock_delay_ms = 2000;
    assert_int_equal(hf_acquire(line.clients[0], "delay", HF_NTS, &opt, &line.held, &err), HF_OK);
    line.clients[1] = open_at(url_of(0, ""));
    wait_in_thread(&line.first, line.clients[1], "delay");
    await_waiting(line.clients[1], "delay", 1);
    await_watchers(1);
    snprintf(ticket, sizeof ticket, "%s", hf_lock_ticket(line.held));
    int64_t broken_ms = now_ms();
    assert_int_equal(hf_break(line.clients[1], "delay", HF_NTS, ticket, 1, &err), HF_OK);
    assert_int_equal(hf_lock_release(line.held, &err), HF_STALE);
    assert_int_equal(join_waiter(&line.first), HF_OK);
    assert_true(line.first.got_ms - broken_ms >= 2000);
    assert_int_equal(hf_lock_release(line.first.lock, &err), HF_OK);
    hf_close(line.clients[0]);
    hf_close(line.clients[1]);
}

/* The answer to a release is lost: it was applied once, and what was handed over stays so. */
static void c6_hand_over_whose_answer_was_lost_happens_once(void **state)
{
    struct line line = {0};
    char url[420];
    hf_error err;
    (void)state;

    snprintf(url, sizeof url, "fault+%s", url_of(0, "lose=release:1"));
    line.clients[0] = open_at(url);
    line_up(&line, "answer");
    assert_int_equal(hf_lock_release(line.held, &err), HF_OK);
    assert_int_equal(join_waiter(&line.first), HF_OK);
    assert_int_equal(hf_lock_renew(line.first.lock, &err), HF_OK);
    assert_int_equal(count_entries(line.clients[0], "answer"), 2);
    release_all(&line);
    disperse(&line);
}

/* It was let in, does not know it and gives up: nothing of it stays, and the next one enters. */
static void c5_waiter_that_gives_up_when_it_is_let_in_leaves_nothing(void **state)
{
    struct line line = {.clients[1] = open_deaf(), .first.wait_ms = 3000};
    hf_error err;
    (void)state;

    line_up(&line, "gives up");
    assert_int_equal(hf_lock_release(line.held, &err), HF_OK);
    assert_int_equal(join_waiter(&line.first), HF_TIMEOUT);
    assert_int_equal(join_waiter(&line.second), HF_OK);
    assert_int_equal(count_keys("test/gives up/"), 1);
    assert_int_equal(count_keys("test/.holdfast/inside/gives up/"), 1);
    assert_int_equal(hf_lock_release(line.second.lock, &err), HF_OK);
    assert_int_equal(count_keys("test/.holdfast/inside/gives up/"), 0);
    disperse(&line);
}

/* Leases serve the next bid, with the slots that hang on them; two clients take turns. */
static void c4_turns_on_the_same_leases_rise(void **state)
{
    hf_client *clients[2] = {open_at(url_of(0, "")), open_at(url_of(0, ""))};
    hf_lock *held = NULL;
    hf_error err;
    (void)state;

    assert_int_equal(try_lock(clients[0], "turns", HF_TTL_DEFAULT_MS, &held, &err), HF_OK);
    uint64_t last = generation_of(held);
    double grants = metric(GRANTS);
    for (int turn = 1; turn <= 20; turn++) {
        struct waiter next = {0};
        wait_in_thread(&next, clients[turn % 2], "turns");
        await_waiting(clients[0], "turns", 1);
        assert_int_equal(hf_lock_release(held, &err), HF_OK);
        assert_int_equal(join_waiter(&next), HF_OK);
        held = next.lock;
        assert_true(generation_of(held) > last);
        last = generation_of(held);
        assert_int_equal(count_keys("test/turns/"), 1);
        assert_int_equal(count_keys("test/.holdfast/inside/turns/"), 1);
    }
    assert_true(metric(GRANTS) - grants < 10);
    assert_int_equal(hf_lock_release(held, &err), HF_OK);
    assert_int_equal(count_keys("test/.holdfast/inside/turns/"), 0);
    hf_close(clients[0]);
    hf_close(clients[1]);
}

/* It hangs on a lease until it is claimed, and on none when it is handed on. */
static void c3_lock_that_never_expires_is_handed_over_and_on(void **state)
{
    struct line line = {.first.never_expires = 1};
    hf_error err;
    (void)state;

    line_up(&line, "never");
    assert_int_equal(hf_lock_release(line.held, &err), HF_OK);
    release_all(&line);
    assert_int_equal(count_keys("test/never/"), 0);
    assert_int_equal(count_keys("test/.holdfast/inside/never/"), 0);
    disperse(&line);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(c4_deleted_place_is_handed_nothing),
        cmocka_unit_test(c12_holder_deleted_by_hand_is_missed),
        cmocka_unit_test(c5_hand_over_to_the_dead_costs_its_own_lease),
        cmocka_unit_test(c3_claimed_hand_over_lasts_for_its_lease),
        cmocka_unit_test(c2_release_of_a_deleted_place_is_stale),
        cmocka_unit_test(c1_late_release_of_a_deleted_place_takes_nothing_away),
        cmocka_unit_test(c2_broken_lock_is_not_handed_over),
        cmocka_unit_test(c8_lock_delay_of_a_broken_lock_is_not_handed_over),
        cmocka_unit_test(c6_hand_over_whose_answer_was_lost_happens_once),
        cmocka_unit_test(c5_waiter_that_gives_up_when_it_is_let_in_leaves_nothing),
        cmocka_unit_test(c4_turns_on_the_same_leases_rise),
        cmocka_unit_test(c3_lock_that_never_expires_is_handed_over_and_on),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
