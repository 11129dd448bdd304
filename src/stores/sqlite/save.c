/* Writes back what the doorman has changed. See record.c for how the record lies in rows.
 *
 * A function for each statement, since each has its own columns; after them, which of them a change
 * needs. Numbers that are kept in the lock's row (how many wait, how many tickets are retired) are
 * counted here and nowhere else: `doctor` compares them with the rows. */
#include <stdlib.h>

#include "stores/sqlite/sqlite.h"

#include "base/banned.h"

#define TOUCH_MS \
    60000 /* "last used" may be off by so much: otherwise every renewal would write it */

static void bind_instant(sqlite3_stmt *q, int at, int64_t ms)
{
    if (ms == HF__NEVER)
        sqlite3_bind_null(q, at);
    else
        sqlite3_bind_int64(q, at, ms);
}

static void bind_ticket(sqlite3_stmt *q, int at, const struct hf__ticket *ticket)
{
    sqlite3_bind_blob(q, at, ticket->bits, sizeof ticket->bits, SQLITE_STATIC);
}

static int add_lock(struct hf__sqlite *s, const struct hf__bid *bid, hf_error *err)
{
    sqlite3_stmt *q;
    int code = hf__sqlite_statement(s, HF__SQLITE_STATEMENT_ADD_LOCK, &q, err);

    if (code != 0)
        return code;
    sqlite3_bind_blob(q, 1, bid->name, (int)bid->name_len, SQLITE_STATIC);
    code = hf__sqlite_run(s, q, "add a lock", err);
    if (code == 0)
        s->lock.id = sqlite3_last_insert_rowid(s->db);
    s->tidy.due = true;
    return code;
}

static int set_lock(struct hf__sqlite *s, hf_error *err)
{
    sqlite3_stmt *q;
    int code = hf__sqlite_statement(s, HF__SQLITE_STATEMENT_SET_LOCK, &q, err);

    if (code != 0)
        return code;
    sqlite3_bind_int64(q, 1, s->lock.id);
    sqlite3_bind_int64(q, 2, (int64_t)s->lock.generation);
    sqlite3_bind_int64(q, 3, s->lock.last_seq);
    sqlite3_bind_int64(q, 4, s->lock.waiting);
    sqlite3_bind_int64(q, 5, s->lock.retired);
    sqlite3_bind_int64(q, 6, s->lock.touched);
    return hf__sqlite_run(s, q, "write", err);
}

static int flags_of(const struct hf__entry *e)
{
    return (e->tell ? HF__SQLITE_TELL : 0) | (e->told ? HF__SQLITE_TOLD : 0) |
           (e->opened ? HF__SQLITE_OPENED : 0) | (e->cached ? HF__SQLITE_CACHED : 0);
}

static int add_entry(struct hf__sqlite *s, const struct hf__entry *e, const struct hf__bid *bid,
                     hf_error *err)
{
    const struct hf__who *who = bid->who != NULL ? bid->who : s->base.host->self;
    sqlite3_stmt *q;
    int code = hf__sqlite_statement(s, HF__SQLITE_STATEMENT_ADD_ENTRY, &q, err);

    if (code != 0)
        return code;
    sqlite3_bind_int64(q, 1, s->lock.id);
    sqlite3_bind_int64(q, 2, ++s->lock.last_seq);
    bind_ticket(q, 3, &e->ticket);
    sqlite3_bind_int(q, 4, (int)e->place);
    sqlite3_bind_int(q, 5, (int)e->mode);
    sqlite3_bind_int64(q, 6, e->limit);
    sqlite3_bind_int64(q, 7, (int64_t)e->generation);
    sqlite3_bind_int64(q, 8, hf__ttl_stored(e->ttl_ms));
    sqlite3_bind_int64(q, 9, e->lock_delay_ms);
    sqlite3_bind_int64(q, 10, e->retire_ms);
    sqlite3_bind_int64(q, 11, e->since_ms);
    bind_instant(q, 12, e->until_ms);
    bind_instant(q, 13, e->lease_ms);
    sqlite3_bind_int(q, 14, e->claimed);
    if (s->wake.in >= 0) /* else NULL: it does not listen yet, and set_wake() may follow */
        sqlite3_bind_blob(q, 15, s->wake.name, sizeof s->wake.name, SQLITE_STATIC);
    sqlite3_bind_text(q, 16, who->host, -1, SQLITE_STATIC);
    sqlite3_bind_text(q, 17, who->user, -1, SQLITE_STATIC);
    sqlite3_bind_text(q, 18, who->program, -1, SQLITE_STATIC);
    sqlite3_bind_int64(q, 19, who->pid);
    sqlite3_bind_text(q, 20, who->note, -1, SQLITE_STATIC);
    sqlite3_bind_int(q, 21, flags_of(e));
    return hf__sqlite_run(s, q, "write", err);
}

