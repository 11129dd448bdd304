/* One operation in one round trip: a single UPDATE (quick.c) or CALL holdfast_<operation>(...). The
 * procedure is one transaction, which it begins and commits itself; see rules.sql for why it is
 * atomic. */
#include <inttypes.h>
#include <stdlib.h>

#include "stores/mysql/mysql.h"

#include "base/banned.h"

static int other_version(hf_error *err)
{
    return hf__fail(err, HF_CORRUPT,
                    "mysql: the procedures answer in another way; run `holdfast setup`");
}

static int read_answer(const char *const cells[HF__SQL_ANSWER_CELLS], struct hf__answer *ret_answer,
                       hf_error *err)
{
    return hf__sql_read_answer(cells, ret_answer) ? 0 : other_version(err);
}

/* Asks for one row of so many columns. */
static int ask(struct hf__my *s, struct hf__my_conn *c, struct hf__my_text *t, int64_t deadline_ns,
               unsigned columns, MYSQL_RES **ret_result, MYSQL_ROW *ret_row, hf_error *err)
{
    MYSQL_RES *result = NULL;
    int r = hf__my_ask(s, c, t, false, deadline_ns, &result, err);

    hf__my_text_clear(t);
    if (r != 0)
        return r;
    *ret_row = result != NULL ? mysql_fetch_row(result) : NULL;
    *ret_result = result;
    if (*ret_row != NULL && mysql_num_fields(result) == columns)
        return 0;
    mysql_free_result(result);
    return other_version(err);
}

static void add_who(struct hf__my_text *t, const struct hf__who *who)
{
    const char *const texts[] = {who->host, who->user, who->program};

    for (size_t i = 0; i < 3; i++) {
        hf__my_add(t, ", ");
        hf__my_add_short(t, texts[i]);
    }
    hf__my_add(t, ", %" PRId64 ", ", who->pid);
    hf__my_add_bytes(t, who->note, strnlen(who->note, HF_NOTE_MAX));
}

static int call_attempt(struct hf__my *s, struct hf__my_conn *c, const struct hf__sql_operation *op,
                        int64_t deadline_ns, struct hf__answer *ret_answer, hf_error *err)
{
    const struct hf__bid *bid = op->bid;
    struct hf__my_text t = {0};
    MYSQL_RES *result = NULL;
    MYSQL_ROW row;

    hf__my_add(&t, "CALL holdfast_bid(");
    hf__my_add_bytes(&t, bid->name, bid->name_len);
    hf__my_add(&t, ", ");
    hf__my_add_bytes(&t, bid->ticket.bits, sizeof bid->ticket.bits);
    hf__my_add(&t, ", %d, ", bid->mode == HF_SHARED);
    hf__my_add_or_null(&t, bid->mode == HF_SHARED ? bid->limit : 0, 0);
    hf__my_add(&t, ", %" PRId64 ", %" PRId64 ", %" PRId64 ", %d, ", hf__ttl_stored(bid->ttl_ms),
               bid->lock_delay_ms, bid->retire_ms, bid->queue);
    hf__my_add_text(&t, op->wake);
    add_who(&t, bid->who != NULL ? bid->who : s->base.host->self);
    hf__my_add(&t, ", %" PRId64 ", %d)", hf__sql_latest_us(&s->sql, deadline_ns),
               hf__sql_flags(bid));
    int r = ask(s, c, &t, deadline_ns, HF__SQL_ANSWER_CELLS, &result, &row, err);
    if (r != 0)
        return r;
    const char *const cells[HF__SQL_ANSWER_CELLS] = {
        [HF__SQL_ANSWER_VERDICT] = row[0], [HF__SQL_ANSWER_GENERATION] = row[1],
        [HF__SQL_ANSWER_LEASE] = row[2],   [HF__SQL_ANSWER_CLAIMED] = row[3],
        [HF__SQL_ANSWER_PLACE] = row[4],   [HF__SQL_ANSWER_ASK_AGAIN] = row[5],
        [HF__SQL_ANSWER_WANTED] = row[6]};
    r = read_answer(cells, ret_answer, err);
    mysql_free_result(result);
    return r;
}

/* release, withdraw, break: name, ticket and what else there is. */
static int call_end(struct hf__my *s, struct hf__my_conn *c, const struct hf__sql_operation *op,
                    int64_t deadline_ns, struct hf__answer *ret_answer, hf_error *err)
{
    struct hf__my_text t = {0};
    MYSQL_RES *result = NULL;
    MYSQL_ROW row;

    hf__my_add(&t, "CALL %s(",
               op->kind == HF__OPERATION_BREAK ? "holdfast_break"
               : hf__sql_is_long_release(op)   ? "holdfast_release_used"
                                               : "holdfast_end");
    hf__my_add_bytes(&t, op->bid->name, op->bid->name_len);
    hf__my_add(&t, ", ");
    hf__my_add_bytes(&t, op->bid->ticket.bits, sizeof op->bid->ticket.bits);
    if (op->kind == HF__OPERATION_BREAK)
        hf__my_add(&t, ", %d)", op->now);
    else if (hf__sql_is_long_release(op))
        hf__my_add(&t, ", %" PRId64 ", %" PRId64 ", %" PRIu64 ")", op->retire_ms, op->at_least_ms,
                   op->generation);
    else
        hf__my_add(&t, ", %" PRId64 ", %d)", op->retire_ms, op->kind == HF__OPERATION_WITHDRAW);
    int r = ask(s, c, &t, deadline_ns, 1, &result, &row, err);
    if (r != 0)
        return r;
    const char *const cells[HF__SQL_ANSWER_CELLS] = {row[0]};
    r = read_answer(cells, ret_answer, err);
    mysql_free_result(result);
    return r;
}

