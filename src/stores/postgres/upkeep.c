/* Creating the tables and functions, and removing what has been idle for long.
 *
 * A lock's row is kept for its generation. Without it the next one is taken from the wall clock
 * alone, which is above it as long as the clock was not put back by more than `retain`. */
#include <stdio.h>
#include <stdlib.h>

#include "stores/postgres/postgres.h"

#include "base/banned.h"

/* Rows that somebody works on are passed over: they are not idle. What has run out but was never
 * swept must not keep an idle lock alive. 200 is HF__SQL_PURGE_BATCH. */
#define PURGE                                                                                \
    "WITH idle AS (SELECT name FROM public.holdfast_lock l WHERE touched <="                 \
    " clock_timestamp() - $1::float8 * interval '1 millisecond' AND NOT EXISTS (SELECT FROM" \
    " public.holdfast_holder h WHERE h.name = l.name AND (h.until = 'infinity' OR h.until +" \
    " (h.delay + h.retire)::float8 * interval '1 millisecond' > clock_timestamp())) AND NOT" \
    " EXISTS (SELECT FROM public.holdfast_waiter w WHERE w.name = l.name AND w.until >"      \
    " clock_timestamp()) AND NOT EXISTS (SELECT FROM public.holdfast_retired r WHERE r.name" \
    " = l.name AND r.until > clock_timestamp()) LIMIT 200 FOR UPDATE SKIP LOCKED), a AS"     \
    " (DELETE FROM public.holdfast_holder WHERE name IN (SELECT name FROM idle)), b AS"      \
    " (DELETE FROM public.holdfast_waiter WHERE name IN (SELECT name FROM idle)), c AS"      \
    " (DELETE FROM public.holdfast_retired WHERE name IN (SELECT name FROM idle)) DELETE"    \
    " FROM public.holdfast_lock WHERE name IN (SELECT name FROM idle)"

/* Names of the hold modes. Those whose row or key is locked are passed over; one that is wanted
 * just now is registered again. Tokens do not depend on them. */
#define PURGE_NAMES                                                                        \
    "WITH free AS (SELECT name FROM public.holdfast_name WHERE key <> ALL (ARRAY(SELECT"   \
    " ((classid::bigint << 32) | objid::bigint) # kind FROM pg_locks,"                     \
    " pg_catalog.unnest(ARRAY[0, 1, 2]::bigint[]) AS kind WHERE locktype = 'advisory' AND" \
    " objsubid = 1 AND database = (SELECT oid FROM pg_database WHERE datname ="            \
    " current_database()))) LIMIT 200 FOR UPDATE SKIP LOCKED) DELETE FROM"                 \
    " public.holdfast_name WHERE name IN (SELECT name FROM free)"

/* An operation that began before we locked the row may have changed what the statement's snapshot
 * shows as idle; then the row itself was changed too, and FOR UPDATE sees it again by its new
 * `touched`. */
int hf__pg_purge(void *store, void *conn, int64_t retain_ms, int64_t deadline_ns, uint64_t *count,
                 hf_error *err)
{
    bool names = ((struct hf__pg *)store)->set.hold != HF__PG_LEASE;
    struct hf__pg_query q = {.sql = names ? PURGE_NAMES : PURGE};
    PGresult *result = NULL;

    if (!names)
        hf__pg_number(&q, retain_ms);
    int r = hf__pg_ask(store, conn, &q, deadline_ns, &result, err);
    if (r == 0)
        *count += strtoull(PQcmdTuples(result), NULL, 10);
    PQclear(result);
    return r;
}

/* In one transaction, with the search_path that all that is created here was written for. */
static int run_text(struct hf__pg *s, struct hf__pg_conn *c, const char *sql, int64_t deadline_ns,
                    hf_error *err)
{
    char *text = NULL;

    if (asprintf(&text, HF__PG_SAFE_PATH "; %s", sql) < 0)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    int r = hf__pg_run(s, c, text, deadline_ns, err);
    free(text);
    return r;
}

/* The tables are needed; the functions only make it faster. Where all is there already the right to
 * create it is not needed. */
int hf__pg_setup(void *store, void *conn, int64_t deadline_ns, hf_error *err)
{
    struct hf__pg *s = store;
    hf_error why = {0};
    bool there = hf__pg_learn(s, conn, deadline_ns, NULL) == 0;
    int r = hf__pg_make_room(s, conn, deadline_ns, err);

    if (r == 0)
        r = run_text(s, conn, hf__pg_schema_sql, deadline_ns, err);
    if (r == HF_DENIED && there)
        return 0;
    if (r == 0) {
        r = run_text(s, conn, hf__pg_routines_sql, deadline_ns, &why);
        if (r == HF_DENIED)
            r = 0; /* `holdfast doctor` says that they are missing */
        else if (r != 0 && err != NULL)
            *err = why;
    }
    if (r == 0)
        r = hf__pg_learn(store, conn, deadline_ns, err);
    return r;
}
