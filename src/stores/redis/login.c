/* Logging in, and what a server says of itself.
 *
 * AUTH, SELECT (if needed), CLIENT SETNAME and INFO go out together and their replies are looked at
 * one by one. A server that cannot keep locks (it evicts keys), or that is not the only one to grant
 * them (a node of a cluster, a replica that takes writes), is refused here, each time we connect: it
 * may be another one than before. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stores/redis/link.h"

#include "base/banned.h"

#define UPTIME_MAX_S 1000000000 /* 30 years */

/* INFO is lines of "name:value". A name counts at the beginning of a line only, and not as a part of a
 * longer one. */
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

enum step { AUTH, SELECT, SETNAME, INFO_SERVER, INFO_MEMORY, INFO_REPLICATION, STEPS };

static bool is_needed(const struct hf__redis_settings *set, int step)
{
    return (step != AUTH || set->account.password != NULL) && (step != SELECT || set->db != 0);
}

void hf__redis_login_ask(const struct hf__redis_settings *set, struct hf__redis_conn *c)
{
    char db[24];

    if (set->account.password != NULL && set->account.user != NULL)
        hf__redis_command(c, "AUTH", set->account.user, set->account.password, (char *)NULL);
    else if (set->account.password != NULL)
        hf__redis_command(c, "AUTH", set->account.password, (char *)NULL);
    snprintf(db, sizeof db, "%lld", (long long)set->db);
    if (is_needed(set, SELECT))
        hf__redis_command(c, "SELECT", db, (char *)NULL);
    hf__redis_command(c, "CLIENT", "SETNAME", set->client_name, (char *)NULL);
    hf__redis_command(c, "INFO", "server", (char *)NULL);
    hf__redis_command(c, "INFO", "memory", (char *)NULL);
    hf__redis_command(c, "INFO", "replication", (char *)NULL);
}

/* The server's own words are not repeated: some repeat the password. */
static int check_auth(const redisReply *reply, hf_error *err)
{
    if (reply->type != REDIS_REPLY_ERROR)
        return 0;
    if (hf__redis_is_error(reply, "LOADING") || hf__redis_is_error(reply, "ERR max number"))
        return hf__redis_error(reply, err);
    if (hf__redis_is_error(reply, "WRONGPASS") || hf__redis_is_error(reply, "ERR invalid password"))
        return hf__fail(err, HF_DENIED, "the server refuses this user or password (WRONGPASS)");
    return hf__fail(
        err, HF_DENIED,
        "the server does not take a password like this; is one set there, for this user?");
}

/* Who grants beside another server that grants as well does not exclude anybody. */
static const char *refusal_of(const char *info)
{
    char mode[16], role[24];

    hf__redis_info_word(info, "redis_mode", mode, sizeof mode);
    if (mode[0] == '\0') /* Valkey has a word of its own */
        hf__redis_info_word(info, "server_mode", mode, sizeof mode);
    hf__redis_info_word(info, "role", role, sizeof role);
    if (strcmp(mode, "cluster") == 0)
        return "this is a node of a Redis Cluster, which is not supported; use a single server";
    if (strcmp(role, "active-replica") == 0)
        return "this is an active-replica of KeyDB: the server on the other side grants the same "
               "locks; use a single master";
    if (strcmp(role, "slave") == 0 && strncmp(info_value(info, "slave_read_only"), "0", 1) == 0)
        return "this is a writable replica: its master does not know what is locked here; name the "
               "master";
    return NULL;
}

/* INFO comes in sections; each tells some of it. */
static void read_facts(struct hf__redis_facts *f, const char *info)
{
    const char *refusal = refusal_of(info);
    char name[16];

    f->known = true;
    if (refusal != NULL)
        f->refusal = refusal;
    if (f->version[0] == '\0') {
        hf__redis_info_word(info, "server_name", name, sizeof name);
        bool valkey = strcmp(name, "valkey") == 0;
        snprintf(f->product, sizeof f->product, "%s", valkey ? "Valkey" : "Redis");
        hf__redis_info_word(info, valkey ? "valkey_version" : "redis_version", f->version,
                            sizeof f->version);
        f->major = hf__redis_info_number(info, "redis_version"); /* which it is compatible with */
    }
    if (f->policy[0] == '\0')
        hf__redis_info_word(info, "maxmemory_policy", f->policy, sizeof f->policy);
    if (f->run_id[0] == '\0')
        hf__redis_info_word(info, "run_id", f->run_id, sizeof f->run_id);
    if (f->uptime_s == 0)
        f->uptime_s = hf__redis_info_number(info, "uptime_in_seconds") % UPTIME_MAX_S;
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

int hf__redis_login_step(const struct hf__redis_settings *set, struct hf__redis_conn *c, int *step,
                         const redisReply *reply, hf_error *err)
{
    const struct hf__redis_facts *f = &c->facts;
    int r = 0;

    if (*step == AUTH) {
        r = check_auth(reply, err);
    } else if (*step == SELECT && hf__redis_is_error(reply, "ERR DB index")) {
        r = hf__fail(err, HF_INVALID, "the server has no database %lld", (long long)set->db);
    } else if (*step == SETNAME) {
        /* Only for people who look, so it need not be allowed; but it may be the first word. */
        r = hf__redis_is_error(reply, "ERR max number") ? hf__redis_error(reply, err) : 0;
    } else if (*step == SELECT) {
        r = hf__redis_error(reply, err);
    } else if (reply->type == REDIS_REPLY_STRING) {
        read_facts(&c->facts, reply->str);
    } else if (!hf__redis_is_error(reply, "NOPERM") && !hf__redis_is_error(reply, "ERR unknown")) {
        /* Who may not ask, and a proxy that cannot, knows less but may lock. */
        r = hf__redis_error(reply, err);
    }
    *step = needed_from(set, *step + 1);
    if (r != 0 || *step != STEPS)
        return r;
    *step = HF__REDIS_LOGGED_IN;
    if (f->refusal != NULL)
        return hf__fail(err, HF_UNSUPPORTED, "%s", f->refusal);
    if (f->policy[0] != '\0' && strcmp(f->policy, "noeviction") != 0 && !set->allow_evicting)
        return hf__fail(
            err, HF_DENIED,
            "the server may evict locks (maxmemory-policy is %s): set it to noeviction, "
            "or accept that with force=evicting",
            f->policy);
    return 0;
}
