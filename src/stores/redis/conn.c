/* One connection: dial, and log in with one round trip. */
#include <errno.h>
#include <stdlib.h>

#include "stores/redis/redis.h"

#include "base/banned.h"

static int log_in(struct hf__redis *s, struct hf__redis_conn *c, int64_t deadline_ns, hf_error *err)
{
    int step = hf__redis_login_first(&s->set);

    hf__redis_login_ask(&s->set, c);
    int r = hf__redis_send(c, deadline_ns, err);
    while (r == 0 && step != HF__REDIS_LOGGED_IN) {
        redisReply *reply = NULL;
        r = hf__redis_receive(c, deadline_ns, &reply, err);
        if (r == 0)
            r = hf__redis_login_step(&s->set, c, &step, reply, err);
        freeReplyObject(reply);
    }
    if (r != HF_UNKNOWN)
        return r;
    /* Nothing was asked yet that could have been done. A server that expects TLS hangs up on the first
     * word; one that is only slow does not, and is not to be taken for that. */
    bool plain = s->set.tls == NULL && s->set.path == NULL;
    bool hung_up = err != NULL && err->store_code != ETIMEDOUT;
    return hf__wrap(err, HF_UNAVAILABLE,
                    !plain || !hung_up ? "log in"
                    : s->sentinels.master_name == NULL
                        ? "log in without TLS (rediss:// if this port speaks it)"
                        : "log in without TLS (tls=verify if this port speaks it)");
}

int hf__redis_dial(struct hf__redis *s, int64_t deadline_ns, struct hf__redis_conn **ret_conn,
                   hf_error *err)
{
    const struct hf__server *at = s->set.servers.list; /* none beside a socket */
    struct hf__address to = {.host = at->host, .port = at->port, .path = s->set.path};
    bool by_sentinel = s->sentinels.master_name != NULL;
    struct hf__redis_conn *c = hf__redis_conn_new();
    struct hf__redis_address master;
    int r = 0;

    if (c == NULL)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    c->pooled.epoch =
        s->pool.epoch; /* of before: a switch meanwhile makes it one to the old master */
    if (by_sentinel) {
        to = (struct hf__address){.host = master.host, .port = master.port};
        r = hf__redis_find_master(s, deadline_ns, &master, err);
    }
    if (r == 0)
        r = hf__stream_connect(&c->stream, &to, s->base.host->env, deadline_ns, err);
    if (r == 0 &&
        s->set.tls != NULL) /* the certificate is for the name we were given, or were told */
        r = hf__tls_start(s->set.tls, &c->stream, to.host, deadline_ns, err);
    if (r == 0)
        r = log_in(s, c, deadline_ns, err);
    if (r == 0 && by_sentinel)
        r = hf__redis_check_role(c, deadline_ns, err);
    if (r != 0) {
        hf__redis_hang_up(c);
        return r;
    }
    if (by_sentinel && hf__redis_note_master(s, &master))
        c->pooled.epoch = s->pool.epoch; /* it was just raised, and not because of this one */
    *ret_conn = c;
    return 0;
}