static int set_entry(struct hf__sqlite *s, const struct hf__entry *e, int64_t seq, hf_error *err)
{
    sqlite3_stmt *q;
    int code = hf__sqlite_statement(s, HF__SQLITE_STATEMENT_SET_ENTRY, &q, err);

    if (code != 0)
        return code;
    sqlite3_bind_int64(q, 1, s->lock.id);
    sqlite3_bind_int64(q, 2, seq);
    sqlite3_bind_int(q, 3, (int)e->place);
    sqlite3_bind_int64(q, 4, (int64_t)e->generation);
    sqlite3_bind_int64(q, 5, e->since_ms);
    bind_instant(q, 6, e->until_ms);
    bind_instant(q, 7, e->lease_ms);
    sqlite3_bind_int(q, 8, e->claimed);
    sqlite3_bind_int(q, 9, flags_of(e));
    return hf__sqlite_run(s, q, "write", err);
}

/* Asks again now that it listens: the first time it had nowhere to be called. */
static int set_wake(struct hf__sqlite *s, struct hf__sqlite_row *row, hf_error *err)
{
    sqlite3_stmt *q;
    int code = hf__sqlite_statement(s, HF__SQLITE_STATEMENT_SET_WAKE, &q, err);

    if (code != 0)
        return code;
    sqlite3_bind_int64(q, 1, s->lock.id);
    sqlite3_bind_int64(q, 2, row->seq);
    sqlite3_bind_blob(q, 3, s->wake.name, sizeof s->wake.name, SQLITE_STATIC);
    row->can_wake = true;
    return hf__sqlite_run(s, q, "write", err);
}

static int drop_entry(struct hf__sqlite *s, int64_t seq, hf_error *err)
{
    sqlite3_stmt *q;
    int code = hf__sqlite_statement(s, HF__SQLITE_STATEMENT_DROP_ENTRY, &q, err);

    if (code != 0)
        return code;
    sqlite3_bind_int64(q, 1, s->lock.id);
    sqlite3_bind_int64(q, 2, seq);
    return hf__sqlite_run(s, q, "write", err);
}

/* Whoever adds a tombstone clears away those that have ended, so that they do not pile up. */
static int forget_retired(struct hf__sqlite *s, int64_t now_ms, hf_error *err)
{
    sqlite3_stmt *q;
    int code = hf__sqlite_statement(s, HF__SQLITE_STATEMENT_FORGET_RETIRED, &q, err);

    if (code != 0)
        return code;
    sqlite3_bind_int64(q, 1, s->lock.id);
    sqlite3_bind_int64(q, 2, now_ms);
    code = hf__sqlite_run(s, q, "write", err);
    if (code == 0)
        s->lock.retired -= sqlite3_changes(s->db);
    return code;
}

static int save_retired(struct hf__sqlite *s, const struct hf__entry *e, bool is_new, hf_error *err)
{
    sqlite3_stmt *q;
    int code = hf__sqlite_statement(s, HF__SQLITE_STATEMENT_ADD_RETIRED, &q, err);

    s->lock.retired += is_new;
    if (code != 0)
        return code;
    sqlite3_bind_int64(q, 1, s->lock.id);
    bind_ticket(q, 2, &e->ticket);
    sqlite3_bind_int64(q, 3, e->until_ms);
    sqlite3_bind_int64(q, 4, e->lease_ms);
    return hf__sqlite_run(s, q, "write", err);
}

static int drop_retired(struct hf__sqlite *s, const struct hf__entry *e, hf_error *err)
{
    sqlite3_stmt *q;
    int code = hf__sqlite_statement(s, HF__SQLITE_STATEMENT_DROP_RETIRED, &q, err);

    if (code != 0)
        return code;
    sqlite3_bind_int64(q, 1, s->lock.id);
    bind_ticket(q, 2, &e->ticket);
    code = hf__sqlite_run(s, q, "write", err);
    if (code == 0)
        s->lock.retired -= sqlite3_changes(s->db);
    return code;
}

static bool differs(const struct hf__entry *a, const struct hf__entry *b)
{
    return a->place != b->place || a->generation != b->generation || a->since_ms != b->since_ms ||
           a->until_ms != b->until_ms || a->lease_ms != b->lease_ms || a->claimed != b->claimed ||
           flags_of(a) != flags_of(b);
}

/* A name gets its row with the first entry: bids that are refused at once leave none behind. */
static int save_new(struct hf__sqlite *s, const struct hf__entry *e, const struct hf__operation *op,
                    struct hf__moment at, hf_error *err)
{
    const struct hf__bid *bid = op->bid;
    int code = 0;

