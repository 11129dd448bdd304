/* Looking: one SELECT, which is one consistent snapshot and keeps nobody from writing. What has run
 * out but was not swept yet is shown as the doorman would leave it. */
#include <stdlib.h>

#include "stores/postgres/postgres.h"
#include "stores/postgres/text.h"

#include "util/banned.h"

#define WHO ", name, host, username, program, pid, note"
#define LOOK(where)                                                                     \
    "SELECT *, (extract(epoch FROM clock_timestamp()) * 1000)::bigint FROM "            \
    "(SELECT " HF__PG_HOLDER_COLUMNS WHO " FROM holdfast_holder WHERE " where           \
    " UNION ALL SELECT " HF__PG_WAITER_COLUMNS WHO " FROM holdfast_waiter WHERE " where \
    ") AS e ORDER BY name, seq"

enum { NAME = HF__PG_COLUMNS, HOST, USER, PROGRAM, PID, NOTE, NOW };

/* The first byte string after all that begin with the prefix; 0 if there is none. */
static size_t next_prefix(const char *prefix, size_t len, char *next)
{
    memcpy(next, prefix, len);
    while (len > 0 && (unsigned char)next[len - 1] == 0xff)
        len--;
    if (len > 0)
        next[len - 1]++;
    return len;
}

/* As the doorman would leave it; false if it would be over. */
static bool settle(struct hf__entry *e, int64_t now_ms)
{
    struct hf__record alone = {.entries = e, .count = 1, .capacity = 1};

    if (e->place == HF__WAITING)
        return e->until_ms > now_ms;
    hf__doorman_sweep(&alone, (struct hf__moment){.now_ms = now_ms});
    return e->place == HF__INSIDE || e->place == HF__LINGERING;
}

static int tell(const PGresult *q, int row, struct hf__entry *e, const struct hf__look *look,
                hf_error *err)
{
    struct hf__who who = {.host = hf__pg_plain(PQgetvalue(q, row, HOST)),
                          .user = hf__pg_plain(PQgetvalue(q, row, USER)),
                          .program = hf__pg_plain(PQgetvalue(q, row, PROGRAM)),
                          .note = hf__pg_plain(PQgetvalue(q, row, NOTE)),
                          .pid = hf__pg_cell(q, row, PID, 0)};
    size_t len = 0;
    unsigned char *name = PQunescapeBytea((const unsigned char *)PQgetvalue(q, row, NAME), &len);

    if (name == NULL)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    e->who = &who;
    e->marks = 0;
    int r = look->found(look->ctx, (const char *)name, len, e);
    PQfreemem(name);
    return r;
}

static int show(const PGresult *q, int row, const struct hf__look *look, hf_error *err)
{
    int64_t now_ms = hf__pg_cell(q, row, NOW, 0);
    struct hf__pg_row entry;
    struct hf__entry *e = &entry.was;
    int r = hf__pg_read_entry(q, row, &entry, err);

    if (r != 0 || !settle(e, now_ms))
        return r;
    e->since_ms = now_ms - e->since_ms;
    if (look->older_than_ms > 0 && (e->place != HF__INSIDE || e->since_ms < look->older_than_ms))
        return 0;
    if (e->until_ms != HF__NEVER)
        e->until_ms -= now_ms;
    return tell(q, row, e, look, err);
}

static void make_query(const struct hf__look *look, struct hf__pg_query *q, char *next)
{
    *q = (struct hf__pg_query){.sql = LOOK("true"), .reads = true};
    if (look->name != NULL) {
        q->sql = LOOK("name = $1");
        hf__pg_bytes(q, look->name, look->name_len);
    } else if (look->prefix != NULL && look->prefix_len > 0) {
        size_t len = next_prefix(look->prefix, look->prefix_len, next);
        q->sql = len > 0 ? LOOK("name >= $1 AND name < $2") : LOOK("name >= $1");
        hf__pg_bytes(q, look->prefix, look->prefix_len);
        if (len > 0)
            hf__pg_bytes(q, next, len);
    }
}

int hf__pg_inspect(struct hf__store *store, const struct hf__look *look, int64_t deadline_ns,
                   hf_error *err)
{
    struct hf__pg *s = (struct hf__pg *)store;
    struct hf__pg_conn *c = NULL;
    struct hf__pg_query q;
    PGresult *result = NULL;
    char next[HF_NAME_MAX];

    if (look->prefix_len > HF_NAME_MAX)
        return 0; /* no name is that long */
    make_query(look, &q, next);
    int r = hf__pg_borrow(s, deadline_ns, &c, err);
    if (r != 0)
        return r;
    r = hf__pg_ask(s, c, &q, deadline_ns, &result, err);
    hf__pg_give_back(s, c);
    for (int row = 0; r == 0 && row < PQntuples(result); row++)
        r = show(result, row, look, err);
    PQclear(result);
    return r;
}
