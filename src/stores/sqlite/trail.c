/* The trail in rows: one statement writes what has become of an entry, from the entry's own row, in the
 * transaction that changes it. A database in which nobody has asked for a trail has no table for it. */
#include "doorman/trail.h"
#include "stores/search.h"
#include "stores/sqlite/sqlite.h"

#include "base/banned.h"

#define LOOK                                                                                 \
    "SELECT name, at, what, mode, ticket, generation, span, host, user, program, pid, note," \
    " cause FROM (SELECT l.name, h.* FROM holdfast_lock l JOIN holdfast_history h"           \
    " ON h.id >= l.id << 32 AND h.id < (l.id + 1) << 32 WHERE at >= ?3 AND "
#define NEWEST                    \
    " ORDER BY at DESC LIMIT ?4)" \
    " ORDER BY name, at, generation, what"

enum { NAME, AT, WHAT, MODE, TICKET, GENERATION, SPAN, HOST, USER, PROGRAM, PID, NOTE, CAUSE };

static int has_table(struct hf__sqlite *s, bool *ret_has, hf_error *err)
{
    int64_t count = 0;
    int code = hf__sqlite_ask(
        s, "SELECT count(*) FROM sqlite_schema WHERE name = 'holdfast_history'", &count, err);

    *ret_has = count > 0;
    return code;
}

int hf__sqlite_make_trail(struct hf__sqlite *s, hf_error *err)
{
    bool has = false;
    int code = s->history > 0 ? has_table(s, &has, err) : 0;

    if (code != 0 || s->history == 0 || has)
        return code;
    code = hf__sqlite_begin(s, err);
    if (code == 0)
        code = hf__sqlite_exec(s, hf__sqlite_history, "create the table of the trail", err);
    if (code == 0)
        return hf__sqlite_commit(s, err);
    hf__sqlite_rollback(s, NULL);
    return code;
}

/* Two rows for each bid, its grant and its end, in a ring of twice as many rows as bids are kept: no row is
 * looked for, deleted or moved, and one page is written. The place follows from the number that the bid
 * has in its line, so the end of one that held for very long takes the place of a younger one's. */
static int64_t place_of(const struct hf__sqlite *s, hf_trail_kind kind, int64_t seq)
{
    return (2 * seq + (kind != HF_TRAIL_GRANTED)) % (2 * s->history);
}

int hf__sqlite_note(struct hf__sqlite *s, const struct hf__operation *op, struct hf__moment at,
                    const struct hf__entry *e, int64_t seq, hf_error *err)
{
    const struct hf__sqlite_row *row = e->who;
    struct hf__change change =
        hf__trail_change(e->effects & HF__EFFECT_NEW ? NULL : &row->was, e, op, at);
    char breaker[HF__TRAIL_CAUSE_MAX];
    sqlite3_stmt *q;

    if (change.kind == 0)
        return 0;
    int code = hf__sqlite_statement(s, HF__SQLITE_STATEMENT_ADD_TRAIL, &q, err);
    if (code != 0)
        return code;
    if (change.kind == HF_TRAIL_BROKEN) {
        hf__trail_breaker(s->base.host->self, breaker);
        change.cause = breaker;
    }
    sqlite3_bind_int64(q, 1, s->lock.id);
    sqlite3_bind_int64(q, 2, change.wall_ms);
    sqlite3_bind_int(q, 3, (int)change.kind);
    sqlite3_bind_int64(q, 4, (int64_t)e->generation);
    sqlite3_bind_int64(q, 5, change.span_ms);
    sqlite3_bind_text(q, 6, change.cause, -1, SQLITE_STATIC);
    sqlite3_bind_int64(q, 7, seq);
    sqlite3_bind_int64(q, 8, place_of(s, change.kind, seq));
    return hf__sqlite_run(s, q, "write the trail", err);
}

void hf__sqlite_drop_trail(struct hf__sqlite *s)
{
    sqlite3_stmt *q;

    if (hf__sqlite_statement(s, HF__SQLITE_STATEMENT_DROP_TRAIL, &q, NULL) != 0)
        return; /* there is no trail */
    sqlite3_bind_int64(q, 1, s->lock.id);
    hf__sqlite_run(s, q, "purge", NULL);
}

