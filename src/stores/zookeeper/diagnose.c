/* What `doctor` tells of an ensemble: its servers (members.c), which sessions it gives, by asking
 * for the shortest and the longest, who may read and delete, whether a quota is near, and how long
 * a write takes. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stores/zookeeper/doctor.h"

#include "base/banned.h"

#define LOCKS_MAX 1000 /* that are looked into: each costs a request */

void hf__zk_tell(const struct hf__zk_doctor *d, enum hf__level level, const char *clause,
                 const char *format, ...)
{
    char text[300];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    d->found((int)level, clause, text, d->arg);
}

/* What a server makes of a session's length it says only to one that asks for it: so both ends are
 * asked for, on connections of their own. */
static void tell_sessions(const struct hf__zk_doctor *d)
{
    int64_t shortest_ms = hf__zk_negotiate(d->zk, HF_TTL_MIN_MS, d->deadline_ns);
    int64_t longest_ms = hf__zk_negotiate(d->zk, HF_TTL_MAX_MS + HF_DELAY_MAX_MS, d->deadline_ns);

    if (shortest_ms == 0 || longest_ms == 0)
        return;
    hf__zk_tell(d, HF__LEVEL_FINE, "C3", "sessions last from %lld ms to %lld ms",
                (long long)shortest_ms, (long long)longest_ms);
    if (longest_ms < HF_TTL_DEFAULT_MS)
        hf__zk_tell(d, HF__LEVEL_PROBLEM, "C3",
                    "the default ttl of %d ms is refused: raise maxSessionTimeout",
                    HF_TTL_DEFAULT_MS);
    else
        hf__zk_tell(d, HF__LEVEL_NOTE, "C8", "ttl and lock-delay together may be %lld ms at most",
                    (long long)longest_ms);
    if (shortest_ms > 1000)
        hf__zk_tell(d, HF__LEVEL_NOTE, "C3",
                    "a dead holder is missed after %lld ms at the earliest",
                    (long long)shortest_ms);
}

/* Whether this user may write at all. A check goes through the leader like any write, and changes
 * nothing. */
static bool tell_latency(const struct hf__zk_doctor *d, struct hf__zk_session *s)
{
    const struct hf_env *env = d->zk->base.host->env;
    char path[HF__ZK_PATH_MAX];
    int64_t sum_us = 0;
    const int rounds = 5;
    int rc = hf__zk_make_break_directory(d->zk, s, d->deadline_ns);

    snprintf(path, sizeof path, "%s/%s", d->zk->prefix, HF__ZK_BREAK_DIRECTORY);
    for (int i = 0; rc == ZOK && i < rounds; i++) {
        zoo_op_t op;
        struct hf__zk_call *call = hf__zk_call_new();
        int64_t began_ns = hf__now_ns(env);
        if (call == NULL)
            return false;
        zoo_check_op_init(&op, path, -1);
        rc = hf__zk_multi(s, &op, 1, d->deadline_ns, call);
        sum_us += (hf__now_ns(env) - began_ns) / 1000;
        hf__zk_call_free(call);
    }
    if (rc == ZOK)
        hf__zk_tell(d, HF__LEVEL_FINE, NULL, "a write takes %lld us", (long long)(sum_us / rounds));
    else if (rc == ZNOAUTH)
        hf__zk_tell(d, HF__LEVEL_PROBLEM, "C2",
                    "this user may not write below %s: check user and password in the URL, and the "
                    "nodes' ACL",
                    d->zk->prefix);
    else
        hf__zk_tell(d, HF__LEVEL_PROBLEM, NULL, "a write is refused: %s", zerror(rc));
    return rc == ZOK;
}

/* Our own nodes are protected by their ACL. Where the directory above them is not, somebody else can
 * make the directory of a name before we do, and keep us out of it. */
