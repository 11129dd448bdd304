/* A master, its replica and three sentinels: finding the master, following a switch with locks
 * held, and grants that want replicas. Each test leaves them with a master and a replica, whichever
 * is which. */
#include <poll.h>
#include <signal.h>
#include <stdlib.h>

#include "lib/proxy.h"
#include "redis/sentinels.h"

static void c1_master_is_found_by_any_sentinel(void **state)
{
    char url[500];
    hf_lock *lock;

    (void)state;
    snprintf(url, sizeof url, "redis+sentinel://127.0.0.1:1,%s/m", sentinels);
    hf_client *client = open_url(url);
    assert_int_equal(try_lock(client, "found", 20000, &lock), 0);
    redisContext *c = server_stranger(&now.master);
    assert_int_equal(ask_number(c, "EXISTS holdfast:found"), 1);
    redisFree(c);
    assert_int_equal(hf_lock_release(lock, NULL), 0);
    hf_close(client);
}

static void c1_unknown_master_is_told_as_such(void **state)
{
    char url[500];
    hf_client *client;
    hf_lock *lock;
    hf_error err;
    hf_options opt = HF_OPTIONS_INIT;

    (void)state;
    snprintf(url, sizeof url, "redis+sentinel://%s/nobody?op_timeout=300ms", sentinels);
    assert_int_equal(hf_open(url, NULL, &client, &err), 0);
    opt.wait_ms = 0;
    assert_int_equal(hf_acquire(client, "x", HF_NTS, &opt, &lock, &err), HF_UNAVAILABLE);
    check_contains("error", err.text, "knows no master 'nobody'; name it in the URL");
    hf_close(client);
    assert_int_equal(hf_open("redis+sentinel://127.0.0.1:1", NULL, &client, &err), HF_INVALID);
}

static void c1_sentinels_have_a_password_of_their_own(void **state)
{
    redisContext *c = sentinel();
    char url[500];
    hf_client *client;
    hf_lock *lock;
    hf_error err;

    (void)state;
    freeReplyObject(ask(c, "ACL SETUSER default resetpass >sesame"));
    int used = snprintf(url, sizeof url, "redis+sentinel://%.*s/m?op_timeout=2s",
                        (int)strcspn(sentinels, ","), sentinels);
    assert_int_equal(hf_open(url, NULL, &client, &err), HF_DENIED);
    setenv("HOLDFAST_TEST_SESAME", "sesame", 1);
    snprintf(url + used, sizeof url - (size_t)used, "&sentinel_password_env=HOLDFAST_TEST_SESAME");
    client = open_url(url);
    assert_int_equal(try_lock(client, "auth", 20000, &lock), 0);
    assert_int_equal(hf_lock_release(lock, NULL), 0);
    hf_close(client);
    freeReplyObject(ask(c, "ACL SETUSER default nopass"));
    redisFree(c);
}

static void c7_lock_that_the_new_master_knows_stays_held(void **state)
{
    hf_client *client = open_url(url_with("")), *other = open_url(url_with(""));
    hf_lock *lock, *none;

    (void)state;
    assert_int_equal(try_lock(client, "kept", 6000, &lock), 0);
    await_copied("kept");
    fail_over(false);
    assert_int_equal(try_lock(other, "kept", 6000, &none), HF_BUSY);
    hf_error err;
    if (hf_lock_renew(lock, &err) != 0)
        fail_msg("%s", err.text);
    assert_int_equal(hf_lock_release(lock, NULL), 0);
    /* The old master has not hung up on this client, and may say "busy" for what it has not
     * heard. */
    hf_close(other);
    other = open_url(url_with(""));
    assert_int_equal(try_lock(other, "kept", 6000, &none), 0);
    assert_int_equal(hf_lock_release(none, NULL), 0);
    hf_close(client);
    hf_close(other);
}

/* What a failover can do, and what we do about it: both of a client's locks are asked about as soon
 * as one operation has met the new master, long before their renewals are due. */
static void c7_lock_that_the_new_master_does_not_know_is_lost(void **state)
{
    hf_client *client = open_url(url_with("")), *other = open_url(url_with(""));
    hf_lock *lock, *again, *third;

    (void)state;
    assert_int_equal(try_lock(client, "unknown", 60000, &lock), 0);
    forget_copy("unknown");
    fail_over(true);
    assert_int_equal(try_lock(other, "unknown", 60000, &again),
                     0); /* granted although it was held */
    assert_int_equal(try_lock(client, "third", 20000, &third), 0);
    struct pollfd told = {.fd = hf_lock_fd(lock), .events = POLLIN};
    assert_int_equal(poll(&told, 1, 10000), 1);
    assert_int_equal(hf_lock_cause(lock), HF_CAUSE_GONE);
    assert_int_equal(hf_lock_release(lock, NULL), HF_STALE);
    assert_int_equal(hf_lock_state(again), HF_STATE_HELD);
    assert_int_equal(hf_lock_release(again, NULL), 0);
    assert_int_equal(hf_lock_release(third, NULL), 0);
    hf_close(client);
    hf_close(other);
}

