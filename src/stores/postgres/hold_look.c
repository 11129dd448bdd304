/* Who holds and who waits by hold=session and hold=advisory: the server's own lock table, and the
 * comment at the head of the statement that took the lock, which the server still shows. */
#include <stdio.h>
#include <stdlib.h>

#include "stores/postgres/hold.h"

#include "util/banned.h"

/* key # 1 is session's door, key # 2 its mark; see hold_text.c. `inside` sorts first, then who came
 * first. */
#define LOOK(where)                                                                                \
    "SELECT n.name, bool_or(l.granted AND l.kind <> 1), min(a.query),"                             \
    " min((extract(epoch FROM clock_timestamp() - CASE WHEN a.state = 'active' THEN a.query_start" \
    " ELSE a.state_change END) * 1000)::bigint), min(substr(a.application_name, 10))"              \
    " FROM (SELECT pid, granted, waitstart, kind, ((classid::bigint << 32) | objid::bigint) # "    \
    "kind"                                                                                         \
    " AS key FROM pg_locks, unnest(ARRAY[0, 1, 2]::bigint[]) AS kind WHERE locktype = 'advisory'"  \
    " AND objsubid = 1 AND database = (SELECT oid FROM pg_database WHERE datname ="                \
    " current_database())) AS l JOIN holdfast_name n ON n.key = l.key"                             \
    " JOIN pg_stat_activity a ON a.pid = l.pid AND a.query LIKE '/*holdfast %' WHERE " where       \
    " GROUP BY n.name, l.pid ORDER BY 1, 2 DESC, min(CASE WHEN NOT l.granted THEN"                 \
    " cardinality(pg_blocking_pids(l.pid)) END) NULLS FIRST, min(l.waitstart), min(a.query_start)"

struct about {
    char ticket[HF_TICKET_SIZE], mode;
    long long ttl_ms, pid;
    char text[4][HF_NOTE_MAX + 1]; /* host, user, program, note */
};

static int digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* One %XX-escaped word up to a comma or the comment's end; gives back what follows it. */
static const char *read_word(const char *at, char *out, size_t size)
{
    size_t used = 0;

    while (*at != '\0' && *at != ',' && *at != '*') {
        char c = *at++;
        if (c == '%' && digit(at[0]) >= 0 && digit(at[1]) >= 0) {
            c = (char)(digit(at[0]) * 16 + digit(at[1]));
            at += 2;
        }
        if (used + 1 < size)
            out[used++] = c;
    }
    out[used] = '\0';
    return at + (*at == ',');
}

static bool read_about(const char *query, struct about *about)
{
    int used = 0;

    *about = (struct about){0};
    if (sscanf(query, "/*holdfast %32[0-9a-f] %c %lld %lld %n", about->ticket, &about->mode,
               &about->ttl_ms, &about->pid, &used) < 4 ||
        used == 0)
        return false;
    query += used;
    for (size_t i = 0; i < 4; i++)
        query = read_word(query, about->text[i], sizeof about->text[i]);
    return true;
}

static bool is_asked_for(const struct hf__look *look, const char *name, size_t len)
{
    if (look->name != NULL)
        return len == look->name_len && memcmp(name, look->name, len) == 0;
    return look->prefix == NULL ||
           (len >= look->prefix_len && memcmp(name, look->prefix, look->prefix_len) == 0);
}

static int show(const PGresult *q, int row, const struct hf__look *look, const char *name,
                size_t len)
{
    struct about about;
    struct hf__entry e = {.place = hf__pg_cell_flag(q, row, 1) ? HF__INSIDE : HF__WAITING,
                          .since_ms = hf__pg_cell(q, row, 3, 0),
                          .until_ms = HF__NEVER,
                          .lease_ms = HF__NEVER};

    if (!is_asked_for(look, name, len) || !read_about(PQgetvalue(q, row, 2), &about) ||
        !hf__ticket_parse(about.ticket, &e.ticket))
        return 0;
    if (look->older_than_ms > 0 && (e.place != HF__INSIDE || e.since_ms < look->older_than_ms))
        return 0;
    struct hf__who who = {.host = about.text[0],
                          .user = about.text[1],
                          .program = about.text[2],
                          .note = about.text[3],
                          .pid = about.pid};
    e.mode = about.mode == 's' ? HF_SHARED : HF_EXCLUSIVE;
    e.ttl_ms = about.ttl_ms;
    if (e.place == HF__INSIDE)
        e.generation = (uint64_t)hf__pg_cell(q, row, 4, 0);
    e.claimed = e.place == HF__INSIDE;
    e.who = &who;
    return look->found(look->ctx, name, len, &e);
}

static int show_all(const PGresult *result, const struct hf__look *look, hf_error *err)
{
    int r = 0;

    for (int row = 0; r == 0 && row < PQntuples(result); row++) {
        size_t len = 0;
        unsigned char *name =
            PQunescapeBytea((const unsigned char *)PQgetvalue(result, row, 0), &len);
        if (name == NULL)
            return hf__fail(err, HF_NO_MEMORY, NULL);
        r = show(result, row, look, (const char *)name, len);
        PQfreemem(name);
    }
    return r;
}

int hf__pg_hold_inspect(struct hf__store *store, const struct hf__look *look, int64_t deadline_ns,
                        hf_error *err)
{
    struct hf__pg *s = (struct hf__pg *)store;
    struct hf__pg_query q = {.sql = look->name != NULL ? LOOK("n.name = $1") : LOOK("true"),
                             .reads = true};
    struct hf__pg_conn *c = NULL;
    PGresult *result = NULL;
    int r = hf__pg_borrow(s, deadline_ns, &c, err);

    if (r != 0)
        return r;
    if (look->name != NULL)
        hf__pg_bytes(&q, look->name, look->name_len);
    r = hf__pg_ask(s, c, &q, deadline_ns, &result, err);
    hf__pg_give_back(s, c);
    if (r == 0)
        r = show_all(result, look, err);
    PQclear(result);
    return r;
}
