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

#define LOCK                                                                       \
    "INSERT INTO holdfast_lock AS k (name, generation, touched, before)"           \
    " VALUES ($1, 0, clock_timestamp(), '-infinity') ON CONFLICT (name) DO UPDATE" \
    " SET touched = clock_timestamp(), before = k.touched RETURNING generation,"   \
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

static bool read_ticket(const PGresult *result, int row, int column, struct hf__ticket *ret_ticket)
{
    const char *hex = PQgetvalue(result, row, column);

    return strncmp(hex, "\\x", 2) == 0 && hf__ticket_parse(hex + 2, ret_ticket);
}

int hf__pg_read_entry(const PGresult *q, int row, struct hf__pg_row *ret_row, hf_error *err)
{
    struct hf__pg_row r = {.seq = hf__pg_cell(q, row, 0, 0)};
    int64_t place = hf__pg_cell(q, row, 2, 0);

    if (!read_ticket(q, row, 1, &r.was.ticket))
        return hf__fail(err, HF_CORRUPT, "postgres: a ticket is not 16 bytes long");
    r.was.place = (enum hf__place)place;
    r.was.mode = hf__pg_cell_flag(q, row, 3) ? HF_SHARED : HF_EXCLUSIVE;
    r.was.limit = (uint32_t)hf__pg_cell(q, row, 4, 0);
    r.was.generation = (uint64_t)hf__pg_cell(q, row, 5, 0);
    r.was.ttl_ms = hf__pg_cell(q, row, 6, 0);
    r.was.lock_delay_ms = hf__pg_cell(q, row, 7, 0);
    r.was.retire_ms = hf__pg_cell(q, row, 8, 0);
    r.was.since_ms = hf__pg_cell(q, row, 9, 0);
    r.was.until_ms = hf__pg_cell(q, row, 10, HF__NEVER);
    r.was.lease_ms = hf__pg_cell(q, row, 11, HF__NEVER);
    r.was.claimed = hf__pg_cell_flag(q, row, 12);
    snprintf(r.wake, sizeof r.wake, "%s", PQgetvalue(q, row, 13));
    *ret_row = r;
    return 0;
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
    r->record.generation = (uint64_t)hf__pg_cell(result, 0, 0, 0);
    r->at.stamp_us = (uint64_t)hf__pg_cell(result, 0, 1, 0);
    r->at.now_ms = (int64_t)(r->at.stamp_us / 1000);
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
    size_t count = (size_t)PQntuples(result);
    int code = 0;

    r->record.capacity = count + 2;
    r->record.entries = calloc(r->record.capacity, sizeof *r->record.entries);
    r->rows = calloc(r->record.capacity, sizeof *r->rows);
    if (r->record.entries == NULL || r->rows == NULL)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    for (size_t i = 0; i < count && code == 0; i++) {
        struct hf__pg_row *row = &r->rows[r->record.count];
        code = hf__pg_read_entry(result, (int)i, row, err);
        r->record.entries[r->record.count] = row->was;
        r->record.entries[r->record.count++].who = row;
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

static struct hf__answer decide(struct hf__pg_record *r, const struct hf__pg_operation *op)
{
    switch (op->kind) {
    case HF__PG_ATTEMPT:
        return hf__doorman_attempt(&r->record, op->bid, NULL, r->at);
    case HF__PG_WITHDRAW:
        return hf__doorman_withdraw(&r->record, &op->bid->ticket, op->retire_ms, r->at);
    case HF__PG_RELEASE:
        return hf__doorman_release(&r->record, &op->bid->ticket, op->retire_ms, r->at);
    case HF__PG_RENEW:
        return hf__doorman_renew(&r->record, &op->bid->ticket, op->generation, r->at);
    default:
        return hf__doorman_break(&r->record, &op->bid->ticket, op->now, r->at);
    }
}

/* What was sent inside a transaction that was not committed is not applied. */
static int not_applied(int code, hf_error *err)
{
    return code == HF_UNKNOWN ? hf__wrap(err, HF_UNAVAILABLE, "not committed") : code;
}

int hf__pg_apply(struct hf__pg *s, struct hf__pg_conn *c, const struct hf__pg_operation *op,
                 int64_t deadline_ns, struct hf__answer *ret_answer, hf_error *err)
{
    struct hf__pg_record r = {.s = s, .c = c, .deadline_ns = deadline_ns};
    struct hf__answer answer = {0};
    int code = hf__pg_run(s, c, "BEGIN ISOLATION LEVEL READ COMMITTED", deadline_ns, err);

    if (code == 0)
        code = hf__pg_load(&r, op->bid, err);
    if (code == 0) {
        answer = decide(&r, op);
        code = hf__pg_save(&r, op, err);
    }
    code = not_applied(code, err);
    if (code == 0)
        code = hf__pg_run(s, c, "COMMIT", deadline_ns, err);
    else if (PQstatus(c->pg) == CONNECTION_OK && PQtransactionStatus(c->pg) != PQTRANS_ACTIVE)
        hf__pg_run(s, c, "ROLLBACK", deadline_ns, NULL);
    free(r.record.entries);
    free(r.rows);
    if (code != 0)
        return code;
    answer.sent_ns = ret_answer->sent_ns;
    *ret_answer = answer;
    return 0;
}
