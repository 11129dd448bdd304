/* One operation in one round trip: SELECT holdfast_<operation>(...). The function is one
 * statement and so one transaction; see rules.sql for why it is atomic. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/who.h"
#include "stores/postgres/postgres.h"

#include "base/banned.h"

enum { OID_BYTEA_ARRAY = 1001, OID_INT8_ARRAY = 1016 };

static int other_version(hf_error *err)
{
    return hf__fail(err, HF_CORRUPT,
                    "postgres: the functions answer in another way; run `holdfast setup`");
}

/* The cells of an answer, as many as there are, from column `first` on. */
static int read_answer(const PGresult *result, int row, int first, struct hf__answer *ret_answer,
                       hf_error *err)
{
    const char *cells[HF__SQL_ANSWER_CELLS] = {0};

    for (int i = 0; i < HF__SQL_ANSWER_CELLS && first + i < PQnfields(result); i++) {
        if (!PQgetisnull(result, row, first + i))
            cells[i] = PQgetvalue(result, row, first + i);
    }
    return hf__sql_read_answer(cells, ret_answer) ? 0 : other_version(err);
}

/* The same as one value, "(granted,1763224000000000,30000,t,,)": a function in FROM costs the
 * server twice as much as one that is selected. No cell has a comma or a quote in it. */
static int read_row(const PGresult *result, struct hf__answer *ret_answer, hf_error *err)
{
    const char *cells[HF__SQL_ANSWER_CELLS] = {0};
    char text[200], *rest = text, *cell;

    snprintf(text, sizeof text, "%s", PQgetvalue(result, 0, 0));
    rest += strspn(rest, "(");
    rest[strcspn(rest, ")")] = '\0';
    for (int i = 0; i < HF__SQL_ANSWER_CELLS && (cell = strsep(&rest, ",")) != NULL; i++)
        cells[i] = cell[0] != '\0' ? cell : NULL;
    return hf__sql_read_answer(cells, ret_answer) ? 0 : other_version(err);
}

/* In a transaction of three round trips: it begins with these statements. */
static int ask_within(struct hf__pg *s, struct hf__pg_conn *c, const char *begin,
                      const struct hf__pg_query *q, int64_t deadline_ns, PGresult **ret_result,
                      hf_error *err)
{
    int r = hf__pg_run(s, c, begin, deadline_ns, err);

    if (r == 0)
        r = hf__pg_ask(s, c, q, deadline_ns, ret_result, err);
    if (r == 0)
        r = hf__pg_run(s, c, "COMMIT", deadline_ns, err);
    else if (PQstatus(c->pg) == CONNECTION_OK && PQtransactionStatus(c->pg) == PQTRANS_INERROR)
        hf__pg_run(s, c, "ROLLBACK", deadline_ns, NULL);
    if (r != 0) {
        PQclear(*ret_result);
        *ret_result = NULL;
    }
    return r;
}

#define BEGIN "BEGIN ISOLATION LEVEL READ COMMITTED"

/* One round trip, unless the server's default isolation would not do. If the queue of notifications
 * is full, because somebody listens and does not take them, the operation is done once more and
 * calls nobody: nobody waits for a lock to run out that could have been released. That the queue is
 * full is seen at the commit, so nothing was applied. */
static int ask(struct hf__pg *s, struct hf__pg_conn *c, const struct hf__pg_query *q,
               int64_t deadline_ns, PGresult **ret_result, hf_error *err)
{
    hf_error why = {0};
    int r = atomic_load(&s->begin_first) ? ask_within(s, c, BEGIN, q, deadline_ns, ret_result, &why)
                                         : hf__pg_ask(s, c, q, deadline_ns, ret_result, &why);

    if (r == HF_FULL && why.store_code == strtol("54000", NULL, 36))
        return ask_within(s, c,
                          BEGIN "; SELECT pg_catalog.set_config('holdfast.silent', 'on', true)", q,
                          deadline_ns, ret_result, err);
    if (r != 0 && err != NULL)
        *err = why;
    return r;
}

static int call_attempt(struct hf__pg *s, struct hf__pg_conn *c, const struct hf__sql_operation *op,
                        int64_t deadline_ns, struct hf__answer *ret_answer, hf_error *err)
{
#define ATTEMPT(name) \
    "SELECT public.holdfast_attempt(" name ",$2,$3,$4,$5,$6,$7,$8,$9,$10,$11,$12,$13,$14,$15,$16)"
    struct hf__pg_query q = {.sql = s->sql.set.history > 0 ? ATTEMPT(HF__PG_NAME_AND_TRAIL("17"))
                                                           : ATTEMPT("$1"),
                             .bare = true};
    struct hf__pg_tells tells;
    const struct hf__bid *bid = op->bid;
    struct hf__who_text who;
    PGresult *result = NULL;

    hf__who_text_init(&who, bid->who != NULL ? bid->who : s->base.host->self);
    hf__pg_bytes(&q, bid->name, bid->name_len);
    hf__pg_bytes(&q, bid->ticket.bits, sizeof bid->ticket.bits);
    hf__pg_flag(&q, bid->mode == HF_SHARED);
    hf__pg_number_or_null(&q, bid->mode == HF_SHARED ? bid->limit : 0, 0);
    hf__pg_number(&q, hf__ttl_stored(bid->ttl_ms));
    hf__pg_number(&q, bid->lock_delay_ms);
    hf__pg_number(&q, bid->retire_ms);
    hf__pg_flag(&q, bid->queue);
    hf__pg_text(&q, op->wake);
    hf__pg_text(&q, who.host);
    hf__pg_text(&q, who.user);
    hf__pg_text(&q, who.program);
    hf__pg_number(&q, who.pid);
    hf__pg_text(&q, who.note);
    hf__pg_number(&q, hf__sql_latest_us(&s->sql, deadline_ns));
    hf__pg_number(&q, hf__sql_flags(bid));
    hf__pg_tell(s, &q, &tells);
    int r = ask(s, c, &q, deadline_ns, &result, err);
    if (r == 0)
        r = read_row(result, ret_answer, err);
    PQclear(result);
    return r;
}