static void c5_waiter_is_served_by_the_new_master(void **state)
{
    hf_client *client = open_url(url_with("")), *other = open_url(url_with(""));
    struct waiter waiter = {0};
    hf_lock *lock;

    (void)state;
    assert_int_equal(try_lock(client, "waited", 20000, &lock), 0);
    await_copied("waited");
    wait_in_thread(&waiter, other, "waited");
    fail_over(true);
    assert_int_equal(hf_lock_release(lock, NULL), 0);
    assert_int_equal(join_waiter(&waiter), 0);
    assert_int_equal(hf_lock_release(waiter.lock, NULL), 0);
    hf_close(client);
    hf_close(other);
}

/* Long before its renewal is due, and although this client does nothing: a sentinel tells of the
 * switch. */
static void check_told(hf_lock *lock)
{
    struct pollfd told = {.fd = hf_lock_fd(lock), .events = POLLIN};
    int64_t since_ms = now_ms();

    assert_int_equal(poll(&told, 1, 5000), 1);
    printf("lost: told %lld ms after the switch was seen\n", (long long)(now_ms() - since_ms));
    assert_int_equal(hf_lock_cause(lock), HF_CAUSE_GONE);
    assert_int_equal(hf_lock_release(lock, NULL), HF_STALE);
}

static void c7_switch_is_heard_by_a_client_that_does_nothing(void **state)
{
    hf_client *client = open_url(url_with(""));
    hf_lock *lock;

    (void)state;
    assert_int_equal(try_lock(client, "idle", 60000, &lock), 0);
    forget_copy("idle");
    fail_over(false);
    check_told(lock);
    hf_close(client);
}

/* How many connections there are at all sentinels that are subscribed, or how many of them were
 * closed. */
static long long at_sentinels(const char *command)
{
    long long sum = 0;

    for (const char *at = sentinels; at != NULL; at = strchr(at + 1, ',')) {
        struct server one = {.port = (int)strtol(strchr(at, ':') + 1, NULL, 10)};
        redisContext *c = server_stranger(&one);
        redisReply *reply = ask(c, command);
        sum += reply->type == REDIS_REPLY_INTEGER ? reply->integer
                                                  : strstr(reply->str, " sub=1 ") != NULL;
        freeReplyObject(reply);
        redisFree(c);
    }
    return sum;
}

static int is_subscribed(void *ctx)
{
    (void)ctx;
    return at_sentinels("CLIENT LIST TYPE pubsub") == 1;
}

static void c7_lost_subscription_is_made_again(void **state)
{
    hf_client *client = open_url(url_with(""));
    hf_lock *lock;

    (void)state;
    assert_int_equal(try_lock(client, "name", 3000, &lock), 0); /* a renewal each second */
    assert_true(is_subscribed(NULL));
    assert_true(at_sentinels("CLIENT KILL TYPE pubsub") >= 1);
    await("the client to be subscribed again", is_subscribed, NULL);
    assert_int_equal(hf_lock_release(lock, NULL), 0);
    hf_close(client);
}

/* A crash, and Sentinel's own decision: one lock that the replica had stays held and is handed over
 * by the new master, one that it had not is lost. The dead server is not replaced: this is the last
 * test. */
static void c7_killed_master_is_replaced_and_locks_follow(void **state)
{
    hf_client *client = open_url(url_with("")), *other = open_url(url_with(""));
    redisContext *watcher = sentinel();
    struct waiter waiter = {0};
    hf_lock *kept, *lost;

    (void)state;
    assert_int_equal(try_lock(client, "lost", 60000, &lost), 0);
    assert_int_equal(try_lock(client, "crash", 60000, &kept), 0);
    await_copied("crash");
    forget_copy("lost");
    wait_in_thread(&waiter, other, "crash");
    kill(now.master.pid, SIGKILL);
    await("a new master", is_switched, watcher);
    check_told(lost);
    assert_int_equal(hf_lock_state(kept), HF_STATE_HELD);
    assert_int_equal(hf_lock_release(kept, NULL), 0);
    assert_int_equal(join_waiter(&waiter), 0);
    assert_int_equal(hf_lock_release(waiter.lock, NULL), 0);
    redisFree(watcher);
    hf_close(client);
    hf_close(other);
}

