/* A row of the table `locks` as the doorman's record, and back.
 *
 * Each entry is a value of the type `bid` of schema.cql: its fields in that order, each with its
 * length before it. A tombstone has the first four only; Cassandra takes what is missing as
 * null. */
#include <stdlib.h>

#include "doorman/sound.h"
#include "stores/cassandra/cassandra.h"

#include "base/banned.h"

static const char *const states[] = {[HF__PLACE_WAITING] = "waiting",
                                     [HF__PLACE_INSIDE] = "inside",
                                     [HF__PLACE_LINGERING] = "lingering",
                                     [HF__PLACE_RETIRED] = "retired"};

static int corrupt(const char *what, hf_error *err)
{
    return hf__fail(err, HF_CORRUPT, "cassandra: %s; see `holdfast doctor`", what);
}

/* Reading ------------------------------------------------------------------ */

static bool is_text(struct hf__cql_bytes bytes, const char *text)
{
    return bytes.len == strlen(text) && memcmp(bytes.data, text, bytes.len) == 0;
}

static int64_t take_number(struct hf__cql_reader *r, int64_t if_null)
{
    int64_t value;

    return hf__cql_get_bigint(hf__cql_take_bytes(r), &value) ? value : if_null;
}

static int read_entry(struct hf__cql_bytes bytes, struct hf__entry *e, struct hf__cs_extra *x,
                      hf_error *err)
{
    struct hf__cql_reader r = hf__cql_reader_of(bytes);
    char ticket[HF_TICKET_SIZE] = "";

    *e = (struct hf__entry){0};
    *x = (struct hf__cs_extra){0};
    struct hf__cql_bytes text = hf__cql_take_bytes(&r), state = hf__cql_take_bytes(&r);
    if (text.len == sizeof ticket - 1)
        memcpy(ticket, text.data, text.len);
    if (!hf__ticket_parse(ticket, &e->ticket))
        return corrupt("a ticket is not 32 hex digits", err);
    e->place = HF__PLACE_WAITING;
    while (e->place <= HF__PLACE_RETIRED &&
           (state.data == NULL || !is_text(state, states[e->place])))
        e->place++;
    if (e->place > HF__PLACE_RETIRED)
        return corrupt("a bid is neither waiting nor inside", err);
    e->until_ms = take_number(&r, HF__NEVER);
    e->lease_ms = take_number(&r, HF__NEVER);
    if (e->place != HF__PLACE_RETIRED) {
        e->since_ms = take_number(&r, 0);
        struct hf__cql_bytes mode = hf__cql_take_bytes(&r);
        e->mode = mode.data != NULL && is_text(mode, "shared") ? HF_SHARED : HF_EXCLUSIVE;
        e->limit = (uint32_t)take_number(&r, 0);
        e->generation = (uint64_t)take_number(&r, 0);
        hf__cql_get_boolean(hf__cql_take_bytes(&r), &e->claimed);
        e->ttl_ms = hf__ttl_of_stored(take_number(&r, 0));
        x->skew_ms = take_number(&r, 0);
        e->lock_delay_ms = take_number(&r, 0);
        e->retire_ms = take_number(&r, 0);
        x->host = hf__cql_take_bytes(&r);
        x->user = hf__cql_take_bytes(&r);
        x->program = hf__cql_take_bytes(&r);
        x->pid = take_number(&r, 0);
        x->note = hf__cql_take_bytes(&r);
    }
    if (r.failed)
        return corrupt("a bid is too short", err);
    if (!hf__entry_is_sound(e) || x->skew_ms < 0 || x->skew_ms > HF__SPAN_MAX_MS)
        return corrupt("a number of a bid is out of range", err);
    /* The row has what the client asked for, the doorman what the lease must be. */
    if (e->ttl_ms != HF__NEVER)
        e->ttl_ms += x->skew_ms;
    return 0;
}

static int make_room(struct hf__cs_row *row, size_t more, hf_error *err)
{
    size_t capacity = row->count + more;

    if (capacity <= row->capacity && row->was != NULL)
        return 0;
    void *was = realloc(row->was, capacity * sizeof *row->was);
    if (was != NULL)
        row->was = was;
    void *extras = realloc(row->extras, capacity * sizeof *row->extras);
    if (extras != NULL)
        row->extras = extras;
    void *entries = realloc(row->record.entries, capacity * sizeof *row->record.entries);
    if (entries != NULL)
        row->record.entries = entries;
    if (was == NULL || extras == NULL || entries == NULL)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    row->capacity = row->record.capacity = capacity;
    return 0;
}

