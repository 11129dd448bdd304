/* Servers that are full, read-only, loading, or die and come back with their data or without it (C6,
 * C7). */
#include "redis/live.h"

static void c6_full_server_refuses_bids_and_lets_go(void **state)
{
    hf_client *client = open_live("");
    hf_lock *lock = NULL, *other = NULL;
    hf_options no_wait = {.size = sizeof no_wait};
    struct waiter w = {0};
    hf_error err;

    (void)state;
    assert_int_equal(try_lock(client, "a", 30000, &lock), HF_OK);
    w.opt = (hf_options)HF_OPTIONS_INIT;
    w.opt.owner = 2;
    wait_in_thread(&w, client, "a");
    await_waiting(client, "a", 1);
    freeReplyObject(ask(redis, "CONFIG SET maxmemory 1"));
    int refused = hf_acquire(client, "b", HF_NTS, &no_wait, &other, &err);
    int renewed = hf_lock_renew(lock, NULL);
    int released = hf_lock_release(lock, NULL);
    int waited = join_waiter(&w);
    int second = waited == HF_OK ? hf_lock_release(w.lock, NULL) : HF_OK;
    freeReplyObject(ask(redis, "CONFIG SET maxmemory 0"));
    assert_int_equal(refused, HF_FULL);
    check_text("text", err.text, "acquire 'b': the server's memory is full; raise maxmemory");
    assert_int_equal(renewed, HF_OK);
    assert_int_equal(released, HF_OK);
    assert_int_equal(waited, HF_OK);
    assert_int_equal(second, HF_OK);
    hf_close(client);
}

/* Who waits already asks again now and then, and needs no more memory for it. */
static void c6_full_server_keeps_those_who_wait(void **state)
{
    hf_client *holder = open_live(""), *client = open_live("recheck=100ms");
    hf_lock *lock = NULL;
    struct waiter w = {0};

    (void)state;
    assert_int_equal(try_lock(holder, "a", 30000, &lock), HF_OK);
    wait_in_thread(&w, client, "a");
    await_waiting(holder, "a", 1);
    freeReplyObject(ask(redis, "CONFIG SET maxmemory 1"));
    freeReplyObject(ask(redis, "CONFIG RESETSTAT"));
    await("the waiter to ask again", was_called, NULL);
    int released = hf_lock_release(lock, NULL);
    int waited = join_waiter(&w);
    freeReplyObject(ask(redis, "CONFIG SET maxmemory 0"));
    assert_int_equal(released, HF_OK);
    assert_int_equal(waited, HF_OK);
    assert_int_equal(hf_lock_release(w.lock, NULL), HF_OK);
    hf_close(client);
    hf_close(holder);
}

static void c6_read_only_replica_says_so(void **state)
{
    hf_client *client = open_live("op_timeout=300ms");
    hf_options opt = HF_OPTIONS_INIT;
    hf_lock *lock = NULL;
    hf_error err;

    (void)state;
    opt.wait_ms = 0;
    freeReplyObject(ask(redis, "REPLICAOF 127.0.0.1 1"));
    int code = hf_acquire(client, "a", HF_NTS, &opt, &lock, &err);
    freeReplyObject(ask(redis, "REPLICAOF NO ONE"));
    assert_int_equal(code, HF_UNAVAILABLE);
    check_contains("text", err.text, "READONLY");
    assert_int_equal(try_lock(client, "a", 30000, &lock), HF_OK);
    hf_lock_release(lock, NULL);
    hf_close(client);
}

static const char *const durable[] = {"--appendonly", "yes", "--appendfsync", "always", NULL};