/* Reading. ------------------------------------------------------------------------------------- */
static int prepare(struct hf__sqlite *s, const struct hf__trail_search *search,
                   sqlite3_stmt **ret_q, hf_error *err)
{
    bool prefix = search->name == NULL && search->prefix_len > 0;
    const char *sql = search->name != NULL ? LOOK "name = ?1" NEWEST
                      : prefix             ? LOOK "name >= ?1 AND (?2 IS NULL OR name < ?2)" NEWEST
                                           : LOOK "1" NEWEST;
    struct hf__search names = {.prefix = search->prefix, .prefix_len = search->prefix_len};
    char next[HF_NAME_MAX];
    sqlite3_stmt *q = NULL;
    int result = sqlite3_prepare_v2(s->db, sql, -1, &q, NULL);

    if (result != SQLITE_OK)
        return hf__sqlite_fail(s, result, "look", err);
    if (search->name != NULL)
        sqlite3_bind_blob(q, 1, search->name, (int)search->name_len, SQLITE_STATIC);
    if (prefix) {
        size_t len = hf__search_next_prefix(&names, next);
        sqlite3_bind_blob(q, 1, search->prefix, (int)search->prefix_len, SQLITE_STATIC);
        if (len > 0)
            sqlite3_bind_blob(q, 2, next, (int)len, SQLITE_TRANSIENT);
    }
    sqlite3_bind_int64(q, 3, search->since_ms);
    sqlite3_bind_int64(q, 4, search->limit > 0 ? (int64_t)search->limit : -1);
    *ret_q = q;
    return 0;
}

static const char *text(sqlite3_stmt *q, int column)
{
    const char *value = (const char *)sqlite3_column_text(q, column);

    return value != NULL ? value : "";
}

static int tell(sqlite3_stmt *q, const struct hf__trail_search *search, hf_error *err)
{
    struct hf__who who = {.host = text(q, HOST),
                          .user = text(q, USER),
                          .program = text(q, PROGRAM),
                          .note = text(q, NOTE),
                          .pid = sqlite3_column_int64(q, PID)};
    struct hf__trail_entry e = {.name = sqlite3_column_blob(q, NAME),
                                .name_len = (size_t)sqlite3_column_bytes(q, NAME),
                                .kind = (hf_trail_kind)sqlite3_column_int(q, WHAT),
                                .at_ms = sqlite3_column_int64(q, AT),
                                .mode = sqlite3_column_int(q, MODE) == HF_SHARED ? HF_SHARED
                                                                                 : HF_EXCLUSIVE,
                                .generation = (uint64_t)sqlite3_column_int64(q, GENERATION),
                                .span_ms = sqlite3_column_int64(q, SPAN),
                                .who = &who,
                                .cause = text(q, CAUSE)};
    const void *ticket = sqlite3_column_blob(q, TICKET);

    if (ticket == NULL || (size_t)sqlite3_column_bytes(q, TICKET) != sizeof e.ticket.bits ||
        e.name_len == 0 || e.name_len > HF_NAME_MAX || hf_trail_kind_name(e.kind)[0] == '\0' ||
        e.at_ms < 0 || e.span_ms < 0)
        return hf__fail(err, HF_CORRUPT,
                        "sqlite: a row of the trail (holdfast_history) is damaged; delete it");
    memcpy(e.ticket.bits, ticket, sizeof e.ticket.bits);
    return search->found(search->ctx, &e);
}

static int tell_all(struct hf__sqlite *s, const struct hf__trail_search *search, hf_error *err)
{
    sqlite3_stmt *q;
    bool has = false;
    int code = has_table(s, &has, err), result = SQLITE_DONE;

    if (code == 0 && has)
        code = prepare(s, search, &q, err);
    if (code != 0 || !has)
        return code;
    while (code == 0 && (result = sqlite3_step(q)) == SQLITE_ROW)
        code = tell(q, search, err);
    if (code == 0 && result != SQLITE_DONE)
        code = hf__sqlite_fail(s, result, "look", err);
    sqlite3_finalize(q);
    return code;
}

int hf__sqlite_trail(struct hf__store *store, const struct hf__trail_search *search,
                     int64_t deadline_ns, hf_error *err)
{
    struct hf__sqlite *s = (struct hf__sqlite *)store;

    if (search->prefix_len > HF_NAME_MAX)
        return 0; /* no name is that long */
    int code = hf__sqlite_enter(s, HF__SQLITE_RANK_ASKS, deadline_ns, err);
    if (code != 0)
        return code;
    code = hf__sqlite_still_ours(s, err);
    if (code == 0)
        code = tell_all(s, search, err);
    hf__sqlite_leave(s);
    return code;
}
