/* Creating the tables and functions, and removing what has been idle for long.
 *
 * A lock's row is kept for its generation. Without it the next one is taken from the wall clock
 * alone, which is above it as long as the clock was not put back by more than `retain`. */
#include <stdio.h>
#include <stdlib.h>

#include "stores/postgres/postgres.h"

#include "base/banned.h"

/* Names of the hold modes. Those whose row or key is locked are passed over; one that is wanted
 * just now is registered again. Tokens do not depend on them. */
#define PURGE_NAMES                                                                        \
    "WITH free AS (SELECT name FROM public.holdfast_name WHERE key <> ALL (ARRAY(SELECT"   \
    " ((classid::bigint << 32) | objid::bigint) # kind FROM pg_locks,"                     \
    " pg_catalog.unnest(ARRAY[0, 1, 2]::bigint[]) AS kind WHERE locktype = 'advisory' AND" \
    " objsubid = 1 AND database = (SELECT oid FROM pg_database WHERE datname ="            \
    " current_database()))) LIMIT 200 FOR UPDATE SKIP LOCKED) DELETE FROM"                 \
    " public.holdfast_name WHERE name IN (SELECT name FROM free)"

int hf__pg_purge(void *store, void *conn, int64_t retain_ms, int64_t deadline_ns, uint64_t *count,
                 hf_error *err)
{
    bool names = ((struct hf__pg *)store)->set.hold != HF__PG_LEASE;
    struct hf__pg_query q = {.sql = names ? PURGE_NAMES : hf__pg_purge_sql};
    PGresult *result = NULL;

    if (!names)
        hf__pg_number(&q, retain_ms);
    int r = hf__pg_ask(store, conn, &q, deadline_ns, &result, err);
    if (r == 0)
        *count += strtoull(PQcmdTuples(result), NULL, 10);
    PQclear(result);
    return r;
}

/* In one transaction, with the search_path that all that is created here was written for. Where all
 * is there already the right to create it is not needed. */
int hf__pg_setup(void *store, void *conn, int64_t deadline_ns, hf_error *err)
{
    struct hf__pg *s = store;
    char *text = NULL;
    int r = hf__pg_make_room(s, conn, deadline_ns, err);

    if (r == 0 && asprintf(&text, HF__PG_SAFE_PATH "; %s", hf__pg_ddl) < 0)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    if (r == 0)
        r = hf__pg_run(s, conn, text, deadline_ns, err);
    free(text);
    if (r == HF_DENIED && hf__pg_learn(s, conn, deadline_ns, NULL) == 0)
        return 0;
    return r == 0 ? hf__pg_learn(s, conn, deadline_ns, err) : r;
}
