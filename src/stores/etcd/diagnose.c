/* What `holdfast doctor` says about a cluster. It asks every server of the URL and makes a few reads
 * each. What it writes, to see that it is called, hangs on a lease of its own and goes with it. */
#include <inttypes.h>
#include <stdio.h>

#include "base/report.h"
#include "stores/etcd/etcd.h"

#include "base/banned.h"

#define LATENCY_ROUNDS 8

enum { NOSPACE = 1, CORRUPT = 2 }; /* AlarmType */

struct report {
    struct hf__etcd *e;
    struct hf__report to;
    int64_t deadline_ns;        /* of the present question */
    size_t up, answers;         /* how many, and the number of the last of them */
    int down;                   /* why the last server that cannot be asked cannot */
    uint64_t leader;            /* by the first server that answered */
    struct hf__grpc_conn *conn; /* to the server that is looked at */
    struct hf__etcd_key probe;  /* one that is ours and never there */
};

struct version {
    int major, minor, patch;
};

/* Fixed in these versions; what was before has it. From etcd's change log. */
static const struct bug {
    struct version fixed[2];
    int level;
    const char *clause, *text;
} bugs[] = {
    {{{3, 4, 31}, {3, 5, 13}},
     HF__LEVEL_WARNING,
     "C3",
     "a slow former leader may revoke leases that are alive (fixed in 3.4.31 and 3.5.13): renewals "
     "read the key too, but a lock can be lost before its time"},
    {{{3, 4, 38}, {3, 5, 23}},
     HF__LEVEL_NOTE,
     "C3",
     "a revoked lease may be answered as renewed (fixed in 3.4.38 and 3.5.23); holdfast reads the "
     "key with every renewal"},
    {{{3, 4, 42}, {3, 5, 0}},
     HF__LEVEL_NOTE,
     "C1",
     "a server that was paused may answer with old data (fixed in 3.4.42); what grants is always a "
     "transaction, which is not affected"},
};

static bool is_before(struct version v, struct version fixed)
{
    return v.major == fixed.major && v.minor == fixed.minor && v.patch < fixed.patch;
}

static void look_at_version(const struct report *r, const char *where, const char *text)
{
    struct version v = {0};

    if (sscanf(text, "%d.%d.%d", &v.major, &v.minor, &v.patch) != 3) {
        hf__say(&r->to, HF__LEVEL_WARNING, NULL, "%s does not say its version", where);
        return;
    }
    if (v.major < 3 || (v.major == 3 && v.minor < 4))
        hf__say(&r->to, HF__LEVEL_PROBLEM, "C1", "%s is version %s: 3.4 or later is needed", where,
                text);
    for (size_t i = 0; i < sizeof bugs / sizeof bugs[0]; i++) {
        if (is_before(v, bugs[i].fixed[0]) || is_before(v, bugs[i].fixed[1]))
            hf__say(&r->to, bugs[i].level, bugs[i].clause, "%s (%s): %s", where, text,
                    bugs[i].text);
    }
}

static int64_t latency_us(const struct report *r, size_t endpoint)
{
    int64_t best_ns = INT64_MAX;

    for (int i = 0; i < LATENCY_ROUNDS; i++) {
        struct hf__etcd_txn t = {0};
        struct hf__buffer answer = {0};
        int64_t before_ns = hf__now_ns(r->e->base.host->env);
        hf__etcd_get(&t, &r->probe);
        struct hf__etcd_request q = {.path = "/etcdserverpb.KV/Txn",
                                     .body = hf__etcd_written(&t),
                                     .deadline_ns = r->deadline_ns};
        int code = hf__etcd_call_on(r->e, r->conn, endpoint, q, &answer, NULL);
        int64_t took_ns = hf__now_ns(r->e->base.host->env) - before_ns;
        hf__buffer_clear(&answer);
        if (code == 0 && took_ns < best_ns)
            best_ns = took_ns;
    }
    return best_ns == INT64_MAX ? -1 : best_ns / 1000;
}

