/* The doorman's record by plain statements, for a role that may not use the functions. One
 * operation is
 *
 *      BEGIN ISOLATION LEVEL READ COMMITTED
 *      INSERT INTO holdfast_lock ... ON CONFLICT (name) DO UPDATE ... RETURNING ...   -- our turn,
 * the clock SELECT ...                                                                     -- the
 * whole record <the doorman decides> INSERT/UPDATE/DELETE, SELECT pg_notify(...) -- save.c COMMIT
 *
 * The rows and the rules are those of the functions, so clients of both kinds may share a lock. */
#include <stdio.h>
#include <stdlib.h>

#include "stores/postgres/postgres.h"

#include "util/banned.h"

#define LOCK                                                                               \
    "INSERT INTO holdfast_lock AS k (name, generation, touched, before, state)"            \
    " VALUES ($1, 0, " HF__PG_CLOCK ", '-infinity', 0) ON CONFLICT (name) DO UPDATE"       \
    " SET touched = " HF__PG_CLOCK ", before = k.touched, state = 0 RETURNING generation," \
    " (extract(epoch FROM touched) * 1000000)::bigint, before > touched"
/* The clock went back: a tombstone that had ended stays ended. */
#define FORGET                                                          \
    "DELETE FROM holdfast_retired WHERE name = $1 AND until <= (SELECT" \
    " date_trunc('milliseconds', before) FROM holdfast_lock WHERE name = $1)"
#define RECORD                                                                         \
    "SELECT " HF__PG_HOLDER_COLUMNS " FROM holdfast_holder WHERE name = $1 UNION ALL"  \
    " SELECT " HF__PG_WAITER_COLUMNS " FROM holdfast_waiter WHERE name = $1 UNION ALL" \
    " SELECT 0, ticket, 4, false, NULL, 0, 0, 0, 0, 0,"                                \
    " (extract(epoch FROM until) * 1000)::bigint, lease, false, NULL"                  \
    " FROM holdfast_retired WHERE name = $1 ORDER BY 1"

void hf__pg_cells(const PGresult *result, int row, const char *cells[HF__SQL_ENTRY_CELLS])
{
    for (int i = 0; i < HF__SQL_ENTRY_CELLS; i++)
        cells[i] = PQgetisnull(result, row, i) ? NULL : PQgetvalue(result, row, i);
}

static int ask_about(struct hf__pg_record *r, const char *sql, const struct hf__bid *bid,
                     PGresult **ret_result, hf_error *err)
{
    struct hf__pg_query q = {.sql = sql};

    hf__pg_bytes(&q, bid->name, bid->name_len);
    return hf__pg_ask(r->s, r->c, &q, r->deadline_ns, ret_result, err);
}

static int lock_row(struct hf__pg_record *r, const struct hf__bid *bid, hf_error *err)
{
    PGresult *result = NULL;
    int code = ask_about(r, LOCK, bid, &result, err);

    if (code != 0)
        return code;
    r->at_hand.record.generation = (uint64_t)hf__pg_cell(result, 0, 0, 0);
    r->at_hand.at.stamp_us = (uint64_t)hf__pg_cell(result, 0, 1, 0);
    r->at_hand.at.now_ms = (int64_t)(r->at_hand.at.stamp_us / 1000);
    bool went_back = hf__pg_cell_flag(result, 0, 2);
    PQclear(result);
    result = NULL;
    if (went_back)
        code = ask_about(r, FORGET, bid, &result, err);
    PQclear(result);
    return code;
}

static int take_rows(struct hf__pg_record *r, const PGresult *result, hf_error *err)
{
    const char *cells[HF__SQL_ENTRY_CELLS];
    int count = PQntuples(result), code = hf__sql_record_init(&r->at_hand, (size_t)count, err);

    for (int row = 0; row < count && code == 0; row++) {
        hf__pg_cells(result, row, cells);
        if (!hf__sql_record_add(&r->at_hand, cells))
            code = hf__fail(err, HF_CORRUPT, "postgres: a ticket is not 16 bytes long");
    }
    return code;
}

int hf__pg_load(struct hf__pg_record *r, const struct hf__bid *bid, hf_error *err)
{
    PGresult *result = NULL;
    int code = lock_row(r, bid, err);

    if (code == 0)
        code = ask_about(r, RECORD, bid, &result, err);
    if (code == 0)
        code = take_rows(r, result, err);
    PQclear(result);
    return code;
}

int hf__pg_apply(struct hf__pg *s, struct hf__pg_conn *c, const struct hf__sql_operation *op,
                 int64_t deadline_ns, struct hf__answer *ret_answer, hf_error *err)
{
    struct hf__pg_record r = {.s = s, .c = c, .deadline_ns = deadline_ns};
    struct hf__answer answer = {0};
    int code = hf__pg_run(s, c, "BEGIN ISOLATION LEVEL READ COMMITTED", deadline_ns, err);

    if (code == 0)
        code = hf__pg_load(&r, op->bid, err);
    if (code == 0) {
        answer = hf__sql_decide(&r.at_hand, op);
        code = hf__pg_save(&r, op, err);
    }
    code = hf__sql_not_applied(code, err);
    if (code == 0)
        code = hf__pg_run(s, c, "COMMIT", deadline_ns, err);
    else if (PQstatus(c->pg) == CONNECTION_OK && PQtransactionStatus(c->pg) != PQTRANS_ACTIVE)
        hf__pg_run(s, c, "ROLLBACK", deadline_ns, NULL);
    hf__sql_record_clear(&r.at_hand);
    if (code != 0)
        return code;
    answer.sent_ns = ret_answer->sent_ns;
    *ret_answer = answer;
    return 0;
}
