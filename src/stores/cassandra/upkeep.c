/* Creating keyspace and tables, and removing what has been idle for long.
 *
 * A lock's row is kept for its generation and its version. Without it the next ones are taken from
 * the clock alone, which is above them as long as the clocks were not put back by more than
 * `retain`. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "stores/cassandra/cassandra.h"

#include "base/banned.h"

#define AGREE_MS 50
#define PAGE     100

#define STANDS     "holdfast" /* for the keyspace, in the ddl */
#define STANDS_LEN (sizeof STANDS - 1)

/* Setup -------------------------------------------------------------------- */

static int run(struct hf__cs *s, const char *text, int64_t deadline_ns, hf_error *err)
{
    struct hf__cql_statement statement = {HF__CQL_KIND_SCHEMA, text};
    struct hf__cql_request request = {.statement = &statement,
                                      .consistency = HF__CQL_CONSISTENCY_QUORUM,
                                      .deadline_ns = deadline_ns};
    struct hf__cql_result result = {0};
    int code = hf__cql_execute(s->cql, &request, &result, err);

    hf__cql_result_clear(&result);
    return code;
}

static int has_keyspace(struct hf__cs *s, int64_t deadline_ns, bool *ret, hf_error *err)
{
    char lower[sizeof s->keyspace];
    struct hf__cql_result result;

    /* Names without quotes are lower case to the server. */
    for (size_t i = 0; i < sizeof lower; i++) {
        char c = s->keyspace[i];
        lower[i] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
    }
    struct hf__cql_value value = hf__cql_text(lower);
    struct hf__cs_call call = {.query = HF__CS_QUERY_KEYSPACE,
                               .values = &value,
                               .value_count = 1,
                               .deadline_ns = deadline_ns};
    int code = hf__cs_ask(s, &call, &result, err);
    if (code != 0)
        return code;
    *ret = result.row_count > 0;
    hf__cql_result_clear(&result);
    return 0;
}

static int make_keyspace(struct hf__cs *s, int64_t deadline_ns, hf_error *err)
{
    char text[HF__CS_REPLICATION_MAX + 200];
    bool there;
    int code = has_keyspace(s, deadline_ns, &there, err);

    if (code != 0 || there)
        return code;
    if (s->replication == NULL)
        return hf__fail(err, HF_INVALID,
                        "there is no keyspace '%s': say how it is to be replicated, with"
                        " replication=3 or replication=dc1:3,dc2:3 in the URL",
                        s->keyspace);
    snprintf(text, sizeof text,
             "CREATE KEYSPACE IF NOT EXISTS %s WITH replication = {'class':"
             " 'NetworkTopologyStrategy'%s}",
             s->keyspace, s->replication);
    return run(s, text, deadline_ns, err);
}

/* Whether the word "holdfast" at `i` stands for the keyspace: "holdfast.locks", "KEYSPACE
 * holdfast". */
static bool stands_for_keyspace(const char *from, size_t i, size_t len)
{
    static const char before[] = "KEYSPACE ";
    size_t before_len = sizeof before - 1;

    if (len - i < STANDS_LEN || memcmp(from + i, STANDS, STANDS_LEN) != 0)
        return false;
    return (len - i > STANDS_LEN && from[i + STANDS_LEN] == '.') ||
           (i >= before_len && memcmp(from + i - before_len, before, before_len) == 0);
}

/* The text with the keyspace put in. NULL: no memory. */
static char *with_keyspace(const char *keyspace, const char *from, size_t len)
{
    char *text = malloc(len * (1 + HF__CQL_KEYSPACE_MAX / STANDS_LEN) + 1), *to = text;

    if (text == NULL)
        return NULL;
    for (size_t i = 0; i < len;) {
        if (stands_for_keyspace(from, i, len)) {
            memcpy(to, keyspace, strlen(keyspace));
            to += strlen(keyspace);
            i += STANDS_LEN;
        } else {
            *to++ = from[i++];
        }
    }
    *to = '\0';
    return text;
}

