/* One operation in one round trip: {call holdfast_rules.<operation>(...)}. The procedure is one
 * transaction, which it commits itself; see rules.sql for why it is atomic. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "stores/oracle/oracle.h"

#include "base/banned.h"

#define RENEWALS_MAX 48 /* in one call: their answers fit into HF__ORA_ANSWER */

static const char attempt_sql[] =
    "{call holdfast_rules.attempt(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)}";
static const char finish_sql[] = "{call holdfast_rules.finish(?, ?, ?, ?, ?)}";
static const char renew_sql[] = "{call holdfast_rules.renew(?, ?)}";
static const char take_away_sql[] = "{call holdfast_rules.take_away(?, ?, ?, ?)}";

static int other_version(hf_error *err)
{
    return hf__fail(err, HF_CORRUPT,
                    "oracle: the package answers in another way; run `holdfast setup`");
}

/* The next item of the answer: "verdict generation lease claimed ask_again place;". */
static int read_item(char **at, struct hf__answer *ret_answer, hf_error *err)
{
    const char *items[HF__SQL_ANSWER_CELLS - 1], *cells[HF__SQL_ANSWER_CELLS] = {0};
    char *end = strchr(*at, ';'), *item = *at;

    if (end == NULL)
        return other_version(err);
    *end = '\0';
    *at = end + 1;
    if (!hf__ora_split(item, items, HF__SQL_ANSWER_CELLS - 1))
        return other_version(err);
    memcpy(cells, items, sizeof items);
    cells[HF__SQL_ANSWER_PLACE] =
        items[HF__SQL_ANSWER_WANTED]; /* it does not say whether somebody waits */
    cells[HF__SQL_ANSWER_WANTED] = NULL;
    if (!hf__sql_read_answer(cells, ret_answer))
        return other_version(err);
    return 0;
}

/* The routine has committed: there is nothing left to roll back. */
static int run(struct hf__ora *s, struct hf__ora_conn *c, int64_t deadline_ns, hf_error *err)
{
    c->job.answers = true;
    int r = hf__ora_run(s, c, false, deadline_ns, err);
    if (r == 0)
        c->dirty = false;
    return r;
}

static void add_attempt(struct hf__ora *s, struct hf__ora_conn *c, const struct hf__bid *bid)
{
    hf__ora_add_number(c, bid->mode == HF_SHARED);
    hf__ora_add_or_null(c, bid->mode == HF_SHARED ? bid->limit : 0, 0);
    hf__ora_add_number(c, hf__ttl_stored(bid->ttl_ms));
    hf__ora_add_number(c, bid->lock_delay_ms);
    hf__ora_add_number(c, bid->retire_ms);
    hf__ora_add_number(c, bid->queue);
    hf__ora_add_who(c, bid->who != NULL ? bid->who : s->base.host->self);
}

static int call_one(struct hf__ora *s, struct hf__ora_conn *c, const struct hf__sql_operation *op,
                    int64_t deadline_ns, struct hf__answer *ret_answer, hf_error *err)
{
    const struct hf__bid *bid = op->bid;
    char *at = c->job.answer;

    hf__ora_start(c, op->kind == HF__OPERATION_ATTEMPT ? attempt_sql
                     : op->kind == HF__OPERATION_BREAK ? take_away_sql
                                                       : finish_sql);
    hf__ora_add_bytes(c, bid->name, bid->name_len);
    hf__ora_add_bytes(c, bid->ticket.bits, sizeof bid->ticket.bits);
    if (op->kind == HF__OPERATION_ATTEMPT) {
        add_attempt(s, c, bid);
    } else if (op->kind == HF__OPERATION_BREAK) {
        hf__ora_add_number(c, op->now);
    } else {
        hf__ora_add_number(c, op->retire_ms);
        hf__ora_add_number(c, op->kind == HF__OPERATION_WITHDRAW);
    }
    int r = run(s, c, deadline_ns, err);
    return r != 0 ? r : read_item(&at, ret_answer, err);
}

/* "name ticket generation;" */
static size_t item_len(const struct hf__renewal *item)
{
    return 2 * item->name_len + 1 + 32 + 1 + 20 + 1;
}

size_t hf__ora_renewals(struct hf__renewal *const *items, size_t count)
{
    size_t len = 0, n = 0;

    while (n < count && n < RENEWALS_MAX && len + item_len(items[n]) <= HF__ORA_ANSWER)
        len += item_len(items[n++]);
    return n;
}

static size_t put_item(char *to, size_t size, const struct hf__renewal *item)
{
    char ticket[HF_TICKET_SIZE];
    size_t len = 0;

    for (size_t i = 0; i < item->name_len; i++)
        len += (size_t)snprintf(to + len, size - len, "%02X", (unsigned char)item->name[i]);
    hf__ticket_format(&item->ticket, ticket);
    return len +
           (size_t)snprintf(to + len, size - len, " %s %" PRIu64 ";", ticket, item->generation);
}

static int call_renew(struct hf__ora *s, struct hf__ora_conn *c, const struct hf__sql_operation *op,
                      int64_t deadline_ns, hf_error *err)
{
    char list[HF__ORA_ANSWER + 1] = "", *at = c->job.answer;
    size_t len = 0;

    for (size_t i = 0; i < op->count; i++)
        len += put_item(list + len, sizeof list - len, op->items[i]);
    hf__ora_start(c, renew_sql);
    hf__ora_add_list(c, list, len);
    int r = run(s, c, deadline_ns, err);
    for (size_t i = 0; i < op->count && r == 0; i++)
        r = read_item(&at, &op->items[i]->answer, err);
    return r;
}

int hf__ora_call(void *store, void *conn, const struct hf__sql_operation *op, int64_t deadline_ns,
                 struct hf__answer *ret_answer, hf_error *err)
{
    if (op->kind == HF__OPERATION_RENEW)
        return call_renew(store, conn, op, deadline_ns, err);
    return call_one(store, conn, op, deadline_ns, ret_answer, err);
}
