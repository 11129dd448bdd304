/* The direct hand-over, where it could go wrong: to somebody who is not there any more or does not
 * hear of it. */
#include "etcd/line.h"
#include "lib/proxy.h"

/* The waiter that is next does not know yet that its place was deleted, by an operator say. */
static void c4_deleted_place_is_handed_nothing(void **state)
{
    struct line line = {0};
    (void)state;

    line_up(&line, "deleted");
    delete_place("deleted", 1);
    assert_int_equal(hf_lock_release(line.held, NULL), HF_OK);
    assert_int_equal(join_waiter(&line.second), HF_OK); /* the other one has lost its turn */
    uint64_t second = line.second.generation;
    assert_true(second > line.generation);
    await_waiting(line.clients[0], "deleted", 1);
    assert_int_equal(hf_lock_release(line.second.lock, NULL), HF_OK);
    assert_int_equal(join_waiter(&line.first), HF_OK); /* it has lined up anew */
    assert_true(line.first.generation > second);
    assert_int_equal(hf_lock_release(line.first.lock, NULL), HF_OK);
    disperse(&line);
}

/* Nobody tells who waits at its slot; its next sign of life shows it. */
static void c12_holder_deleted_by_hand_is_missed(void **state)
{
    struct line line = {0};
    (void)state;

    line_up(&line, "by hand");
    delete_place("by hand", 0);
    assert_int_equal(join_waiter(&line.first), HF_OK);
    assert_true(line.first.generation > line.generation);
    assert_int_equal(hf_lock_release(line.held, NULL), HF_STALE);
    assert_int_equal(hf_lock_release(line.first.lock, NULL), HF_OK);
    assert_int_equal(join_waiter(&line.second), HF_OK);
    assert_int_equal(hf_lock_release(line.second.lock, NULL), HF_OK);
    disperse(&line);
}

/* It was let in and never heard of it. The next one need not wait for the whole lease. */
static void c5_hand_over_to_the_dead_costs_its_own_lease(void **state)
{
    struct proxy *proxy = proxy_start(server_address());
    struct line line = {0};
    (void)state;

    assert_non_null(proxy);
    line.clients[1] = open_url(url_of(proxy_port(proxy), ""));
    line_up(&line, "dead");
    proxy_set(proxy, PROXY_RST, 0);
    int64_t released_ms = now_ms();
    assert_int_equal(hf_lock_release(line.held, NULL), HF_OK);
    assert_int_equal(count_entries(line.clients[0], "dead"), 2);
    assert_int_equal(join_waiter(&line.second), HF_OK);
    print_message("after %lld ms\n", (long long)(line.second.got_ms - released_ms));
    assert_true(line.second.got_ms - released_ms < HF_TTL_DEFAULT_MS);
    uint64_t second = line.second.generation;
    assert_true(second > line.generation);
    proxy_set(proxy, PROXY_PASS, 0);
    assert_int_equal(hf_lock_release(line.second.lock, NULL), HF_OK);
    if (join_waiter(&line.first) == HF_OK) { /* or it has given up, for its server was away */
        assert_true(line.first.generation > second);
        assert_int_equal(hf_lock_release(line.first.lock, NULL), HF_OK);
    }
    disperse(&line);
    proxy_stop(proxy);
}

/* Once it is claimed its holder may be silent for as long as its lease lasts. */
static void c3_claimed_hand_over_lasts_for_its_lease(void **state)
{
    struct proxy *proxy = proxy_start(server_address());
    struct line line = {.first.opt = HF_OPTIONS_INIT};
    (void)state;

    assert_non_null(proxy);
    line.clients[1] = open_url(url_of(proxy_port(proxy), ""));
    line.first.opt.ttl_ms = 15000; /* longer than the own lease of one who waits, ten seconds */
    line_up(&line, "claimed");
    assert_int_equal(hf_lock_release(line.held, NULL), HF_OK);
    assert_int_equal(join_waiter(&line.first), HF_OK);
    await("the claim", is_claimed, &(struct place){line.clients[0], "claimed"});
    proxy_set(proxy, PROXY_RST, 0);
    await_lost(line.first.lock);
    int64_t lost_ms = now_ms();
    proxy_set(proxy, PROXY_PASS, 0);
    assert_int_equal(join_waiter(&line.second), HF_OK);
    assert_true(line.second.got_ms >= lost_ms);
    assert_true(line.second.generation > line.first.generation);
    hf_lock_release(line.first.lock, NULL);
    assert_int_equal(hf_lock_release(line.second.lock, NULL), HF_OK);
    disperse(&line);
    proxy_stop(proxy);
}

