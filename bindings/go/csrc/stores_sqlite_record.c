/* The doorman's record in rows: loads the part of it that an operation can need, writes what
 * changed.
 *
 * What is loaded: everybody inside, the first few who wait, those whose sign of life is overdue,
 * and the one the operation is about. In the order of seq those inside come before those who wait
 * (nobody is let in past the head of the queue), so the first two are one walk over the primary key
 * that is stopped early. The rest of the queue is only a number, kept in the lock's row. Retired
 * tickets are in a table of their own: they matter to a bid of the same ticket only.
 *
 * Only what differs from the loaded row is written: a renewal of a grant that never expires is no
 * write. */
#include <stdlib.h>

#include "doorman_sound.h"
#include "stores_sqlite_sqlite.h"

#include "base_banned.h"

#define COUNTABLE_MAX 1000 /* beyond it a place in the queue is not worth its cost */

static int corrupt(const char *what, hf_error *err)
{
    return hf__fail(err, HF_CORRUPT, "sqlite: %s; see `holdfast doctor`", what);
}

/* Two arrays that grow together; one entry more than asked for, since the doorman may add one. */
static int make_room(struct hf__sqlite *s, hf_error *err)
{
    size_t capacity = s->record.capacity * 2;
    void *grown;

    if (s->record.count + 2 <= s->record.capacity)
        return 0;
    if (capacity < 16)
        capacity = 16;
    grown = realloc(s->record.entries, capacity * sizeof *s->record.entries);
    if (grown == NULL)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    s->record.entries = grown;
    grown = realloc(s->rows, capacity * sizeof *s->rows);
    if (grown == NULL)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    s->rows = grown;
    s->record.capacity = capacity;
    return 0;
}

static bool read_bits(sqlite3_stmt *statement, int column, void *bits, size_t size)
{
    const void *blob = sqlite3_column_blob(statement, column);

    if (blob == NULL || (size_t)sqlite3_column_bytes(statement, column) != size)
        return false;
    memcpy(bits, blob, size);
    return true;
}

static int64_t read_instant(sqlite3_stmt *statement, int column)
{
    if (sqlite3_column_type(statement, column) == SQLITE_NULL)
        return HF__NEVER;
    return sqlite3_column_int64(statement, column);
}

int hf__sqlite_read_entry(sqlite3_stmt *q, struct hf__sqlite_row *ret_row, hf_error *err)
{
    struct hf__sqlite_row row = {.seq = sqlite3_column_int64(q, 0)};
    int64_t place = sqlite3_column_int64(q, 2), room = sqlite3_column_int64(q, 4);

    if (!read_bits(q, 1, row.was.ticket.bits, sizeof row.was.ticket.bits))
        return corrupt("a ticket is not 16 bytes long", err);
    if (place != HF__PLACE_WAITING && place != HF__PLACE_INSIDE && place != HF__PLACE_LINGERING)
        return corrupt("an entry is neither waiting nor inside", err);
    row.was.place = (enum hf__place)place;
    row.was.mode = sqlite3_column_int(q, 3) == HF_SHARED ? HF_SHARED : HF_EXCLUSIVE;
    row.was.limit = (uint32_t)room;
    row.was.generation = (uint64_t)sqlite3_column_int64(q, 5);
    row.was.ttl_ms = hf__ttl_of_stored(sqlite3_column_int64(q, 6));
    row.was.lock_delay_ms = sqlite3_column_int64(q, 7);
    row.was.retire_ms = sqlite3_column_int64(q, 8);
    row.was.since_ms = sqlite3_column_int64(q, 9);
    row.was.until_ms = read_instant(q, 10);
    row.was.lease_ms = read_instant(q, 11);
    row.was.claimed = sqlite3_column_int(q, 12) != 0;
    int flags = sqlite3_column_int(q, 14);
    row.was.tell = (flags & HF__SQLITE_TELL) != 0;
    row.was.told = (flags & HF__SQLITE_TOLD) != 0;
    row.was.opened = (flags & HF__SQLITE_OPENED) != 0;
    row.was.cached = (flags & HF__SQLITE_CACHED) != 0;
    if (room < 0 || room > UINT32_MAX || !hf__entry_is_sound(&row.was))
        return corrupt("a number of an entry is out of range", err);
    row.can_wake = read_bits(q, 13, row.wake, sizeof row.wake);
    *ret_row = row;
    return 0;
}

