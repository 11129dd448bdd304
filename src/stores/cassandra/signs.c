/* Signs of life of those who wait.
 *
 *   INSERT INTO signs (name, ticket, seen) VALUES (?, ?, currentTimestamp()) USING TTL ?
 *
 * A plain write, at QUORUM, every third of the waiter's own lease: the lock's row, which is expensive
 * to change, is left alone while people only wait. `seen` is the node's time, so that a waiter is
 * dead when seen + own lease has passed, to the millisecond; the TTL, which is of whole seconds and
 * longer, only clears away. A sign that comes too late or is lost costs its waiter its place, never
 * anybody's lock. */
#include <stdlib.h>

#include "stores/cassandra/cassandra.h"

#include "util/banned.h"

#define SOME 32 /* tickets asked for at once */

static struct hf__cs_sign *slot(struct hf__cs *s, const struct hf__ticket *ticket)
{
    return &s->signs[(ticket->bits[0] << 8 | ticket->bits[1]) % HF__CS_SIGNS];
}

void hf__cs_signed(struct hf__cs *s, const struct hf__ticket *ticket, int64_t own_lease_ms)
{
    int64_t now_ns = hf__now_ns(s->base.host->env);

    pthread_mutex_lock(&s->mutex);
    *slot(s, ticket) = (struct hf__cs_sign){.ticket = *ticket,
                                            .due_ns = now_ns + own_lease_ms * HF__NS_PER_MS / 3};
    pthread_mutex_unlock(&s->mutex);
}

static bool is_due(struct hf__cs *s, const struct hf__ticket *ticket)
{
    int64_t now_ns = hf__now_ns(s->base.host->env);

    pthread_mutex_lock(&s->mutex);
    const struct hf__cs_sign *sign = slot(s, ticket);
    bool due = !hf__ticket_equal(&sign->ticket, ticket) || now_ns >= sign->due_ns;
    pthread_mutex_unlock(&s->mutex);
    return due;
}

int hf__cs_sign(struct hf__cs *s, const struct hf__bid *bid, int64_t own_lease_ms,
                int64_t deadline_ns, hf_error *err)
{
    char ticket[HF_TICKET_SIZE];
    struct hf__cql_result result;

    if (!is_due(s, &bid->ticket))
        return 0;
    hf__ticket_format(&bid->ticket, ticket);
    struct hf__cql_value values[] = {hf__cql_blob(bid->name, bid->name_len), hf__cql_text(ticket),
                                     hf__cql_integer((int32_t)(own_lease_ms / 1000 + 2))};
    struct hf__cs_call call = {
        .query = HF__CS_SIGN, .values = values, .value_count = 3, .deadline_ns = deadline_ns};
    int code = hf__cs_ask(s, &call, &result, err);
    if (code != 0)
        return code == HF_UNAVAILABLE || code == HF_UNKNOWN ? 0 : code; /* it stays due */
    hf__cql_result_clear(&result);
    hf__cs_signed(s, &bid->ticket, own_lease_ms);
    return 0;
}

/* The answer to a question for signs: whoever has one is alive, unless it is too old. */
static void take_signs(struct hf__cs_row *row, struct hf__cql_result *result)
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
        if (e == NULL || e->place != HF__WAITING)
            continue;
        struct hf__cs_extra *x = e->who;
        x->alive_until_ms = seen_ms + e->lease_ms;
        if (x->alive_until_ms > row->now_ms)
            x->proof = HF__CS_ALIVE;
    }
}

static int ask_for_some(struct hf__cs *s, const char *name, size_t name_len, struct hf__cs_row *row,
                        const struct hf__cql_writer *tickets, int64_t deadline_ns, hf_error *err)
{
    struct hf__cql_result result;
    struct hf__cql_value values[] = {hf__cql_blob(name, name_len), hf__cql_packed(tickets)};
    struct hf__cs_call call = {
        .query = HF__CS_SIGNS_OF, .values = values, .value_count = 2, .deadline_ns = deadline_ns};

    if (tickets->failed)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    int code = hf__cs_ask(s, &call, &result, err);
    if (code != 0)
        return code;
    take_signs(row, &result);
    hf__cql_result_clear(&result);
    return 0;
}

int hf__cs_look_for_signs(struct hf__cs *s, const char *name, size_t name_len,
                          struct hf__cs_row *row, const bool *wanted, int64_t deadline_ns,
                          hf_error *err)
{
    int code = 0;

    for (size_t i = 0; i < row->count && code == 0;) {
        struct hf__cql_writer tickets;
        int32_t count = 0;
        hf__cql_writer_init(&tickets, 4096);
        size_t place = hf__cql_reserve_int(&tickets);
        for (; i < row->count && count < SOME; i++) {
            char ticket[HF_TICKET_SIZE];
            if (row->was[i].place != HF__WAITING || (wanted != NULL && !wanted[i]))
                continue;
            hf__ticket_format(&row->was[i].ticket, ticket);
            hf__cql_put_bytes(&tickets,
                              (struct hf__cql_bytes){(unsigned char *)ticket, HF_TICKET_SIZE - 1});
            row->extras[i].proof = HF__CS_DEAD; /* until a sign says otherwise */
            count++;
        }
        hf__cql_fill_int(&tickets, place, count);
        if (count > 0)
            code = ask_for_some(s, name, name_len, row, &tickets, deadline_ns, err);
        hf__cql_writer_clear(&tickets);
    }
    return code;
}
