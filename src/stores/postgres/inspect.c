/* Looking: one SELECT, which is one consistent snapshot and keeps nobody from writing. What has run
 * out but was not swept yet is shown as the doorman would leave it. */
#include "base/who.h"
#include "stores/postgres/postgres.h"

#include "base/banned.h"

enum { NAME = HF__SQL_ENTRY_CELLS, HOST, USER, PROGRAM, PID, NOTE, NOW };

static int show(const PGresult *q, int row, const struct hf__search *search, hf_error *err)
{
    const char *cells[HF__SQL_ENTRY_CELLS];
    char name[HF_NAME_MAX];
    int len = hf__pg_cell_bytes(q, row, NAME, name, sizeof name);

    if (len < 0)
        return hf__fail(err, HF_CORRUPT, "postgres: a name is none");
    for (int i = 0; i < HF__SQL_ENTRY_CELLS; i++)
        cells[i] = PQgetisnull(q, row, i) ? NULL : PQgetvalue(q, row, i);
    struct hf__sql_entry entry = {.cells = cells,
                                  .name = name,
                                  .name_len = (size_t)len,
                                  .who = {.host = hf__who_plain(PQgetvalue(q, row, HOST)),
                                          .user = hf__who_plain(PQgetvalue(q, row, USER)),
                                          .program = hf__who_plain(PQgetvalue(q, row, PROGRAM)),
                                          .note = hf__who_plain(PQgetvalue(q, row, NOTE)),
                                          .pid = hf__pg_cell(q, row, PID, 0)},
                                  .now_ms = hf__pg_cell(q, row, NOW, 0)};
    return hf__sql_show("postgres", &entry, search, err);
}

int hf__pg_inspect(struct hf__store *store, const struct hf__search *search, int64_t deadline_ns,
                   hf_error *err)
{
    struct hf__pg *s = (struct hf__pg *)store;
    struct hf__pg_query q = {.sql = hf__pg_inspect_sql, .reads = true};
    struct hf__pg_conn *c = NULL;
    struct hf__sql_range range;
    PGresult *result = NULL;

    if (!hf__sql_range(search, &range))
        return 0;
    hf__pg_bytes(&q, range.low, range.low_len);
    hf__pg_bytes(&q, range.high, range.high_len);
    int r = hf__pg_borrow(s, deadline_ns, &c, err);
    if (r != 0)
        return r;
    r = hf__pg_ask(s, c, &q, deadline_ns, &result, err);
    hf__pg_give_back(s, c); /* the caller is told without a connection in hand */
    for (int row = 0; r == 0 && row < PQntuples(result); row++)
        r = show(result, row, search, err);
    PQclear(result);
    return r;
}
