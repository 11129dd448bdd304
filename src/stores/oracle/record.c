/* The doorman's record by plain statements, for an account that may not use the package. One
 * operation is
 *
 *      SELECT line FROM holdfast_lock WHERE ... FOR UPDATE NOWAIT  -- our turn; or, the first time,
 *      INSERT INTO holdfast_lock ...                               -- which somebody may do as well
 *      SELECT ... SYSTIMESTAMP ... FROM holdfast_lock              -- the lock's row and the clock
 *      SELECT ... UNION ALL ...                                    -- the whole record
 *      <the doorman decides>
 *      INSERT/UPDATE/DELETE                                        -- save.c
 *      SQLEndTran(SQL_COMMIT)
 *
 * The rows and the rules are those of the package, so clients of both kinds may share a lock. */
#include <stdlib.h>

#include "stores/oracle/oracle.h"

#include "base/banned.h"

static const char lock_sql[] =
    "SELECT line FROM holdfast_lock WHERE name = HEXTORAW(?) FOR UPDATE NOWAIT";
static const char add_sql[] = "INSERT INTO holdfast_lock (name, generation, line, touched_us)"
                              " VALUES (HEXTORAW(?), 0, 0, 0)";
static const char look_sql[] =
    "SELECT generation || ' ' || line || ' ' || touched_us || ' ' || " HF__ORA_CLOCK
    " FROM holdfast_lock WHERE name = HEXTORAW(?)";
static const char forget_sql[] =
    "DELETE FROM holdfast_retired WHERE name = HEXTORAW(?) AND until_ms <= ?";
static const char load_sql[] =
    "SELECT " HF__ORA_HOLDER ", seq FROM holdfast_holder WHERE name = HEXTORAW(?)"
    " UNION ALL SELECT " HF__ORA_WAITER ", seq FROM holdfast_waiter WHERE name = HEXTORAW(?)"
    " UNION ALL SELECT '0 ' || RAWTOHEX(ticket) || ' 4 0 0 0 0 0 0 0 ' || until_ms || ' ' || lease"
    " || ' 0 -1', 0 FROM holdfast_retired WHERE name = HEXTORAW(?) ORDER BY 2";

/* A statement with the name in it, `times` times. */
static int ask(struct hf__ora_record *r, const char *sql, int times, hf_error *err)
{
    hf__ora_start(r->c, sql);
    for (int i = 0; i < times; i++)
        hf__ora_add_bytes(r->c, r->op->bid->name, r->op->bid->name_len);
    return hf__ora_run(r->s, r->c, false, r->deadline_ns, err);
}

/* A row that is purged between our statements is worth another try. */
static int lock_row(struct hf__ora_record *r)
{
    hf_error why = {0};
    int code = ask(r, lock_sql, 1, r->err);

    if (code != 0 || r->c->job.rows.count > 0)
        return code;
    code = ask(r, add_sql, 1, &why);
    if (code == 0)
        return 0;
    if (r->c->kind != HF__ORA_DUPLICATE) {
        if (r->err != NULL)
            *r->err = why;
        return code;
    }
    code = ask(r, lock_sql, 1, r->err);
    if (code != 0 || r->c->job.rows.count > 0)
        return code;
    r->c->kind = HF__ORA_AGAIN;
    return hf__fail(r->err, HF_UNAVAILABLE, "oracle: the lock's row was removed meanwhile");
}

/* The clock went back: a tombstone that had ended stays ended. */
static int forget(struct hf__ora_record *r, int64_t before_us)
{
    hf__ora_start(r->c, forget_sql);
    hf__ora_add_bytes(r->c, r->op->bid->name, r->op->bid->name_len);
    hf__ora_add_number(r->c, before_us / 1000);
    return hf__ora_run(r->s, r->c, false, r->deadline_ns, r->err);
}

static int look_at_lock(struct hf__ora_record *r)
{
    const char *cells[4];
    int code = ask(r, look_sql, 1, r->err);

    if (code != 0)
        return code;
    if (r->c->job.rows.count != 1 || !hf__ora_split(r->c->job.rows.cells[0], cells, 4))
        return hf__fail(r->err, HF_CORRUPT, "oracle: the lock's row is gone");
    r->at_hand.record.generation = (uint64_t)hf__sql_integer(cells[0], 0);
    r->line = hf__sql_integer(cells[1], 0) + 1;
    r->at_hand.at.stamp_us = (uint64_t)hf__sql_integer(cells[3], 0);
    r->at_hand.at.now_ms = (int64_t)(r->at_hand.at.stamp_us / 1000);
    int64_t before_us = hf__sql_integer(cells[2], 0);
    return before_us > (int64_t)r->at_hand.at.stamp_us ? forget(r, before_us) : 0;
}

int hf__ora_load(void *ctx)
{
    struct hf__ora_record *r = ctx;
    const struct hf__ora_rows *rows = &r->c->job.rows;
    const char *cells[HF__SQL_ENTRY_CELLS];
    int code = lock_row(r);

    if (code == 0)
        code = look_at_lock(r);
    if (code == 0)
        code = ask(r, load_sql, 3, r->err);
    if (code == 0)
        code = hf__sql_record_init(&r->at_hand, rows->count, r->err);
    for (size_t i = 0; i < rows->count && code == 0; i++) {
        char *text = rows->cells[i * rows->columns];
        if (text == NULL || !hf__ora_split(text, cells, HF__SQL_ENTRY_CELLS) ||
            !hf__sql_record_add(&r->at_hand, cells))
            code = hf__fail(r->err, HF_CORRUPT, "oracle: a row makes no sense");
    }
    return code;
}

/* What fails before the COMMIT is rolled back when the connection is given back. */
int hf__ora_finish(void *ctx, int code)
{
    struct hf__ora_record *r = ctx;

    return code != 0 ? code : hf__ora_commit(r->s, r->c, r->deadline_ns, r->err);
}

int hf__ora_apply(void *store, void *conn, const struct hf__sql_operation *op, int64_t deadline_ns,
                  struct hf__answer *ret_answer, hf_error *err)
{
    struct hf__ora_record r = {
        .s = store, .c = conn, .op = op, .deadline_ns = deadline_ns, .err = err};

    return hf__sql_apply(&r.at_hand, op, &hf__ora_writer, &r, ret_answer, err);
}
