/* Looking: one SELECT, which is one consistent snapshot and keeps nobody from writing. What has run
 * out but was not swept yet is shown as the doorman would leave it. */
#include <stdlib.h>

#include "base/who.h"
#include "stores/postgres/postgres.h"
#include "stores/search.h"

#include "base/banned.h"

#define WHO ", encode(name, 'hex'), host, username, program, pid, note"
#define LOOK(where)                                                                            \
    "SELECT *, floor(extract(epoch FROM " HF__PG_CLOCK ") * 1000.0)::bigint FROM "             \
    "(SELECT " HF__PG_HOLDER_COLUMNS WHO " FROM public.holdfast_holder WHERE " where           \
    " UNION ALL SELECT " HF__PG_WAITER_COLUMNS WHO " FROM public.holdfast_waiter WHERE " where \
    ") AS e ORDER BY 15, 1"

enum { NAME = HF__SQL_ENTRY_CELLS, HOST, USER, PROGRAM, PID, NOTE, NOW };

static int show(const PGresult *q, int row, const struct hf__search *search, hf_error *err)
{
    struct hf__who who = {.host = hf__who_plain(PQgetvalue(q, row, HOST)),
                          .user = hf__who_plain(PQgetvalue(q, row, USER)),
                          .program = hf__who_plain(PQgetvalue(q, row, PROGRAM)),
                          .note = hf__who_plain(PQgetvalue(q, row, NOTE)),
                          .pid = hf__pg_cell(q, row, PID, 0)};
    const char *cells[HF__SQL_ENTRY_CELLS];
    struct hf__sql_row entry;
    char name[HF_NAME_MAX];
    int len = hf__pg_cell_bytes(q, row, NAME, name, sizeof name);

    hf__pg_cells(q, row, cells);
    if (len < 0 || !hf__sql_read_row(cells, &entry))
        return hf__fail(err, HF_CORRUPT, "postgres: a row makes no sense");
    return hf__sql_show(search, &entry.was, hf__pg_cell(q, row, NOW, 0), name, (size_t)len, &who);
}

static void make_query(const struct hf__search *search, struct hf__pg_query *q, char *next)
{
    *q = (struct hf__pg_query){.sql = LOOK("true"), .reads = true};
    if (search->name != NULL) {
        q->sql = LOOK("name = $1");
        hf__pg_bytes(q, search->name, search->name_len);
    } else if (search->prefix != NULL && search->prefix_len > 0) {
        size_t len = hf__search_next_prefix(search, next);
        q->sql = len > 0 ? LOOK("name >= $1 AND name < $2") : LOOK("name >= $1");
        hf__pg_bytes(q, search->prefix, search->prefix_len);
        if (len > 0)
            hf__pg_bytes(q, next, len);
    }
}

int hf__pg_inspect(struct hf__store *store, const struct hf__search *search, int64_t deadline_ns,
                   hf_error *err)
{
    struct hf__pg *s = (struct hf__pg *)store;
    struct hf__pg_conn *c = NULL;
    struct hf__pg_query q;
    PGresult *result = NULL;
    char next[HF_NAME_MAX];

    if (search->prefix_len > HF_NAME_MAX)
        return 0; /* no name is that long */
    make_query(search, &q, next);
    int r = hf__pg_borrow(s, deadline_ns, &c, err);
    if (r != 0)
        return r;
    r = hf__pg_ask(s, c, &q, deadline_ns, &result, err);
    hf__pg_give_back(s, c);
    for (int row = 0; r == 0 && row < PQntuples(result); row++)
        r = show(result, row, search, err);
    PQclear(result);
    return r;
}