static void c7_restart_without_data_is_a_loss(void **state)
{
    struct server server = {0};
    hf_lock *lock = NULL, *other = NULL;
    uint64_t first, second;

    (void)state;
    server_start(&server, NULL);
    hf_client *client = open_url(url_of(server.port, "op_timeout=500ms"));
    assert_int_equal(try_lock(client, "a", 60000, &lock), HF_OK);
    hf_lock_generation(lock, &first);
    server_kill(&server);
    int code = hf_lock_renew(lock, NULL);
    assert_true(code == HF_UNAVAILABLE || code == HF_UNKNOWN);
    assert_int_equal(hf_lock_state(lock) == HF_STATE_LOST,
                     0); /* perhaps it comes back with its data */
    server_start(&server, NULL);
    assert_int_equal(hf_lock_renew(lock, NULL), HF_LOST);
    assert_int_equal(hf_lock_release(lock, NULL), HF_STALE);
    assert_int_equal(try_lock(client, "a", 60000, &other), HF_OK);
    hf_lock_generation(other, &second);
    assert_true(second > first); /* C4, although the counter was lost */
    hf_lock_release(other, NULL);
    hf_close(client);
    server_clear(&server);
}

static int has_loaded(void *server)
{
    redisContext *c = server_stranger(server);
    redisReply *reply = redisCommand(c, "PING");
    bool yes = reply != NULL && reply->type != REDIS_REPLY_ERROR;

    freeReplyObject(reply);
    redisFree(c);
    return yes;
}

static void c3_restart_with_data_keeps_locks(void **state)
{
    struct server server = {0};
    hf_lock *lock = NULL, *never = NULL, *other = NULL;

    (void)state;
    server_start(&server, durable);
    hf_client *client = open_url(url_of(server.port, "op_timeout=500ms"));
    assert_int_equal(try_lock(client, "a", 60000, &lock), HF_OK);
    assert_int_equal(try_lock(client, "n", HF_NEVER, &never), HF_OK);
    server_kill(&server);
    server_start(&server, durable);
    await("its data to be loaded", has_loaded, &server);
    hf_client *stranger_client = open_url(url_of(server.port, ""));
    assert_int_equal(try_lock(stranger_client, "a", 60000, &other), HF_BUSY);
    assert_int_equal(try_lock(stranger_client, "n", 60000, &other), HF_BUSY);
    assert_int_equal(hf_lock_renew(lock, NULL), HF_OK);
    assert_int_equal(hf_lock_release(lock, NULL), HF_OK);
    assert_int_equal(hf_lock_release(never, NULL), HF_OK);
    hf_close(stranger_client);
    hf_close(client);
    server_clear(&server);
}

static void populate(redisContext *c, int count)
{
    freeReplyObject(
        ask(c, "EVAL %s 0 %d",
            "for i = 1, ARGV[1] do redis.call('SET', 'x' .. i, string.rep('x', 100)) end", count));
}

static void c6_loading_server_is_waited_for(void **state)
{
    static const char *const slow[] = {"--key-load-delay", "10000",
                                       "--loading-process-events-interval-bytes", "1024", NULL};
    struct server server = {0};
    hf_lock *lock = NULL;
    hf_options opt = HF_OPTIONS_INIT;
    hf_error err;

    (void)state;
    if (info_number("server", "redis_version:") < 7)
        skip(); /* it cannot be made to load slowly */
    opt.wait_ms = 0;
    server_start(&server, NULL);
    redisContext *plain = server_stranger(&server);
    populate(plain, 400);
    freeReplyObject(ask(plain, "SAVE"));
    redisFree(plain);
    server_kill(&server);
    server_start(&server, slow); /* answers, but says LOADING */
    hf_client *hasty = open_url(url_of(server.port, "op_timeout=1s"));
    assert_int_equal(hf_acquire(hasty, "a", HF_NTS, &opt, &lock, &err), HF_UNAVAILABLE);
    check_contains("text", err.text, "LOADING");
    hf_client *patient = open_url(url_of(server.port, "op_timeout=20s"));
    opt.patience_ms = AWAIT_MS;
    assert_int_equal(hf_acquire(patient, "a", HF_NTS, &opt, &lock, &err), HF_OK);
    assert_int_equal(hf_lock_release(lock, NULL), HF_OK);
    hf_close(hasty);
    hf_close(patient);
    server_clear(&server);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(c6_full_server_refuses_bids_and_lets_go),
        TEST(c6_full_server_keeps_those_who_wait),
        TEST(c6_read_only_replica_says_so),
        TEST(c7_restart_without_data_is_a_loss),
        TEST(c3_restart_with_data_keeps_locks),
        TEST(c6_loading_server_is_waited_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