/* release, withdraw, break: name, ticket and one thing more, or three. */
static int call_end(struct hf__pg *s, struct hf__pg_conn *c, const struct hf__sql_operation *op,
                    int64_t deadline_ns, struct hf__answer *ret_answer, hf_error *err)
{
    bool long_way = hf__sql_is_long_release(op);
#define CALL(function)                                                                  \
    {                                                                                   \
        "SELECT public.holdfast_" function "($1,$2,$3)",                                \
            "SELECT public.holdfast_" function "(" HF__PG_NAME_AND_TRAIL("4") ",$2,$3)" \
    }
    static const char *const calls[][2] = {
        [HF__OPERATION_RELEASE] = CALL("release"),
        [HF__OPERATION_WITHDRAW] = CALL("withdraw"),
        [HF__OPERATION_BREAK] = CALL("break"),
    };
    static const char *const release_after[2] = {
        "SELECT public.holdfast_release_after($1,$2,$3,$4,$5)",
        "SELECT public.holdfast_release_after(" HF__PG_NAME_AND_TRAIL("6") ",$2,$3,$4,$5)"};
    bool tells = s->sql.set.history > 0;
    struct hf__pg_query q = {.sql = long_way ? release_after[tells] : calls[op->kind][tells],
                             .bare = true};
    struct hf__pg_tells trail;
    PGresult *result = NULL;

    hf__pg_bytes(&q, op->bid->name, op->bid->name_len);
    hf__pg_bytes(&q, op->bid->ticket.bits, sizeof op->bid->ticket.bits);
    if (op->kind == HF__OPERATION_BREAK)
        hf__pg_flag(&q, op->now);
    else
        hf__pg_number(&q, op->retire_ms);
    if (long_way) {
        hf__pg_number(&q, op->at_least_ms);
        hf__pg_number(&q, (int64_t)op->generation);
    }
    hf__pg_tell(s, &q, &trail);
    int r = ask(s, c, &q, deadline_ns, &result, err);
    if (r == 0)
        r = read_row(result, ret_answer, err);
    PQclear(result);
    return r;
}

static int call_read(struct hf__pg *s, struct hf__pg_conn *c, const struct hf__sql_operation *op,
                     int64_t deadline_ns, struct hf__answer *ret_answer, hf_error *err)
{
    struct hf__pg_query q = {
        .sql = s->sql.set.history > 0
                   ? "SELECT * FROM public.holdfast_read(" HF__PG_NAME_AND_TRAIL("4") ",$2,$3)"
                   : "SELECT * FROM public.holdfast_read($1,$2,$3)",
        .bare = true};
    struct hf__pg_tells tells;
    const char *cells[HF__SQL_VALUE_CELLS] = {0};
    PGresult *result = NULL;

    hf__pg_bytes(&q, op->bid->name, op->bid->name_len);
    hf__pg_bytes(&q, op->bid->ticket.bits, sizeof op->bid->ticket.bits);
    hf__pg_number(&q, (int64_t)op->generation);
    hf__pg_tell(s, &q, &tells);
    int r = ask(s, c, &q, deadline_ns, &result, err);
    if (r != 0)
        return r;
    for (int i = 0; i < HF__SQL_VALUE_CELLS && i < PQnfields(result); i++)
        cells[i] = PQgetisnull(result, 0, i) ? NULL : PQgetvalue(result, 0, i);
    const char *const answer[HF__SQL_ANSWER_CELLS] = {cells[HF__SQL_ANSWER_VERDICT]};
    if (!hf__sql_read_answer(answer, ret_answer) || !hf__sql_read_value(cells, op->value))
        r = other_version(err);
    PQclear(result);
    return r;
}

