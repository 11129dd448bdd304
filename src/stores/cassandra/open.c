/* From the URL to a store. A cluster that cannot be reached is no error yet: it may come. */
#include <stdio.h>
#include <stdlib.h>

#include "base/backoff.h"
#include "stores/cassandra/cassandra.h"

#include "base/banned.h"

const struct hf__option hf__cs_options[] = {
    HF__CQL_OPTIONS,
    {"clock_skew", HF__OPTION_DURATION, "100ms", 0, HF__CS_SKEW_MAX,
     "how far apart the clocks of two nodes may be: leases are kept this much longer than holders "
     "count on"},
    {"replication", HF__OPTION_TEXT, NULL, 0, 0,
     "for setup: replicas per data centre, as 3 or dc1:3,dc2:3; there is no default"},
    {"layout", HF__OPTION_TEXT, "doorman", 0, 0,
     "doorman, or simple: a plain mutex in the published table leases(name, owner, value)"},
    {0},
};

/* What follows "FROM" and the like is the keyspace, put in when the store is opened. */
#define CONDITIONS                                                                               \
    " IF version = ? AND generation != null AND holders != null AND waiters != null AND retired" \
    " != null"
static const struct {
    enum hf__cql_kind kind;
    const char *before, *after;
} templates[HF__CS_QUERIES] = {
    [HF__CS_QUERY_READ] =
        {HF__CQL_KIND_READ,
         "SELECT count(*), currentTimestamp(), version, generation, holders, waiters,"
         " retired FROM ",
         ".locks WHERE name = ?"},
    [HF__CS_QUERY_CREATE] = {HF__CQL_KIND_SWAP, "INSERT INTO ",
                             ".locks (name, label, version, generation, holders, waiters, retired,"
                             " touched) VALUES (?, ?, ?, ?, ?, ?, ?, ?) IF NOT EXISTS"},
    [HF__CS_QUERY_SWAP] = {HF__CQL_KIND_SWAP, "UPDATE ",
                           ".locks SET version = ?, generation = ?, holders = ?, waiters = ?,"
                           " retired = ?, touched = ? WHERE name = ?" CONDITIONS},
    [HF__CS_QUERY_PURGE] = {HF__CQL_KIND_SWAP, "DELETE FROM ",
                            ".locks WHERE name = ? IF version = ?"},
    [HF__CS_QUERY_SCAN] =
        {HF__CQL_KIND_READ,
         "SELECT name, currentTimestamp(), version, touched, holders, waiters, retired"
         " FROM ",
         ".locks"},
    [HF__CS_QUERY_HEARTBEAT] =
        {HF__CQL_KIND_WRITE, "INSERT INTO ",
         ".signs (name, ticket, seen) VALUES (?, ?, currentTimestamp()) USING TTL ?"},
    [HF__CS_QUERY_READ_HEARTBEATS] = {HF__CQL_KIND_READ, "SELECT ticket, seen FROM ",
                                      ".signs WHERE name = ? AND ticket IN ?"},
    [HF__CS_QUERY_TAKE_LEASE] = {HF__CQL_KIND_SWAP, "INSERT INTO ",
                                 ".leases (name, owner, value) VALUES (?, ?, ?) IF NOT EXISTS"
                                 " USING TTL ?"},
    [HF__CS_QUERY_KEEP_LEASE] = {HF__CQL_KIND_SWAP, "UPDATE ",
                                 ".leases USING TTL ? SET owner = ?, value = ? WHERE name = ?"
                                 " IF owner = ?"},
    [HF__CS_QUERY_DROP_LEASE] = {HF__CQL_KIND_SWAP, "DELETE FROM ",
                                 ".leases WHERE name = ? IF owner = ?"},
    [HF__CS_QUERY_READ_LEASE] = {HF__CQL_KIND_READ, "SELECT name, owner, value, TTL(owner) FROM ",
                                 ".leases WHERE name = ?"},
    [HF__CS_QUERY_SCAN_LEASES] = {HF__CQL_KIND_READ, "SELECT name, owner, value, TTL(owner) FROM ",
                                  ".leases"},
    [HF__CS_QUERY_LOCAL] =
        {HF__CQL_KIND_READ,
         "SELECT release_version, data_center, schema_version, currentTimestamp()"
         " FROM system.local",
         NULL},
    [HF__CS_QUERY_PEERS] = {HF__CQL_KIND_READ, "SELECT peer, schema_version FROM system.peers",
                            NULL},
    [HF__CS_QUERY_SETTINGS] = {HF__CQL_KIND_READ,
                               "SELECT value FROM system_views.settings WHERE name = ?", NULL},
    [HF__CS_QUERY_KEYSPACE] =
        {HF__CQL_KIND_READ,
         "SELECT replication FROM system_schema.keyspaces WHERE keyspace_name = ?", NULL},
};