int hf__cs_ddl_of(const struct hf__url *url, char **ret_text, hf_error *err)
{
    char keyspace[HF__CQL_KEYSPACE_MAX + 1];
    int code = hf__cs_keyspace(url, keyspace, err);

    if (code != 0)
        return code;
    *ret_text = with_keyspace(keyspace, hf__cs_ddl, strlen(hf__cs_ddl));
    return *ret_text != NULL ? 0 : hf__fail(err, HF_NO_MEMORY, NULL);
}

static int make_tables(struct hf__cs *s, int64_t deadline_ns, hf_error *err)
{
    int code = 0;

    for (const char *at = hf__cs_ddl; code == 0;) {
        at += strspn(at, " \n");
        if (strncmp(at, "--", 2) == 0) {
            at += strcspn(at, "\n");
            continue;
        }
        if (*at == '\0')
            break;
        const char *end = strstr(at, ";\n");
        size_t len = end != NULL ? (size_t)(end - at) : strlen(at);
        char *text = with_keyspace(s->keyspace, at, len);
        code = text != NULL ? run(s, text, deadline_ns, err) : hf__fail(err, HF_NO_MEMORY, NULL);
        free(text);
        at += len + (end != NULL);
    }
    return code;
}

static bool same_schema(struct hf__cs *s, const unsigned char mine[16], int64_t deadline_ns)
{
    struct hf__cs_call call = {.query = HF__CS_QUERY_PEERS, .deadline_ns = deadline_ns};
    struct hf__cql_result result;
    unsigned char theirs[16];
    bool same = true;

    if (hf__cs_ask(s, &call, &result, NULL) != 0)
        return false;
    while (hf__cql_next_row(&result)) {
        if (hf__cql_get_uuid(hf__cql_column(&result, 1), theirs))
            same = same && memcmp(mine, theirs, 16) == 0;
    }
    hf__cql_result_clear(&result);
    return same;
}

/* A node that has not heard of a table refuses to work on it. One that is down never hears of it
 * in time: after a while the others go ahead. */
static void await_agreement(struct hf__cs *s, int64_t deadline_ns)
{
    const struct timespec pause = {.tv_nsec = AGREE_MS * HF__NS_PER_MS};
    bool agreed = false;

    while (!agreed && hf__now_ns(s->base.host->env) < deadline_ns) {
        struct hf__cs_call call = {.query = HF__CS_QUERY_LOCAL, .deadline_ns = deadline_ns};
        struct hf__cql_result result;
        unsigned char mine[16];
        if (hf__cs_ask(s, &call, &result, NULL) == 0) {
            agreed = hf__cql_next_row(&result) &&
                     hf__cql_get_uuid(hf__cql_column(&result, 2), mine) &&
                     same_schema(s, mine, deadline_ns);
            hf__cql_result_clear(&result);
        }
        if (!agreed)
            nanosleep(&pause, NULL);
    }
}

static int setup(struct hf__cs *s, int64_t deadline_ns, hf_error *err)
{
    int code = make_keyspace(s, deadline_ns, err);

    if (code == 0)
        code = make_tables(s, deadline_ns, err);
    if (code == 0)
        await_agreement(s, deadline_ns);
    return code;
}

/* Purging ------------------------------------------------------------------ */

enum { NAME, CLOCK, VERSION, TOUCHED, HOLDERS, WAITERS, RETIRED };

static bool reads(const struct hf__cql_result *r, struct hf__cs_row *row)
{
    struct hf__cs_packed packed = {hf__cql_column(r, HOLDERS), hf__cql_column(r, WAITERS),
                                   hf__cql_column(r, RETIRED)};

    return hf__cql_get_bigint(hf__cql_column(r, CLOCK), &row->now_ms) &&
           hf__cql_get_bigint(hf__cql_column(r, TOUCHED), &row->touched_ms) &&
           hf__cql_get_bigint(hf__cql_column(r, VERSION), &row->version) &&
           hf__cs_row_take(row, &packed, NULL) == 0;
}

