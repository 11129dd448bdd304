/* One connection: dial, and log in with one round trip. */
#include <errno.h>
#include <stdlib.h>

#include "stores/redis/redis.h"

#include "base/banned.h"

static int connect_stream(struct hf__redis *s, struct hf__redis_conn *c,
                          const struct hf__address *to, int64_t deadline_ns, hf_error *err)
{
    int r = hf__stream_connect(&c->stream, to, s->base.host->env, deadline_ns, err);

    if (r == 0 && s->set.tls != NULL)
        r = hf__tls_start(s->set.tls, &c->stream, to->host, deadline_ns, err);
    return r;
}

/* A server that expects TLS hangs up on the first word. */
static int log_in_failed(const struct hf__redis *s, hf_error *err)
{
    bool plain = s->set.tls == NULL && s->set.path == NULL;
    bool hung_up = err != NULL && err->store_code != ETIMEDOUT;

    return hf__wrap(err, HF_UNAVAILABLE,
                    !plain || !hung_up ? "log in"
                    : s->sentinels.master_name == NULL
                        ? "log in without TLS (rediss:// if this port speaks it)"
                        : "log in without TLS (tls=verify if this port speaks it)");
}

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
    if (r == HF_UNKNOWN) /* nothing was asked yet that could have been done */
        r = log_in_failed(s, err);
    return r;
}

static int dial_server(struct hf__redis *s, struct hf__redis_conn *c, int64_t deadline_ns,
                       hf_error *err)
{
    const struct hf__server *at = s->set.servers.list; /* none beside a socket */
    struct hf__address to = {.host = at->host, .port = at->port, .path = s->set.path};
    int r = connect_stream(s, c, &to, deadline_ns, err);

    return r != 0 ? r : log_in(s, c, deadline_ns, err);
}

static int dial_master(struct hf__redis *s, struct hf__redis_conn *c, int64_t deadline_ns,
                       hf_error *err)
{
    struct hf__redis_place place;
    struct hf__address to = {.host = place.host, .port = place.port};
    int r = hf__redis_find_master(s, deadline_ns, &place, err);

    if (r == 0)
        r = connect_stream(s, c, &to, deadline_ns, err);
    if (r == 0)
        r = log_in(s, c, deadline_ns, err);
    if (r == 0)
        r = hf__redis_check_role(c, deadline_ns, err);
    if (r == 0 && hf__redis_note_master(s, &place))
        c->pooled.epoch = s->pool.epoch; /* this one is not of the old master */
    return r;
}

int hf__redis_dial(struct hf__redis *s, int64_t deadline_ns, struct hf__redis_conn **ret_conn,
                   hf_error *err)
{
    struct hf__redis_conn *c = hf__redis_conn_new();

    if (c == NULL)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    c->pooled.epoch = s->pool.epoch;
    int r = s->sentinels.master_name != NULL ? dial_master(s, c, deadline_ns, err)
                                             : dial_server(s, c, deadline_ns, err);
    if (r != 0) {
        hf__redis_hang_up(c);
        return r;
    }
    *ret_conn = c;
    return 0;
}
