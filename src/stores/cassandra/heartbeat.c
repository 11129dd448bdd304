/* Heartbeats: signs of life of those who wait, in a table of their own.
 *
 *   INSERT INTO signs (name, ticket, seen) VALUES (?, ?, currentTimestamp()) USING TTL ?
 *
 * A plain write, at QUORUM, every third of the waiter's own lease: the lock's row, which is
 * expensive to change, is left alone while people only wait. `seen` is the node's time, so that a
 * waiter is dead when seen + own lease has passed, to the millisecond; the TTL, which is of whole
 * seconds and longer, only clears away. A heartbeat that comes too late or is lost costs its waiter its
 * place, never anybody's lock. */
#include <stdlib.h>

#include "stores/cassandra/cassandra.h"

#include "base/banned.h"

#define SOME 32 /* tickets asked for at once */

static struct hf__cs_heartbeat *slot(struct hf__cs *s, const struct hf__ticket *ticket)
{
    return &s->heartbeats[(ticket->bits[0] << 8 | ticket->bits[1]) % HF__CS_HEARTBEATS];
}

void hf__cs_note_heartbeat(struct hf__cs *s, const struct hf__ticket *ticket, int64_t own_lease_ms)
{
    int64_t now_ns = hf__now_ns(s->base.host->env);

    pthread_mutex_lock(&s->mutex);
    *slot(s, ticket) = (struct hf__cs_heartbeat){
        .ticket = *ticket, .due_ns = now_ns + own_lease_ms * HF__NS_PER_MS / 3};
    pthread_mutex_unlock(&s->mutex);
}

static bool is_due(struct hf__cs *s, const struct hf__ticket *ticket)
{
    int64_t now_ns = hf__now_ns(s->base.host->env);

    pthread_mutex_lock(&s->mutex);
    const struct hf__cs_heartbeat *sign = slot(s, ticket);
    bool due = !hf__ticket_equal(&sign->ticket, ticket) || now_ns >= sign->due_ns;
    pthread_mutex_unlock(&s->mutex);
    return due;
}

int hf__cs_send_heartbeat(const struct hf__cs_lock *lock, const struct hf__ticket *ticket,
                          int64_t own_lease_ms)
{
    char text[HF_TICKET_SIZE];
    struct hf__cql_result result;

    if (!is_due(lock->s, ticket))
        return 0;
    hf__ticket_format(ticket, text);
    struct hf__cql_value values[] = {hf__cql_blob(lock->name, lock->name_len), hf__cql_text(text),
                                     hf__cql_integer((int32_t)(own_lease_ms / 1000 + 2))};
    struct hf__cs_call call = {.query = HF__CS_QUERY_HEARTBEAT,
                               .values = values,
                               .value_count = 3,
                               .deadline_ns = lock->deadline_ns};
    int code = hf__cs_ask(lock->s, &call, &result, lock->err);
    if (code != 0)
        return code == HF_UNAVAILABLE || code == HF_UNKNOWN ? 0 : code; /* it stays due */
    hf__cql_result_clear(&result);
    hf__cs_note_heartbeat(lock->s, ticket, own_lease_ms);
    return 0;
}

/* The answer to a question for signs: whoever has one is alive, unless it is too old. */
static void take_heartbeats(struct hf__cs_row *row, struct hf__cql_result *result)
{
    while (hf__cql_next_row(result)) {
        struct hf__cql_bytes text = hf__cql_column(result, 0);
        char ticket[HF_TICKET_SIZE] = "";
        struct hf__ticket parsed;
        int64_t seen_ms;

        if (text.len == sizeof ticket - 1)
            memcpy(ticket, text.data, text.len);
        if (!hf__ticket_parse(ticket, &parsed) ||
            !hf__cql_get_bigint(hf__cql_column(result, 1), &seen_ms))
            continue;
        const struct hf__entry *e = hf__cs_row_was(row, &parsed);
        if (e == NULL || e->place != HF__PLACE_WAITING)
            continue;
        struct hf__cs_extra *x = e->who;
        x->alive_until_ms = seen_ms + e->lease_ms;
        if (x->alive_until_ms > row->now_ms)
            x->proof = HF__CS_PROOF_ALIVE;
    }
}

static int ask_for_some(const struct hf__cs_lock *lock, struct hf__cs_row *row,
                        const struct hf__cql_writer *tickets)
{
    struct hf__cql_result result;
    struct hf__cql_value values[] = {hf__cql_blob(lock->name, lock->name_len),
                                     hf__cql_packed(tickets)};
    struct hf__cs_call call = {.query = HF__CS_QUERY_READ_HEARTBEATS,
                               .values = values,
                               .value_count = 2,
                               .deadline_ns = lock->deadline_ns};

    if (tickets->failed)
        return hf__fail(lock->err, HF_NO_MEMORY, NULL);
    int code = hf__cs_ask(lock->s, &call, &result, lock->err);
    if (code != 0)
        return code;
    take_heartbeats(row, &result);
    hf__cql_result_clear(&result);
    return 0;
}

/* The next few tickets from *at on, as a list to ask for; how many. */
static int32_t pack_some(struct hf__cs_row *row, const bool *wanted, size_t *at,
                         struct hf__cql_writer *tickets)
{
    size_t place = hf__cql_reserve_int(tickets);
    int32_t count = 0;

    for (; *at < row->count && count < SOME; ++*at) {
        char text[HF_TICKET_SIZE];
        if (row->was[*at].place != HF__PLACE_WAITING || (wanted != NULL && !wanted[*at]))
            continue;
        hf__ticket_format(&row->was[*at].ticket, text);
        struct hf__cql_value ticket = hf__cql_text(text);
        hf__cql_put_value(tickets, &ticket);
        row->extras[*at].proof = HF__CS_PROOF_DEAD; /* until a sign says otherwise */
        count++;
    }
    hf__cql_fill_int(tickets, place, count);
    return count;
}

int hf__cs_read_heartbeats(const struct hf__cs_lock *lock, struct hf__cs_row *row,
                           const bool *wanted)
{
    int code = 0;

    for (size_t i = 0; i < row->count && code == 0;) {
        struct hf__cql_writer tickets;
        hf__cql_writer_init(&tickets, 4096);
        if (pack_some(row, wanted, &i, &tickets) > 0)
            code = ask_for_some(lock, row, &tickets);
        hf__cql_writer_clear(&tickets);
    }
    return code;
}
