/* Looking: one SELECT, which is one consistent snapshot and keeps nobody from writing. What has run
 * out but was not swept yet is shown as the doorman would leave it. */
#include "stores_search.h"
#include "stores_sqlite_sqlite.h"

#include "base_banned.h"

#define LOOK                                                         \
    "SELECT " HF__SQLITE_COLUMNS ", host, user, program, pid, note," \
    " (SELECT name FROM holdfast_lock WHERE id = lock) AS lock_name FROM holdfast_entry "

enum { HOST = 15, USER, PROGRAM, PID, NOTE, NAME };

static int prepare(struct hf__sqlite *s, const struct hf__search *search, sqlite3_stmt **ret_q,
                   hf_error *err)
{
    const char *sql = search->name != NULL ? LOOK
                          "WHERE lock = (SELECT id FROM holdfast_lock WHERE name = ?1) ORDER BY seq"
                      : search->prefix != NULL && search->prefix_len > 0
                          ? LOOK "WHERE lock IN (SELECT id FROM holdfast_lock WHERE name >= ?1"
                                 " AND (?2 IS NULL OR name < ?2)) ORDER BY lock_name, seq"
                          : LOOK "ORDER BY lock_name, seq";
    char next[HF_NAME_MAX];
    sqlite3_stmt *q = NULL;
    int result = sqlite3_prepare_v2(s->db, sql, -1, &q, NULL);

    if (result != SQLITE_OK)
        return hf__sqlite_fail(s, result, "look", err);
    if (search->name != NULL) {
        sqlite3_bind_blob(q, 1, search->name, (int)search->name_len, SQLITE_STATIC);
    } else if (search->prefix != NULL && search->prefix_len > 0) {
        sqlite3_bind_blob(q, 1, search->prefix, (int)search->prefix_len, SQLITE_STATIC);
        size_t len = hf__search_next_prefix(search, next);
        if (len > 0)
            sqlite3_bind_blob(q, 2, next, (int)len, SQLITE_TRANSIENT);
    }
    *ret_q = q;
    return 0;
}

static const char *text(sqlite3_stmt *q, int column)
{
    const char *value = (const char *)sqlite3_column_text(q, column);

    return value != NULL ? value : "";
}

static int show(sqlite3_stmt *q, const struct hf__search *search, int64_t now_ms, hf_error *err)
{
    struct hf__sqlite_row row;
    struct hf__entry *e = &row.was;
    int code = hf__sqlite_read_entry(q, &row, err);

    if (code != 0 || !hf__search_settle(e, now_ms))
        return code;
    e->since_ms = now_ms - e->since_ms;
    if (!hf__search_is_old_enough(search, e))
        return 0;
    if (e->until_ms != HF__NEVER)
        e->until_ms -= now_ms;
    struct hf__who who = {.host = text(q, HOST),
                          .user = text(q, USER),
                          .program = text(q, PROGRAM),
                          .note = text(q, NOTE),
                          .pid = sqlite3_column_int64(q, PID)};
    const char *name = sqlite3_column_blob(q, NAME);
    if (name == NULL)
        return hf__fail(err, HF_CORRUPT, "sqlite: an entry without a lock; see `holdfast doctor`");
    e->who = &who;
    e->effects = 0;
    return search->found(search->ctx, name, (size_t)sqlite3_column_bytes(q, NAME), e);
}

static int show_all(struct hf__sqlite *s, const struct hf__search *search, hf_error *err)
{
    sqlite3_stmt *q;
    int code = prepare(s, search, &q, err), result = SQLITE_DONE;

    if (code != 0)
        return code;
    while (code == 0 && (result = sqlite3_step(q)) == SQLITE_ROW)
        code = show(q, search, hf__sqlite_moment(s, NULL).now_ms, err);
    if (code == 0 && result != SQLITE_DONE)
        code = hf__sqlite_fail(s, result, "look", err);
    sqlite3_finalize(q);
    return code;
}

int hf__sqlite_inspect(struct hf__store *store, const struct hf__search *search,
                       int64_t deadline_ns, hf_error *err)
{
    struct hf__sqlite *s = (struct hf__sqlite *)store;
    int code;

    if (search->prefix_len > HF_NAME_MAX)
        return 0; /* no name is that long */
    code = hf__sqlite_enter(s, HF__SQLITE_RANK_ASKS, deadline_ns, err);
    if (code != 0)
        return code;
    code = hf__sqlite_still_ours(s, err);
    if (code == 0)
        code = show_all(s, search, err);
    hf__sqlite_leave(s);
    return code;
}