static void cannot_be_asked(struct report *r, const hf_error *err)
{
    r->down = err->code;
    hf__say(&r->to, err->code == HF_DENIED ? HF__LEVEL_PROBLEM : HF__LEVEL_WARNING, "C6", "%s",
            err->text);
}

/* Since 3.6 only root may ask for the status; what locks need may be allowed all the same. */
static void look_at_refusal(struct report *r, size_t endpoint, const hf_error *err)
{
    int64_t us = err->code == HF_DENIED ? latency_us(r, endpoint) : -1;

    if (us < 0) {
        cannot_be_asked(r, err);
        return;
    }
    r->up++;
    r->answers = endpoint;
    hf__say(&r->to, HF__LEVEL_NOTE, NULL,
            "%s: this user may not ask for its version and its leader; a read takes %" PRId64 " us",
            r->e->set.endpoints[endpoint].url, us);
}

struct status {
    char version[40];
    uint64_t size, leader;
};

static struct status read_status(const struct hf__buffer *answer)
{
    struct status status = {.version = ""};
    struct hf__proto_field f;
    struct hf__slice message = {"", 0};

    hf__etcd_message(answer, &message, NULL);
    struct hf__proto_reader r = hf__proto_reader_of(message);
    while (hf__proto_next(&r, &f)) {
        if (f.number == 2)
            hf__printable(f.bytes.data, f.bytes.len, status.version, sizeof status.version);
        else if (f.number == 3)
            status.size = f.value;
        else if (f.number == 4)
            status.leader = f.value;
    }
    return status;
}

static void look_at_status(struct report *r, size_t endpoint, const struct status *s)
{
    const char *where = r->e->set.endpoints[endpoint].url;

    r->up++;
    r->answers = endpoint;
    look_at_version(r, where, s->version);
    if (s->leader == 0)
        hf__say(&r->to, HF__LEVEL_PROBLEM, "C1", "%s has no leader: it can neither give nor renew",
                where);
    else if (r->leader != 0 && s->leader != r->leader)
        hf__say(&r->to, HF__LEVEL_WARNING, "C1",
                "%s follows another leader than the others, for now", where);
    if (r->leader == 0)
        r->leader = s->leader;
    int64_t us = latency_us(r, endpoint);
    hf__say(&r->to, HF__LEVEL_FINE, NULL, "%s: etcd %s, %.1f MB, a read takes %" PRId64 " us",
            where, s->version[0] != '\0' ? s->version : "?", (double)s->size / 1048576, us);
}

static void look_at_server(struct report *r, size_t endpoint)
{
    struct hf__buffer answer = {0};
    hf_error err;
    struct hf__etcd_request q = {.path = "/etcdserverpb.Maintenance/Status",
                                 .body = hf__etcd_empty_request(),
                                 .deadline_ns = r->deadline_ns};

    if (hf__etcd_dial(r->e, endpoint, r->deadline_ns, &r->conn, &err) < 0) {
        hf__buffer_clear(&q.body);
        cannot_be_asked(r, &err);
        return;
    }
    if (hf__etcd_call_on(r->e, r->conn, endpoint, q, &answer, &err) < 0) {
        look_at_refusal(r, endpoint, &err);
    } else {
        struct status status = read_status(&answer);
        look_at_status(r, endpoint, &status);
    }
    hf__buffer_clear(&answer);
    hf__grpc_unref(r->conn);
    r->conn = NULL;
}

struct member {
    uint64_t id;
    struct hf__slice name;
    bool learns;
};

static struct member read_member(struct hf__slice message)
{
    struct member m = {.name = {"?", 1}};
    struct hf__proto_reader r = hf__proto_reader_of(message);
    struct hf__proto_field f;

