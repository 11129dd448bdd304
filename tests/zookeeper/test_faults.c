/* What goes wrong on the way to a server (C5, C6, C7): replies that are lost, requests that come
 * late, sessions that end; and what is refused (points of the URL). Beside one server and beside
 * three, of which the proxy is in front of the first. */
#include <stdlib.h>

#include "zookeeper/behind.h"

/* A client behind the proxy whose session for this ttl is there, and the directory of the lock, so
 * that its next request is the create itself: without it, the answer that is lost would be that
 * there is no directory. */
static hf_client *open_behind(const char *options, const char *name, int64_t ttl_ms)
{
    hf_client *client = open_at(behind, options);

    assert_int_equal(hf_lock_release(take(client, name, ttl_ms), NULL), HF_OK);
    return client;
}

/* Bids while what the server sends is lost; returns when the node is there, and the connection is
 * cut. */
static void lose_the_reply(struct waiter *w, hf_client *client, const char *name, int64_t ttl_ms)
{
    char path[100];

    snprintf(path, sizeof path, "/locks/%s", name);
    proxy_set(proxy, PROXY_S2C_HOLE, 0);
    size_t connections = proxy_connections(proxy);
    send_waiter(w, client, name, ttl_ms, NULL);
    await("the node that nobody was told of", has_children, path);
    assert_int_equal(proxy_connections(proxy), connections); /* by the connection that is deaf */
}

static void c6_create_whose_reply_is_lost_is_found_by_its_ticket(void **state)
{
    hf_client *client = open_behind("op_timeout=4s", "reply", 3000);
    struct waiter w;

    (void)state;
    lose_the_reply(&w, client, "reply", 3000);
    proxy_set(proxy, PROXY_RST, 0);
    proxy_set(proxy, PROXY_PASS, 0);
    assert_int_equal(join_waiter(&w), HF_OK);
    assert_int_equal(child_count(zh, "/locks/reply"), 1); /* not a second one */
    assert_int_equal(hf_lock_release(w.lock, NULL), HF_OK);
    await("nothing to be left", is_empty,
          (void *)"/locks/reply"); /* the stranger's server may lag */
    hf_close(client);
}

/* The same, but what is found has the right name in the session of somebody else. */
static void c6_node_of_another_session_is_not_taken_for_ours(void **state)
{
    hf_client *client = open_behind("op_timeout=4s", "owner", 3000);
    struct String_vector names = {0};
    char path[300];
    zoo_op_t ops[2];
    zoo_op_result_t results[2];
    struct waiter w;

    (void)state;
    lose_the_reply(&w, client, "owner", 3000);
    assert_int_equal(zoo_get_children(zh, "/locks/owner", 0, &names), ZOK);
    snprintf(path, sizeof path, "/locks/owner/%s", names.data[0]);
    deallocate_String_vector(&names);
    zoo_delete_op_init(&ops[0], path, -1);
    zoo_create_op_init(&ops[1], path, "x", 1, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL, NULL, 0);
    assert_int_equal(zoo_multi(zh, 2, ops, results), ZOK);
    proxy_set(proxy, PROXY_RST, 0);
    proxy_set(proxy, PROXY_PASS, 0);
    hf_client *other = open_at(servers(), "");
    await_waiting(other, "owner", 1); /* behind it, with a node of its own */
    assert_int_equal(zoo_delete(zh, path, -1), ZOK);
    assert_int_equal(join_waiter(&w), HF_OK);
    assert_int_equal(hf_lock_release(w.lock, NULL), HF_OK);
    hf_close(client);
    hf_close(other);
}

static void c5_create_that_arrives_late_never_holds(void **state)
{
    hf_client *client = open_behind("op_timeout=700ms", "late", 4000);
    hf_lock *none = NULL;

    (void)state;
    proxy_set(proxy, PROXY_C2S_HOLE, 0);
    int r = try_lock(client, "late", 4000, &none);
    assert_true(r == HF_UNKNOWN || r == HF_UNAVAILABLE);
    proxy_set(proxy, PROXY_PASS, 0);
    /* It arrives now, and goes again: by the keeper, or because the servers refuse it. */
    hf_client *other = open_at(servers(), "");
    assert_int_equal(hf_lock_release(take(other, "late", 1000), NULL), HF_OK);
    await("nothing to be left", is_empty, (void *)"/locks/late");
    hf_close(other);
    hf_close(client);
}

