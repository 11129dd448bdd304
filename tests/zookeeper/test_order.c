/* Whoever is let in by an event has a right to it (C1, C5): not behind a node that only moved to
 * another session, not if its own node has gone, not before those that are still before it. And a
 * node that moves keeps its place and its token (C4). */
#include <stdlib.h>

#include "zookeeper/live.h"

static zhandle_t *zh;

static int set_up(void **state)
{
    (void)state;
    zh = stranger();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    zookeeper_close(zh);
    return 0;
}

/* The path of the only child that has this ticket in its name. */
static void path_of(const char *name, const char *ticket, char path[400])
{
    struct String_vector names = {0};
    char directory[100], uuid[40];

    snprintf(uuid, sizeof uuid, "%.8s-%.4s-%.4s-%.4s-%.12s", ticket, ticket + 8, ticket + 12,
             ticket + 16, ticket + 20);
    snprintf(directory, sizeof directory, "/locks/%s", name);
    path[0] = '\0';
    assert_int_equal(zoo_get_children(zh, directory, 0, &names), ZOK);
    for (int i = 0; i < names.count; i++) {
        if (strstr(names.data[i], uuid) != NULL)
            snprintf(path, 400, "%s/%s", directory, names.data[i]);
    }
    deallocate_String_vector(&names);
}

static struct Stat stat_of(const char *path)
{
    struct Stat stat = {0};

    assert_int_equal(zoo_exists(zh, path, 0, &stat), ZOK);
    return stat;
}

/* A holder whose lease is longer than a waiter's own moves with its claim: its node is deleted and
 * made again under the eyes of the next. */
static void c1_claim_of_the_one_before_lets_nobody_in(int64_t ttl_ms)
{
    hf_client *clients[3];
    struct waiter second, third;

    for (int i = 0; i < 3; i++)
        clients[i] = open_at(servers(), "");
    hf_lock *first = take(clients[0], "claim", 20000);
    send_waiter(&second, clients[1], "claim", ttl_ms, NULL);
    await_waiting(clients[0], "claim", 1);
    send_waiter(&third, clients[2], "claim", 20000, NULL);
    await_waiting(clients[0], "claim", 2);
    assert_int_equal(hf_lock_release(first, NULL), HF_OK);
    assert_int_equal(join_waiter(&second), HF_OK);
    assert_int_equal(hf_lock_renew(second.lock, NULL), HF_OK); /* claims it */
    for (int64_t until_ms = now_ms() + 500; now_ms() < until_ms;)
        assert_false(third.done);
    assert_int_equal(hf_lock_state(second.lock), HF_STATE_HELD);
    assert_int_equal(hf_lock_release(second.lock, NULL), HF_OK);
    assert_int_equal(join_waiter(&third), HF_OK);
    assert_int_equal(hf_lock_renew(third.lock, NULL), HF_OK);
    assert_int_equal(hf_lock_release(third.lock, NULL), HF_OK);
    for (int i = 0; i < 3; i++)
        hf_close(clients[i]);
}

static void c1_claim_of_a_lease_lets_nobody_in(void **state)
{
    (void)state;
    c1_claim_of_the_one_before_lets_nobody_in(20000);
}

static void c1_claim_of_a_lock_that_never_expires_lets_nobody_in(void **state)
{
    (void)state;
    c1_claim_of_the_one_before_lets_nobody_in(HF_NEVER);
}

/* The holder's node and the waiter's, deleted by a stranger in one step. */
static void c5_waiter_without_a_node_is_not_let_in(void **state)
{
    hf_client *client = open_at(servers(), ""), *other = open_at(servers(), "");
    hf_lock *lock = take(client, "both", 5000);
    hf_query query = {.size = sizeof query, .name = "both", .name_len = HF_NTS};
    char paths[2][400];
    hf_view *view = NULL;
    zoo_op_t ops[2];
    zoo_op_result_t results[2];
    struct waiter w;

    (void)state;
    send_waiter(&w, other, "both", 5000, NULL);
    await_waiting(client, "both", 1);
    assert_int_equal(hf_inspect(client, &query, &view, NULL), HF_OK);
    for (size_t i = 0; i < 2; i++)
        path_of("both", hf_view_entry(view, i)->ticket, paths[i]);
    hf_view_free(view);
    zoo_delete_op_init(&ops[0], paths[1], -1);
    zoo_delete_op_init(&ops[1], paths[0], -1);
    assert_int_equal(zoo_multi(zh, 2, ops, results), ZOK);
    assert_int_equal(join_waiter(&w), HF_OK);
    path_of("both", hf_lock_ticket(w.lock), paths[0]);
    assert_true(paths[0][0] != '\0'); /* it bid again, with a node of its own */
    assert_int_equal(hf_lock_renew(w.lock, NULL), HF_OK);
    assert_int_equal(hf_lock_release(w.lock, NULL), HF_OK);
    hf_lock_release(lock, NULL);
    hf_close(client);
    hf_close(other);
}

/* Those in the middle leave, in every order, while the first one holds; also when somebody who had
 * to wait has left its number in the directory before. */