    while (hf__proto_next(&r, &f)) {
        if (f.number == 1)
            m.id = f.value;
        else if (f.number == 2)
            m.name = f.bytes;
        else if (f.number == 5)
            m.learns = f.value != 0;
    }
    return m;
}

static int look_at_members(struct report *r, hf_error *err)
{
    struct hf__buffer answer = {0};
    struct hf__slice message = {"", 0};
    struct hf__proto_field f;
    size_t voters = 0;
    char shown[100];
    struct hf__etcd_request q = {.path = "/etcdserverpb.Cluster/MemberList",
                                 .body = hf__etcd_empty_request(),
                                 .deadline_ns = r->deadline_ns};
    int code = hf__etcd_call(r->e, q, &answer, err);

    if (code == 0)
        code = hf__etcd_message(&answer, &message, err);
    struct hf__proto_reader list = hf__proto_reader_of(message);
    while (code == 0 && hf__proto_next(&list, &f)) {
        if (f.number != 2 || !f.is_bytes)
            continue;
        struct member m = read_member(f.bytes);
        voters += !m.learns;
        if (m.id == r->leader)
            hf__say(&r->to, HF__LEVEL_FINE, "C1", "the leader is %s",
                    hf__printable(m.name.data, m.name.len, shown, sizeof shown));
    }
    hf__buffer_clear(&answer);
    if (code < 0)
        return code;
    hf__say(&r->to, voters >= 3 ? HF__LEVEL_FINE : HF__LEVEL_NOTE, "C1",
            "%zu voting member%s, %zu of the URL's %zu answer%s", voters, voters == 1 ? "" : "s",
            r->up, r->e->set.endpoint_count,
            voters >= 3 ? "" : ": the locks are gone if this machine is");
    if (voters % 2 == 0)
        hf__say(&r->to, HF__LEVEL_NOTE, "C1",
                "an even number of members stands no more failures than one less");
    return 0;
}

static void tell_alarm(const struct report *r, struct hf__slice message)
{
    struct hf__proto_reader fields = hf__proto_reader_of(message);
    struct hf__proto_field f;
    uint64_t kind = 0;

    while (hf__proto_next(&fields, &f)) {
        if (f.number == 2)
            kind = f.value;
    }
    hf__say(&r->to, HF__LEVEL_PROBLEM, "C1", "alarm %s: %s",
            kind == NOSPACE   ? "NOSPACE"
            : kind == CORRUPT ? "CORRUPT"
                              : "?",
            kind == NOSPACE
                ? "the quota is used up, no lock can be taken; compact, defragment and disarm"
                : "see etcdctl alarm list");
}

static void look_at_alarms(const struct report *r)
{
    struct hf__buffer answer = {0};
    struct hf__slice message = {"", 0};
    struct hf__proto_field f;
    hf_error err;
    size_t count = 0;
    struct hf__etcd_request q = {.path = "/etcdserverpb.Maintenance/Alarm",
                                 .body = hf__etcd_empty_request(), /* to get them */
                                 .deadline_ns = r->deadline_ns};

    if (hf__etcd_call(r->e, q, &answer, &err) < 0 ||
        hf__etcd_message(&answer, &message, &err) < 0) {
        hf__say(&r->to, HF__LEVEL_NOTE, NULL, "alarms cannot be read: %s", err.text);
        hf__buffer_clear(&answer);
        return;
    }
    struct hf__proto_reader list = hf__proto_reader_of(message);
    while (hf__proto_next(&list, &f)) {
        if (f.number == 2 && f.is_bytes) {
            tell_alarm(r, f.bytes);
            count++;
        }
    }
    if (count == 0)
        hf__say(&r->to, HF__LEVEL_FINE, NULL, "no alarm is raised");
    hf__buffer_clear(&answer);
}

