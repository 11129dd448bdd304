/* layout=simple: the published recipe, a plain mutex in the table leases(name, owner, value).
 *
 *      INSERT INTO leases (name, owner, value) VALUES (?, ?, ?) IF NOT EXISTS USING TTL ?
 *      UPDATE leases USING TTL ? SET owner = ?, value = ? WHERE name = ? IF owner = ?
 *      DELETE FROM leases WHERE name = ? IF owner = ?
 *
 * The owner is the ticket, the value says who that is. The server's own TTL ends a lease: it is of
 * whole seconds, counted from the second in which it was written, so one more is asked for than the
 * holder is told. Whoever finds its own ticket there (the answer to an earlier request was lost)
 * writes it anew, so that it knows when its lease began. Others that follow the recipe in the same
 * table are kept out and keep us out; there is no queue, no token and no lock-delay, and a request
 * that the network delivers after its bid was withdrawn keeps the lock closed until its TTL
 * ends. */
#include <stdio.h>

#include "stores/cassandra/simple.h"

#include "base/banned.h"

#define ASK_MS 100

/* Statements --------------------------------------------------------------- */

/* Whole seconds from the beginning of this one, on any node's clock. */
static int32_t seconds(const struct hf__cs *s, int64_t ms)
{
    return (int32_t)((ms + s->skew_ms + 999) / 1000 + 1);
}

struct ask {
    const char *name, *ticket, *value;
    int32_t ttl_s;
    int64_t deadline_ns;
};

static int swap(struct hf__cs *s, enum hf__cs_query query, const struct ask *a, bool *ret_applied,
                struct hf__cql_result *ret_result, hf_error *err)
{
    struct hf__cql_value name = hf__cql_text(a->name), ticket = hf__cql_text(a->ticket),
                         value = hf__cql_text(a->value), ttl = hf__cql_integer(a->ttl_s);
    struct hf__cql_value take[] = {name, ticket, value, ttl};
    struct hf__cql_value keep[] = {ttl, ticket, value, name, ticket};
    struct hf__cql_value drop[] = {name, ticket};
    struct hf__cs_call call = {.query = query,
                               .values = query == HF__CS_QUERY_TAKE_LEASE   ? take
                                         : query == HF__CS_QUERY_KEEP_LEASE ? keep
                                                                            : drop,
                               .value_count = query == HF__CS_QUERY_TAKE_LEASE   ? 4
                                              : query == HF__CS_QUERY_KEEP_LEASE ? 5
                                                                                 : 2,
                               .deadline_ns = a->deadline_ns};
    int code = hf__cs_ask(s, &call, ret_result, err);

    return code != 0 ? code : hf__cql_applied(ret_result, ret_applied, err);
}

/* Once more after an unknown outcome: each is answered by the ticket. *ret_unsure: there was
 * one. */
static int swap_surely(struct hf__cs *s, enum hf__cs_query query, const struct ask *a,
                       bool *ret_applied, struct hf__cql_result *result, bool *ret_unsure,
                       hf_error *err)
{
    int code;

    *ret_unsure = false;
    for (;;) {
        hf__cql_result_clear(result);
        code = swap(s, query, a, ret_applied, result, err);
        if (code != HF_UNKNOWN || hf__now_ns(s->base.host->env) >= a->deadline_ns)
            break;
        *ret_unsure = true;
    }
    if (code == HF_UNAVAILABLE && *ret_unsure)
        code = hf__wrap(err, HF_UNKNOWN, "not known whether it was applied");
    return code;
}

/* Notes -------------------------------------------------------------------- */

/* The table has no room for what is over: a ticket is let in at most once, and not after it was
 * withdrawn, as far as this process remembers (the last thousand or so). */
static struct hf__cs_note *slot(struct hf__cs *s, const struct hf__ticket *ticket)
{
    return &s->notes[(ticket->bits[0] << 8 | ticket->bits[1]) % HF__CS_HEARTBEATS];
}

static void note(struct hf__cs *s, const struct hf__ticket *ticket, int64_t until_ns, bool retired)
{
    pthread_mutex_lock(&s->mutex);
    *slot(s, ticket) = (struct hf__cs_note){*ticket, until_ns, retired};
    pthread_mutex_unlock(&s->mutex);
}