static void check_wait_replicas(const char *url)
{
    redisContext *master = server_stranger(&now.master);
    hf_client *client = open_url(url);
    hf_lock *lock;

    assert_int_equal(try_lock(client, "safe", 20000, &lock), 0);
    redisContext *replica = server_stranger(&now.replica);
    assert_int_equal(ask_number(replica, "EXISTS holdfast:safe"), 1); /* not later */
    assert_int_equal(hf_lock_release(lock, NULL), 0);
    kill(now.replica.pid, SIGSTOP);
    int r = try_lock(client, "safe", 20000, &lock);
    kill(now.replica.pid, SIGCONT);
    assert_int_equal(r, HF_UNAVAILABLE);
    assert_int_equal(ask_number(master, "EXISTS holdfast:safe"), 0);
    hf_close(client);
    redisFree(master);
    redisFree(replica);
}

static void c6_grant_that_too_few_replicas_have_is_taken_back(void **state)
{
    char url[200];

    (void)state;
    snprintf(url, sizeof url,
             "redis://127.0.0.1:%d?op_timeout=600ms&wait_replicas=1&replica_timeout=100ms",
             now.master.port);
    check_wait_replicas(url);
    settle(NULL);
    snprintf(url, sizeof url,
             "redis+sentinel://%s/m?op_timeout=600ms&wait_replicas=1&replica_timeout=100ms",
             sentinels);
    check_wait_replicas(url);
}

static bool info_says(redisContext *master, const char *words)
{
    char *text = ask_text(master, "INFO all");
    bool says = strstr(text, words) != NULL;

    free(text);
    return says;
}

static int waits_for_replicas(void *master)
{
    return info_says(master, "blocked_clients:1");
}

static int has_waited(void *master)
{
    return info_says(master, "blocked_clients:0");
}

static int has_run_a_script(void *master)
{
    return info_says(master, "cmdstat_evalsha:");
}

/* What takes such a grant back is held up on the way, until the bid has asked again and was let in. */
static void c1_grant_taken_back_late_is_not_the_next_one(void **state)
{
    redisContext *master = server_stranger(&now.master);
    struct waiter w = {0};
    char url[200];

    (void)state;
    snprintf(url, sizeof url, "127.0.0.1:%d", now.master.port);
    struct proxy *proxy = proxy_start(url);
    snprintf(url, sizeof url,
             "redis://127.0.0.1:%d?op_timeout=2s&wait_replicas=1&replica_timeout=800ms",
             proxy_port(proxy));
    hf_client *client = open_url(url);

    assert_int_equal(hf_lock_release(take_free(client, "warm", 20000), NULL), 0);
    kill(now.replica.pid, SIGSTOP);
    wait_in_thread(&w, client, "late");
    await("the wait for a replica", waits_for_replicas, master);
    proxy_set(proxy, PROXY_C2S_HOLE, 0);
    await("its end", has_waited, master);
    kill(now.replica.pid, SIGCONT);
    assert_int_equal(join_waiter(&w), 0);
    freeReplyObject(ask(master, "CONFIG RESETSTAT"));
    proxy_set(proxy, PROXY_PASS, 0);
    await("what was held back", has_run_a_script, master);
    assert_int_equal(ask_number(master, "EXISTS holdfast:late"), 1);
    assert_int_equal(hf_lock_release(w.lock, NULL), 0);
    hf_close(client);
    proxy_stop(proxy);
    redisFree(master);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(c1_master_is_found_by_any_sentinel, settle),
        cmocka_unit_test_setup(c1_unknown_master_is_told_as_such, settle),
        cmocka_unit_test_setup(c1_sentinels_have_a_password_of_their_own, settle),
        cmocka_unit_test_setup(c6_grant_that_too_few_replicas_have_is_taken_back, settle),
        cmocka_unit_test_setup(c1_grant_taken_back_late_is_not_the_next_one, settle),
        cmocka_unit_test_setup(c7_lock_that_the_new_master_knows_stays_held, settle),
        cmocka_unit_test_setup(c7_lock_that_the_new_master_does_not_know_is_lost, settle),
        cmocka_unit_test_setup(c5_waiter_is_served_by_the_new_master, settle),
        cmocka_unit_test_setup(c7_switch_is_heard_by_a_client_that_does_nothing, settle),
        cmocka_unit_test_setup(c7_lost_subscription_is_made_again, settle),
        cmocka_unit_test_setup(c7_killed_master_is_replaced_and_locks_follow, settle),
    };

    if (!find_servers())
        return 77;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
