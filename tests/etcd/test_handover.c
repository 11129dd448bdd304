/* The direct hand-over, where it could go wrong: to somebody who is not there any more. */
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

/* A holder of its own client, and two who wait, one behind the other: each watches one key. */
struct line {
    hf_client *clients[3];
    hf_lock *held;
    uint64_t generation;
    struct waiter first, second;
};

static void line_up(struct line *line, const char *name, int port_of_first)
{
    hf_error err;

    *line = (struct line){0};
    for (int i = 0; i < 3; i++)
        line->clients[i] = open_at(url_of(i == 1 ? port_of_first : 0, ""));
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
    struct line line;
    hf_error err;
    (void)state;

    line_up(&line, "deleted", 0);
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
    struct line line;
    hf_error err;
    (void)state;

    line_up(&line, "by hand", 0);
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
    struct line line;
    hf_error err;
    (void)state;

    assert_non_null(proxy);
    line_up(&line, "dead", proxy_port(proxy));
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
    struct line line;
    hf_error err;
    (void)state;

    assert_non_null(proxy);
    line_up(&line, "claimed", proxy_port(proxy));
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(c4_deleted_place_is_handed_nothing),
        cmocka_unit_test(c12_holder_deleted_by_hand_is_missed),
        cmocka_unit_test(c5_hand_over_to_the_dead_costs_its_own_lease),
        cmocka_unit_test(c3_claimed_hand_over_lasts_for_its_lease),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
