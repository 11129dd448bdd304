/* How waiters are called: one message a hand-over, to one client, on one connection. */
#include <stdlib.h>
#include <unistd.h>

#include "redis/live.h"

/* A waiter is in the queue a moment before its client listens. */
static int is_listening(void *ctx)
{
    redisReply *channels = ask(redis, "PUBSUB CHANNELS holdfast.wake:*");
    bool listening = channels->elements >= *(size_t *)ctx;

    freeReplyObject(channels);
    return listening;
}

static void await_listening(size_t clients)
{
    await("the clients to listen", is_listening, &clients);
}

#define CROWD 100

static void c12_one_message_a_hand_over_among_a_hundred_clients(void **state)
{
    hf_client *clients[CROWD], *holder = open_live("");
    struct waiter w[CROWD];
    hf_lock *lock = NULL;

    (void)state;
    memset(w, 0, sizeof w);
    assert_int_equal(try_lock(holder, "a", 60000, &lock), HF_OK);
    for (size_t i = 0; i < CROWD; i++) {
        clients[i] = open_live("recheck=60s&max_active=1&max_idle=1");
        w[i].opt = (hf_options)HF_OPTIONS_INIT;
        w[i].opt.ttl_ms = 60000;
        wait_in_thread(&w[i], clients[i], "a");
        await_waiting(holder, "a", i + 1);
    }
    await_listening(CROWD);
    freeReplyObject(ask(redis, "CONFIG RESETSTAT"));
    hf_lock_release(lock, NULL);
    for (size_t i = 0; i < CROWD; i++) {
        assert_int_equal(join_waiter(&w[i]), HF_OK);
        assert_int_equal(hf_lock_release(w[i].lock, NULL), HF_OK);
    }
    assert_int_equal(calls_of("publish"), CROWD);
    for (size_t i = 0; i < CROWD; i++)
        hf_close(clients[i]);
    hf_close(holder);
}

static void c12_one_subscriber_for_many_waiters_and_none_without(void **state)
{
    hf_client *holder = open_live(""), *client = open_live("max_active=4");
    struct waiter w[20] = {0};
    hf_lock *lock = NULL;

    (void)state;
    assert_int_equal(try_lock(holder, "a", 60000, &lock), HF_OK);
    assert_int_equal(info_number("clients", "pubsub_clients:"), 0);
    for (size_t i = 0; i < COUNT(w); i++) {
        w[i].opt = (hf_options)HF_OPTIONS_INIT;
        w[i].opt.owner = i + 1;
        wait_in_thread(&w[i], client, "a");
        await_waiting(holder, "a", i + 1);
    }
    await_listening(1);
    redisReply *channels = ask(redis, "PUBSUB CHANNELS holdfast.wake:*");
    assert_int_equal(channels->elements, 1);
    assert_int_equal(channels->element[0]->len, 14 + 32);
    freeReplyObject(channels);
    assert_true(info_number("clients", "connected_clients:") <= 1 + 1 + 4 + 1);
    hf_lock_release(lock, NULL);
    for (size_t i = 0; i < COUNT(w); i++) {
        assert_int_equal(join_waiter(&w[i]), HF_OK);
        hf_lock_release(w[i].lock, NULL);
    }
    hf_close(client);
    hf_close(holder);
}

static int is_killed(void *ctx)
{
    (void)ctx;
    return ask_number(redis, "CLIENT KILL TYPE pubsub") > 0;
}

static void c12_lost_subscriber_is_replaced_and_nobody_waits_for_ever(void **state)
{
    hf_client *holder = open_live(""), *client = open_live("recheck=60s");
    struct waiter w = {0};
    hf_lock *lock = NULL;

    (void)state;
    assert_int_equal(try_lock(holder, "a", 60000, &lock), HF_OK);
    w.opt = (hf_options)HF_OPTIONS_INIT;
    w.opt.ttl_ms = 60000;
    wait_in_thread(&w, client, "a");
    await_waiting(holder, "a", 1);
    for (int i = 0; i < 3; i++) /* while it listens, and once more as soon as it listens again */
        await("a subscriber to kill", is_killed, NULL);
    hf_lock_release(lock, NULL);
    assert_int_equal(join_waiter(&w), HF_OK);
    hf_lock_release(w.lock, NULL);
    hf_close(client);
    hf_close(holder);
}

