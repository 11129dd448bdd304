/* Setup, which opening has done already, and the removal of what has been idle for long. A value is
 * not: it stays, without a row of its lock, until a holder has made it empty.
 *
 * A lock's row is kept for its generation. Without it the next one is taken from the wall clock
 * alone, which is above it as long as the clock was not put back by more than `retain`.
 *
 * Rows come with new names only, so whoever adds one looks at a few others, from a place at random,
 * and so does everybody now and then. Who finds an idle one removes it, in a transaction of its own
 * that waits for nobody, and looks again with its next operation. */
#include "base_backoff.h"
#include "stores_sqlite_sqlite.h"

#include "base_banned.h"

#define PURGE_BATCH 200 /* locks in one transaction, then others get their turn */
#define TIDY_LOOKS  4   /* locks looked at with one operation */

struct purge {
    int64_t before_ms; /* wall clock */
    int64_t last_id;
    size_t seen; /* in this batch */
    uint64_t removed;
};

/* What has run out but was never swept must not keep an idle lock alive. */
static int purge_lock(struct hf__sqlite *s, struct purge *p, const char *name, size_t name_len,
                      hf_error *err)
{
    struct hf__moment at = hf__sqlite_moment(s, NULL);
    struct hf__sqlite_window everything = {.name = name,
                                           .name_len = name_len,
                                           .waiters = SIZE_MAX,
                                           .remembered = true,
                                           .now_ms = at.now_ms};
    struct hf__bid nobody = {.name = name, .name_len = name_len};
    struct hf__operation sweep = {.kind = HF__OPERATION_SWEEP, .bid = &nobody};
    sqlite3_stmt *q;
    bool empty = true;
    int code = hf__sqlite_load(s, &everything, err);

    if (code != 0)
        return code;
    hf__doorman_apply(&s->record, &sweep, at);
    for (size_t i = 0; i < s->record.count; i++)
        empty = empty && s->record.entries[i].place == HF__PLACE_GONE;
    code = hf__sqlite_save(s, &sweep, at, err);
    p->removed += empty;
    if (code == 0 && empty)
        code = hf__sqlite_statement(s, HF__SQLITE_STATEMENT_DROP_LOCK, &q, err);
    if (code != 0 || !empty)
        return code;
    sqlite3_bind_int64(q, 1, s->lock.id);
    code = hf__sqlite_run(s, q, "purge", err);
    if (code == 0)
        hf__sqlite_drop_trail(s);
    return code == 0 ? hf__sqlite_drop_value(s, &nobody, err) : code;
}

static int purge_some(struct hf__sqlite *s, struct purge *p, hf_error *err)
{
    sqlite3_stmt *q;
    int code = hf__sqlite_statement(s, HF__SQLITE_STATEMENT_WALK, &q, err), result = SQLITE_ROW;

    if (code != 0)
        return code;
    sqlite3_bind_int64(q, 1, p->last_id);
    sqlite3_bind_int(q, 2, PURGE_BATCH);
    while (code == 0 && (result = sqlite3_step(q)) == SQLITE_ROW) {
        p->last_id = sqlite3_column_int64(q, 0);
        p->seen++;
        if (sqlite3_column_int64(q, 2) > p->before_ms)
            continue;
        const char *name = sqlite3_column_blob(q, 1);
        code = purge_lock(s, p, name, (size_t)sqlite3_column_bytes(q, 1), err);
    }
    if (code == 0 && result != SQLITE_DONE)
        code = hf__sqlite_fail(s, result, "purge", err);
    hf__sqlite_done(q);
    return code;
}

static int purge_batch(struct hf__sqlite *s, struct purge *p, int64_t deadline_ns, hf_error *err)
{
    int code = hf__sqlite_enter(s, HF__SQLITE_RANK_ASKS, deadline_ns, err);

    p->seen = 0;
    if (code != 0)
        return code;
    code = hf__sqlite_begin(s, err);
    if (code == 0) {
        code = purge_some(s, p, err);
        if (code == 0)
            code = hf__sqlite_commit(s, err);
        else
            hf__sqlite_rollback(s, NULL);
    }
    hf__sqlite_leave(s);
    return code;
}

