/* redis+sentinel://h1,h2,h3/name - the server that Sentinel says is the master.
 *
 * Each dial asks the sentinels in turn, beginning with the one that answered last:
 *
 *      SENTINEL get-master-addr-by-name <name>
 *
 * and then the server itself (ROLE), since a sentinel may speak of a master that is not one any
 * more. If it is another server than before, what was held may be unknown there: the core is told
 * to ask about all of it at once. The connections to the old one are closed. That there was a
 * switch is told by a sentinel (failover.c). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stores/redis/redis.h"

#include "base/banned.h"

int hf__redis_dial_sentinel(struct hf__redis *s, size_t i, int64_t deadline_ns,
                            struct hf__redis_conn **ret_conn, hf_error *err)
{
    const struct hf__account *who = &s->sentinels.account;
    const struct hf__server *at = &s->set.servers.list[i];
    struct hf__address to = {.host = at->host, .port = at->port};
    struct hf__redis_conn *c = hf__redis_conn_new();
    redisReply *reply = NULL;

    if (c == NULL)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    int r = hf__stream_connect(&c->stream, &to, s->base.host->env, deadline_ns, err);
    if (r == 0 && s->set.tls != NULL)
        r = hf__tls_start(s->set.tls, &c->stream, at->host, deadline_ns, err);
    if (r == 0 && who->password != NULL) {
        if (who->user != NULL)
            hf__redis_command(c, "AUTH", who->user, who->password, (char *)NULL);
        else
            hf__redis_command(c, "AUTH", who->password, (char *)NULL);
        r = hf__redis_send(c, deadline_ns, err);
        if (r == 0)
            r = hf__redis_receive(c, deadline_ns, &reply, err);
        if (r == 0 && reply->type == REDIS_REPLY_ERROR) /* its words may repeat the password */
            r = hf__fail(err, HF_DENIED, "the sentinel refuses this user or password");
        freeReplyObject(reply);
    }
    if (r != 0) {
        hf__redis_hang_up(c);
        return r;
    }
    *ret_conn = c;
    return 0;
}

void hf__redis_ask_place(struct hf__redis *s, struct hf__redis_conn *c)
{
    hf__redis_command(c, "SENTINEL", "get-master-addr-by-name", s->sentinels.master_name,
                      (char *)NULL);
}

int hf__redis_take_place(const struct hf__redis *s, struct hf__redis_conn *c, int64_t deadline_ns,
                         struct hf__redis_address *ret_address, hf_error *err)
{
    redisReply *reply = NULL;
    int r = hf__redis_receive(c, deadline_ns, &reply, err);

    if (r == 0)
        r = hf__redis_take_error(c, reply, err);
    if (r == HF_UNSUPPORTED) /* an unknown command */
        hf__fail(err, r, "this is not a sentinel; for the server itself use redis://");
    /* A name that it does not know it answers with nil. What does not fit is none that we could dial. */
    const char *name = s->sentinels.master_name;
    char shown[80];
    if (r == 0 && (!hf__redis_fits(reply, "[ss]") ||
                   (size_t)reply->element[0]->len >= sizeof ret_address->host ||
                   (size_t)reply->element[1]->len >= sizeof ret_address->port))
        r = hf__fail(err, HF_UNAVAILABLE,
                     "the sentinel knows no master '%s'; name it in the URL's path as its "
                     "configuration does (sentinel monitor NAME ...)",
                     hf__printable(name, strlen(name), shown, sizeof shown));
    if (r == 0) {
        snprintf(ret_address->host, sizeof ret_address->host, "%s", reply->element[0]->str);
        snprintf(ret_address->port, sizeof ret_address->port, "%s", reply->element[1]->str);
    }
    freeReplyObject(reply);
    return r;
}

int hf__redis_find_master(struct hf__redis *s, int64_t deadline_ns,
                          struct hf__redis_address *ret_address, hf_error *err)
{
    struct hf__redis_sentinels *w = &s->sentinels;
    size_t count = s->set.servers.count, first = w->last;
    int r = HF_UNAVAILABLE;

    for (size_t k = 0; k < count && r != 0; k++) {
        size_t i = (first + k) % count;
        const struct hf__server *at = &s->set.servers.list[i];
        struct hf__redis_conn *c = NULL;
        int64_t now_ns = hf__now_ns(s->base.host->env);
        /* A sentinel that is frozen must leave time for the others, and for the master itself. */
        int64_t until_ns = now_ns + (deadline_ns - now_ns) / (int64_t)(count - k + 1);
        r = hf__redis_dial_sentinel(s, i, until_ns, &c, err);
        if (r == 0) {
            hf__redis_ask_place(s, c);
            r = hf__redis_send(c, until_ns, err);
        }
        if (r == 0)
            r = hf__redis_take_place(s, c, until_ns, ret_address, err);
        hf__redis_hang_up(c);
        char shown[100];
        if (r != 0)
            hf__wrap(err, r, "sentinel %s:%s",
                     hf__printable(at->host, strlen(at->host), shown, sizeof shown), at->port);
        else
            w->last = i;
    }
    /* Nothing has been asked of the master yet. */
    return r == HF_UNKNOWN ? hf__wrap(err, HF_UNAVAILABLE, "find the master") : r;
}

int hf__redis_check_role(struct hf__redis_conn *c, int64_t deadline_ns, hf_error *err)
{
    redisReply *reply = NULL;

    hf__redis_command(c, "ROLE", (char *)NULL);
    int r = hf__redis_ask(c, deadline_ns, &reply, err);
    if (r == HF_DENIED) /* a replica that may not be asked refuses the first write */
        return 0;
    if (r == 0 &&
        (!hf__redis_fits(reply, "[s(a)]") || strcmp(reply->element[0]->str, "master") != 0))
        r = hf__fail(err, HF_UNAVAILABLE,
                     "the server that Sentinel names is not the master (any more, or yet)");
    freeReplyObject(reply);
    return r == HF_UNKNOWN ? hf__wrap(err, HF_UNAVAILABLE, "ROLE") : r;
}

bool hf__redis_note_master(struct hf__redis *s, const struct hf__redis_address *address)
{
    struct hf__redis_address *known = &s->sentinels.master;

    pthread_mutex_lock(&s->pool.mutex);
    bool first = known->host[0] == '\0';
    bool same = strcmp(known->host, address->host) == 0 && strcmp(known->port, address->port) == 0;
    *known = *address;
    pthread_mutex_unlock(&s->pool.mutex);
    if (first || same)
        return false;
    /* Their replies could be of the old master, who may go on granting while it is cut off. */
    hf__pool_flush(&s->pool);
    s->base.moved = true;
    return true;
}
