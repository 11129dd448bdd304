/* What `holdfast doctor` says about a live cluster. It reads and changes nothing. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/report.h"
#include "stores/cassandra/cassandra.h"

#include "base/banned.h"

struct report {
    struct hf__report to; /* first: a report is one of these too */
    struct hf__cs *s;
    int64_t deadline_ns;
    struct hf__cs_row row;
    hf_error err;
};

static void as_text(struct hf__cql_bytes bytes, char *to, size_t size)
{
    hf__printable((const char *)bytes.data, bytes.len, to, size);
}

/* Nodes -------------------------------------------------------------------- */

/* How far a node's clock is from ours, to half a round trip. */
struct clock {
    int64_t offset_ms, doubt_ms;
};

static void look_at_version(const struct report *r, const char *node, const char *version,
                            const char *data_center)
{
    int major = version[0] >= '0' && version[0] <= '9' ? version[0] - '0' : 0;

    if (major < 4)
        hf__say(
            &r->to, HF__LEVEL_PROBLEM, "C1",
            "%s is Cassandra %s: SERIAL reads are not linearizable before 4.0 (CASSANDRA-12126)",
            node, version);
    else
        hf__say(&r->to, HF__LEVEL_FINE, "C1", "%s is Cassandra %s in data centre %s", node, version,
                data_center);
}

static bool look_at_node(const struct report *r, size_t index, struct clock *ret_clock)
{
    const struct hf_env *env = r->s->base.host->env;
    const char *node = hf__cql_node_name(r->s->cql, index);
    struct hf__cs_call call = {
        .query = HF__CS_QUERY_LOCAL, .prefer = (int)index + 1, .deadline_ns = r->deadline_ns};
    struct hf__cql_result result;
    char version[40], data_center[60];
    hf_error err = {0};
    int64_t clock_ms;

    hf__cs_ask(r->s, &call, &result, &err); /* connects; the next one is timed */
    hf__cql_result_clear(&result);
    int64_t sent_ns = hf__now_ns(r->to.env), wall_ms = (int64_t)(env->wall_us(env->ctx) / 1000);
    int code = hf__cs_ask(r->s, &call, &result, &err);
    int64_t took_ms = (hf__now_ns(r->to.env) - sent_ns) / HF__NS_PER_MS;
    if (code != 0 || result.node != (int)index + 1) {
        hf__say(&r->to, HF__LEVEL_WARNING, NULL, "%s does not answer%s%s", node,
                code != 0 ? ": " : "", err.text);
        hf__cql_result_clear(&result);
        return false;
    }
    bool told =
        hf__cql_next_row(&result) && hf__cql_get_bigint(hf__cql_column(&result, 3), &clock_ms);
    if (told) {
        as_text(hf__cql_column(&result, 0), version, sizeof version);
        as_text(hf__cql_column(&result, 1), data_center, sizeof data_center);
        look_at_version(r, node, version, data_center);
        *ret_clock = (struct clock){clock_ms - wall_ms - took_ms / 2, took_ms / 2 + 1};
    }
    hf__cql_result_clear(&result);
    return told;
}

static void look_at_nodes(const struct report *r)
{
    size_t count = hf__cql_node_count(r->s->cql), answered = 0;
    struct clock first = {0}, last = {0};

    for (size_t i = 0; i < count; i++) {
        struct clock c;
        if (!look_at_node(r, i, &c))
            continue;
        if (answered == 0 || c.offset_ms < first.offset_ms)
            first = c;
        if (answered == 0 || c.offset_ms > last.offset_ms)
            last = c;
        answered++;
    }
    if (answered < 2)
        return hf__say(&r->to, HF__LEVEL_NOTE, "C3",
                       "only one node could be asked: nothing is known of how far apart"
                       " their clocks are; name more of them in the URL");
    int64_t apart_ms = last.offset_ms - first.offset_ms, doubt_ms = first.doubt_ms + last.doubt_ms;
    if (apart_ms - doubt_ms > r->s->skew_ms)
        hf__say(&r->to, HF__LEVEL_PROBLEM, "C3",
                "the nodes' clocks are %" PRId64 " ms apart, more than clock_skew (%" PRId64
                " ms): a lease may be given away before its holder gives it up",
                apart_ms, r->s->skew_ms);
    else
        hf__say(&r->to, HF__LEVEL_FINE, "C3",
                "the nodes' clocks are %" PRId64 " ms apart, give or take %" PRId64
                "; clock_skew allows for %" PRId64 " ms",
                apart_ms, doubt_ms, r->s->skew_ms);
}

/* Settings ----------------------------------------------------------------- */

/* A line of cassandra.yaml, as the node that answers has it; "" if it does not tell (before
 * 4.0). */
static void read_setting(const struct report *r, const char *name, char *to, size_t size)
{
    struct hf__cql_value value = hf__cql_text(name);
    struct hf__cs_call call = {.query = HF__CS_QUERY_SETTINGS,
                               .values = &value,
                               .value_count = 1,
                               .deadline_ns = r->deadline_ns};
    struct hf__cql_result result;

    to[0] = '\0';
    if (hf__cs_ask(r->s, &call, &result, NULL) == 0 && hf__cql_next_row(&result))
        as_text(hf__cql_column(&result, 0), to, size);
    hf__cql_result_clear(&result);
}

