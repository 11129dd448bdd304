/* A lock without a queue, by one statement instead of a procedure:
 *
 *      UPDATE holdfast_lock SET ... inside = <ticket> ... WHERE name = ... AND inside = <zeros>
 *      UPDATE holdfast_lock SET ... inside = <zeros> WHERE name = ... AND inside = <ticket> ...
 *
 * Each is a transaction of its own that locks the lock's row and no other. Zeros say that nobody
 * holds or waits and that no ticket is remembered, a ticket says that it holds and that there is
 * nobody else; so the doorman would let this bid in, or have nobody to let in, and the statement
 * does just that. The clock is read after the row is locked, and must not have gone back; the lease
 * must not have run out. Whatever does not match is left as it is and goes through the rules, which
 * costs a second round trip. Names that were crowded the last time go there at once, and so does
 * everything on a connection through a proxy, which may not keep the session's time zone.
 *
 * (A procedure that does the same takes half as long again as the statement: its parameters, its
 * variables and its result are as much work for the server as the row.) */
#include <inttypes.h>

#include "stores/mysql/mysql.h"
#include "util/table.h"

#include "util/banned.h"

static atomic_bool *crowded(struct hf__my *s, const struct hf__bid *bid)
{
    return &s->crowded[hf__hash(0, bid->name, bid->name_len) % HF__MY_HINTS];
}

static bool is_simple(const struct hf__sql_operation *op)
{
    const struct hf__bid *bid = op->bid;

    if (op->kind == HF__SQL_ATTEMPT)
        return bid->mode == HF_EXCLUSIVE && bid->ttl_ms > 0 && bid->lock_delay_ms == 0;
    return (op->kind == HF__SQL_RELEASE || op->kind == HF__SQL_WITHDRAW) && op->retire_ms == 0;
}

static void add_where(struct hf__my_text *t, const struct hf__bid *bid)
{
    hf__my_add(t, " WHERE name = ");
    hf__my_add_bytes(t, bid->name, bid->name_len);
    hf__my_add(t, " AND touched <= " HF__MY_CLOCK " AND inside = ");
}

static void add_attempt(struct hf__my *s, struct hf__my_text *t, const struct hf__sql_operation *op)
{
    const struct hf__bid *bid = op->bid;
    const struct hf__who *who = bid->who != NULL ? bid->who : s->base.host->self;

    hf__my_add(t, "UPDATE holdfast_lock SET touched = " HF__MY_CLOCK
                  ", generation = LAST_INSERT_ID(GREATEST(generation + 1,"
                  " TIMESTAMPDIFF(MICROSECOND, '1970-01-01', touched))), inside = ");
    hf__my_add_bytes(t, bid->ticket.bits, sizeof bid->ticket.bits);
    hf__my_add(t,
               ", token = generation, since = touched, ttl = %" PRId64 ", retire = %" PRId64
               ", wake = ",
               bid->ttl_ms, bid->retire_ms);
    hf__my_add_text(t, op->wake);
    hf__my_add(t, ", host = ");
    hf__my_add_short(t, who->host);
    hf__my_add(t, ", username = ");
    hf__my_add_short(t, who->user);
    hf__my_add(t, ", program = ");
    hf__my_add_short(t, who->program);
    hf__my_add(t, ", pid = %" PRId64 ", note = ", who->pid);
    hf__my_add_bytes(t, who->note, strnlen(who->note, HF_NOTE_MAX));
    add_where(t, bid);
    hf__my_add(t, HF__MY_NOBODY);
}

/* A lease runs out at a whole millisecond, so its last one is left to the rules. */
static void add_end(struct hf__my_text *t, const struct hf__bid *bid)
{
    hf__my_add(t, "UPDATE holdfast_lock SET touched = " HF__MY_CLOCK ", inside = " HF__MY_NOBODY);
    add_where(t, bid);
    hf__my_add_bytes(t, bid->ticket.bits, sizeof bid->ticket.bits);
    hf__my_add(t, " AND since + INTERVAL (ttl - 1) * 1000 MICROSECOND > " HF__MY_CLOCK);
}

static void answer(const struct hf__my_conn *c, const struct hf__sql_operation *op,
                   struct hf__answer *ret_answer)
{
    *ret_answer = (struct hf__answer){.verdict = HF__DONE, .sent_ns = ret_answer->sent_ns};
    if (op->kind != HF__SQL_ATTEMPT)
        return;
    ret_answer->verdict = HF__GRANTED;
    ret_answer->generation = mysql_insert_id(c->my);
    ret_answer->lease_ms = op->bid->ttl_ms;
    ret_answer->claimed = true;
}

int hf__my_quick(struct hf__my *s, struct hf__my_conn *c, const struct hf__sql_operation *op,
                 int64_t deadline_ns, struct hf__answer *ret_answer, bool *ret_done, hf_error *err)
{
    struct hf__my_text t = {0};

    *ret_done = false;
    if (!is_simple(op) || c->proxied || atomic_load(crowded(s, op->bid)))
        return 0;
    if (op->kind == HF__SQL_ATTEMPT)
        add_attempt(s, &t, op);
    else
        add_end(&t, op->bid);
    int r = hf__my_ask(s, c, &t, false, deadline_ns, NULL, err);
    hf__my_text_clear(&t);
    if (r != 0)
        return r;
    *ret_done = mysql_affected_rows(c->my) == 1;
    if (*ret_done)
        answer(c, op, ret_answer);
    else
        atomic_store(crowded(s, op->bid), true);
    return 0;
}

void hf__my_quick_learn(struct hf__my *s, const struct hf__sql_operation *op,
                        const struct hf__answer *got)
{
    if (op->kind == HF__SQL_ATTEMPT && is_simple(op) && got->verdict == HF__GRANTED && got->claimed)
        atomic_store(crowded(s, op->bid), false);
}