/* Whether it is over, or would be if somebody swept. */
static bool is_over(struct hf__entry *e, int64_t now_ms)
{
    const struct hf__cs_extra *x = e->who;
    struct hf__record alone = {.entries = e, .count = 1, .capacity = 1};

    if (e->place == HF__PLACE_WAITING)
        return e->until_ms <= now_ms && x->proof == HF__CS_PROOF_DEAD;
    hf__doorman_apply(&alone, &(struct hf__operation){.kind = HF__OPERATION_SWEEP},
                      (struct hf__moment){.now_ms = now_ms});
    return e->place == HF__PLACE_GONE;
}

/* Nobody inside, nobody who waits, nobody to be remembered, and for long. */
static bool is_idle(const struct hf__cs_lock *lock, struct hf__cs_row *row, int64_t retain_ms)
{
    if (row->touched_ms > row->now_ms - retain_ms || hf__cs_read_heartbeats(lock, row, NULL) != 0)
        return false;
    for (size_t i = 0; i < row->count; i++) {
        if (!is_over(&row->was[i], row->now_ms))
            return false;
    }
    return true;
}

/* Only if it is still what was read. Whoever was faster has a use for it, and so has whoever keeps
 * us from knowing: the next purge finds what is left. */
static int purge_one(const struct hf__cs_lock *lock, int64_t version, uint64_t *count)
{
    struct hf__cql_value values[] = {hf__cql_blob(lock->name, lock->name_len),
                                     hf__cql_bigint(version)};
    struct hf__cs_call call = {.query = HF__CS_QUERY_PURGE,
                               .values = values,
                               .value_count = 2,
                               .deadline_ns = lock->deadline_ns};
    struct hf__cql_result result;
    bool applied = false;
    int code = hf__cs_ask(lock->s, &call, &result, lock->err);

    if (code == 0)
        code = hf__cql_applied(&result, &applied, lock->err);
    hf__cql_result_clear(&result);
    *count += code == 0 && applied;
    return code == HF_UNKNOWN ? 0 : code;
}

static int purge_row(const struct hf__cs_lock *all, const struct hf__cql_result *result,
                     int64_t retain_ms, uint64_t *count)
{
    struct hf__cql_bytes name = hf__cql_column(result, NAME);
    struct hf__cs_lock lock = *all;
    struct hf__cs_row row = {0};
    int code = 0;

    lock.name = (const char *)name.data;
    lock.name_len = name.len;
    if (reads(result, &row) && is_idle(&lock, &row, retain_ms))
        code = purge_one(&lock, row.version, count);
    hf__cs_row_clear(&row);
    return code;
}

static int purge(struct hf__cs *s, int64_t retain_ms, int64_t deadline_ns, uint64_t *count,
                 hf_error *err)
{
    struct hf__cs_call call = {
        .query = HF__CS_QUERY_SCAN, .page_size = PAGE, .deadline_ns = deadline_ns};
    struct hf__cql_request request = hf__cs_request(s, &call);
    struct hf__cs_lock all = {.s = s, .deadline_ns = deadline_ns, .err = err};
    struct hf__cql_result result = {0};
    int64_t now_ns = hf__now_ns(s->base.host->env);
    int64_t enough_ns = now_ns + (deadline_ns - now_ns) / 2; /* the next purge does the rest */
    int code = hf__cql_execute(s->cql, &request, &result, err);

    while (code == 0) {
        while (code == 0 && hf__now_ns(s->base.host->env) < enough_ns && hf__cql_next_row(&result))
            code = purge_row(&all, &result, retain_ms, count);
        if (code != 0 || !result.has_more || hf__now_ns(s->base.host->env) >= enough_ns)
            break;
        code = hf__cql_next_page(s->cql, &request, &result, err);
    }
    hf__cql_result_clear(&result);
    return code;
}

int hf__cs_upkeep(struct hf__store *store, enum hf__upkeep what, int64_t retain_ms,
                  int64_t deadline_ns, uint64_t *ret_count, hf_error *err)
{
    struct hf__cs *s = (struct hf__cs *)store;
    uint64_t count = 0;
    int code = 0;

    if (what == HF__UPKEEP_SETUP)
        code = setup(s, deadline_ns, err);
    else if (!s->simple) /* the recipe's rows end by themselves */
        code = purge(s, retain_ms, deadline_ns, &count, err);
    if (ret_count != NULL)
        *ret_count = count;
    return code;
}