static void c7_holder_that_is_cut_off_is_lost_before_the_next_enters(void **state)
{
    hf_client *client = open_behind("", "cut", 1000), *other = open_at(servers(), "");
    hf_lock *lock = take(client, "cut", 1000);
    struct waiter w;

    (void)state;
    send_waiter(&w, other, "cut", 1000, NULL);
    await_waiting(other, "cut", 1);
    proxy_set(proxy, PROXY_HOLE, 0);
    assert_int_equal(join_waiter(&w), HF_OK);
    assert_int_equal(hf_lock_state(lock), HF_STATE_LOST);
    assert_int_equal(hf_lock_cause(lock), HF_CAUSE_EXPIRED);
    proxy_set(proxy, PROXY_RST, 0);
    proxy_set(proxy, PROXY_PASS, 0);
    /* A new session inherits nothing. */
    assert_int_equal(hf_lock_state(lock), HF_STATE_LOST);
    assert_int_equal(hf_lock_release(lock, NULL), HF_STALE);
    assert_int_equal(hf_lock_state(w.lock), HF_STATE_HELD);
    assert_int_equal(hf_lock_release(w.lock, NULL), HF_OK);
    hf_lock *again = take(client, "cut", 1000);
    assert_int_equal(hf_lock_release(again, NULL), HF_OK);
    hf_close(client);
    hf_close(other);
}

/* The session has ended, which took what was leased; a lock that never expires needs none. */
static void end_the_session(hf_client *client, const char *name)
{
    hf_lock *leased = take(client, name, 5000); /* in the session of those that never expire */
    char path[100];

    snprintf(path, sizeof path, "/locks/%s", name);
    await("the node of a lease", has_children, path);
    proxy_set(proxy, PROXY_HOLE, 0);
    await("the session to end", is_empty, path);
    proxy_set(proxy, PROXY_RST, 0);
    proxy_set(proxy, PROXY_PASS, 0);
    await_lost(leased);
    hf_lock_release(leased, NULL);
}

static int is_renewed(void *lock)
{
    return hf_lock_renew(lock, NULL) == HF_OK;
}

static void c3_lock_without_a_lease_outlives_its_session(void **state)
{
    hf_client *client = open_behind("op_timeout=4s", "outlives", HF_NEVER);
    hf_lock *lock = take(client, "outlives", HF_NEVER);

    (void)state;
    end_the_session(client, "outlives-lease");
    await("it to be renewed in another session", is_renewed, lock);
    assert_int_equal(hf_lock_state(lock), HF_STATE_HELD);
    assert_int_equal(hf_lock_release(lock, NULL), HF_OK);
    await("its node to go", is_empty, (void *)"/locks/outlives");
    hf_close(client);
}

/* Nobody has renewed it since. */
static void c6_lock_without_a_lease_is_released_in_another_session(void **state)
{
    hf_client *client = open_behind("op_timeout=4s", "in-another", HF_NEVER);
    hf_options opt = HF_OPTIONS_INIT;
    hf_lock *lock = NULL;

    (void)state;
    opt.ttl_ms = HF_NEVER;
    opt.by_hand = 1;
    assert_int_equal(hf_acquire(client, "in-another", HF_NTS, &opt, &lock, NULL), HF_OK);
    end_the_session(client, "in-another-lease");
    assert_int_equal(hf_lock_release(lock, NULL), HF_OK);
    await("its node to go", is_empty, (void *)"/locks/in-another");
    hf_close(client);
}

static int is_persistent(void *path)
{
    struct String_vector names = {0};
    struct Stat stat = {0};
    char node[300];
    int rc = zoo_get_children(zh, path, 0, &names);

    if (rc == ZOK && names.count == 1) {
        snprintf(node, sizeof node, "%s/%s", (const char *)path, names.data[0]);
        rc = zoo_exists(zh, node, 0, &stat);
    }
    bool persistent = rc == ZOK && names.count == 1 && stat.ephemeralOwner == 0;
    deallocate_String_vector(&names);
    return persistent;
}

