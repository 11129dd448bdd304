/* Who holds and who waits by hold=session and hold=advisory: the server's own lock table, and the
 * comment at the head of the statement that took the lock, which the server still shows. */
#include <stdio.h>
#include <stdlib.h>

#include "stores/postgres/hold.h"
#include "stores/search.h"

#include "base/banned.h"

/* key # 1 is session's door, key # 2 its mark; see hold_text.c. `inside` sorts first, then who came
 * first. */
#define LOOK(where)                                                                          \
    "SELECT encode(n.name, 'hex'), bool_or(l.granted AND l.kind <> 1), min(a.query), "       \
    "min((extract(epoch"                                                                     \
    " FROM clock_timestamp() - CASE WHEN a.state = 'active' THEN a.query_start ELSE"         \
    " a.state_change END) * 1000.0)::bigint), min(g.generation) FROM (SELECT pid, granted,"  \
    " waitstart, kind, ((classid::bigint << 32) | objid::bigint) # kind AS key FROM"         \
    " pg_locks, pg_catalog.unnest(ARRAY[0, 1, 2]::bigint[]) AS kind WHERE locktype ="        \
    " 'advisory' AND objsubid = 1 AND database = (SELECT oid FROM pg_database WHERE datname" \
    " = current_database())) AS l JOIN public.holdfast_name n ON n.key = l.key JOIN"         \
    " pg_stat_activity a ON a.pid = l.pid AND a.query LIKE '/*holdfast %' LEFT JOIN (SELECT" \
    " pid, (classid::bigint << 32) | objid::bigint AS generation FROM pg_locks WHERE"        \
    " locktype = 'advisory' AND objsubid = 2) AS g ON g.pid = l.pid WHERE " where            \
    " GROUP BY n.name, l.pid ORDER BY 1, 2 DESC, min(CASE WHEN NOT l.granted THEN"           \
    " pg_catalog.cardinality(pg_blocking_pids(l.pid)) END) NULLS FIRST,"                     \
    " min(l.waitstart), min(a.query_start)"

static int show(const PGresult *q, int row, const struct hf__search *search, const char *name,
                size_t len)
{
    struct hf__about about;
    struct hf__entry e = {.place =
                              hf__pg_cell_flag(q, row, 1) ? HF__PLACE_INSIDE : HF__PLACE_WAITING,
                          .since_ms = hf__pg_cell(q, row, 3, 0),
                          .until_ms = HF__NEVER,
                          .lease_ms = HF__NEVER};

    if (!hf__search_wants(search, name, len) || !hf__about_parse(PQgetvalue(q, row, 2), &about))
        return 0;
    if (!hf__search_is_old_enough(search, &e))
        return 0;
    e.ticket = about.ticket;
    e.mode = about.mode;
    e.ttl_ms = about.ttl_ms;
    e.claimed = e.place == HF__PLACE_INSIDE;
    if (e.claimed)
        e.generation = (uint64_t)hf__pg_cell(q, row, 4, 0);
    e.who = &about.who;
    return search->found(search->ctx, name, len, &e);
}

static int show_all(const PGresult *result, const struct hf__search *search, hf_error *err)
{
    int r = 0;

    for (int row = 0; r == 0 && row < PQntuples(result); row++) {
        char name[HF_NAME_MAX];
        int len = hf__pg_cell_bytes(result, row, 0, name, sizeof name);
        if (len < 0)
            return hf__fail(err, HF_CORRUPT, "postgres: a name is none");
        r = show(result, row, search, name, (size_t)len);
    }
    return r;
}

int hf__pg_hold_inspect(struct hf__store *store, const struct hf__search *search,
                        int64_t deadline_ns, hf_error *err)
{
    struct hf__pg *s = (struct hf__pg *)store;
    struct hf__pg_query q = {.sql = search->name != NULL ? LOOK("n.name = $1") : LOOK("true"),
                             .reads = true};
    struct hf__pg_conn *c = NULL;
    PGresult *result = NULL;
    int r = hf__pg_borrow(s, deadline_ns, &c, err);

    if (r != 0)
        return r;
    if (search->name != NULL)
        hf__pg_bytes(&q, search->name, search->name_len);
    r = hf__pg_ask(s, c, &q, deadline_ns, &result, err);
    hf__pg_give_back(s, c);
    if (r == 0)
        r = show_all(result, search, err);
    PQclear(result);
    return r;
}