static int take_entry(struct hf__sqlite *s, sqlite3_stmt *q, hf_error *err)
{
    struct hf__sqlite_row row;
    int code = make_room(s, err);

    if (code == 0)
        code = hf__sqlite_read_entry(q, &row, err);
    if (code != 0)
        return code;
    s->rows[s->record.count] = row;
    s->record.entries[s->record.count++] = row.was;
    return 0;
}

static int take_retired(struct hf__sqlite *s, sqlite3_stmt *q, hf_error *err)
{
    struct hf__sqlite_row row = {.was = {.place = HF__PLACE_RETIRED}};
    int code = make_room(s, err);

    if (code != 0)
        return code;
    if (!read_bits(q, 0, row.was.ticket.bits, sizeof row.was.ticket.bits))
        return corrupt("a retired ticket is not 16 bytes long", err);
    row.was.until_ms = sqlite3_column_int64(q, 1);
    row.was.lease_ms = sqlite3_column_int64(q, 2);
    if (!hf__entry_is_sound(&row.was))
        return corrupt("a number of a retired ticket is out of range", err);
    s->rows[s->record.count] = row;
    s->record.entries[s->record.count++] = row.was;
    return 0;
}

/* Takes every row of a bound statement, or so many that wait; *ret_waiting counts those that do. */
static int take_all(struct hf__sqlite *s, sqlite3_stmt *q, size_t most, size_t *ret_waiting,
                    hf_error *err)
{
    int code = 0, result = SQLITE_ROW;

    while (code == 0 && *ret_waiting < most && (result = sqlite3_step(q)) == SQLITE_ROW) {
        code = take_entry(s, q, err);
        if (code == 0)
            *ret_waiting += s->record.entries[s->record.count - 1].place == HF__PLACE_WAITING;
    }
    if (code == 0 && result != SQLITE_ROW && result != SQLITE_DONE)
        code = hf__sqlite_fail(s, result, "read", err);
    hf__sqlite_done(q);
    return code;
}

/* Somebody may have written it by hand; entries are looked at one by one. */
static bool is_sound(const struct hf__sqlite_lock *l)
{
    const struct hf__record record = {.generation = l->generation};

    return hf__record_is_sound(&record) && l->last_seq >= 0 && l->last_seq < INT64_C(1) << 53 &&
           l->waiting >= 0 && l->waiting <= INT32_MAX && l->retired >= 0 && l->retired <= INT32_MAX;
}

static int find_lock(struct hf__sqlite *s, const struct hf__sqlite_window *w, hf_error *err)
{
    sqlite3_stmt *q;
    int code = hf__sqlite_statement(s, HF__SQLITE_STATEMENT_FIND_LOCK, &q, err);
    int result;

    s->lock = (struct hf__sqlite_lock){0};
    if (code != 0)
        return code;
    sqlite3_bind_blob(q, 1, w->name, (int)w->name_len, SQLITE_STATIC);
    result = sqlite3_step(q);
    if (result == SQLITE_ROW)
        s->lock = (struct hf__sqlite_lock){.id = sqlite3_column_int64(q, 0),
                                           .generation = (uint64_t)sqlite3_column_int64(q, 1),
                                           .last_seq = sqlite3_column_int64(q, 2),
                                           .waiting = sqlite3_column_int64(q, 3),
                                           .retired = sqlite3_column_int64(q, 4),
                                           .touched = sqlite3_column_int64(q, 5)};
    else if (result != SQLITE_DONE)
        code = hf__sqlite_fail(s, result, "read", err);
    hf__sqlite_done(q);
    if (code == 0 && !is_sound(&s->lock))
        code = corrupt("a number of a lock is out of range", err);
    return code;
}

/* The own ticket's tombstone; all of them once they are so many that new bids may be refused. */
static int load_retired(struct hf__sqlite *s, const struct hf__sqlite_window *w, hf_error *err)
{
    bool all = s->lock.retired >= HF__RETIRED_MAX || w->waiters == SIZE_MAX;
    sqlite3_stmt *q;
    int code = 0, result = SQLITE_DONE;

    if (s->lock.retired == 0 || !w->remembered)
        return 0;
    code = hf__sqlite_statement(
        s, all ? HF__SQLITE_STATEMENT_ALL_RETIRED : HF__SQLITE_STATEMENT_FIND_RETIRED, &q, err);
    if (code != 0)
        return code;
    sqlite3_bind_int64(q, 1, s->lock.id);
    if (!all)
        sqlite3_bind_blob(q, 2, w->ticket->bits, sizeof w->ticket->bits, SQLITE_STATIC);
    while (code == 0 && (result = sqlite3_step(q)) == SQLITE_ROW)
        code = take_retired(s, q, err);
    if (code == 0 && result != SQLITE_DONE)
        code = hf__sqlite_fail(s, result, "read", err);
    hf__sqlite_done(q);
    return code;
}