/* What is known of it; false: nothing. */
static bool look_up(struct hf__cs *s, const struct hf__ticket *ticket, struct hf__cs_note *ret_note)
{
    pthread_mutex_lock(&s->mutex);
    *ret_note = *slot(s, ticket);
    pthread_mutex_unlock(&s->mutex);
    return hf__ticket_equal(&ret_note->ticket, ticket);
}

static void note_grant(struct hf__cs *s, const struct hf__ticket *ticket,
                       const struct hf__answer *answer)
{
    note(s, ticket, hf__moment_after(answer->sent_ns, answer->lease_ms), false);
}

/* Operations --------------------------------------------------------------- */

/* There is no token: a number of the ticket's own, for the core alone. */
static uint64_t number_of(const struct hf__ticket *ticket)
{
    uint64_t number;

    memcpy(&number, ticket->bits, sizeof number);
    return number >> 1 | 1;
}

static bool is_owner(const struct hf__cql_result *result, const char *ticket)
{
    int column = hf__cql_column_of(result, "owner");
    struct hf__cql_bytes owner =
        column < 0 ? (struct hf__cql_bytes){0} : hf__cql_column(result, (size_t)column);

    return owner.len == strlen(ticket) && memcmp(owner.data, ticket, owner.len) == 0;
}

static struct hf__answer not_now(struct hf__cs *s, const struct hf__bid *bid, int64_t sent_ns)
{
    return (struct hf__answer){.verdict = bid->queue ? HF__VERDICT_QUEUED : HF__VERDICT_BUSY,
                               .ask_again_ms = ASK_MS + (int64_t)hf__cs_jitter(s, ASK_MS),
                               .lease_ms = hf__provisional_lease_ms(bid->ttl_ms),
                               .sent_ns = sent_ns};
}

static struct hf__answer granted(const struct hf__bid *bid, int64_t sent_ns)
{
    bool claimed = bid->ttl_ms != HF__NEVER; /* one that never expires has to be claimed first */

    return (struct hf__answer){.verdict = HF__VERDICT_GRANTED,
                               .generation = number_of(&bid->ticket),
                               .lease_ms =
                                   claimed ? bid->ttl_ms : hf__provisional_lease_ms(HF__NEVER),
                               .claimed = claimed,
                               .sent_ns = sent_ns};
}

static int attempt(struct hf__cs *s, const struct hf__operation *op, struct ask *a,
                   struct hf__answer *ret_answer, hf_error *err)
{
    struct hf__bid bid = *op->bid;
    struct hf__cql_result result = {0};
    char value[HF__CS_VALUE_TEXT];
    bool applied = false, unsure;

    bid.ttl_ms -= bid.ttl_ms != HF__NEVER ? s->skew_ms : 0; /* seconds() adds it */
    const struct hf_env *env = s->base.host->env;
    hf__cs_write_value(value, sizeof value, &bid, (int64_t)(env->wall_us(env->ctx) / 1000));
    a->value = value;
    a->ttl_s =
        seconds(s, bid.ttl_ms != HF__NEVER ? bid.ttl_ms : hf__provisional_lease_ms(HF__NEVER));
    int64_t sent_ns = hf__now_ns(env);
    struct hf__cs_note known;
    bool seen = look_up(s, &bid.ticket, &known);
    if (seen && (known.retired || known.until_ns <= sent_ns)) {
        *ret_answer = (struct hf__answer){.verdict = HF__VERDICT_WITHDRAWN, .sent_ns = sent_ns};
        return 0;
    }
    int code =
        seen ? 0 : swap_surely(s, HF__CS_QUERY_TAKE_LEASE, a, &applied, &result, &unsure, err);
    if (code == 0 && !applied && (seen || is_owner(&result, a->ticket))) {
        sent_ns = hf__now_ns(env);
        code = swap_surely(s, HF__CS_QUERY_KEEP_LEASE, a, &applied, &result, &unsure, err);
        seen = true;
    }
    hf__cql_result_clear(&result);
    if (code != 0)
        return code;
    *ret_answer = applied ? granted(&bid, sent_ns) : not_now(s, &bid, sent_ns);
    if (applied)
        note_grant(s, &bid.ticket, ret_answer);
    else if (seen)
        ret_answer->verdict = HF__VERDICT_WITHDRAWN;
    return 0;
}