/* The shortest lease follows from the election timeout; the server raises what is below it. */
static void look_at_leases(const struct report *r)
{
    int64_t lease = 0, least_s = 0;
    hf_error err;

    if (hf__etcd_lease_new(r->e, 1, r->deadline_ns, &lease, &least_s, &err) < 0) {
        hf__say(&r->to, HF__LEVEL_PROBLEM, "C3", "no lease can be had: %s", err.text);
        return;
    }
    hf__etcd_lease_revoke(r->e, lease, r->deadline_ns, NULL);
    hf__say(&r->to, HF__LEVEL_FINE, "C3",
            "the shortest lease is %" PRId64
            " s: a shorter ttl ends in time for its holder, and opens "
            "for others after %" PRId64 " s; after a change of the leader every lease starts anew",
            least_s, least_s);
}

/* A transaction that writes under a condition that is never true: rights are looked at before. */
static void look_at_rights(const struct report *r)
{
    struct hf__etcd_txn t = {0};
    struct hf__etcd_answer answer;
    hf_error err;

    hf__etcd_compare_above(&t, &r->probe, NULL, INT64_MAX);
    hf__etcd_put(&t, &r->probe, "", 0);
    if (hf__etcd_commit(r->e, &t, r->deadline_ns, &answer, &err) == 0)
        hf__say(&r->to, HF__LEVEL_FINE, NULL, "this user may read and write below the prefix");
    else
        hf__say(&r->to, HF__LEVEL_PROBLEM, "C1", "this user may not write below the prefix: %s",
                err.text);
    hf__etcd_answer_clear(&answer);
}

/* A change, and how long it takes until the watch has told of it. */
static void look_at_watch(const struct report *r)
{
    hf_error err = {0};
    int64_t us = hf__etcd_try_watch(r->e, r->answers, r->deadline_ns, &err);

    if (us < 0)
        hf__say(&r->to, HF__LEVEL_PROBLEM, "C12",
                "no watch has told of a change, so waiters only ask: %s", err.text);
    else
        hf__say(&r->to, HF__LEVEL_FINE, "C12", "a change was told by a watch after %" PRId64 " us",
                us);
}

static void look_at_security(const struct report *r)
{
    const struct hf__etcd_settings *set = &r->e->set;

    if (set->tls_insecure)
        hf__say(&r->to, HF__LEVEL_WARNING, NULL, "tls=insecure: anybody may pose as the servers");
    if (set->account.user == NULL && !set->has_certificate)
        hf__say(
            &r->to, HF__LEVEL_NOTE, NULL,
            "no user and no certificate: unless the cluster asks for one, whoever reaches it may "
            "forge locks");
}

int hf__etcd_diagnose(struct hf__store *store, hf_finding_callback *found, void *arg,
                      int64_t deadline_ns, hf_error *err)
{
    struct report r = {.e = (struct hf__etcd *)store,
                       .to = {.found = found, .arg = arg, .env = store->host->env},
                       .deadline_ns = deadline_ns};

    hf__etcd_mark_key(r.e, HF__ETCD_KEY_INSIDE, (struct hf__etcd_name){"", 0}, 0, &r.probe);
    /* One that hangs leaves time for the others, and for what comes after them. */
    for (size_t i = 0, left = r.e->set.endpoint_count; left > 0; i++, left--) {
        int64_t now_ns = hf__now_ns(r.e->base.host->env);
        r.deadline_ns = now_ns + (deadline_ns - now_ns) / (int64_t)(left + 1);
        look_at_server(&r, i);
    }
    r.deadline_ns = deadline_ns;
    if (r.up == 0)
        return hf__fail(err, r.down, "none of the URL's servers can be asked");
    int code = look_at_members(&r, err);
    if (code < 0)
        return code;
    look_at_alarms(&r);
    look_at_leases(&r);
    look_at_rights(&r);
    look_at_watch(&r);
    look_at_security(&r);
    hf__say(&r.to, HF__LEVEL_NOTE, "C1",
            "limits are not supported; a lock-delay and a ttl are rounded up to whole seconds");
    return 0;
}
