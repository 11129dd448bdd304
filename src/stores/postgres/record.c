/* The doorman's record by plain statements, for a role that may not use the functions. One
 * operation is
 *
 *      BEGIN ISOLATION LEVEL READ COMMITTED; the search_path
 *      INSERT INTO holdfast_lock ... ON CONFLICT ... RETURNING ...  -- our turn, the clock
 *      SELECT ...                                                   -- the whole record
 *      <the doorman decides>
 *      INSERT/UPDATE/DELETE, SELECT pg_notify(...)                  -- save.c
 *      COMMIT
 *
 * The rows and the rules are those of the functions, so clients of both kinds may share a lock. */
#include <stdio.h>
#include <stdlib.h>

#include "stores/postgres/postgres.h"

#include "base/banned.h"

#define LOCK                                                                               \
    "INSERT INTO public.holdfast_lock AS k (name, generation, touched, before, state)"     \
    " VALUES ($1, 0, " HF__PG_CLOCK ", '-infinity', 0) ON CONFLICT (name) DO UPDATE"       \
    " SET touched = " HF__PG_CLOCK ", before = k.touched, state = 0 RETURNING generation," \
    " (extract(epoch FROM touched) * 1000000.0)::bigint, before > touched"
/* The clock went back: a tombstone that had ended stays ended. */
#define FORGET                                                                 \
    "DELETE FROM public.holdfast_retired WHERE name = $1 AND until <= (SELECT" \
    " date_trunc('milliseconds', before) FROM public.holdfast_lock WHERE name = $1)"
#define RECORD                                                                                \
    "SELECT " HF__PG_HOLDER_COLUMNS " FROM public.holdfast_holder WHERE name = $1 UNION ALL"  \
    " SELECT " HF__PG_WAITER_COLUMNS " FROM public.holdfast_waiter WHERE name = $1 UNION ALL" \
    " SELECT 0, encode(ticket, 'hex'), 4, false, NULL, 0, 0, 0, 0, 0,"                        \
    " (extract(epoch FROM until) * 1000.0)::bigint, lease, false, NULL"                       \
    " FROM public.holdfast_retired WHERE name = $1 ORDER BY 1"

void hf__pg_cells(const PGresult *result, int row, const char *cells[HF__SQL_ENTRY_CELLS])
{
    for (int i = 0; i < HF__SQL_ENTRY_CELLS; i++)
        cells[i] = PQgetisnull(result, row, i) ? NULL : PQgetvalue(result, row, i);
}

static int ask_about(struct hf__pg_record *r, const char *sql, PGresult **ret_result)
{
    struct hf__pg_query q = {.sql = sql};

    hf__pg_bytes(&q, r->op->bid->name, r->op->bid->name_len);
    return hf__pg_ask(r->s, r->c, &q, r->deadline_ns, ret_result, r->err);
}

static int lock_row(struct hf__pg_record *r)
{
    PGresult *result = NULL;
    int code = ask_about(r, LOCK, &result);

    if (code != 0)
        return code;
    r->at_hand.record.generation = (uint64_t)hf__pg_cell(result, 0, 0, 0);
    r->at_hand.at.stamp_us = (uint64_t)hf__pg_cell(result, 0, 1, 0);
    r->at_hand.at.now_ms = (int64_t)(r->at_hand.at.stamp_us / 1000);
    bool went_back = hf__pg_cell_flag(result, 0, 2);
    PQclear(result);
    result = NULL;
    if (went_back)
        code = ask_about(r, FORGET, &result);
    PQclear(result);
    return code;
}

static int take_rows(struct hf__pg_record *r, const PGresult *result)
{
    const char *cells[HF__SQL_ENTRY_CELLS];
    int count = PQntuples(result), code = hf__sql_record_init(&r->at_hand, (size_t)count, r->err);

    for (int row = 0; row < count && code == 0; row++) {
        hf__pg_cells(result, row, cells);
        if (!hf__sql_record_add(&r->at_hand, cells))
            code = hf__fail(r->err, HF_CORRUPT, "postgres: a row of this lock makes no sense");
    }
    return code;
}

int hf__pg_load(void *ctx)
{
    struct hf__pg_record *r = ctx;
    PGresult *result = NULL;
    int code = hf__pg_run(r->s, r->c, "BEGIN ISOLATION LEVEL READ COMMITTED; " HF__PG_SAFE_PATH,
                          r->deadline_ns, r->err);

    if (code == 0)
        code = lock_row(r);
    if (code == 0)
        code = ask_about(r, RECORD, &result);
    if (code == 0)
        code = take_rows(r, result);
    PQclear(result);
    return code;
}

int hf__pg_finish(void *ctx, int code)
{
    struct hf__pg_record *r = ctx;

    if (code == 0)
        return hf__pg_run(r->s, r->c, "COMMIT", r->deadline_ns, r->err);
    if (PQstatus(r->c->pg) == CONNECTION_OK && PQtransactionStatus(r->c->pg) != PQTRANS_ACTIVE)
        hf__pg_run(r->s, r->c, "ROLLBACK", r->deadline_ns, NULL);
    return code;
}

int hf__pg_apply(void *store, void *conn, const struct hf__sql_operation *op, int64_t deadline_ns,
                 struct hf__answer *ret_answer, hf_error *err)
{
    struct hf__pg_record r = {
        .s = store, .c = conn, .op = op, .deadline_ns = deadline_ns, .err = err};

    return hf__sql_apply(&r.at_hand, op, &hf__pg_writer, &r, ret_answer, err);
}