/* What the server was asked to tell dies with the connection it was to be told on. */
static void c12_new_subscriber_is_told_of_a_strangers_release(void **state)
{
    hf_client *client = open_live("recheck=60s");
    struct waiter w = {0};

    (void)state;
    freeReplyObject(ask(redis, "SET holdfast:a stranger PX 100000"));
    w.opt = (hf_options)HF_OPTIONS_INIT;
    w.opt.wait_ms = 40000; /* less than the recheck: it must be told */
    wait_in_thread(&w, client, "a");
    await("the key to be watched", is_watched, NULL);
    assert_int_equal(ask_number(redis, "CLIENT KILL TYPE pubsub"), 1);
    await_listening(1);
    freeReplyObject(ask(redis, "CONFIG RESETSTAT"));
    await("the key to be watched again", is_watched, NULL);
    freeReplyObject(ask(redis, "DEL holdfast:a"));
    assert_int_equal(join_waiter(&w), HF_OK);
    hf_lock_release(w.lock, NULL);
    hf_close(client);
}

#define BEHIND 10

/* Were all of them to be told, a stranger's release would wake them all. */
static void c12_only_the_first_waiter_is_told_of_a_strangers_release(void **state)
{
    hf_client *clients[BEHIND];
    struct waiter w[BEHIND] = {0};

    (void)state;
    freeReplyObject(ask(redis, "SET holdfast:a stranger PX 100000"));
    freeReplyObject(ask(redis, "CONFIG RESETSTAT"));
    for (size_t i = 0; i < BEHIND; i++) {
        clients[i] = open_live("recheck=60s");
        w[i].opt = (hf_options)HF_OPTIONS_INIT;
        w[i].opt.wait_ms = 40000; /* less than the recheck: somebody must be told */
        wait_in_thread(&w[i], clients[i], "a");
        await_waiting(clients[0], "a", i + 1);
    }
    await_listening(BEHIND);
    await("the key to be watched", is_watched, NULL);
    freeReplyObject(ask(redis, "DEL holdfast:a"));
    for (size_t i = 0; i < BEHIND; i++) {
        assert_int_equal(join_waiter(&w[i]), HF_OK);
        hf_lock_release(w[i].lock, NULL);
    }
    if (info_number("server", "redis_version:") >= 7) /* older ones count CLIENT as a whole */
        assert_int_equal(calls_of("client|caching"), 1);
    assert_int_equal(calls_of("publish"), BEHIND - 1);
    for (size_t i = 0; i < BEHIND; i++)
        hf_close(clients[i]);
}

static void c5_poll_mode_needs_no_subscriber(void **state)
{
    hf_client *holder = open_live(""), *client = open_live("mode=poll&poll=20ms");
    struct waiter w = {0};
    hf_lock *lock = NULL;

    (void)state;
    assert_false(hf_capabilities(client) & HF_CAN_PUSH);
    assert_int_equal(try_lock(holder, "a", 60000, &lock), HF_OK);
    wait_in_thread(&w, client, "a");
    await_waiting(holder, "a", 1);
    assert_int_equal(info_number("clients", "pubsub_clients:"), 0);
    hf_lock_release(lock, NULL);
    assert_int_equal(join_waiter(&w), HF_OK);
    hf_lock_release(w.lock, NULL);
    hf_close(client);
    hf_close(holder);
}

static void c12_message_of_a_stranger_is_not_believed(void **state)
{
    hf_client *holder = open_live(""), *client = open_live("");
    struct waiter w = {0};
    hf_lock *lock = NULL;

    (void)state;
    assert_int_equal(try_lock(holder, "a", 60000, &lock), HF_OK);
    wait_in_thread(&w, client, "a");
    await_waiting(holder, "a", 1);
    await_listening(1);
    redisReply *channels = ask(redis, "PUBSUB CHANNELS holdfast.wake:*");
    static const char *const texts[] = {"",
                                        "x",
                                        "00112233445566778899aabbccddeeff",
                                        "00112233445566778899aabbccddeeff 1",
                                        "00112233445566778899aabbccddeefg 1",
                                        "* 99999999999999999"};
    for (size_t i = 0; i < COUNT(texts); i++)
        ask_number(redis, "PUBLISH %s %s", channels->element[0]->str, texts[i]);
    freeReplyObject(channels);
    await_waiting(holder, "a", 1);
    hf_lock_release(lock, NULL);
    assert_int_equal(join_waiter(&w), HF_OK);
    hf_lock_release(w.lock, NULL);
    hf_close(client);
    hf_close(holder);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(c12_one_message_a_hand_over_among_a_hundred_clients),
        TEST(c12_one_subscriber_for_many_waiters_and_none_without),
        TEST(c12_lost_subscriber_is_replaced_and_nobody_waits_for_ever),
        TEST(c12_new_subscriber_is_told_of_a_strangers_release),
        TEST(c12_only_the_first_waiter_is_told_of_a_strangers_release),
        TEST(c5_poll_mode_needs_no_subscriber),
        TEST(c12_message_of_a_stranger_is_not_believed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