static int take_list(struct hf__cs_row *row, struct hf__cql_bytes list, hf_error *err)
{
    struct hf__cql_reader r = hf__cql_reader_of(list);
    size_t count = list.data != NULL ? hf__cql_take_count(&r, 4) : 0;

    if (r.failed)
        return corrupt("a collection is too short", err);
    int code = make_room(row, count + 1, err); /* the doorman may add one */

    for (size_t i = 0; i < count && code == 0; i++) {
        struct hf__cql_bytes entry = hf__cql_take_bytes(&r);
        if (r.failed || entry.data == NULL)
            return corrupt("a collection is too short", err);
        code = read_entry(entry, &row->was[row->count], &row->extras[row->count], err);
        row->count += code == 0;
    }
    return code;
}

int hf__cs_row_take(struct hf__cs_row *row, const struct hf__cs_packed *packed, hf_error *err)
{
    row->count = 0;
    int code = take_list(row, packed->holders, err);
    if (code == 0)
        code = take_list(row, packed->waiters, err);
    if (code == 0)
        code = take_list(row, packed->retired, err);
    for (size_t i = 0; i < row->count; i++)
        row->was[i].who = &row->extras[i];
    return code;
}

void hf__cs_row_clear(struct hf__cs_row *row)
{
    free(row->was);
    free(row->extras);
    free(row->record.entries);
    hf__cql_result_clear(&row->result);
    *row = (struct hf__cs_row){0};
}

const struct hf__entry *hf__cs_row_was(const struct hf__cs_row *row,
                                       const struct hf__ticket *ticket)
{
    for (size_t i = 0; i < row->count; i++) {
        if (hf__ticket_equal(&row->was[i].ticket, ticket))
            return &row->was[i];
    }
    return NULL;
}

/* Writing ------------------------------------------------------------------ */

static void put(struct hf__cql_writer *w, struct hf__cql_value value)
{
    hf__cql_put_value(w, &value);
}

static void put_number(struct hf__cql_writer *w, int64_t value)
{
    put(w, value == HF__NEVER ? hf__cql_null() : hf__cql_bigint(value));
}

/* A waiter that was only assumed to be alive keeps the `until` it had. */
static int64_t until_of(const struct hf__cs_row *row, const struct hf__entry *e)
{
    const struct hf__cs_extra *x = e->who;
    const struct hf__entry *was = hf__cs_row_was(row, &e->ticket);

    if (e->place == HF__PLACE_WAITING && x != NULL && x->proof == HF__CS_PROOF_ASSUMED &&
        was != NULL && was->place == HF__PLACE_WAITING)
        return was->until_ms;
    return e->until_ms;
}

static void put_entry(struct hf__cql_writer *w, const struct hf__cs_row *row,
                      const struct hf__entry *e)
{
    const struct hf__cs_extra *x = e->who;
    char ticket[HF_TICKET_SIZE];
    size_t place = hf__cql_begin_bytes(w);

    hf__ticket_format(&e->ticket, ticket);
    put(w, hf__cql_text(ticket));
    put(w, hf__cql_text(states[e->place]));
    put_number(w, until_of(row, e));
    put_number(w, e->lease_ms);
    if (e->place != HF__PLACE_RETIRED) { /* nobody asks who left a tombstone, and there are many */
        put_number(w, e->since_ms);
        put(w, hf__cql_text(e->mode == HF_SHARED ? "shared" : "exclusive"));
        put_number(w, e->limit);
        put_number(w, (int64_t)e->generation);
        put(w, hf__cql_boolean(e->claimed));
        put_number(w, e->ttl_ms != HF__NEVER ? e->ttl_ms - x->skew_ms : 0);
        put_number(w, x->skew_ms);
        put_number(w, e->lock_delay_ms);
        put_number(w, e->retire_ms);
        hf__cql_put_bytes(w, x->host);
        hf__cql_put_bytes(w, x->user);
        hf__cql_put_bytes(w, x->program);
        put_number(w, x->pid);
        hf__cql_put_bytes(w, x->note);
    }
    hf__cql_end_bytes(w, place);
}

void hf__cs_pack(struct hf__cql_writer *w, const struct hf__cs_row *row, unsigned places)
{
    size_t place = hf__cql_reserve_int(w);
    int32_t count = 0;

    for (size_t i = 0; i < row->record.count; i++) {
        const struct hf__entry *e = &row->record.entries[i];
        if (!(HF__CS_IN(e->place) & places))
            continue;
        put_entry(w, row, e);
        count++;
    }
    hf__cql_fill_int(w, place, count);
}