/* The answer to a release is lost: it was applied once, and what was handed over stays so. */
static void c6_hand_over_whose_answer_was_lost_happens_once(void **state)
{
    struct line line = {0};
    char url[420];
    (void)state;

    snprintf(url, sizeof url, "fault+%s", url_of(0, "lose=release:1"));
    line.clients[0] = open_url(url);
    line_up(&line, "answer");
    assert_int_equal(hf_lock_release(line.held, NULL), HF_OK);
    assert_int_equal(join_waiter(&line.first), HF_OK);
    assert_int_equal(hf_lock_renew(line.first.lock, NULL), HF_OK);
    assert_int_equal(count_entries(line.clients[0], "answer"), 2);
    release_all(&line);
    disperse(&line);
}

/* It was let in, does not know it and gives up: nothing of it stays, and the next one enters. */
static void c5_waiter_that_gives_up_when_it_is_let_in_leaves_nothing(void **state)
{
    struct line line = {.clients[1] = open_deaf(), .first.opt = HF_OPTIONS_INIT};
    (void)state;

    line.first.opt.wait_ms = 3000;
    line_up(&line, "gives up");
    assert_int_equal(hf_lock_release(line.held, NULL), HF_OK);
    assert_int_equal(join_waiter(&line.first), HF_TIMEOUT);
    assert_int_equal(join_waiter(&line.second), HF_OK);
    assert_int_equal(count_keys("test/gives up/"), 1);
    assert_int_equal(count_keys("test/.holdfast/inside/gives up/"), 1);
    assert_int_equal(hf_lock_release(line.second.lock, NULL), HF_OK);
    assert_int_equal(count_keys("test/.holdfast/inside/gives up/"), 0);
    disperse(&line);
}

/* Leases serve the next bid, with the slots that hang on them; two clients take turns. */
static void c4_turns_on_the_same_leases_rise(void **state)
{
    hf_client *clients[2] = {open_live(""), open_live("")};
    (void)state;

    hf_lock *held = take_free(clients[0], "turns", HF_TTL_DEFAULT_MS);
    uint64_t last = generation_of(held);
    double grants = metric(GRANTS);
    for (int turn = 1; turn <= 20; turn++) {
        struct waiter next = {0};
        wait_in_thread(&next, clients[turn % 2], "turns");
        await_waiting(clients[0], "turns", 1);
        assert_int_equal(hf_lock_release(held, NULL), HF_OK);
        assert_int_equal(join_waiter(&next), HF_OK);
        held = next.lock;
        assert_true(next.generation > last);
        last = next.generation;
        assert_int_equal(count_keys("test/turns/"), 1);
        assert_int_equal(count_keys("test/.holdfast/inside/turns/"), 1);
    }
    assert_true(metric(GRANTS) - grants < 10);
    assert_int_equal(hf_lock_release(held, NULL), HF_OK);
    assert_int_equal(count_keys("test/.holdfast/inside/turns/"), 0);
    hf_close(clients[0]);
    hf_close(clients[1]);
}

/* It hangs on a lease until it is claimed, and on none when it is handed on. */
static void c3_lock_that_never_expires_is_handed_over_and_on(void **state)
{
    struct line line = {.first.opt = HF_OPTIONS_INIT};
    (void)state;

    line.first.opt.ttl_ms = HF_NEVER;
    line_up(&line, "never");
    assert_int_equal(hf_lock_release(line.held, NULL), HF_OK);
    assert_int_equal(join_waiter(&line.first), HF_OK);
    assert_true(hf_lock_remaining_ms(line.first.lock) == INT64_MAX);
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
        cmocka_unit_test(c6_hand_over_whose_answer_was_lost_happens_once),
        cmocka_unit_test(c5_waiter_that_gives_up_when_it_is_let_in_leaves_nothing),
        cmocka_unit_test(c4_turns_on_the_same_leases_rise),
        cmocka_unit_test(c3_lock_that_never_expires_is_handed_over_and_on),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