static bool make_statements(struct hf__cs *s)
{
    for (size_t i = 0; i < HF__CS_QUERIES; i++) {
        const char *before = templates[i].before, *after = templates[i].after;
        char *text = NULL;
        if (before == NULL)
            continue;
        if (asprintf(&text, "%s%s%s", before, after != NULL ? s->keyspace : "",
                     after != NULL ? after : "") < 0)
            return false;
        s->statements[i] = (struct hf__cql_statement){templates[i].kind, text};
    }
    return true;
}

int hf__cs_keyspace(const struct hf__url *url, char keyspace[HF__CQL_KEYSPACE_MAX + 1],
                    hf_error *err)
{
    const char *name = url->path[0] == '/' ? url->path + 1 : url->path;

    if (*name == '\0')
        name = "holdfast";
    if (!hf__cql_is_name(name))
        return hf__fail(err, HF_INVALID,
                        "the path of the URL is the keyspace: a letter, then letters, digits and"
                        " '_', at most %d",
                        HF__CQL_KEYSPACE_MAX);
    memcpy(keyspace, name, strlen(name) + 1);
    return 0;
}

/* "3" or "dc1:3,dc2:3" as the options of NetworkTopologyStrategy. False: neither. */
static bool replication_options(const char *text, char *to, size_t size)
{
    size_t used = 0;

    for (const char *at = text;; at++) {
        size_t len = strcspn(at, ","), name_len = strcspn(at, ":,");
        const char *factor = name_len < len ? at + name_len + 1 : at;
        size_t digits = (size_t)(at + len - factor);
        if (digits == 0 || digits > 3 || strspn(factor, "0123456789") != digits ||
            factor[0] == '0' || (name_len < len && name_len == 0) ||
            strcspn(at, "'\\\"{}") < name_len)
            return false;
        int n = name_len < len ? snprintf(to + used, size - used, ", '%.*s': %.*s", (int)name_len,
                                          at, (int)digits, factor)
                               : snprintf(to + used, size - used, ", 'replication_factor': %.*s",
                                          (int)digits, factor);
        if (n < 0 || (size_t)n >= size - used)
            return false;
        used += (size_t)n;
        at += len;
        if (*at == '\0')
            return true;
    }
}

static int read_replication(struct hf__cs *s, const struct hf__url *url, hf_error *err)
{
    const char *text = hf__url_text(url, "replication");
    char options[HF__CS_REPLICATION_MAX];

    if (text == NULL)
        return 0;
    if (!replication_options(text, options, sizeof options))
        return hf__fail(err, HF_INVALID,
                        "replication is a number of replicas, as 3, or one for each data centre,"
                        " as dc1:3,dc2:3");
    s->replication = strdup(options);
    return s->replication != NULL ? 0 : hf__fail(err, HF_NO_MEMORY, NULL);
}

