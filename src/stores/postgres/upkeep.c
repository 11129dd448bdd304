/* Creating the tables and functions, and removing what has been idle for long.
 *
 * A lock's row is kept for its generation. Without it the next one is taken from the wall clock
 * alone, which is above it as long as the clock was not put back by more than `retain`. */
#include <stdio.h>
#include <stdlib.h>

#include "stores/postgres/session/session.h"

#include "base/banned.h"

int hf__pg_purge(void *store, void *conn, int64_t retain_ms, int64_t deadline_ns, uint64_t *count,
                 hf_error *err)
{
    bool names = ((struct hf__pg *)store)->set.hold != HF__PG_HOLD_LEASE;
    struct hf__pg_query q = {.sql = names ? hf__pg_purge_names_sql : hf__pg_purge_sql};
    PGresult *result = NULL;

    if (!names)
        hf__pg_number(&q, retain_ms);
    int r = hf__pg_ask(store, conn, &q, deadline_ns, &result, err);
    if (r == 0)
        *count += strtoull(PQcmdTuples(result), NULL, 10);
    PQclear(result);
    result = NULL;
    if (r == 0 && !names && ((struct hf__pg *)store)->sql.set.history > 0) {
        q.sql = hf__pg_purge_trail_sql;
        r = hf__pg_ask(store, conn, &q, deadline_ns, &result, err);
        PQclear(result);
    }
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
