/* What `holdfast doctor redlock://...` says: each node by itself, and what that makes together.
 * Silent nodes are waited for here, other than in every operation: which of them is slow and which
 * is gone is what is asked. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/report.h"
#include "stores/redlock/redlock.h"

#include "base/banned.h"

struct diagnosis {
    struct hf__redlock_ask ask;
    struct hf__redlock *s;
    struct hf__report to;
    int64_t began_ns;
    uint32_t voters;
};

static void write_info(struct hf__redlock_ask *ask, size_t node, struct hf__redis_conn *c)
{
    (void)ask, (void)node;
    hf__redis_add_text(c, "INFO");
}

static const char *where(const struct diagnosis *w, size_t node, char *buf, size_t size)
{
    char host[100];

    hf__printable(w->s->nodes[node].host, strlen(w->s->nodes[node].host), host, sizeof host);
    snprintf(buf, size, "%s:%s", host, w->s->nodes[node].port);
    return buf;
}

static int take_info(struct hf__redlock_ask *ask, size_t node, redisReply **at, hf_error *err)
{
    struct diagnosis *w = (struct diagnosis *)ask;
    const char *info = (*at)->type == REDIS_REPLY_STRING ? (*at)->str : "";
    int64_t up_ms = 1000 * hf__redis_info_number(info, "uptime_in_seconds");
    int64_t took_us = (hf__now_ns(w->s->base.host->env) - w->began_ns) / 1000;
    char version[24], role[16], name[128];

    (void)err;
    where(w, node, name, sizeof name);
    hf__redis_info_word(info, "redis_version", version, sizeof version);
    hf__redis_info_word(info, "role", role, sizeof role);
    hf__say(&w->to, HF__LEVEL_FINE, NULL,
            "%s: Redis %s, up for %" PRId64 " s, answered in %" PRId64 " us", name, version,
            up_ms / 1000, took_us);
    /* Votes must fail independently: a replica repeats its master's, and one that takes over after
     * a failover has not got the writes that were on their way. */
    if (strcmp(role, "slave") == 0)
        hf__say(&w->to, HF__LEVEL_PROBLEM, "C1",
                "%s is a replica; Redlock wants independent masters", name);
    else if (hf__redis_info_number(info, "connected_slaves") > 0)
        hf__say(&w->to, HF__LEVEL_WARNING, "C1",
                "%s has replicas: after a failover it would have forgotten locks", name);
    if (w->s->guard && up_ms < w->s->max_ttl_ms)
        hf__say(&w->to, HF__LEVEL_WARNING, "C1",
                "%s has no vote until it has been up for max_ttl (%" PRId64 " s)", name,
                w->s->max_ttl_ms / 1000);
    else
        w->voters |= 1U << node;
    return 0;
}

static void sum_up(const struct diagnosis *w)
{
    const struct hf__redlock *s = w->s;
    size_t voters = hf__redlock_votes(w->voters);
    char name[128];

    for (size_t i = 0; i < s->count; i++) {
        if (!(w->ask.replied & 1U << i))
            hf__say(&w->to, HF__LEVEL_WARNING, NULL, "%s does not answer",
                    where(w, i, name, sizeof name));
    }
    if (voters < s->quorum)
        hf__say(&w->to, HF__LEVEL_PROBLEM, NULL,
                "%zu of %zu servers can vote, %zu are needed: nothing can be locked", voters,
                s->count, s->quorum);
    else
        hf__say(&w->to, voters == s->count ? HF__LEVEL_FINE : HF__LEVEL_NOTE, NULL,
                "%zu of %zu servers can vote: %zu more may fail", voters, s->count,
                voters - s->quorum);
    if (s->count < 3)
        hf__say(&w->to, HF__LEVEL_WARNING, "C1",
                "%zu server%s: the loss of one stops all; use 3 or 5, or redis://", s->count,
                s->count == 1 ? "" : "s");
    else if (s->count % 2 == 0)
        hf__say(&w->to, HF__LEVEL_NOTE, NULL, "%zu servers bear the loss of %zu; use 3 or 5",
                s->count, s->count - s->quorum);
    if (s->set.tls_insecure)
        hf__say(&w->to, HF__LEVEL_WARNING, NULL,
                "tls=insecure: whoever is between us and a server can pose as it, and read the "
                "password (tls=verify, tls_ca=FILE)");
    if (!s->guard)
        hf__say(
            &w->to, HF__LEVEL_WARNING, "C1",
            "restart_guard=off: a server that restarts without its data can let a second holder "
            "in");
    hf__say(
        &w->to, HF__LEVEL_NOTE, "C1",
        "best effort: pauses, delays and clock errors must stay well below the ttl; there is no "
        "safe Redlock");
    hf__say(&w->to, HF__LEVEL_NOTE, "C4", "no fencing token: nothing makes overlap harmless");
    hf__say(&w->to, HF__LEVEL_NOTE, "C5", "no queue: waiters ask every %" PRId64 " ms, at random",
            s->retry_ms);
}

int hf__redlock_diagnose(struct hf__store *store, hf_finding_callback *found, void *arg,
                         int64_t deadline_ns, hf_error *err)
{
    struct hf__redlock *s = (struct hf__redlock *)store;
    struct diagnosis w = {.s = s, .to = {.found = found, .arg = arg, .env = store->host->env}};
    struct hf__redlock_set *set = NULL;
    int r = hf__redlock_take(s, deadline_ns, &set, err);

    if (r != 0)
        return r;
    w.ask = (struct hf__redlock_ask){.script = HF__REDLOCK_SCRIPT_NONE,
                                     .write = write_info,
                                     .argc = 1,
                                     .reply = take_info,
                                     .patient = true,
                                     .to = hf__redlock_all(s)};
    w.began_ns = hf__now_ns(s->base.host->env);
    hf__redlock_round(s, set, &w.ask, hf__redlock_soon(s, 4 * s->node_timeout_ms, deadline_ns));
    hf__redlock_give(s, set);
    sum_up(&w);
    return 0;
}
