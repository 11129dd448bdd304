/* Connections to the server, or to the master that a sentinel names, lent as net/pool.h says. */
#include "stores/redis/redis.h"

#include "base/banned.h"

#define PEEK_AFTER_MS  5     /* idle for so long: look whether the server has hung up */
#define PING_AFTER_MS  15000 /* idle for so long: ask whether it is still there */
#define PING_WITHIN_MS 1000

static int dial(void *owner, size_t host, int64_t deadline_ns, struct hf__pooled **ret_conn,
                hf_error *err)
{
    struct hf__redis_conn *c = NULL;
    int r = hf__redis_dial(owner, deadline_ns, &c, err);

    (void)host; /* there is one, or the sentinels know */
    if (r == 0)
        *ret_conn = &c->pooled;
    return r;
}

static void hang_up(struct hf__pooled *conn)
{
    hf__redis_hang_up((struct hf__redis_conn *)conn);
}

static bool is_alive(void *owner, struct hf__pooled *conn, int64_t idle_ns, int64_t deadline_ns)
{
    struct hf__redis *s = owner;
    struct hf__redis_conn *c = (struct hf__redis_conn *)conn;
    redisReply *reply = NULL;

    /* A system call on each operation of a busy client would be felt, and tell it little. */
    if (idle_ns < PEEK_AFTER_MS * HF__NS_PER_MS)
        return true;
    if (!hf__stream_is_quiet(&c->stream))
        return false;
    if (idle_ns < PING_AFTER_MS * HF__NS_PER_MS)
        return true;
    /* Whatever drops idle connections on the way (a firewall, a load balancer) tells nobody. */
    int64_t soon_ns = hf__now_ns(s->base.host->env) + PING_WITHIN_MS * HF__NS_PER_MS;
    hf__redis_command(c, "PING", (char *)NULL);
    int r = hf__redis_ask(c, soon_ns < deadline_ns ? soon_ns : deadline_ns, &reply, NULL);
    freeReplyObject(reply);
    return r == 0;
}

const struct hf__pool_type hf__redis_pool_type = {
    .store = "redis",
    .dial = dial,
    .hang_up = hang_up,
    .is_alive = is_alive,
};

int hf__redis_take(struct hf__redis *s, int64_t deadline_ns, struct hf__redis_conn **ret_conn,
                   hf_error *err)
{
    struct hf__pooled *conn = NULL;
    int r = hf__pool_take(&s->pool, deadline_ns, &conn, err);

    if (r == 0)
        *ret_conn = (struct hf__redis_conn *)conn;
    return r;
}

void hf__redis_give(struct hf__redis *s, struct hf__redis_conn *c)
{
    if (c->demoted && s->sentinels.master_name != NULL) {
        s->sentinels.demoted = true;
        hf__pool_flush(&s->pool);
    }
    hf__pool_give(&s->pool, &c->pooled, !c->broken);
}
