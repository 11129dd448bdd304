/* Records of another type at our key: the hash of a Redisson lock and the sorted set of a Symfony
 * one. Their clients need a JVM and PHP; what they do to the key is done here by hand. */
#include <stdlib.h>

#include "redis/live.h"

/* What each does to take the lock for so many milliseconds, and to let go. */
static const struct kind {
    const char *take, *drop;
} hash = {"return {redis.call('HINCRBY', KEYS[1], 'uuid:1', 1), redis.call('PEXPIRE', KEYS[1], "
          "ARGV[1])}",
          "return redis.call('DEL', KEYS[1])"},
  zset = {"return {redis.call('ZADD', KEYS[1], ARGV[1], 'token', ARGV[1], '__write__'), "
          "redis.call('PEXPIRE', KEYS[1], ARGV[1])}",
          "return redis.call('ZREM', KEYS[1], 'token', '__write__')"};

static void take(const struct kind *kind, int px)
{
    freeReplyObject(ask(redis, "EVAL %s 1 holdfast:a %d", kind->take, px));
}

static void they_hold(const struct kind *kind)
{
    hf_client *client = open_live("recheck=60s");
    hf_options opt = HF_OPTIONS_INIT;
    struct waiter w = {0};
    hf_lock *lock = NULL;

    take(kind, 60000);
    assert_int_equal(try_lock(client, "a", 30000, &lock), HF_BUSY);
    opt.mode = HF_SHARED;
    opt.wait_ms = 0;
    assert_int_equal(hf_acquire(client, "a", HF_NTS, &opt, &lock, NULL), HF_BUSY);
    w.opt = (hf_options)HF_OPTIONS_INIT;
    w.opt.wait_ms = 20000; /* less than the recheck: it must be told */
    wait_in_thread(&w, client, "a");
    await_waiting(client, "a", 1);
    await("the key to be watched", is_watched, NULL);
    freeReplyObject(ask(redis, "EVAL %s 1 holdfast:a", kind->drop));
    assert_int_equal(join_waiter(&w), HF_OK);
    assert_int_equal(hf_lock_release(w.lock, NULL), HF_OK);
    hf_close(client);
}

static void they_expire(const struct kind *kind)
{
    hf_client *client = open_live("");
    struct waiter w = {0};
    int64_t from_ms = now_ms();

    take(kind, 500);
    wait_in_thread(&w, client, "a");
    assert_int_equal(join_waiter(&w), HF_OK);
    assert_true(w.got_ms - from_ms >= 499);
    assert_int_equal(hf_lock_release(w.lock, NULL), HF_OK);
    hf_close(client);
}

static void we_hold(const struct kind *kind)
{
    hf_client *client = open_live("");
    hf_lock *lock = NULL;

    assert_int_equal(try_lock(client, "a", 30000, &lock), HF_OK);
    redisReply *reply = redisCommand(redis, "EVAL %s 1 holdfast:a 60000", kind->take);
    assert_int_equal(reply->type, REDIS_REPLY_ERROR);
    check_contains("their error", reply->str, "WRONGTYPE");
    freeReplyObject(reply);
    assert_int_equal(hf_lock_renew(lock, NULL), HF_OK);
    assert_int_equal(hf_lock_release(lock, NULL), HF_OK);
    hf_close(client);
}

static void they_take_it_by_force(const struct kind *kind)
{
    hf_client *client = open_live("");
    hf_lock *lock = NULL;

    assert_int_equal(try_lock(client, "a", 30000, &lock), HF_OK);
    freeReplyObject(ask(redis, "DEL holdfast:a"));
    take(kind, 60000);
    assert_int_equal(hf_lock_renew(lock, NULL), HF_LOST);
    assert_int_equal(hf_lock_release(lock, NULL), HF_STALE);
    assert_true(ask_number(redis, "PTTL holdfast:a") > 30000); /* as they left it */
    hf_close(client);
}

#define BOTH(test)                        \
    static void test##_hash(void **state) \
    {                                     \
        (void)state;                      \
        test(&hash);                      \
    }                                     \
    static void test##_zset(void **state) \
    {                                     \
        (void)state;                      \
        test(&zset);                      \
    }
BOTH(they_hold)
BOTH(they_expire)
BOTH(we_hold)
BOTH(they_take_it_by_force)

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(they_hold_hash),
        TEST(they_hold_zset),
        TEST(they_expire_hash),
        TEST(they_expire_zset),
        TEST(we_hold_hash),
        TEST(we_hold_zset),
        TEST(they_take_it_by_force_hash),
        TEST(they_take_it_by_force_zset),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