/* The claim made the node persistent, which nobody was told; then the session ended. */
static void c6_claim_whose_reply_is_lost_is_found_in_another_session(void **state)
{
    hf_client *client = open_behind("op_timeout=20s", "claim", HF_NEVER);
    hf_lock *leased = take(client, "claim-lease", 5000);
    struct waiter w;

    (void)state;
    proxy_set(proxy, PROXY_DELAY, 300); /* time to cut it off before it hears of its claim */
    send_waiter(&w, client, "claim", HF_NEVER, NULL);
    await("the claim", is_persistent, (void *)"/locks/claim");
    proxy_set(proxy, PROXY_HOLE, 0);
    await("the session to end", is_empty, (void *)"/locks/claim-lease");
    proxy_set(proxy, PROXY_RST, 0);
    proxy_set(proxy, PROXY_PASS, 0);
    if (join_waiter(&w) == HF_OK)
        assert_int_equal(hf_lock_release(w.lock, NULL), HF_OK);
    hf_lock_release(leased, NULL);
    await("its node to go", is_empty, (void *)"/locks/claim");
    hf_close(client);
}

static void c7_short_break_of_the_connection_loses_nothing(void **state)
{
    hf_client *client = open_behind("", "short", 6000);
    hf_lock *lock = take(client, "short", 6000);

    (void)state;
    for (int i = 0; i < 3; i++) {
        proxy_set(proxy, PROXY_RST, 0);
        proxy_set(proxy, PROXY_PASS, 0);
        int r = HF_UNKNOWN;
        for (int tries = 0; r != HF_OK && tries < 20; tries++)
            r = hf_lock_renew(lock, NULL);
        assert_int_equal(r, HF_OK);
    }
    assert_int_equal(hf_lock_state(lock), HF_STATE_HELD);
    assert_int_equal(hf_lock_release(lock, NULL), HF_OK);
    hf_close(client);
}

static void c12_waiter_is_woken_after_a_break_of_the_connection(void **state)
{
    hf_client *client = open_behind("", "again", 5000), *other = open_at(servers(), "");
    hf_lock *lock = take(other, "again", 5000);
    struct waiter w;

    (void)state;
    send_waiter(&w, client, "again", 5000, NULL);
    await_waiting(other, "again", 1);
    proxy_set(proxy, PROXY_RST, 0);
    assert_int_equal(hf_lock_release(lock, NULL), HF_OK); /* the event is missed */
    proxy_set(proxy, PROXY_PASS, 0);
    assert_int_equal(join_waiter(&w), HF_OK);
    assert_int_equal(hf_lock_release(w.lock, NULL), HF_OK);
    hf_close(client);
    hf_close(other);
}

static int has_two(void *path)
{
    return child_count(zh, path) == 2;
}

/* Both its own node and the one before it are deleted while it is cut off: after the reconnect it
 * is told of both, in any order. */
static void c5_waiter_is_not_let_in_by_what_it_missed(void **state)
{
    hf_client *client = open_behind("", "missed", 5000), *other = open_at(servers(), "");

    (void)state;
    for (int round = 0; round < 5; round++) {
        hf_lock *lock = take(other, "missed", 5000);
        struct String_vector names = {0};
        char paths[2][300];
        zoo_op_t ops[2];
        zoo_op_result_t results[2];
        struct waiter w;

        send_waiter(&w, client, "missed", 5000, NULL);
        await("both nodes, on this server too", has_two, (void *)"/locks/missed");
        assert_int_equal(zoo_get_children(zh, "/locks/missed", 0, &names), ZOK);
        assert_int_equal(names.count, 2);
        proxy_set(proxy, PROXY_RST, 0);
        for (int i = 0; i < 2; i++) {
            snprintf(paths[i], sizeof paths[i], "/locks/missed/%s", names.data[i]);
            zoo_delete_op_init(&ops[i], paths[i], -1);
        }
        deallocate_String_vector(&names);
        assert_int_equal(zoo_multi(zh, 2, ops, results), ZOK);
        proxy_set(proxy, PROXY_PASS, 0);
        assert_int_equal(join_waiter(&w), HF_OK);
        assert_int_equal(hf_lock_renew(w.lock, NULL),
                         HF_OK); /* with a node of its own, therefore */
        assert_int_equal(hf_lock_release(w.lock, NULL), HF_OK);
        hf_lock_release(lock, NULL);
    }
    hf_close(client);
    hf_close(other);
}

