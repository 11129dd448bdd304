/* What `holdfast doctor redis://...` says: what this server gives, clause by clause. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/report.h"
#include "stores/redis/redis.h"

#include "base/banned.h"

#define ROUNDS 15

struct report {
    struct hf__redis *s;
    struct hf__redis_conn *c;
    int64_t deadline_ns;
    char *info; /* of the whole server; "" if it may not be asked */
    struct hf__report to;
};

static int64_t number(const struct report *r, const char *name)
{
    return hf__redis_info_number(r->info, name);
}

static bool is(const struct report *r, const char *name, const char *expected)
{
    char word[64];

    hf__redis_info_word(r->info, name, word, sizeof word);
    return strcmp(word, expected) == 0;
}

/* The value of one setting; "" if it may not be read. */
static void ask_setting(const struct report *r, const char *name, char *buf, size_t size)
{
    redisReply *reply = NULL;

    buf[0] = '\0';
    hf__redis_command(r->c, "CONFIG", "GET", name, (char *)NULL);
    if (hf__redis_ask(r->c, r->deadline_ns, &reply, NULL) != 0)
        return;
    if (hf__redis_fits(reply, "[ss]"))
        snprintf(buf, size, "%s", reply->element[1]->str);
    freeReplyObject(reply);
}

static void look_at_server(const struct report *r)
{
    const struct hf__redis_facts *f = &r->c->facts;
    int64_t up_s = number(r, "uptime_in_seconds");

    if (!f->known) {
        hf__say(&r->to, HF__LEVEL_WARNING, NULL,
                "INFO is not allowed: version, memory, persistence and replicas are "
                "not known");
        return;
    }
    hf__say(&r->to, HF__LEVEL_FINE, NULL, "%s %s, up for %" PRId64 " s, database %" PRId64,
            f->product, f->version, up_s, r->s->set.db);
    if (is(r, "role", "slave"))
        hf__say(&r->to, HF__LEVEL_PROBLEM, "C1",
                "this is a replica: it refuses writes; name its master");
    if (f->major < 6)
        hf__say(&r->to, HF__LEVEL_WARNING, "C12",
                "before Redis 6 nobody tells when another client's lock is released: "
                "the first in the queue asks every %" PRId64 " ms",
                r->s->set.recheck_ms);
}

static void look_at_memory(const struct report *r)
{
    const char *policy = r->c->facts.policy;
    int64_t limit = number(r, "maxmemory"), used = number(r, "used_memory");

    if (policy[0] == '\0')
        return;
    if (strcmp(policy, "noeviction") != 0)
        hf__say(&r->to, HF__LEVEL_PROBLEM, "C1",
                "maxmemory-policy is %s: locks may be evicted; set it to noeviction", policy);
    else
        hf__say(&r->to, HF__LEVEL_FINE, "C1", "maxmemory-policy is noeviction: no lock is evicted");
    if (limit > 0 && used > limit / 10 * 9)
        hf__say(&r->to, HF__LEVEL_WARNING, NULL,
                "%" PRId64 " of %" PRId64 " bytes are in use: new locks will be refused", used,
                limit);
}

static void look_at_persistence(const struct report *r)
{
    char fsync[24];

    if (!r->c->facts.known)
        return;
    if (number(r, "aof_enabled") != 1) {
        hf__say(&r->to, HF__LEVEL_WARNING, "C1",
                "no append-only file: after a crash of the server locks that were held "
                "are free again (appendonly yes)");
        return;
    }
    ask_setting(r, "appendfsync", fsync, sizeof fsync);
    if (strcmp(fsync, "always") == 0)
        hf__say(&r->to, HF__LEVEL_FINE, "C1",
                "append-only file, fsync always: locks survive a crash");
    else
        hf__say(&r->to, HF__LEVEL_NOTE, "C1",
                "append-only file, fsync %s: a crash of the machine may lose the last "
                "second of locks (appendfsync always)",
                fsync[0] != '\0' ? fsync : "not known");
}