static int call_write(struct hf__pg *s, struct hf__pg_conn *c, const struct hf__sql_operation *op,
                      int64_t deadline_ns, struct hf__answer *ret_answer, hf_error *err)
{
    struct hf__pg_query q = {
        .sql = s->sql.set.history > 0
                   ? "SELECT public.holdfast_write(" HF__PG_NAME_AND_TRAIL("6") ",$2,$3,$4,$5)"
                   : "SELECT public.holdfast_write($1,$2,$3,$4,$5)",
        .bare = true};
    struct hf__pg_tells tells;
    PGresult *result = NULL;

    hf__pg_bytes(&q, op->bid->name, op->bid->name_len);
    hf__pg_bytes(&q, op->bid->ticket.bits, sizeof op->bid->ticket.bits);
    hf__pg_number(&q, (int64_t)op->generation);
    hf__pg_number(&q, (int64_t)op->value->order);
    hf__pg_bytes(&q, op->value->bytes, op->value->len);
    hf__pg_tell(s, &q, &tells);
    int r = ask(s, c, &q, deadline_ns, &result, err);
    if (r == 0)
        r = read_row(result, ret_answer, err);
    PQclear(result);
    return r;
}

/* Array literals: {"\\x61","\\x62"} and {1,2} ------------------------------ */

static char *put_bytes(char *at, const void *bytes, size_t len)
{
    memcpy(at, "\"\\\\x", 4);
    at = hf__pg_put_hex(at + 4, bytes, len);
    *at++ = '"';
    return at;
}

struct arrays {
    char *names, *tickets, *generations;
};

/* Each buffer is as long as its longest text can be, so that nothing is counted twice. */
static int make_arrays(struct arrays *a, struct hf__renewal *const *items, size_t count,
                       hf_error *err)
{
    size_t size = 2;

    for (size_t i = 0; i < count; i++)
        size += 2 * items[i]->name_len + 6;
    a->names = malloc(size);
    a->tickets = malloc(count * (2 * sizeof items[0]->ticket.bits + 6) + 2);
    a->generations = malloc(count * 24 + 2);
    if (a->names == NULL || a->tickets == NULL || a->generations == NULL)
        return hf__fail(err, HF_NO_MEMORY, NULL);

    char *name = a->names, *ticket = a->tickets, *generation = a->generations;
    for (size_t i = 0; i < count; i++) {
        *name++ = *ticket++ = i == 0 ? '{' : ',';
        name = put_bytes(name, items[i]->name, items[i]->name_len);
        ticket = put_bytes(ticket, items[i]->ticket.bits, sizeof items[i]->ticket.bits);
        generation +=
            snprintf(generation, 24, "%c%" PRIu64, i == 0 ? '{' : ',', items[i]->generation);
    }
    memcpy(name, "}", 2);
    memcpy(ticket, "}", 2);
    memcpy(generation, "}", 2);
    return 0;
}

static int read_renewals(const PGresult *result, const struct hf__sql_operation *op, hf_error *err)
{
    if ((size_t)PQntuples(result) != op->count)
        return other_version(err);
    for (int row = 0; row < PQntuples(result); row++) {
        int64_t item = hf__pg_cell(result, row, 0, 0);
        if (item < 1 || (size_t)item > op->count)
            return other_version(err);
        int r = read_answer(result, row, 1, &op->items[item - 1]->answer, err);
        if (r != 0)
            return r;
    }
    return 0;
}

static int call_renew(struct hf__pg *s, struct hf__pg_conn *c, const struct hf__sql_operation *op,
                      int64_t deadline_ns, hf_error *err)
{
    struct hf__pg_query q = {
        .sql = s->sql.set.history > 0
                   ? "SELECT * FROM public.holdfast_renew(" HF__PG_NAME_AND_TRAIL("5") ",$2,$3,$4)"
                   : "SELECT * FROM public.holdfast_renew($1,$2,$3,$4)",
        .bare = true};
    struct hf__pg_tells tells;
    struct arrays a = {0};
    PGresult *result = NULL;
    int r = make_arrays(&a, op->items, op->count, err);

    if (r == 0) {
        hf__pg_array(&q, OID_BYTEA_ARRAY, a.names);
        hf__pg_array(&q, OID_BYTEA_ARRAY, a.tickets);
        hf__pg_array(&q, OID_INT8_ARRAY, a.generations);
        hf__pg_number(&q, hf__sql_latest_us(&s->sql, deadline_ns));
        hf__pg_tell(s, &q, &tells);
        r = ask(s, c, &q, deadline_ns, &result, err);
    }
    if (r == 0)
        r = read_renewals(result, op, err);
    PQclear(result);
    free(a.names);
    free(a.tickets);
    free(a.generations);
    return r;
}

int hf__pg_call(void *store, void *conn, const struct hf__sql_operation *op, int64_t deadline_ns,
                struct hf__answer *ret_answer, hf_error *err)
{
    switch (op->kind) {
    case HF__OPERATION_ATTEMPT:
        return call_attempt(store, conn, op, deadline_ns, ret_answer, err);
    case HF__OPERATION_RENEW:
        return call_renew(store, conn, op, deadline_ns, err);
    case HF__OPERATION_READ:
        return call_read(store, conn, op, deadline_ns, ret_answer, err);
    case HF__OPERATION_WRITE:
        return call_write(store, conn, op, deadline_ns, ret_answer, err);
    default:
        return call_end(store, conn, op, deadline_ns, ret_answer, err);
    }
}
