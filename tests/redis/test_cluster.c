/* A real node of a cluster, and a real replica that takes writes: refused, whatever the server is
 * called. What a real server says of itself in a script, too. */
#include <stdlib.h>

#include "redis/live.h"

static void expect_refused(const struct server *s, const char *text)
{
    hf_client *client = NULL;
    hf_error err = {0};

    assert_int_equal(hf_open(url_of(s->port, ""), NULL, &client, &err), HF_UNSUPPORTED);
    check_contains("text", err.text, text);
}

static void node_of_a_cluster_is_refused(void **state)
{
    struct server node = {.port = 65535};

    (void)state;
    while (node.port > 55535) /* nodes speak to each other on a port that is 10000 higher */
        node.port = free_port();
    server_start(&node, (const char *const[]){"--cluster-enabled", "yes", NULL});
    expect_refused(&node, "Cluster");
    server_clear(&node);
}

static int is_replica(void *ctx)
{
    redisContext *c = server_stranger(ctx);
    char *info = ask_text(c, "INFO replication");
    bool yes = strstr(info, "role:slave") != NULL;

    free(info);
    redisFree(c);
    return yes;
}

static void writable_replica_is_refused(void **state)
{
    struct server replica = {0};
    char port[16];
    const char *master = getenv("HOLDFAST_TEST_REDIS");

    (void)state;
    snprintf(port, sizeof port, "%s", strchr(master, ':') + 1);
    server_start(&replica, (const char *const[]){"--replica-read-only", "no", NULL});
    redisContext *c = server_stranger(&replica);
    freeReplyObject(ask(c, "REPLICAOF 127.0.0.1 %s", port));
    redisFree(c);
    await("it to be a replica", is_replica, &replica);
    expect_refused(&replica, "writable replica");
    server_clear(&replica);
}

/* What keeps a server from writing is told by the first command of a script; versions differ in how. */
static void c6_server_that_may_not_write_is_unavailable(void **state)
{
    hf_client *client = open_live("");
    hf_options opt = HF_OPTIONS_INIT;
    hf_lock *lock = NULL;
    hf_error err = {0};

    (void)state;
    opt.wait_ms = 0;
    freeReplyObject(ask(redis, "CONFIG SET min-replicas-to-write 1"));
    for (int i = 0; i < 2; i++) {
        opt.mode = i == 0 ? HF_EXCLUSIVE : HF_SHARED;
        int code = hf_acquire(client, "a", HF_NTS, &opt, &lock, &err);
        check_number(err.text, code, HF_UNAVAILABLE);
        check_contains("text", err.text, "NOREPLICAS");
    }
    freeReplyObject(ask(redis, "CONFIG SET min-replicas-to-write 0"));
    lock = take_free(client, "a", 30000);
    assert_int_equal(hf_lock_release(lock, NULL), HF_OK);
    hf_close(client);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(node_of_a_cluster_is_refused),
        TEST(writable_replica_is_refused),
        TEST(c6_server_that_may_not_write_is_unavailable),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