static int64_t idle_since(struct hf__sqlite *s, int64_t retain_ms)
{
    return (int64_t)(hf__sqlite_moment(s, NULL).stamp_us / 1000) -
           (retain_ms > 0 ? retain_ms : s->retain_ms);
}

/* It ends in time with what it has removed, and the next call goes on: all of 600,000 idle rows in
 * one operation would run into its time limit, and `gc` would fail. */
static int purge(struct hf__sqlite *s, int64_t retain_ms, int64_t deadline_ns, uint64_t *ret_count,
                 hf_error *err)
{
    const struct hf_env *env = s->base.host->env;
    int64_t enough_ns = hf__now_ns(env) + (deadline_ns - hf__now_ns(env)) / 2;
    struct purge p = {.before_ms = idle_since(s, retain_ms)};
    int code;

    do
        code = purge_batch(s, &p, deadline_ns, err);
    while (code == 0 && p.seen == PURGE_BATCH && (p.removed == 0 || hf__now_ns(env) < enough_ns));
    if (code == 0 && (code = hf__sqlite_enter(s, HF__SQLITE_RANK_ASKS, deadline_ns, err)) == 0) {
        hf__sqlite_stale_sockets(s, true);
        hf__sqlite_leave(s);
    }
    if (code != 0 && (code != HF_UNAVAILABLE || p.removed == 0))
        return code;
    if (ret_count != NULL)
        *ret_count = p.removed; /* there may be more: the next call goes on */
    return 0;
}

/* An idle one among the next few; its name is copied. */
static bool find_idle(struct hf__sqlite *s, char *name, size_t *ret_len)
{
    int64_t before_ms = idle_since(s, 0);
    sqlite3_stmt *q;
    int result = SQLITE_DONE, seen = 0;
    bool found = false;

    if (hf__sqlite_statement(s, HF__SQLITE_STATEMENT_WALK, &q, NULL) != 0)
        return false;
    sqlite3_bind_int64(q, 1, s->tidy.last_id);
    sqlite3_bind_int(q, 2, TIDY_LOOKS);
    while (!found && (result = sqlite3_step(q)) == SQLITE_ROW) {
        size_t len = (size_t)sqlite3_column_bytes(q, 1);
        s->tidy.last_id = sqlite3_column_int64(q, 0);
        seen++;
        found = sqlite3_column_int64(q, 2) <= before_ms && len > 0 && len <= HF_NAME_MAX;
        if (found) {
            memcpy(name, sqlite3_column_blob(q, 1), len);
            *ret_len = len;
        }
    }
    hf__sqlite_done(q);
    if (!found && seen < TIDY_LOOKS)
        s->tidy.last_id = 0; /* from the beginning next time */
    return found;
}

void hf__sqlite_tidy(struct hf__sqlite *s)
{
    struct purge p = {0};
    char name[HF_NAME_MAX];
    size_t len = 0;

    if (s->tidy.last_id < 0)
        s->tidy.last_id = (int64_t)hf__jitter(&s->jitter, (uint64_t)s->lock.id + 1);
    s->tidy.due = find_idle(s, name, &len);
    if (!s->tidy.due || hf__sqlite_begin_at_once(s) != 0)
        return;
    if (purge_lock(s, &p, name, len, NULL) == 0)
        hf__sqlite_commit(s, NULL);
    else
        hf__sqlite_rollback(s, NULL);
}

int hf__sqlite_upkeep(struct hf__store *store, enum hf__upkeep what, int64_t retain_ms,
                      int64_t deadline_ns, uint64_t *ret_count, hf_error *err)
{
    struct hf__sqlite *s = (struct hf__sqlite *)store;

    if (what == HF__UPKEEP_PURGE)
        return purge(s, retain_ms, deadline_ns, ret_count, err);
    if (ret_count != NULL)
        *ret_count = 0;
    int code = hf__sqlite_enter(s, HF__SQLITE_RANK_ASKS, deadline_ns, err);
    if (code != 0)
        return code;
    code = hf__sqlite_still_ours(s, err);
    hf__sqlite_leave(s);
    return code;
}
