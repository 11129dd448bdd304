/* Getting in: what a URL may say, and which servers are refused, with a sentence that helps and
 * never with a password in it. */
#include <stdlib.h>
#include <unistd.h>

#include "redis/live.h"

static void expect_open(const char *url, int code, const char *text)
{
    hf_client *client = NULL;
    hf_error err = {0};
    int got = hf_open(url, NULL, &client, &err);

    check_number(url, got, code);
    if (code != HF_OK)
        check_contains(url, err.text, text);
    check_lacks(url, err.text, "s3cret");
    hf_close(client);
}

static void urls_that_cannot_be_meant_are_refused(void **state)
{
    static const struct {
        const char *url, *text;
    } bad[] = {
        {"redis://h1,h2/0", "one server"},
        {"redis://h/abc", "number of a database"},
        {"redis://h/0?db=3", "the path of the URL says 0 and the option db says 3"},
        {"redlock://h/2?db=3", "the path of the URL says 2 and the option db says 3"},
        {"redis://u@h/0", "no password"},
        {"redis://:s3cret@h/0?password_file=/x", "twice"},
        {"redis://h/0?password_file=/does/not/exist", "cannot be read"},
        {"redis://h/0?password_env=HOLDFAST_NO_SUCH_VARIABLE", "no environment variable 'HOLD"},
        {"redis://h/0?password_file=/tmp", "password_file '/tmp' cannot be read: Is a directory"},
        {"redis://h/0?key_format=abc", "%s"},
        {"redis://h/0?key_format=%25s%25s", "%s"},
        {"redis://h/0?mode=push-me", "push or poll"},
        {"redis://h/0?force=all", "evicting"},
        {"redis://h/0?tls=verify", "rediss://"},
        {"rediss://h/0?tls=off", "verify or insecure"},
        {"rediss://h/0?tls_ca=/does/not/exist", "tls_ca '/does/not/exist': No such file"},
        {"redis+unix://h/x", "whole path"},
        {"redis://h/0?client_name=a%20b", "client_name"},
        {"redis://h/0?max_active=0", "max_active"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++)
        expect_open(bad[i].url,
                    HF_INVALID + (strstr(bad[i].text, "cannot be read") != NULL
                                      ? HF_DENIED - HF_INVALID
                                      : 0),
                    bad[i].text);
}

static void wrong_password_is_denied_and_not_shown(void **state)
{
    char url[200], path[] = "/tmp/holdfast-password.XXXXXX";
    const char *server = getenv("HOLDFAST_TEST_REDIS");
    int fd = mkstemp(path);

    (void)state;
    assert_int_equal(write(fd, "s3cret\n", 7), 7);
    close(fd);
    setenv("HOLDFAST_TEST_PASSWORD", "s3cret", 1);
    freeReplyObject(ask(redis, "CONFIG SET requirepass s3cret"));
    expect_open(url_of(0, ""), HF_DENIED, "NOAUTH");
    snprintf(url, sizeof url, "redis://:s3cret-not@%s/0", server);
    expect_open(url, HF_DENIED, "WRONGPASS");
    snprintf(url, sizeof url, "redis://:s3cret@%s/0", server);
    expect_open(url, HF_OK, NULL);
    snprintf(url, sizeof url, "redis://default:s3cret@%s/0", server);
    expect_open(url, HF_OK, NULL);
    snprintf(url, sizeof url, "redis://%s/0?password_file=%s", server, path);
    expect_open(url, HF_OK, NULL);
    snprintf(url, sizeof url, "redis://%s/0?password_env=HOLDFAST_TEST_PASSWORD", server);
    expect_open(url, HF_OK, NULL);
    freeReplyObject(ask(redis, "AUTH s3cret"));
    redisReply *reply = redisCommand(redis, "CONFIG SET requirepass %s", "");
    freeReplyObject(reply);
    unlink(path);
}

static void user_with_few_rights_can_lock(void **state)
{
    char url[200];
    hf_error err;
    hf_lock *lock = NULL;
    hf_options opt = HF_OPTIONS_INIT;

    (void)state;
    opt.wait_ms = 0;
    freeReplyObject(ask(redis, "ACL SETUSER locker on >s3cret resetchannels &holdfast.wake:* "
                               "&__redis__:invalidate ~holdfast* -@all +@read +@write +@scripting "
                               "+@pubsub +@connection +time +publish -@dangerous +info"));
    snprintf(url, sizeof url, "redis://locker:s3cret@%s/0", getenv("HOLDFAST_TEST_REDIS"));
    hf_client *client = open_url(url);
    assert_int_equal(hf_acquire(client, "a", HF_NTS, &opt, &lock, &err), HF_OK);
    hf_client *other = open_url(url);
    struct waiter w = {0};
    wait_in_thread(&w, other, "a");
    await_waiting(client, "a", 1);
    assert_int_equal(hf_lock_release(lock, NULL), HF_OK);
    assert_int_equal(join_waiter(&w), HF_OK);
    assert_int_equal(hf_lock_release(w.lock, NULL), HF_OK);
    hf_close(other);

    freeReplyObject(ask(redis, "ACL SETUSER locker -evalsha"));
    assert_int_equal(hf_acquire(client, "a", HF_NTS, &opt, &lock, &err), HF_DENIED);
    check_contains("text", err.text, "NOPERM");
    hf_close(client);
    ask_number(redis, "ACL DELUSER locker");
}

/* A refusal in the middle of a script undoes nothing of what came before it. */
static void c6_missing_rights_leave_nothing_behind(void **state)
{
    static const char *const missing[] = {"-@hash", "-@sortedset", "-@string", "-set",
                                          "-hset",  "-zadd",       "-hlen",    "-pexpire"};
    char url[200];

    (void)state;
    for (size_t i = 0; i < COUNT(missing); i++) {
        freeReplyObject(ask(redis, "FLUSHALL"));
        freeReplyObject(ask(redis,
                            "ACL SETUSER some reset on >s3cret resetchannels "
                            "&holdfast.wake:* ~holdfast* -@all +@read +@write +@scripting "
                            "+@pubsub +@connection +time -@dangerous +info %s",
                            missing[i]));
        snprintf(url, sizeof url, "redis://some:s3cret@%s/0", getenv("HOLDFAST_TEST_REDIS"));
        hf_client *client = open_url(url), *other = open_live("");
        hf_options opt = HF_OPTIONS_INIT;
        hf_lock *lock = NULL;
        opt.wait_ms = 0;
        opt.mode = HF_SHARED;
        check_number(missing[i], hf_acquire(client, "a", HF_NTS, &opt, &lock, NULL), HF_DENIED);
        check_number(missing[i], ask_number(redis, "EXISTS holdfast:a"), 0);
        opt.mode = HF_EXCLUSIVE; /* and others are not kept from it */
        check_number(missing[i], hf_acquire(other, "a", HF_NTS, &opt, &lock, NULL), HF_OK);
        check_number(missing[i], hf_lock_release(lock, NULL), HF_OK);
        hf_close(other);
        hf_close(client);
    }
    ask_number(redis, "ACL DELUSER some");
}

static int was_called_often(void *unused)
{
    (void)unused;
    return calls_of("evalsha") >= 25;
}

/* Nobody is called then, and waiters ask. */
static void c5_without_the_right_to_publish_and_subscribe_waiters_ask(void **state)
{
    char url[200];
    struct waiter w[2] = {0};
    hf_lock *lock;

    (void)state;
    freeReplyObject(ask(redis, "ACL SETUSER mute on >s3cret resetchannels ~holdfast* -@all +@read "
                               "+@write +@scripting +@connection +time -@dangerous +info"));
    snprintf(url, sizeof url, "redis://mute:s3cret@%s/0?poll=20ms", getenv("HOLDFAST_TEST_REDIS"));
    hf_client *mute = open_url(url), *other = open_live("");
    assert_int_equal(try_lock(mute, "a", 60000, &lock), HF_OK);
    w[0].opt = (hf_options)HF_OPTIONS_INIT;
    w[0].opt.mode = HF_SHARED; /* not by the short way */
    wait_in_thread(&w[0], other, "a");
    await_waiting(other, "a", 1);
    w[1].opt = (hf_options)HF_OPTIONS_INIT;
    w[1].opt.owner = 1;
    wait_in_thread(&w[1], mute, "a");
    await_queued(&w[1]);
    freeReplyObject(ask(redis, "CONFIG RESETSTAT"));
    await("the waiter to ask", was_called_often, NULL);
    assert_true(info_number("stats", "total_connections_received:") <= 1);

    assert_int_equal(hf_lock_release(lock, NULL), HF_OK);
    assert_int_equal(join_waiter(&w[0]), HF_OK);
    assert_int_equal(hf_lock_release(w[0].lock, NULL), HF_OK);
    assert_int_equal(join_waiter(&w[1]), HF_OK);
    assert_int_equal(hf_lock_release(w[1].lock, NULL), HF_OK);
    hf_close(other);
    hf_close(mute);
    ask_number(redis, "ACL DELUSER mute");
}

static void c1_server_that_evicts_is_refused_unless_forced(void **state)
{
    (void)state;
    freeReplyObject(ask(redis, "CONFIG SET maxmemory-policy allkeys-lru"));
    expect_open(url_of(0, ""), HF_DENIED, "noeviction");
    expect_open(url_of(0, "force=evicting"), HF_OK, NULL);
    freeReplyObject(ask(redis, "CONFIG SET maxmemory-policy noeviction"));
    expect_open(url_of(0, ""), HF_OK, NULL);
}

static void server_that_is_no_sentinel_is_refused(void **state)
{
    char url[100];

    (void)state;
    snprintf(url, sizeof url, "redis+sentinel://%s/mymaster", getenv("HOLDFAST_TEST_REDIS"));
    expect_open(url, HF_UNSUPPORTED, "this is not a sentinel; for the server itself use redis://");
}

static void database_of_the_url_is_used(void **state)
{
    char url[100];
    hf_lock *lock = NULL, *other = NULL;

    (void)state;
    snprintf(url, sizeof url, "redis://%s/3?client_name=tester", getenv("HOLDFAST_TEST_REDIS"));
    hf_client *third = open_url(url), *zero = open_live("");
    assert_int_equal(try_lock(third, "a", 30000, &lock), HF_OK);
    assert_int_equal(try_lock(zero, "a", 30000, &other), HF_OK);
    char *list = ask_text(redis, "CLIENT LIST");
    check_contains("CLIENT LIST", list, "name=tester");
    free(list);
    hf_lock_release(lock, NULL);
    hf_lock_release(other, NULL);
    hf_close(third);
    hf_close(zero);
    snprintf(url, sizeof url, "redis://%s/9999", getenv("HOLDFAST_TEST_REDIS"));
    expect_open(url, HF_INVALID, "no database 9999");
}

static redisContext *only;

static int is_admitted(void *server)
{
    only = server_stranger(server);
    redisReply *reply = redisCommand(only, "PING");
    bool yes = reply != NULL && reply->type != REDIS_REPLY_ERROR;

    freeReplyObject(reply);
    if (!yes)
        redisFree(only);
    return yes;
}

static void server_with_too_many_clients_says_so(void **state)
{
    struct server server = {0};
    hf_options opt = HF_OPTIONS_INIT;
    hf_lock *lock = NULL;
    hf_error err;

    (void)state;
    opt.wait_ms = 0;
    server_start(&server, (const char *const[]){"--maxclients", "1", NULL});
    await("the first connection to be closed", is_admitted, &server);
    hf_client *client = open_url(url_of(server.port, "op_timeout=300ms"));
    assert_int_equal(hf_acquire(client, "a", HF_NTS, &opt, &lock, &err), HF_UNAVAILABLE);
    check_contains("text", err.text, "max number of clients");
    hf_close(client);
    redisFree(only);
    server_clear(&server);
}

static void server_that_is_away_can_be_opened(void **state)
{
    struct server server = {0};
    hf_options opt = HF_OPTIONS_INIT;
    hf_lock *lock = NULL;

    (void)state;
    server_start(&server, NULL);
    server_kill(&server);
    hf_client *client = open_url(url_of(server.port, "op_timeout=300ms"));
    assert_int_equal(try_lock(client, "a", 30000, &lock), HF_UNAVAILABLE);
    server_start(&server, NULL);
    opt.wait_ms = 0;
    opt.patience_ms = AWAIT_MS; /* nobody dials again at once */
    assert_int_equal(hf_acquire(client, "a", HF_NTS, &opt, &lock, NULL), HF_OK);
    assert_int_equal(hf_lock_release(lock, NULL), HF_OK);
    hf_close(client);
    server_clear(&server);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(urls_that_cannot_be_meant_are_refused),
        TEST(wrong_password_is_denied_and_not_shown),
        TEST(user_with_few_rights_can_lock),
        TEST(c6_missing_rights_leave_nothing_behind),
        TEST(c5_without_the_right_to_publish_and_subscribe_waiters_ask),
        TEST(c1_server_that_evicts_is_refused_unless_forced),
        TEST(server_that_is_no_sentinel_is_refused),
        TEST(database_of_the_url_is_used),
        TEST(server_with_too_many_clients_says_so),
        TEST(server_that_is_away_can_be_opened),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