static int end(struct hf__cs *s, const struct hf__operation *op, struct ask *a,
               struct hf__answer *ret_answer, hf_error *err)
{
    struct hf__cql_result result = {0};
    bool applied = false, unsure;

    note(s, &op->bid->ticket, 0, true);
    int code = swap_surely(s, HF__CS_QUERY_DROP_LEASE, a, &applied, &result, &unsure, err);

    hf__cql_result_clear(&result);
    if (code == 0)
        *ret_answer = (struct hf__answer){.verdict = applied || unsure ? HF__VERDICT_DONE
                                                                       : HF__VERDICT_STALE};
    return code;
}

/* The value is written anew as well, or it would end before its owner: so it is read first. */
static int renew(struct hf__cs *s, const struct hf__operation *op, struct ask *a,
                 struct hf__answer *ret_answer, hf_error *err)
{
    struct hf__cql_value name = hf__cql_text(a->name);
    struct hf__cs_call call = {.query = HF__CS_QUERY_READ_LEASE,
                               .values = &name,
                               .value_count = 1,
                               .deadline_ns = a->deadline_ns};
    struct hf__cql_result result = {0};
    char value[HF__CS_VALUE_TEXT];
    bool applied = false, unsure;
    int code = hf__cs_ask(s, &call, &result, err);

    if (code != 0)
        return code;
    struct hf__cql_bytes text = {0};
    if (hf__cql_next_row(&result))
        text = hf__cql_column(&result, 2);
    struct hf__bid bid = *op->bid;
    bid.ttl_ms = hf__cs_read_value(text).ttl_ms;
    snprintf(value, sizeof value, "%.*s", (int)text.len, (const char *)text.data);
    bool knows = op->generation == number_of(&bid.ticket);
    a->value = value;
    a->ttl_s = bid.ttl_ms != HF__NEVER ? seconds(s, bid.ttl_ms)
               : knows                 ? 0
                                       : seconds(s, hf__provisional_lease_ms(HF__NEVER));
    int64_t sent_ns = hf__now_ns(s->base.host->env);
    struct hf__cs_note known;
    bool too_late = look_up(s, &bid.ticket, &known) && known.until_ns <= sent_ns;
    if (too_late) /* its TTL may run on, but what was told is over */
        code = swap_surely(s, HF__CS_QUERY_DROP_LEASE, a, &applied, &result, &unsure, err);
    else if (bid.ttl_ms >= 0 && (knows || op->generation == 0))
        code = swap_surely(s, HF__CS_QUERY_KEEP_LEASE, a, &applied, &result, &unsure, err);
    applied = applied && !too_late;
    hf__cql_result_clear(&result);
    if (code != 0)
        return code;
    *ret_answer = applied ? granted(&bid, sent_ns)
                          : (struct hf__answer){.verdict = HF__VERDICT_GONE, .sent_ns = sent_ns};
    if (applied && bid.ttl_ms == HF__NEVER && knows) {
        ret_answer->lease_ms = HF__NEVER;
        ret_answer->claimed = true;
    }
    if (applied)
        note_grant(s, &bid.ticket, ret_answer);
    return 0;
}

int hf__cs_simple_operate(struct hf__cs *s, const struct hf__operation *op, int64_t deadline_ns,
                          struct hf__answer *ret_answer, hf_error *err)
{
    char name[HF__CS_NAME_TEXT], ticket[HF_TICKET_SIZE];
    struct ask a = {.name = name, .ticket = ticket, .value = "", .deadline_ns = deadline_ns};

    hf__cs_name_text(op->bid->name, op->bid->name_len, name);
    hf__ticket_format(&op->bid->ticket, ticket);
    switch (op->kind) {
    case HF__OPERATION_ATTEMPT:
        return attempt(s, op, &a, ret_answer, err);
    case HF__OPERATION_RENEW:
        return renew(s, op, &a, ret_answer, err);
    default:
        return end(s, op, &a, ret_answer, err);
    }
}