static int read_url(struct hf__cs *s, const struct hf__url *url, hf_error *err)
{
    const char *layout = hf__url_text(url, "layout");
    struct hf__cql_settings settings = {0};

    s->skew_ms = hf__url_number(url, "clock_skew");
    s->simple = strcmp(layout, "simple") == 0;
    if (!s->simple && strcmp(layout, "doorman") != 0)
        return hf__fail(err, HF_INVALID, "layout is doorman or simple, not '%s'", layout);
    int code = read_replication(s, url, err);
    if (code == 0)
        code = hf__cs_keyspace(url, s->keyspace, err);
    if (code == 0)
        code = hf__cql_settings_read(url, &settings, err);
    if (code == 0)
        code = hf__cql_open(&settings, s->base.host->env, &s->cql, err);
    else
        hf__cql_settings_clear(&settings);
    return code;
}

/* What the recipe of leases(name, owner, value) can do: no queue, no token, no delay. */
#define SIMPLE (HF_CAN_LEASE | HF_CAN_NEVER | HF_CAN_DETACH | HF_CAN_PROCESS | HF_CAN_PERSIST)

int hf__cs_open(const struct hf__url *url, const struct hf__host *host,
                struct hf__store **ret_store, hf_error *err)
{
    struct hf__cs *s = calloc(1, sizeof *s);

    if (s == NULL)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    s->base.host = host;
    s->base.type = &hf_store_type_v1;
    pthread_mutex_init(&s->mutex, NULL);
    int code = read_url(s, url, err);
    if (code == 0 && !make_statements(s))
        code = hf__fail(err, HF_NO_MEMORY, NULL);
    if (code == 0 && host->env->random(host->env->ctx, &s->jitter, sizeof s->jitter) != 0)
        code = hf__fail(err, HF_SYSTEM, "there is no randomness to be had");
    if (code != 0) {
        hf__cs_close(&s->base);
        return code;
    }
    s->jitter |= 1;
    s->base.capabilities = s->base.type->capabilities & (s->simple ? SIMPLE : ~0U);
    *ret_store = &s->base;
    return 0;
}

void hf__cs_close(struct hf__store *store)
{
    struct hf__cs *s = (struct hf__cs *)store;

    hf__cql_close(s->cql);
    for (size_t i = 0; i < HF__CS_QUERIES; i++)
        free((char *)s->statements[i].text);
    free(s->replication);
    pthread_mutex_destroy(&s->mutex);
    free(s);
}

uint64_t hf__cs_jitter(struct hf__cs *s, uint64_t below)
{
    pthread_mutex_lock(&s->mutex);
    uint64_t number = hf__jitter(&s->jitter, below);
    pthread_mutex_unlock(&s->mutex);
    return number;
}

static enum hf__cql_consistency level(enum hf__cs_query query)
{
    switch (query) {
    case HF__CS_QUERY_READ:
    case HF__CS_QUERY_READ_LEASE:
        return HF__CQL_CONSISTENCY_SERIAL;
    case HF__CS_QUERY_LOCAL:
    case HF__CS_QUERY_PEERS:
    case HF__CS_QUERY_SETTINGS:
    case HF__CS_QUERY_KEYSPACE:
        return HF__CQL_CONSISTENCY_ONE;
    default:
        return HF__CQL_CONSISTENCY_QUORUM;
    }
}

struct hf__cql_request hf__cs_request(const struct hf__cs *s, const struct hf__cs_call *call)
{
    return (struct hf__cql_request){.statement = &s->statements[call->query],
                                    .values = call->values,
                                    .value_count = call->value_count,
                                    .consistency = level(call->query),
                                    .serial = HF__CQL_CONSISTENCY_SERIAL,
                                    .page_size = call->page_size,
                                    .node = call->prefer,
                                    .deadline_ns = call->deadline_ns};
}

int hf__cs_ask(struct hf__cs *s, const struct hf__cs_call *call, struct hf__cql_result *ret_result,
               hf_error *err)
{
    struct hf__cql_request request = hf__cs_request(s, call);

    *ret_result = (struct hf__cql_result){0};
    int code = hf__cql_execute(s->cql, &request, ret_result, err);
    if (code == HF_DENIED && err != NULL && err->store_code == HF__CQL_CODE_INVALID)
        hf__wrap(err, code, "keyspace '%s'", s->keyspace);
    return code;
}
