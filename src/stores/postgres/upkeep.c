/* Creating the tables and functions, and removing what has been idle for long.
 *
 * A lock's row is kept for its generation. Without it the next one is taken from the wall clock
 * alone, which is above it as long as the clock was not put back by more than `retain`. */
#include <stdlib.h>

#include "stores/postgres/postgres.h"

#include "util/banned.h"

/* Rows that somebody works on are passed over: they are not idle. What has run out but was never
 * swept must not keep an idle lock alive. */
#define PURGE_BATCH 200 /* as in PURGE */
#define PURGE                                                                                  \
    "WITH idle AS (SELECT name FROM holdfast_lock l WHERE touched <= clock_timestamp() - $1"   \
    " * interval '1 millisecond' AND NOT EXISTS (SELECT FROM holdfast_holder h WHERE"          \
    " h.name = l.name AND (h.until = 'infinity' OR h.until + (h.delay + h.retire)"             \
    " * interval '1 millisecond' > clock_timestamp())) AND NOT EXISTS (SELECT FROM"            \
    " holdfast_waiter w WHERE w.name = l.name AND w.until > clock_timestamp()) AND NOT EXISTS" \
    " (SELECT FROM holdfast_retired r WHERE r.name = l.name AND r.until > clock_timestamp())"  \
    " LIMIT 200 FOR UPDATE SKIP LOCKED),"                                                      \
    " a AS (DELETE FROM holdfast_holder WHERE name IN (SELECT name FROM idle)),"               \
    " b AS (DELETE FROM holdfast_waiter WHERE name IN (SELECT name FROM idle)),"               \
    " c AS (DELETE FROM holdfast_retired WHERE name IN (SELECT name FROM idle))"               \
    " DELETE FROM holdfast_lock WHERE name IN (SELECT name FROM idle)"

/* An operation that began before we locked the row may have changed what the statement's snapshot
 * shows as idle; then the row itself was changed too, and FOR UPDATE sees it again by its new
 * `touched`. */
static int purge_some(struct hf__pg *s, struct hf__pg_conn *c, int64_t retain_ms,
                      int64_t deadline_ns, uint64_t *ret_count, hf_error *err)
{
    struct hf__pg_query q = {.sql = PURGE};
    PGresult *result = NULL;

    hf__pg_number(&q, retain_ms);
    int r = hf__pg_ask(s, c, &q, deadline_ns, &result, err);
    if (r == 0)
        *ret_count = strtoull(PQcmdTuples(result), NULL, 10);
    PQclear(result);
    return r;
}

static int purge(struct hf__pg *s, struct hf__pg_conn *c, int64_t retain_ms, int64_t deadline_ns,
                 uint64_t *ret_count, hf_error *err)
{
    uint64_t count = 0;
    int r;

    do {
        r = purge_some(s, c, retain_ms > 0 ? retain_ms : s->sql.set.retain_ms, deadline_ns, &count,
                       err);
        if (r == 0)
            *ret_count += count;
    } while (r == 0 && count == PURGE_BATCH); /* others come while we go: do not chase them */
    return r;
}

/* The tables are needed; the functions only make it faster. */
static int setup(struct hf__pg *s, struct hf__pg_conn *c, int64_t deadline_ns, hf_error *err)
{
    hf_error why = {0};
    int r = hf__pg_run(s, c, hf__pg_schema_sql, deadline_ns, err);

    if (r == 0) {
        r = hf__pg_run(s, c, hf__pg_routines_sql, deadline_ns, &why);
        if (r == HF_DENIED)
            r = 0; /* `holdfast doctor` says that they are missing */
        else if (r != 0 && err != NULL)
            *err = why;
    }
    if (r == 0)
        r = hf__pg_learn(s, c, deadline_ns, err);
    return r;
}

int hf__pg_upkeep(struct hf__store *store, enum hf__upkeep what, int64_t retain_ms,
                  int64_t deadline_ns, uint64_t *ret_count, hf_error *err)
{
    struct hf__pg *s = (struct hf__pg *)store;
    struct hf__pg_conn *c = NULL;
    uint64_t count = 0;
    int r = hf__pg_borrow(s, deadline_ns, &c, err);

    if (r != 0)
        return r;
    r = what == HF__SETUP ? setup(s, c, deadline_ns, err)
                          : purge(s, c, retain_ms, deadline_ns, &count, err);
    hf__pg_give_back(s, c);
    if (ret_count != NULL)
        *ret_count = count;
    return r;
}