static int call_read(struct hf__my *s, struct hf__my_conn *c, const struct hf__sql_operation *op,
                     int64_t deadline_ns, struct hf__answer *ret_answer, hf_error *err)
{
    struct hf__my_text t = {0};
    MYSQL_RES *result = NULL;
    MYSQL_ROW row;

    hf__my_add(&t, "CALL holdfast_read(");
    hf__my_add_bytes(&t, op->bid->name, op->bid->name_len);
    hf__my_add(&t, ", ");
    hf__my_add_bytes(&t, op->bid->ticket.bits, sizeof op->bid->ticket.bits);
    hf__my_add(&t, ", %" PRIu64 ")", op->generation);
    int r = ask(s, c, &t, deadline_ns, HF__SQL_VALUE_CELLS, &result, &row, err);
    if (r != 0)
        return r;
    const char *const answer[HF__SQL_ANSWER_CELLS] = {row[HF__SQL_ANSWER_VERDICT]};
    r = read_answer(answer, ret_answer, err);
    if (r == 0 && !hf__sql_read_value((const char *const *)row, op->value))
        r = other_version(err);
    mysql_free_result(result);
    return r;
}

static int call_write(struct hf__my *s, struct hf__my_conn *c, const struct hf__sql_operation *op,
                      int64_t deadline_ns, struct hf__answer *ret_answer, hf_error *err)
{
    struct hf__my_text t = {0};
    MYSQL_RES *result = NULL;
    MYSQL_ROW row;

    hf__my_add(&t, "CALL holdfast_write(");
    hf__my_add_bytes(&t, op->bid->name, op->bid->name_len);
    hf__my_add(&t, ", ");
    hf__my_add_bytes(&t, op->bid->ticket.bits, sizeof op->bid->ticket.bits);
    hf__my_add(&t, ", %" PRIu64 ", %" PRIu64 ", ", op->generation, op->value->order);
    hf__my_add_bytes(&t, op->value->bytes, op->value->len);
    hf__my_add(&t, ")");
    int r = ask(s, c, &t, deadline_ns, 1, &result, &row, err);
    if (r != 0)
        return r;
    const char *const cells[HF__SQL_ANSWER_CELLS] = {row[0]};
    r = read_answer(cells, ret_answer, err);
    mysql_free_result(result);
    return r;
}

/* "verdict generation lease claimed ask_again wanted;" with - for what there is not. `at` is cut up. */
static int read_renewal(char **at, struct hf__answer *answer, hf_error *err)
{
    char *end = strchr(*at, ';'), *word = *at, *rest = NULL;
    const char *cells[HF__SQL_ANSWER_CELLS] = {0};

    if (end == NULL)
        return other_version(err);
    *end = '\0';
    *at = end + 1;
    for (size_t i = 0; i <= HF__SQL_ANSWER_WANTED; i++) {
        word = strtok_r(i == 0 ? word : NULL, " ", &rest);
        if (word == NULL)
            return other_version(err);
        cells[i] = strcmp(word, "-") == 0 ? NULL : word;
    }
    return read_answer(cells, answer, err);
}

static int call_renew(struct hf__my *s, struct hf__my_conn *c, const struct hf__sql_operation *op,
                      int64_t deadline_ns, hf_error *err)
{
    struct hf__my_text t = {0};
    MYSQL_RES *result = NULL;
    MYSQL_ROW row;

    hf__my_add(&t, "CALL holdfast_keep('");
    for (size_t i = 0; i < op->count; i++) {
        const struct hf__renewal *item = op->items[i];
        hf__my_add_hex(&t, item->name, item->name_len);
        hf__my_add(&t, " ");
        hf__my_add_hex(&t, item->ticket.bits, sizeof item->ticket.bits);
        hf__my_add(&t, " %" PRIu64 ";", item->generation);
    }
    hf__my_add(&t, "', %" PRId64 ")", hf__sql_latest_us(&s->sql, deadline_ns));
    int r = ask(s, c, &t, deadline_ns, 1, &result, &row, err);
    if (r != 0)
        return r;
    char *at = row[0];
    for (size_t i = 0; i < op->count && r == 0; i++)
        r = at != NULL ? read_renewal(&at, &op->items[i]->answer, err) : other_version(err);
    mysql_free_result(result);
    return r;
}

int hf__my_call(void *store, void *conn, const struct hf__sql_operation *op, int64_t deadline_ns,
                struct hf__answer *ret_answer, hf_error *err)
{
    bool done = false;

    if (op->kind == HF__OPERATION_RENEW)
        return call_renew(store, conn, op, deadline_ns, err);
    if (op->kind == HF__OPERATION_READ)
        return call_read(store, conn, op, deadline_ns, ret_answer, err);
    if (op->kind == HF__OPERATION_WRITE)
        return call_write(store, conn, op, deadline_ns, ret_answer, err);
    int r = hf__my_quick(store, conn, op, deadline_ns, ret_answer, &done, err);
    if (r != 0 || done)
        return r;
    if (op->kind != HF__OPERATION_ATTEMPT)
        return call_end(store, conn, op, deadline_ns, ret_answer, err);
    r = call_attempt(store, conn, op, deadline_ns, ret_answer, err);
    if (r == 0)
        hf__my_quick_learn(store, op, ret_answer);
    return r;
}