/* Those behind the head that matter all the same. */
static int load_behind(struct hf__sqlite *s, const struct hf__sqlite_window *w, size_t *waiting,
                       hf_error *err)
{
    sqlite3_stmt *q;
    int code = hf__sqlite_statement(s, HF__SQLITE_STATEMENT_OVERDUE, &q, err);

    if (code != 0)
        return code;
    sqlite3_bind_int64(q, 1, s->lock.id);
    sqlite3_bind_int64(q, 2, w->now_ms);
    sqlite3_bind_int64(q, 3, s->rows[s->record.count - 1].seq);
    code = take_all(s, q, SIZE_MAX, waiting, err);
    if (code != 0 || w->ticket == NULL || hf__record_find(&s->record, w->ticket) != NULL)
        return code;
    code = hf__sqlite_statement(s, HF__SQLITE_STATEMENT_BY_TICKET, &q, err);
    if (code != 0)
        return code;
    sqlite3_bind_int64(q, 1, s->lock.id);
    sqlite3_bind_blob(q, 2, w->ticket->bits, sizeof w->ticket->bits, SQLITE_STATIC);
    return take_all(s, q, SIZE_MAX, waiting, err);
}

/* The count in the lock's row is held against what was found, as far as that can be told without
 * reading all: a queue of thousands costs an operation no more than one of ten. */
static int load_line(struct hf__sqlite *s, const struct hf__sqlite_window *w, hf_error *err)
{
    sqlite3_stmt *q;
    int code = hf__sqlite_statement(s, HF__SQLITE_STATEMENT_LINE, &q, err);
    size_t waiting = 0;

    if (code != 0)
        return code;
    sqlite3_bind_int64(q, 1, s->lock.id);
    code = take_all(s, q, w->waiters, &waiting, err);
    s->record.gap = s->record.count;
    if (code == 0 && waiting < w->waiters && waiting < (size_t)s->lock.waiting)
        return corrupt("fewer wait than were counted", err);
    if (code == 0 && waiting < (size_t)s->lock.waiting)
        code = load_behind(s, w, &waiting, err);
    if (code == 0 && waiting > (size_t)s->lock.waiting)
        return corrupt("more wait than were counted", err);
    if (code == 0)
        s->record.unseen = (size_t)s->lock.waiting - waiting;
    return code;
}

int hf__sqlite_load(struct hf__sqlite *s, const struct hf__sqlite_window *w, hf_error *err)
{
    int code = find_lock(s, w, err);

    s->record.count = s->record.unseen = s->record.gap = 0;
    s->record.generation = s->lock.generation;
    s->record.value_generation = s->record.value_order = 0;
    s->record.doubt = false;
    if (code == 0 && w->value != NULL) {
        code = hf__sqlite_load_value(s, w->name, w->name_len, w->value, err);
        s->record.value_generation = w->value->generation;
        s->record.value_order = w->value->order;
        s->record.doubt = w->value->doubt;
    }
    s->in_doubt = s->record.doubt;
    if (code == 0)
        code = make_room(s, err);
    if (code != 0 || s->lock.id == 0)
        return code;
    code = load_retired(s, w, err);
    if (code == 0)
        code = load_line(s, w, err);
    for (size_t i = 0; i < s->record.count; i++)
        s->record.entries[i].who = &s->rows[i];
    return code;
}

int hf__sqlite_ahead(struct hf__sqlite *s, const struct hf__entry *entry, size_t *ret_count,
                     hf_error *err)
{
    const struct hf__sqlite_row *row = entry->who;
    sqlite3_stmt *q;
    int code = hf__sqlite_statement(s, HF__SQLITE_STATEMENT_AHEAD, &q, err);
    int result;

    if (code != 0)
        return code;
    sqlite3_bind_int64(q, 1, s->lock.id);
    sqlite3_bind_int64(q, 2, row->seq);
    sqlite3_bind_int64(q, 3, COUNTABLE_MAX);
    result = sqlite3_step(q);
    if (result == SQLITE_ROW)
        *ret_count = (size_t)sqlite3_column_int64(q, 0);
    else
        code = hf__sqlite_fail(s, result, "count", err);
    if (code == 0 && *ret_count >= COUNTABLE_MAX)
        *ret_count = SIZE_MAX;
    hf__sqlite_done(q);
    return code;
}
