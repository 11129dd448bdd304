/* The lock that is not fair (fair=no) has one path for all its holders: whoever is no longer the
 * holder must not touch the node of the next (C2), and a bid whose answer was lost must leave
 * nothing behind (C5, C6). */
#include <stdlib.h>

#include "zookeeper/behind.h"

#define SLOW_MS 300

/* Bids while what the server sends is lost; returns when the node is there. */
static void lose_the_reply(struct waiter *w, hf_client *client, const char *name, int64_t ttl_ms,
                           hf_cancel *cancel)
{
    char path[100];

    snprintf(path, sizeof path, "/locks/%s", name);
    assert_int_equal(hf_lock_release(take(client, name, ttl_ms), NULL), HF_OK); /* makes it */
    proxy_set(proxy, PROXY_S2C_HOLE, 0);
    send_waiter(w, client, name, ttl_ms, cancel);
    await("the node that nobody was told of", has_children, path);
}

static void c6_simple_node_whose_reply_is_lost_is_found(void **state)
{
    hf_client *client = open_at(behind, "fair=no&op_timeout=4s");
    struct waiter w;

    (void)state;
    lose_the_reply(&w, client, "reply", 3000, NULL);
    proxy_set(proxy, PROXY_RST, 0);
    proxy_set(proxy, PROXY_PASS, 0);
    assert_int_equal(join_waiter(&w), HF_OK);
    assert_int_equal(child_count(zh, "/locks/reply"), 1);
    assert_int_equal(hf_lock_release(w.lock, NULL), HF_OK);
    assert_int_equal(child_count(zh, "/locks/reply"), 0);
    hf_close(client);
}

/* The session lives on, so nothing but the withdrawal takes the node out. */
static void c5_simple_node_that_is_withdrawn_unseen_is_gone(void **state)
{
    hf_client *client = open_at(behind, "fair=no&op_timeout=2s");
    hf_cancel *cancel = NULL;
    struct waiter w;

    (void)state;
    assert_int_equal(hf_cancel_new(&cancel), HF_OK);
    lose_the_reply(&w, client, "withdrawn", 60000, cancel);
    hf_cancel_fire(cancel);
    proxy_set(proxy, PROXY_RST, 0);
    proxy_set(proxy, PROXY_PASS, 0);
    int r = join_waiter(&w);
    assert_true(r == HF_CANCELLED || r == HF_UNKNOWN);
    await("the node to be gone", is_empty, (void *)"/locks/withdrawn");
    hf_close(client);
    hf_cancel_free(cancel);
}

struct release {
    hf_lock *lock;
    pthread_t thread;
    int result;
};

static void *release_it(void *arg)
{
    struct release *r = arg;

    r->result = hf_lock_release(r->lock, NULL);
    return NULL;
}

/* A release on a slow line: when the server has answered its first request, the lock is broken, if
 * it still can be, and taken by another. */
static void c2_late_release_leaves_the_next_holder_alone(void **state)
{
    hf_client *slow = open_at(behind, "fair=no"), *other = open_at(servers(), "fair=no");

    (void)state;
    for (int round = 0; round < 3; round++) {
        struct release r = {.lock = take(slow, "late", 60000)};
        char ticket[HF_TICKET_SIZE];
        snprintf(ticket, sizeof ticket, "%s", hf_lock_ticket(r.lock));
        proxy_set(proxy, PROXY_DELAY, SLOW_MS);
        size_t answered = proxy_answered(proxy);
        assert_int_equal(pthread_create(&r.thread, NULL, release_it, &r), 0);
        await("an answer", has_answered, &answered);
        int broken = hf_break(other, "late", HF_NTS, ticket, 1, NULL);
        hf_lock *next = take(other, "late", 60000);
        assert_int_equal(pthread_join(r.thread, NULL), 0);
        assert_int_equal(r.result, broken == HF_OK ? HF_STALE : HF_OK);
        assert_int_equal(hf_lock_renew(next, NULL), HF_OK);
        assert_int_equal(hf_lock_release(next, NULL), HF_OK);
        proxy_set(proxy, PROXY_PASS, 0);
    }
    hf_close(slow);
    hf_close(other);
}

/* Its node is replaced by a permanent one when it is claimed. */
static void c3_simple_lock_that_never_expires_is_one_node(void **state)
{
    hf_client *client = open_at(servers(), "fair=no"), *other = open_at(servers(), "fair=no");
    hf_lock *lock = take(client, "never", HF_NEVER), *none = NULL;

    (void)state;
    assert_int_equal(hf_lock_renew(lock, NULL), HF_OK);
    assert_int_equal(child_count(zh, "/locks/never"), 1);
    assert_int_equal(try_lock(other, "never", 1000, &none), HF_BUSY);
    assert_int_equal(hf_lock_release(lock, NULL), HF_OK);
    assert_int_equal(child_count(zh, "/locks/never"), 0);
    lock = take(client, "never", HF_NEVER);
    assert_int_equal(hf_break(other, "never", HF_NTS, hf_lock_ticket(lock), 1, NULL), HF_OK);
    hf_lock *next = take(other, "never", 1000);
    assert_int_equal(hf_lock_release(lock, NULL), HF_STALE);
    assert_int_equal(hf_lock_renew(next, NULL), HF_OK);
    assert_int_equal(hf_lock_release(next, NULL), HF_OK);
    hf_close(client);
    hf_close(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(c6_simple_node_whose_reply_is_lost_is_found),
        cmocka_unit_test(c5_simple_node_that_is_withdrawn_unseen_is_gone),
        cmocka_unit_test(c2_late_release_leaves_the_next_holder_alone),
        cmocka_unit_test(c3_simple_lock_that_never_expires_is_one_node),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