    if (e->place == HF__PLACE_GONE)
        return 0;
    if (s->lock.id == 0)
        code = add_lock(s, bid, err);
    if (code != 0)
        return code;
    if (e->place == HF__PLACE_RETIRED)
        return save_retired(s, e, true, err);
    s->lock.waiting += e->place == HF__PLACE_WAITING;
    code = add_entry(s, e, bid, err);
    return code == 0 && s->history > 0 ? hf__sqlite_note(s, op, at, e, s->lock.last_seq, err)
                                       : code;
}

static int save_old(struct hf__sqlite *s, const struct hf__entry *e, const struct hf__operation *op,
                    struct hf__moment at, hf_error *err)
{
    const struct hf__sqlite_row *row = e->who;
    int code;

    if (!differs(e, &row->was))
        return 0;
    if (row->was.place == HF__PLACE_RETIRED)
        return e->place == HF__PLACE_GONE ? drop_retired(s, e, err)
                                          : save_retired(s, e, false, err);
    /* A grant that never expires survives a power cut, and so must its end: see db.c. */
    if (row->was.until_ms == HF__NEVER || e->until_ms == HF__NEVER)
        s->durable = true;
    if (e->opened && !row->was.opened) /* or a power cut would end it without a doubt */
        s->durable = true;
    s->lock.waiting += (e->place == HF__PLACE_WAITING) - (row->was.place == HF__PLACE_WAITING);
    if (s->history > 0 && (code = hf__sqlite_note(s, op, at, e, row->seq, err)) != 0)
        return code;
    if (e->place != HF__PLACE_GONE && e->place != HF__PLACE_RETIRED)
        return set_entry(s, e, row->seq, err);
    code = drop_entry(s, row->seq, err);
    return code != 0 || e->place == HF__PLACE_GONE ? code : save_retired(s, e, true, err);
}

void hf__sqlite_call(struct hf__sqlite *s, const struct hf__entry *entry, uint64_t generation)
{
    const struct hf__sqlite_row *row = entry->who;
    struct hf__sqlite_call *call;

    if (row == NULL || !row->can_wake)
        return;
    if (s->call_count == s->call_capacity) {
        size_t capacity = s->call_capacity == 0 ? 8 : s->call_capacity * 2;
        void *grown = realloc(s->calls, capacity * sizeof *s->calls);
        if (grown == NULL)
            return; /* it will ask by itself */
        s->calls = grown;
        s->call_capacity = capacity;
    }
    call = &s->calls[s->call_count++];
    *call = (struct hf__sqlite_call){.ticket = entry->ticket, .generation = generation};
    memcpy(call->wake, row->wake, sizeof call->wake);
}

static bool lock_differs(const struct hf__sqlite_lock *a, const struct hf__sqlite_lock *b)
{
    return a->id != b->id || a->generation != b->generation || a->last_seq != b->last_seq ||
           a->waiting != b->waiting || a->retired != b->retired;
}

int hf__sqlite_save(struct hf__sqlite *s, const struct hf__operation *op, struct hf__moment at,
                    hf_error *err)
{
    const struct hf__bid *bid = op->bid;
    struct hf__sqlite_lock before = s->lock;
    int64_t wall_ms = (int64_t)(at.stamp_us / 1000);
    int code = 0;

    for (size_t i = 0; i < s->record.count && code == 0; i++) {
        const struct hf__entry *e = &s->record.entries[i];
        if (e->effects == 0)
            continue;
        code =
            e->effects & HF__EFFECT_NEW ? save_new(s, e, op, at, err) : save_old(s, e, op, at, err);
        const struct hf__sqlite_row *row = e->who;
        bool own = hf__ticket_equal(&e->ticket, &bid->ticket);
        bool ended = e->place == HF__PLACE_GONE || e->place == HF__PLACE_RETIRED;
        /* An attempt learns of it from its answer, a renewal does not. */
        if ((e->effects & HF__EFFECT_LET_IN) && (!own || bid->who == NULL))
            hf__sqlite_call(s, e, e->generation);
        if (e->effects & HF__EFFECT_WANTED)
            hf__sqlite_call(s, e, 0);
        /* Somebody else's time ran out. It is to ask, if it lives; else its socket goes. */
        if (!own && !(e->effects & HF__EFFECT_NEW) && ended)
            hf__sqlite_call(s, e, 0);
        if (code == 0 && own && bid->who != NULL && e->place == HF__PLACE_WAITING && row != NULL &&
            !row->can_wake && s->wake.in >= 0)
            code = set_wake(s, e->who, err);
    }
    if (code == 0 && s->record.doubt && !s->in_doubt)
        code = hf__sqlite_doubt_value(s, bid, err);
    if (code != 0 || s->lock.id == 0)
        return code;
    s->lock.generation = s->record.generation;
    if (s->lock.retired > before.retired)
        code = forget_retired(s, at.now_ms, err);
    if (code != 0 || (!lock_differs(&s->lock, &before) && wall_ms - s->lock.touched < TOUCH_MS))
        return code;
    s->lock.touched = wall_ms;
    return set_lock(s, err);
}
