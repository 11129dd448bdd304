/* Logging in, and what a server says of itself.
 *
 * AUTH, SELECT (if needed), CLIENT SETNAME and INFO go out together and their replies are looked at
 * one by one. A server that cannot keep locks (it evicts keys), or that we cannot serve yet (a
 * cluster), is refused here, each time we connect: it may be another one than before. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stores/redis/link.h"

#include "util/banned.h"

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

enum step { AUTH, SELECT, SETNAME, INFO_SERVER, INFO_MEMORY, STEPS };

static bool is_needed(const struct hf__redis_settings *set, int step)
{
    return (step != AUTH || set->password != NULL) && (step != SELECT || set->db != 0);
}

void hf__redis_login_ask(const struct hf__redis_settings *set, struct hf__redis_conn *c)
{
    char db[24];

    if (set->password != NULL && set->user != NULL)
        hf__redis_command(c, "AUTH", set->user, set->password, (char *)NULL);
    else if (set->password != NULL)
        hf__redis_command(c, "AUTH", set->password, (char *)NULL);
    snprintf(db, sizeof db, "%lld", (long long)set->db);
    if (is_needed(set, SELECT))
        hf__redis_command(c, "SELECT", db, (char *)NULL);
    hf__redis_command(c, "CLIENT", "SETNAME", set->client_name, (char *)NULL);
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

/* INFO comes in sections; each tells some of it. */
static void read_facts(struct hf__redis_facts *f, const char *info)
{
    char mode[16];

    f->known = true;
    hf__redis_info_word(info, "redis_mode", mode, sizeof mode);
    f->cluster |= strcmp(mode, "cluster") == 0;
    if (f->version[0] == '\0')
        hf__redis_info_word(info, "redis_version", f->version, sizeof f->version);
    f->major = strtoll(f->version, NULL, 10);
    if (f->policy[0] == '\0')
        hf__redis_info_word(info, "maxmemory_policy", f->policy, sizeof f->policy);
    if (f->run_id[0] == '\0')
        hf__redis_info_word(info, "run_id", f->run_id, sizeof f->run_id);
    if (f->uptime_s == 0)
        f->uptime_s = hf__redis_info_number(info, "uptime_in_seconds");
}

static int check_facts(const struct hf__redis_settings *set, const struct hf__redis_facts *f,
                       hf_error *err)
{
    if (f->cluster)
        return hf__fail(err, HF_UNSUPPORTED,
                        "this is a node of a Redis Cluster, which is not supported; use a single "
                        "server");
    if (f->policy[0] != '\0' && strcmp(f->policy, "noeviction") != 0 && !set->allow_evicting)
        return hf__fail(
            err, HF_DENIED,
            "the server may evict locks (maxmemory-policy is %s): set it to noeviction, "
            "or accept that with force=evicting",
            f->policy);
    return 0;
}

/* The first step from `step` on that is taken. */
static int needed_from(const struct hf__redis_settings *set, int step)
{
    while (step < STEPS && !is_needed(set, step))
        step++;
    return step;
}

int hf__redis_login_first(const struct hf__redis_settings *set)
{
    return needed_from(set, AUTH);
}

/* Who may not ask, and a proxy that cannot, knows less but may lock. */
static int check_info(const redisReply *reply, struct hf__redis_facts *facts, hf_error *err)
{
    if (reply->type == REDIS_REPLY_STRING)
        read_facts(facts, reply->str);
    if (begins_with(reply, "NOPERM") || begins_with(reply, "ERR unknown"))
        return 0;
    return hf__redis_error(reply, err);
}

static int check_step(const struct hf__redis_settings *set, struct hf__redis_conn *c, int step,
                      const redisReply *reply, hf_error *err)
{
    switch (step) {
    case AUTH:
        return check_auth(reply, err);
    case SELECT:
        return check_select(reply, set->db, err);
    case SETNAME:
        /* Only for people who look, so it need not be allowed; but it may be the first word. */
        return begins_with(reply, "ERR max number") ? hf__redis_error(reply, err) : 0;
    default:
        return check_info(reply, &c->facts, err);
    }
}

int hf__redis_login_step(const struct hf__redis_settings *set, struct hf__redis_conn *c, int *step,
                         const redisReply *reply, hf_error *err)
{
    int r = check_step(set, c, *step, reply, err);

    *step = needed_from(set, *step + 1);
    if (r == 0 && *step == STEPS) {
        r = check_facts(set, &c->facts, err);
        *step = HF__REDIS_LOGGED_IN;
    }
    return r;
}