static void c5_those_who_give_up_let_nobody_in(void **state)
{
    hf_client *clients[4];
    struct waiter w[3];
    hf_cancel *cancels[2];

    (void)state;
    for (int i = 0; i < 4; i++)
        clients[i] = open_at(servers(), "");
    for (int round = 0; round < 4; round++) {
        hf_lock *lock = take(clients[0], "middle", 5000);
        for (int i = 0; i < 3; i++) {
            if (i < 2)
                assert_int_equal(hf_cancel_new(&cancels[i]), HF_OK);
            send_waiter(&w[i], clients[i + 1], "middle", 5000, i < 2 ? cancels[i] : NULL);
            await_waiting(clients[0], "middle", (size_t)i + 1);
        }
        for (int i = 0; i < 2; i++) {
            int who = round % 2 == 0 ? i : 1 - i;
            hf_cancel_fire(cancels[who]);
            assert_int_equal(join_waiter(&w[who]), HF_CANCELLED);
        }
        await_waiting(clients[0], "middle", 1);
        assert_int_equal(hf_lock_renew(lock, NULL), HF_OK);
        assert_false(w[2].done);
        assert_int_equal(hf_lock_release(lock, NULL), HF_OK);
        assert_int_equal(join_waiter(&w[2]), HF_OK);
        assert_int_equal(hf_lock_release(w[2].lock, NULL), HF_OK);
        for (int i = 0; i < 2; i++)
            hf_cancel_free(cancels[i]);
    }
    for (int i = 0; i < 4; i++)
        hf_close(clients[i]);
}

static void c4_node_that_moves_keeps_its_place_and_its_token(void **state)
{
    hf_client *client = open_at(servers(), ""), *other = open_at(servers(), "");
    hf_lock *first = take(client, "moves", 5000);
    hf_query query = {.size = sizeof query, .name = "moves", .name_len = HF_NTS};
    uint64_t token = 0, next_token = 0;
    char before[400], after[400];
    hf_view *view = NULL;
    struct waiter w;

    (void)state;
    send_waiter(&w, other, "moves", HF_NEVER, NULL);
    await_waiting(client, "moves", 1);
    assert_int_equal(hf_inspect(client, &query, &view, NULL), HF_OK);
    path_of("moves", hf_view_entry(view, 1)->ticket, before);
    hf_view_free(view);
    struct Stat waiting = stat_of(before);
    assert_true(waiting.ephemeralOwner != 0);
    assert_int_equal(hf_lock_release(first, NULL), HF_OK);
    assert_int_equal(join_waiter(&w), HF_OK);
    path_of("moves", hf_lock_ticket(w.lock), after);
    struct Stat held = stat_of(after);
    assert_string_equal(after, before);
    assert_true(held.ephemeralOwner == 0);   /* it stays, whatever becomes of the client */
    assert_true(held.czxid > waiting.czxid); /* a new node, with the token of the old one */
    assert_int_equal(hf_lock_generation(w.lock, &token), HF_OK);
    assert_int_equal(token, (uint64_t)waiting.czxid);
    assert_int_equal(hf_lock_release(w.lock, NULL), HF_OK);
    hf_lock *next = take(client, "moves", 5000);
    assert_int_equal(hf_lock_generation(next, &next_token), HF_OK);
    assert_true(next_token > token);
    assert_int_equal(hf_lock_release(next, NULL), HF_OK);
    hf_close(client);
    hf_close(other);
}

/* The session of a waiter ends, by the leader's account, as early as two thirds of it after its last
 * sign of life (C3): so that is all that a hand-over may be believed for, also after signs of life. */
static void c3_handover_is_believed_for_two_thirds_of_the_session(void **state)
{
    enum { TTL_MS = 3000 };
    hf_client *client = open_at(servers(), ""), *other = open_at(servers(), "");
    struct waiter w = {
        .opt = {.size = sizeof(hf_options), .ttl_ms = TTL_MS, .wait_ms = HF_FOREVER}};

    (void)state;
    hf_lock *held = take(other, "two thirds", 20000);
    wait_in_thread(&w, client, "two thirds");
    await_queued(&w);
    sleep_ms(TTL_MS * 2 / 3); /* one sign of life, at the least */
    assert_int_equal(hf_lock_release(held, NULL), HF_OK);
    assert_int_equal(join_waiter(&w), HF_OK);
    assert_in_range(hf_lock_remaining_ms(w.lock), 1, TTL_MS * 2 / 3);
    assert_int_equal(hf_lock_release(w.lock, NULL), HF_OK);
    hf_close(client);
    hf_close(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(c1_claim_of_a_lease_lets_nobody_in),
        cmocka_unit_test(c1_claim_of_a_lock_that_never_expires_lets_nobody_in),
        cmocka_unit_test(c5_waiter_without_a_node_is_not_let_in),
        cmocka_unit_test(c5_those_who_give_up_let_nobody_in),
        cmocka_unit_test(c4_node_that_moves_keeps_its_place_and_its_token),
        cmocka_unit_test(c3_handover_is_believed_for_two_thirds_of_the_session),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