/* The holder's node moves into another session while the waiter is cut off: after the reconnect
 * that is not told as its end. */
static void c1_waiter_that_missed_a_move_is_not_let_in(void **state)
{
    hf_client *client = open_behind("", "moved", 20000), *first = open_at(servers(), "");
    hf_client *second = open_at(servers(), "");
    hf_lock *lock = take(first, "moved", 20000);
    struct waiter holder, w;

    (void)state;
    send_waiter(&holder, second, "moved", 20000, NULL);
    await_waiting(first, "moved", 1);
    send_waiter(&w, client, "moved", 20000, NULL);
    await_waiting(first, "moved", 2);
    proxy_set(proxy, PROXY_RST, 0);
    assert_int_equal(hf_lock_release(lock, NULL), HF_OK);
    assert_int_equal(join_waiter(&holder), HF_OK);
    assert_int_equal(hf_lock_renew(holder.lock, NULL), HF_OK); /* claims it */
    size_t answered = proxy_answered(proxy);
    proxy_set(proxy, PROXY_PASS, 0);
    await("the waiter to be back", has_answered, &answered);
    for (int64_t until_ms = now_ms() + 500; now_ms() < until_ms;)
        assert_false(w.done);
    assert_int_equal(hf_lock_renew(holder.lock, NULL), HF_OK);
    assert_int_equal(hf_lock_release(holder.lock, NULL), HF_OK);
    assert_int_equal(join_waiter(&w), HF_OK);
    assert_int_equal(hf_lock_release(w.lock, NULL), HF_OK);
    hf_close(client);
    hf_close(first);
    hf_close(second);
}

#define RACERS 6
#define ROUNDS 40

static pthread_barrier_t start;

/* Takes one new lock after the other, with all others at once; gives how many it had. */
static void *race(void *arg)
{
    hf_client *client = open_at(servers(), "");
    intptr_t had = 0;
    char name[40];

    (void)arg;
    for (int i = 0; i < ROUNDS; i++) {
        snprintf(name, sizeof name, "new %d", i);
        pthread_barrier_wait(&start);
        had += hf_lock_release(take(client, name, 10000), NULL) == HF_OK;
    }
    hf_close(client);
    return (void *)had;
}

/* The directory of a new lock is made by whoever finds it missing: between a create that found none
 * and the list behind it others may have made it, and their nodes. */
static void c1_many_race_for_new_locks(void **state)
{
    pthread_t threads[RACERS];
    void *had;

    (void)state;
    pthread_barrier_init(&start, NULL, RACERS);
    for (int i = 0; i < RACERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, race, NULL), 0);
    for (int i = 0; i < RACERS; i++) {
        assert_int_equal(pthread_join(threads[i], &had), 0);
        assert_int_equal((intptr_t)had, ROUNDS);
    }
    pthread_barrier_destroy(&start);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(c6_create_whose_reply_is_lost_is_found_by_its_ticket),
        cmocka_unit_test(c3_lock_without_a_lease_outlives_its_session),
        cmocka_unit_test(c6_lock_without_a_lease_is_released_in_another_session),
        cmocka_unit_test(c6_claim_whose_reply_is_lost_is_found_in_another_session),
        cmocka_unit_test(c6_node_of_another_session_is_not_taken_for_ours),
        cmocka_unit_test(c5_create_that_arrives_late_never_holds),
        cmocka_unit_test(c7_holder_that_is_cut_off_is_lost_before_the_next_enters),
        cmocka_unit_test(c7_short_break_of_the_connection_loses_nothing),
        cmocka_unit_test(c12_waiter_is_woken_after_a_break_of_the_connection),
        cmocka_unit_test(c5_waiter_is_not_let_in_by_what_it_missed),
        cmocka_unit_test(c1_waiter_that_missed_a_move_is_not_let_in),
        cmocka_unit_test(c1_many_race_for_new_locks),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