static void look_at_replicas(const struct report *r)
{
    int64_t replicas = number(r, "connected_slaves");
    char least[24];

    if (!r->c->facts.known || replicas == 0)
        return;
    ask_setting(r, "min-replicas-to-write", least, sizeof least);
    hf__say(&r->to, HF__LEVEL_WARNING, "C1",
            "%" PRId64 " replicas: replication is asynchronous, so a failover may grant "
            "a lock that is held; only the token (C4) protects",
            replicas);
    if (strcmp(least, "0") == 0)
        hf__say(&r->to, HF__LEVEL_NOTE, "C1",
                "min-replicas-to-write is 0: a master that is cut off goes on granting");
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

static void look_at_clock(const struct report *r)
{
    const struct hf_env *env = r->s->base.host->env;
    int64_t took_us[ROUNDS], server_us = 0, ahead_us = 0;

    for (int i = 0; i < ROUNDS; i++) {
        int64_t from_ns = hf__now_ns(env), wall_us = (int64_t)env->wall_us(env->ctx);
        redisReply *reply = NULL;
        hf__redis_command(r->c, "TIME", (char *)NULL);
        bool told = hf__redis_ask(r->c, r->deadline_ns, &reply, NULL) == 0 &&
                    hf__redis_read_time(reply, &server_us);
        freeReplyObject(reply);
        if (!told) {
            hf__say(&r->to, HF__LEVEL_PROBLEM, "C3", "the server's clock cannot be read");
            return;
        }
        took_us[i] = (hf__now_ns(env) - from_ns) / 1000;
        ahead_us = server_us - wall_us - took_us[i] / 2;
    }
    qsort(took_us, ROUNDS, sizeof took_us[0], compare);
    hf__say(&r->to, took_us[ROUNDS / 2] > 20000 ? HF__LEVEL_WARNING : HF__LEVEL_FINE, NULL,
            "a round trip takes %" PRId64 " us (median; %" PRId64 " at most)", took_us[ROUNDS / 2],
            took_us[ROUNDS - 1]);
    hf__say(&r->to, llabs(ahead_us) > 60000000 ? HF__LEVEL_WARNING : HF__LEVEL_FINE, "C4",
            "the server's clock is %" PRId64
            " ms %s ours; leases are counted on it, so let NTP slew it "
            "and never step it",
            (int64_t)llabs(ahead_us) / 1000, ahead_us < 0 ? "behind" : "ahead of");
}

/* The rights that are not needed to log in, each tried with a harmless command. */
static void look_at_rights(const struct report *r)
{
    static const struct {
        const char *words[4];
        const char *clause, *without;
    } rights[] = {
        {{"PUBLISH", HF__REDIS_OWN_WORD "wake:doctor", "x", NULL}, "C12", "waiters are not called"},
        {{"CLIENT", "TRACKING", "OFF", NULL}, "C12", "other clients' releases are found by asking"},
        {{"EVALSHA", "0000000000000000000000000000000000000000", "0", NULL},
         "C1",
         "nothing can be locked"},
    };
    hf_error err;

    for (size_t i = 0; i < sizeof rights / sizeof rights[0]; i++) {
        redisReply *reply = NULL;
        hf__redis_command(r->c, rights[i].words[0], rights[i].words[1], rights[i].words[2],
                          (char *)NULL);
        if (hf__redis_ask(r->c, r->deadline_ns, &reply, &err) == HF_DENIED)
            hf__say(&r->to, HF__LEVEL_PROBLEM, rights[i].clause, "no right to %s: %s",
                    rights[i].words[0], rights[i].without);
        freeReplyObject(reply);
    }
}

static void sum_up(const struct report *r)
{
    if (r->s->set.poll)
        hf__say(&r->to, HF__LEVEL_NOTE, "C12", "mode=poll: waiters ask every %" PRId64 " ms",
                r->s->set.poll_ms);
    if (r->s->set.tls == NULL && r->s->set.path == NULL && r->s->sentinels.master_name == NULL &&
        !hf__url_is_loopback(r->s->set.servers.list[0].host))
        hf__say(&r->to, HF__LEVEL_NOTE, NULL,
                "no TLS: who sees the network sees tickets and password (rediss://)");
    if (r->s->set.tls_insecure)
        hf__say(&r->to, HF__LEVEL_WARNING, NULL,
                "tls=insecure: whoever is between us and the server can pose as it, and read the "
                "password (tls=verify, tls_ca=FILE)");
    hf__say(&r->to, HF__LEVEL_NOTE, NULL,
            "all of this as long as this one server keeps its data and its clock");
}

int hf__redis_diagnose(struct hf__store *store, hf_finding_callback *found, void *arg,
                       int64_t deadline_ns, hf_error *err)
{
    struct report r = {.s = (struct hf__redis *)store,
                       .deadline_ns = deadline_ns,
                       .to = {.found = found, .arg = arg, .env = store->host->env}};
    int code = hf__redis_take(r.s, deadline_ns, &r.c, err);

    if (code != 0)
        return code;
    redisReply *reply = NULL;
    hf__redis_command(r.c, "INFO", (char *)NULL);
    bool told = hf__redis_ask(r.c, deadline_ns, &reply, NULL) == 0 && hf__redis_fits(reply, "s");
    r.info = strdup(told ? reply->str : ""); /* who may not ask still hears the rest */
    freeReplyObject(reply);
    if (r.info == NULL) {
        code = hf__fail(err, HF_NO_MEMORY, NULL);
    } else {
        look_at_server(&r);
        look_at_memory(&r);
        look_at_persistence(&r);
        look_at_replicas(&r);
        look_at_clock(&r);
        look_at_rights(&r);
        hf__redis_try(r.s, r.c, &r.to, r.deadline_ns);
        sum_up(&r);
    }
    free(r.info);
    r.c->broken = true; /* CLIENT TRACKING was tried on it */
    hf__redis_give(r.s, r.c);
    return code;
}
