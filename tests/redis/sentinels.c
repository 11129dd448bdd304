/* See sentinels.h. */
#include "redis/sentinels.h"

#include <poll.h>
#include <stdlib.h>

struct pair now;
const char *sentinels;

bool find_servers(void)
{
    sentinels = getenv("HOLDFAST_TEST_SENTINELS");
    if (sentinels == NULL)
        return false;
    now.master.port = (int)strtol(getenv("HOLDFAST_TEST_MASTER"), NULL, 10);
    now.master.pid = (int)strtol(getenv("HOLDFAST_TEST_MASTER_PID"), NULL, 10);
    now.replica.port = (int)strtol(getenv("HOLDFAST_TEST_REPLICA"), NULL, 10);
    now.replica.pid = (int)strtol(getenv("HOLDFAST_TEST_REPLICA_PID"), NULL, 10);
    return true;
}

redisContext *sentinel(void)
{
    struct server one = {.port = (int)strtol(strchr(sentinels, ':') + 1, NULL, 10)};

    return server_stranger(&one);
}

const char *url_with(const char *options)
{
    static char url[500];

    snprintf(url, sizeof url, "redis+sentinel://%s/m?op_timeout=8s%s", sentinels, options);
    return url;
}

int is_switched(void *at)
{
    redisReply *reply = ask(at, "SENTINEL get-master-addr-by-name m");
    bool moved = strtol(reply->element[1]->str, NULL, 10) == now.replica.port;

    freeReplyObject(reply);
    return moved;
}

/* Whether it could take over. A server that becomes a replica hangs up on everybody: so each look
 * has a connection of its own. */
static int is_following(void *ctx)
{
    redisContext *c = server_stranger(ctx);
    redisReply *info = redisCommand(c, "INFO replication");
    bool follows = info != NULL && strstr(info->str, "role:slave") != NULL &&
                   strstr(info->str, "master_link_status:up") != NULL;

    freeReplyObject(info);
    redisFree(c);
    return follows;
}

/* A busy sentinel may give up the first try: it is asked again, which it refuses while one goes
 * on. */
static void switch_master(redisContext *c)
{
    for (int64_t began_ms = now_ms(); !is_switched(c); poll(NULL, 0, 50)) {
        assert_true(now_ms() - began_ms < 60000);
        freeReplyObject(redisCommand(c, "SENTINEL failover m"));
    }
}

/* Sentinel would make the old master a replica after 10 s. */
void fail_over(bool hang_up)
{
    redisContext *c = sentinel(), *old = server_stranger(&now.master);
    struct server was = now.master;

    switch_master(c);
    freeReplyObject(ask(old, "REPLICAOF 127.0.0.1 %d", now.replica.port));
    if (hang_up)
        freeReplyObject(ask(old, "CLIENT KILL TYPE normal"));
    redisFree(c);
    redisFree(old);
    now.master = now.replica;
    now.replica = was;
}

int settle(void **state)
{
    (void)state;
    await("the replica follows", is_following, &now.replica);
    return 0;
}

struct copy {
    redisContext *replica;
    const char *name;
};

static int has_key(void *ctx)
{
    const struct copy *copy = ctx;

    return (int)ask_number(copy->replica, "EXISTS holdfast:%s", copy->name);
}

void await_copied(const char *name)
{
    struct copy copy = {server_stranger(&now.replica), name};

    await("the replica has the key", has_key, &copy);
    redisFree(copy.replica);
}

void forget_copy(const char *name)
{
    redisContext *replica = server_stranger(&now.replica);

    await_copied(name);
    freeReplyObject(ask(replica, "CONFIG SET replica-read-only no"));
    assert_int_equal(ask_number(replica, "DEL holdfast:%s", name), 1);
    redisFree(replica);
}
