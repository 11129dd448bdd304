/* Who holds and who waits by hold=session and hold=advisory: the server's own lock table, and the
 * comment at the head of the statement that took the lock, which the server still shows. */
#include "stores/postgres/session/session.h"
#include "stores/search.h"

#include "base/banned.h"

static int show(const PGresult *q, int row, const struct hf__search *search, hf_error *err)
{
    struct hf__session_comment comment;
    char name[HF_NAME_MAX];
    int len = hf__pg_cell_bytes(q, row, 0, name, sizeof name);
    bool inside = hf__pg_cell_flag(q, row, 1);
    struct hf__entry e = {.place = inside ? HF__PLACE_INSIDE : HF__PLACE_WAITING,
                          .since_ms = hf__pg_cell(q, row, 3, 0),
                          .until_ms = HF__NEVER,
                          .lease_ms = HF__NEVER,
                          .claimed = inside,
                          .generation = inside ? (uint64_t)hf__pg_cell(q, row, 4, 0) : 0};

    if (len < 0)
        return hf__fail(err, HF_CORRUPT, "postgres: a name is none");
    if (!hf__session_comment_parse(PQgetvalue(q, row, 2), &comment) ||
        !hf__search_is_old_enough(search, &e))
        return 0;
    e.ticket = comment.ticket;
    e.mode = comment.mode;
    e.ttl_ms = comment.ttl_ms;
    e.who = &comment.who;
    return search->found(search->ctx, name, (size_t)len, &e);
}

int hf__pg_session_inspect(struct hf__store *store, const struct hf__search *search,
                           int64_t deadline_ns, hf_error *err)
{
    struct hf__pg *s = (struct hf__pg *)store;
    struct hf__pg_query q = {.sql = hf__pg_session_inspect_sql, .reads = true};
    struct hf__pg_conn *c = NULL;
    struct hf__sql_range range;
    PGresult *result = NULL;

    if (!hf__sql_range(search, &range))
        return 0;
    int r = hf__pg_borrow(s, deadline_ns, &c, err);
    if (r != 0)
        return r;
    hf__pg_bytes(&q, range.low, range.low_len);
    hf__pg_bytes(&q, range.high, range.high_len);
    r = hf__pg_ask(s, c, &q, deadline_ns, &result, err);
    hf__pg_give_back(s, c);
    for (int row = 0; r == 0 && row < PQntuples(result); row++)
        r = show(result, row, search, err);
    PQclear(result);
    return r;
}