static void tell_rights(const struct hf__zk_doctor *d, struct hf__zk_session *s)
{
    bool open = false;

    if (d->zk->acl != &ZOO_CREATOR_ALL_ACL) {
        hf__zk_tell(d, HF__LEVEL_WARNING, "C2",
                    "acl=world: whoever reaches the servers may delete any node and so break any "
                    "lock; give a user and a password in the URL instead");
        return;
    }
    hf__zk_tell(d, HF__LEVEL_FINE, "C2",
                "nodes belong to their creator: only this user may read or delete them");
    struct hf__zk_call *call = hf__zk_call_new();
    if (call != NULL && hf__zk_get_acl(s, d->zk->prefix, d->deadline_ns, call) == ZOK)
        open = (call->world & (ZOO_PERM_CREATE | ZOO_PERM_DELETE)) != 0;
    hf__zk_call_free(call);
    if (open)
        hf__zk_tell(d, HF__LEVEL_WARNING, "C2",
                    "%s was made by somebody else and is open to the world: others may take names "
                    "there before this user does",
                    d->zk->prefix);
}

/* One of the figures of "count=5,bytes=100=;byteHardLimit=-1"; -1: none. */
static long long figure_of(const struct hf__zk_call *node, const char *key)
{
    const char *at = node->text != NULL ? strstr(node->text, key) : NULL;

    return at != NULL ? strtoll(at + strlen(key), NULL, 10) : -1;
}

static void tell_use(const struct hf__zk_doctor *d, const char *path,
                     const struct hf__zk_call *limits, const struct hf__zk_call *stats)
{
    static const struct {
        const char *soft, *hard, *used, *what;
    } kinds[] = {{"count=", "countHardLimit=", "count=", "nodes"},
                 {"bytes=", "byteHardLimit=", "bytes=", "bytes"}};

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        long long soft = figure_of(limits, kinds[i].soft), hard = figure_of(limits, kinds[i].hard);
        long long limit = hard > 0 ? hard : soft, used = figure_of(stats, kinds[i].used);
        if (limit <= 0)
            continue;
        bool near = used * 10 >= limit * 8;
        hf__zk_tell(d, near ? HF__LEVEL_WARNING : HF__LEVEL_FINE, near ? "C5" : NULL,
                    "the quota of %s: %lld of %lld %s are used%s", path, used, limit, kinds[i].what,
                    hard > 0 ? "; more is refused if the server enforces quotas" : "");
    }
}

/* A quota may be on the prefix or on any node above it. */
static bool tell_quota_of(const struct hf__zk_doctor *d, struct hf__zk_session *s, const char *path)
{
    char at[HF__ZK_PATH_MAX];
    struct hf__zk_call *limits = hf__zk_call_new(), *stats = hf__zk_call_new();
    int rc = limits != NULL && stats != NULL ? ZOK : ZSYSTEMERROR;

    snprintf(at, sizeof at, "/zookeeper/quota%s/zookeeper_limits", path);
    if (rc == ZOK)
        rc = hf__zk_get(s, at, d->deadline_ns, limits);
    snprintf(at, sizeof at, "/zookeeper/quota%s/zookeeper_stats", path);
    if (rc == ZOK)
        rc = hf__zk_get(s, at, d->deadline_ns, stats);
    if (rc == ZOK)
        tell_use(d, path, limits, stats);
    hf__zk_call_free(limits);
    hf__zk_call_free(stats);
    return rc == ZOK;
}

static void tell_quota(const struct hf__zk_doctor *d, struct hf__zk_session *s)
{
    char path[HF__ZK_PATH_MAX];
    bool found = false;

    snprintf(path, sizeof path, "%s", d->zk->prefix);
    for (char *end = path + strlen(path); end != NULL && end > path; end = strrchr(path, '/')) {
        *end = '\0';
        found |= path[0] != '\0' && tell_quota_of(d, s, path);
    }
    if (!found)
        hf__zk_tell(d, HF__LEVEL_FINE, NULL, "there is no quota on %s", d->zk->prefix);
}