static void look_at_settings(const struct report *r)
{
    char variant[20], sync[20];

    read_setting(r, "paxos_variant", variant, sizeof variant);
    read_setting(r, "commitlog_sync", sync, sizeof sync);
    if (strcmp(variant, "v2") == 0)
        hf__say(&r->to, HF__LEVEL_FINE, "C1", "paxos_variant is v2");
    else
        hf__say(&r->to, HF__LEVEL_WARNING, "C1",
                "paxos_variant is %s: v2 (since 4.1) stays linearizable while nodes join and leave,"
                " and reads and swaps in fewer round trips; see cassandra.yaml",
                variant[0] != '\0' ? variant : "not known");
    if (strcmp(sync, "periodic") == 0)
        hf__say(
            &r->to, HF__LEVEL_NOTE, "C3",
            "commitlog_sync is periodic: if a majority of the replicas crashes at once, they"
            " forget what they took last, also locks that never expire; batch and group do not");
}

/* The sum of the factors in a map like {'class': ..., 'dc1': '3'}; 0 if there are none. */
static int64_t replicas(struct hf__cql_bytes map)
{
    struct hf__cql_reader m = hf__cql_reader_of(map);
    size_t pairs = hf__cql_take_count(&m, 8);
    int64_t sum = 0;

    for (size_t i = 0; i < pairs; i++) {
        struct hf__cql_bytes key = hf__cql_take_bytes(&m), value = hf__cql_take_bytes(&m);
        char text[12] = "";
        if (m.failed || (key.len == 5 && memcmp(key.data, "class", 5) == 0))
            continue;
        if (value.len < sizeof text && value.len > 0)
            memcpy(text, value.data, value.len);
        sum += strtol(text, NULL, 10);
    }
    return sum;
}

static void look_at_replication(const struct report *r)
{
    struct hf__cql_value name = hf__cql_text(r->s->keyspace);
    struct hf__cs_call call = {.query = HF__CS_QUERY_KEYSPACE,
                               .values = &name,
                               .value_count = 1,
                               .deadline_ns = r->deadline_ns};
    struct hf__cql_result result;
    int64_t count = -1;

    if (hf__cs_ask(r->s, &call, &result, NULL) == 0 && hf__cql_next_row(&result))
        count = replicas(hf__cql_column(&result, 0));
    hf__cql_result_clear(&result);
    if (count < 0)
        hf__say(&r->to, HF__LEVEL_PROBLEM, NULL, "there is no keyspace '%s'; run `holdfast setup`",
                r->s->keyspace);
    else if (count < 3)
        hf__say(&r->to, HF__LEVEL_WARNING, "C1",
                "keyspace '%s' has %" PRId64 " replica%s: no lock can be had while %s down",
                r->s->keyspace, count, count == 1 ? "" : "s",
                count == 1 ? "its node is" : "one of their nodes is");
    else
        hf__say(&r->to, HF__LEVEL_FINE, "C1",
                "keyspace '%s' has %" PRId64 " replicas: %" PRId64 " may be down", r->s->keyspace,
                count, (count - 1) / 2);
}

/* Locks -------------------------------------------------------------------- */

static int read_serially(void *ctx)
{
    static const char name[] = "holdfast doctor";
    struct report *r = ctx;

    struct hf__cs_lock lock = {r->s, name, sizeof name - 1, r->deadline_ns, &r->err};

    return hf__cs_read(&lock, 0, &r->row);
}

static void look_at_serial(struct report *r)
{
    if (read_serially(r) != 0) {
        hf__say(&r->to, HF__LEVEL_PROBLEM, "C1", "a linearizable read (SERIAL) fails: %s",
                r->err.text);
    } else {
        hf__say(&r->to, HF__LEVEL_FINE, "C1", "linearizable reads (SERIAL) work");
        hf__say_latency(&r->to, read_serially, r);
    }
    hf__cs_row_clear(&r->row);
}

int hf__cs_diagnose(struct hf__store *store, hf_finding_callback *found, void *arg,
                    int64_t deadline_ns, hf_error *err)
{
    struct report r = {.to = {.found = found, .arg = arg, .env = store->host->env},
                       .s = (struct hf__cs *)store,
                       .deadline_ns = deadline_ns};
    struct hf__cs_call call = {.query = HF__CS_QUERY_LOCAL, .deadline_ns = deadline_ns};
    struct hf__cql_result result;
    int code = hf__cs_ask(r.s, &call, &result, err);

    hf__cql_result_clear(&result);
    if (code != 0)
        return code;
    look_at_nodes(&r);
    look_at_settings(&r);
    look_at_replication(&r);
    look_at_serial(&r);
    if (r.s->simple)
        hf__say(&r.to, HF__LEVEL_NOTE, "C5", "layout=simple: no queue, no tokens, no lock-delay");
    else
        hf__say_gc(&r.to);
    return 0;
}
