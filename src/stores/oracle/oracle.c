/* The store of an Oracle database: lease rows, by the server's clock, over ODBC.
 *
 * Each operation is one {call}, and inside it
 *
 *      SELECT ... FROM holdfast_lock WHERE name = ... FOR UPDATE NOWAIT  -- from here on our turn
 *      <the doorman's rules, on SYSTIMESTAMP read after that>            -- rules.sql
 *      COMMIT
 *
 * Nobody is called: waiters ask. */
#include "stores/oracle/oracle.h"

#include "base/banned.h"

int hf__ora_learn(void *store, void *conn, int64_t deadline_ns, hf_error *err)
{
    struct hf__ora *s = store;
    struct hf__ora_conn *c = conn;

    hf__ora_start(c, "SELECT '' || MAX(version) FROM holdfast_schema");
    int r = hf__ora_run(s, c, true, deadline_ns, err);
    if (r == 0)
        r = hf__sql_check_tables(&s->sql, hf__sql_integer(hf__ora_cell(c, 0), 0), err);
    if (r != 0)
        return r;
    hf__ora_start(c, "{call holdfast_rules.version(?)}");
    c->job.answers = true;
    r = hf__ora_run(s, c, true, deadline_ns, err);
    return r != 0 ? r : hf__sql_check_routines(&s->sql, hf__sql_integer(c->job.answer, 0), err);
}

/* How many times what the server refused so may be tried again. */
static unsigned tries(void *store, void *conn, const hf_error *why)
{
    struct hf__ora *s = store;
    const struct hf__ora_conn *c = conn;

    (void)why;
    if (c == NULL || c->kind != HF__ORA_KIND_CHANGED)
        return c != NULL && c->kind == HF__ORA_KIND_AGAIN ? HF__SQL_ALWAYS : 0;
    hf__sql_learn_again(&s->sql);
    return HF__SQL_MISSING_TRIES;
}

const struct hf__sql_type hf__ora_sql_type = {
    .name = "oracle",
    .routines = "package procedures",
    .pool = &hf__ora_pool_type,
    .schema = HF__ORA_SCHEMA,
    .rules = HF__ORA_RULES,
    .retry_ms = 2,
    .least_ms = 50, /* with less it would only end as unknown */
    .learn = hf__ora_learn,
    .call = hf__ora_call,
    .give_back = hf__ora_give_back,
    .setup = hf__ora_setup,
    .purge = hf__ora_purge,
    .tries = tries,
    .batch = hf__ora_renewals,
};

HF__IS_SQL(struct hf__ora);

static int operate(struct hf__store *store, const struct hf__operation *op, int64_t deadline_ns,
                   struct hf__answer *ret_answer, hf_error *err)
{
    if (op->kind == HF__OPERATION_ATTEMPT)
        atomic_store(&((struct hf__ora *)store)->locks, true);
    return hf__sql_operate(store, op, deadline_ns, ret_answer, err);
}

static const char *const schemes[] = {"oracle", NULL};

extern const struct hf__store_type hf_store_type_v1;
__attribute__((visibility("default"))) const struct hf__store_type hf_store_type_v1 = {
    .abi = HF__STORE_ABI,
    .name = "oracle",
    .schemes = schemes,
    .summary = "rows in an Oracle database, over ODBC",
    .capabilities = HF__SQL_CAPABILITIES,
    .options = hf__ora_options,
    .ddl = hf__ora_ddl,
    .open = hf__ora_open,
    .close = hf__ora_close,
    .operate = operate,
    .renew = hf__sql_renew,
    .inspect = hf__ora_inspect,
    .upkeep = hf__sql_upkeep,
    .diagnose = hf__ora_diagnose,
};
