/* One connection: dial, log in, look at the server.
 *
 * Logging in is one round trip: AUTH, SELECT, CLIENT SETNAME and INFO go out together. A server
 * that cannot keep locks (it evicts keys), or that we cannot serve yet (a cluster), is refused
 * here, each time we connect: it may be another one than before. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stores/redis/redis.h"

#include "util/banned.h"

void hf__redis_hang_up(struct hf__redis_conn *c)
{
    if (c == NULL)
        return;
    hf__stream_close(&c->stream);
    if (c->reader != NULL)
        redisReaderFree(c->reader);
    free(c->out.data);
    free(c);
}

static const char *info_value(const char *info, const char *name)
{
    size_t len = strlen(name);

    while (info != NULL && (strncmp(info, name, len) != 0 || info[len] != ':')) {
        info = strchr(info, '\n');
        info = info != NULL ? info + 1 : NULL;
    }
    return info != NULL ? info + len + 1 : "";
}

int64_t hf__redis_info_number(const char *info, const char *name)
{
    return strtoll(info_value(info, name), NULL, 10);
}

void hf__redis_info_word(const char *info, const char *name, char *buf, size_t size)
{
    const char *value = info_value(info, name);

    snprintf(buf, size, "%.*s", (int)strcspn(value, "\r\n"), value);
}

static int connect_stream(struct hf__redis *s, struct hf__redis_conn *c, int64_t deadline_ns,
                          hf_error *err)
{
    struct hf__address to = {.host = s->set.host, .port = s->set.port, .path = s->set.path};
    int r = hf__stream_connect(&c->stream, &to, s->base.host->env, deadline_ns, err);

    if (r == 0 && s->set.tls != NULL)
        r = hf__tls_start(s->set.tls, &c->stream, s->set.host, deadline_ns, err);
    return r;
}

static void say_who_we_are(struct hf__redis *s, struct hf__redis_conn *c)
{
    char db[24];

    if (s->set.password != NULL && s->set.user != NULL)
        hf__redis_command(c, "AUTH", s->set.user, s->set.password, (char *)NULL);
    else if (s->set.password != NULL)
        hf__redis_command(c, "AUTH", s->set.password, (char *)NULL);
    snprintf(db, sizeof db, "%lld", (long long)s->set.db);
    hf__redis_command(c, "SELECT", db, (char *)NULL);
    hf__redis_command(c, "CLIENT", "SETNAME", s->set.client_name, (char *)NULL);
    hf__redis_command(c, "INFO", "server", (char *)NULL);
    hf__redis_command(c, "INFO", "memory", (char *)NULL);
}

static bool begins_with(const redisReply *reply, const char *word)
{
    return reply->type == REDIS_REPLY_ERROR && strncmp(reply->str, word, strlen(word)) == 0;
}

/* The server's own words are not repeated: some repeat the password. */
static int check_auth(const redisReply *reply, hf_error *err)
{
    if (reply->type != REDIS_REPLY_ERROR)
        return 0;
    if (begins_with(reply, "LOADING") || begins_with(reply, "ERR max number"))
        return hf__redis_error(reply, err);
    if (begins_with(reply, "WRONGPASS") || begins_with(reply, "ERR invalid password"))
        return hf__fail(err, HF_DENIED, "the server refuses this user or password (WRONGPASS)");
    return hf__fail(
        err, HF_DENIED,
        "the server does not take a password like this; is one set there, for this user?");
}

static int check_select(const redisReply *reply, int64_t db, hf_error *err)
{
    if (begins_with(reply, "ERR DB index"))
        return hf__fail(err, HF_INVALID, "the server has no database %lld", (long long)db);
    return hf__redis_error(reply, err);
}

static void read_facts(struct hf__redis_facts *f, const redisReply *reply)
{
    char mode[16];

    if (reply->type != REDIS_REPLY_STRING)
        return;
    f->known = true;
    hf__redis_info_word(reply->str, "redis_mode", mode, sizeof mode);
    f->cluster |= strcmp(mode, "cluster") == 0;
    if (f->version[0] == '\0')
        hf__redis_info_word(reply->str, "redis_version", f->version, sizeof f->version);
    f->major = strtoll(f->version, NULL, 10);
    if (f->policy[0] == '\0')
        hf__redis_info_word(reply->str, "maxmemory_policy", f->policy, sizeof f->policy);
    if (f->uptime_s == 0)
        f->uptime_s = hf__redis_info_number(reply->str, "uptime_in_seconds");
}

static int check_facts(const struct hf__redis *s, const struct hf__redis_facts *f, hf_error *err)
{
    if (f->cluster)
        return hf__fail(err, HF_UNSUPPORTED,
                        "this is a node of a Redis Cluster, which is not supported; use a single "
                        "server");
    if (f->policy[0] != '\0' && strcmp(f->policy, "noeviction") != 0 && !s->set.allow_evicting)
        return hf__fail(
            err, HF_DENIED,
            "the server may evict locks (maxmemory-policy is %s): set it to noeviction, "
            "or accept that with force=evicting",
            f->policy);
    return 0;
}

enum step { AUTH, SELECT, SETNAME, INFO_SERVER, INFO_MEMORY, STEPS };

static int check_step(struct hf__redis *s, struct hf__redis_conn *c, enum step step,
                      const redisReply *reply, hf_error *err)
{
    switch (step) {
    case AUTH:
        return check_auth(reply, err);
    case SELECT:
        return check_select(reply, s->set.db, err);
    case SETNAME:
        return 0; /* only for people who look; it need not be allowed */
    default:
        read_facts(&c->facts, reply);
        return begins_with(reply, "NOPERM") ? 0 : hf__redis_error(reply, err);
    }
}

static int log_in(struct hf__redis *s, struct hf__redis_conn *c, int64_t deadline_ns, hf_error *err)
{
    say_who_we_are(s, c);
    int r = hf__redis_send(c, deadline_ns, err);

    for (int step = s->set.password != NULL ? AUTH : SELECT; r == 0 && step < STEPS; step++) {
        redisReply *reply = NULL;
        r = hf__redis_receive(c, deadline_ns, &reply, err);
        if (r == 0)
            r = check_step(s, c, step, reply, err);
        freeReplyObject(reply);
    }
    if (r == 0)
        r = check_facts(s, &c->facts, err);
    if (r == HF_UNKNOWN) /* nothing was asked yet that could have been done */
        r = hf__wrap(err, HF_UNAVAILABLE, "log in");
    return r;
}

int hf__redis_dial(struct hf__redis *s, int64_t deadline_ns, struct hf__redis_conn **ret_conn,
                   hf_error *err)
{
    struct hf__redis_conn *c = calloc(1, sizeof *c);
    int r;

    if (c == NULL)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    c->reader = redisReaderCreate();
    r = c->reader == NULL ? hf__fail(err, HF_NO_MEMORY, NULL)
                          : connect_stream(s, c, deadline_ns, err);
    if (r == 0)
        r = log_in(s, c, deadline_ns, err);
    if (r != 0) {
        hf__redis_hang_up(c);
        return r;
    }
    *ret_conn = c;
    return 0;
}