/* A node of a client that does not see ours; one of ours with another layout heeds us as we do it. */
static bool is_blind(const struct hf__zk_doctor *d, struct hf__zk_session *s, const char *directory,
                     const char *name)
{
    char path[2 * HF__ZK_PATH_MAX];
    struct hf__zk_child c = hf__zk_child(name);
    struct hf__zk_call *node = hf__zk_call_new();
    struct hf__zk_details details = {0};

    if (node != NULL && c.sequential && hf__zk_blind(d->zk->layout, name) != NULL) {
        snprintf(path, sizeof path, "%s/%s", directory, name);
        if (hf__zk_get(s, path, d->deadline_ns, node) == ZOK)
            hf__zk_parse(node->text, node->text_len, &details);
    }
    hf__zk_call_free(node);
    return details.ttl_ms < 0;
}

static void tell_blind(const struct hf__zk_doctor *d, struct hf__zk_session *s)
{
    char directory[HF__ZK_PATH_MAX + 256];
    char name[HF_NAME_MAX];
    size_t len;
    struct hf__zk_call *locks = hf__zk_call_new();
    unsigned told = 0;

    if (locks == NULL || hf__zk_children(s, d->zk->prefix, true, d->deadline_ns, locks) != ZOK) {
        hf__zk_call_free(locks);
        return;
    }
    for (int i = 0; i < locks->name_count && i < LOCKS_MAX && told < 5; i++) {
        if (locks->names[i][0] == '%' && !hf__zk_unescape(locks->names[i], name, &len))
            continue; /* ours: what is below it is no bid */
        struct hf__zk_call *list = hf__zk_call_new();
        snprintf(directory, sizeof directory, "%s/%s", d->zk->prefix, locks->names[i]);
        int rc = list != NULL ? hf__zk_children(s, directory, false, d->deadline_ns, list)
                              : ZSYSTEMERROR;
        for (int j = 0; rc == ZOK && j < list->name_count; j++) {
            if (!is_blind(d, s, directory, list->names[j]))
                continue;
            hf__zk_tell(d, HF__LEVEL_WARNING, "C1", "%s is used by %s: it may enter beside us",
                        directory, hf__zk_blind(d->zk->layout, list->names[j]));
            told++;
            break;
        }
        hf__zk_call_free(list);
    }
    hf__zk_call_free(locks);
}

/* Those to holders that live go with them. */
static void tell_break_requests(const struct hf__zk_doctor *d, struct hf__zk_session *s)
{
    char path[HF__ZK_PATH_MAX];
    struct hf__zk_call *list = hf__zk_call_new();

    snprintf(path, sizeof path, "%s/%s", d->zk->prefix, HF__ZK_BREAK_DIRECTORY);
    if (list != NULL && hf__zk_children(s, path, false, d->deadline_ns, list) == ZOK &&
        list->name_count > 0)
        hf__zk_tell(d, HF__LEVEL_NOTE, NULL,
                    "%d requests to break a lock are there; those to holders that have died stay "
                    "until 'holdfast gc' removes them, a day later",
                    list->name_count);
    hf__zk_call_free(list);
}

int hf__zk_diagnose(struct hf__store *store, hf_finding_callback *found, void *arg,
                    int64_t deadline_ns, hf_error *err)
{
    struct hf__zk_doctor d = {
        .zk = (struct hf__zk *)store, .found = found, .arg = arg, .deadline_ns = deadline_ns};
    struct hf__zk_session *s;

    hf__zk_tell_servers(&d);
    int r = hf__zk_any_session(d.zk, deadline_ns, &s, err);
    if (r != 0)
        return r;
    hf__zk_tell_ensemble(&d, s);
    if (tell_latency(&d, s))
        tell_rights(&d, s);
    tell_quota(&d, s);
    tell_break_requests(&d, s);
    if (d.zk->fair)
        tell_blind(&d, s);
    hf__zk_unuse(s);
    tell_sessions(&d);
    if (!d.zk->fair)
        hf__zk_tell(&d, HF__LEVEL_NOTE, "C5",
                    "fair=no: no queue, and each release wakes all who wait");
    return 0;
}
