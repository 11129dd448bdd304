/* The store of a PostgreSQL server: lease rows, by the server's clock.
 *
 * Each operation is one question, and inside it
 *
 *      INSERT INTO holdfast_lock ... ON CONFLICT (name) DO UPDATE ...  -- from here on our turn
 *      <the doorman's rules, on clock_timestamp() read after that>     -- rules.sql, operations.sql
 *      NOTIFY                                                          -- those let in who listen
 *
 * Nothing is kept in the session, so a pooler in transaction mode may stand between. */
#include "stores/postgres/postgres.h"

#include <stdlib.h>

#include "base/banned.h"

static long state_number(const char *state)
{
    return strtol(state, NULL, 36);
}

int hf__pg_learn(void *store, void *conn, int64_t deadline_ns, hf_error *err)
{
    struct hf__pg *s = store;
    struct hf__pg_query q = {.sql = hf__pg_learn_sql, .reads = true};
    PGresult *result = NULL;
    hf_error why = {0};
    int r = hf__pg_ask(s, conn, &q, deadline_ns, &result, &why);

    if (why.store_code == state_number("42P01"))
        return hf__pg_fail_missing(s, conn, deadline_ns, err);
    if (why.store_code == state_number("42883"))
        return hf__sql_fail_routines(&s->sql, err);
    if (r != 0) {
        if (err != NULL)
            *err = why;
        return r;
    }
    int64_t tables = PQntuples(result) == 1 ? hf__pg_cell(result, 0, 0, 0) : 0;
    int64_t routines = PQntuples(result) == 1 ? hf__pg_cell(result, 0, 1, 0) : 0;
    atomic_store(&s->begin_first, PQntuples(result) == 1 && hf__pg_cell_flag(result, 0, 2));
    if (PQntuples(result) == 1)
        hf__sql_note_clock(&s->sql, hf__pg_cell(result, 0, 3, 0));
    PQclear(result);
    r = hf__sql_check_tables(&s->sql, tables, err);
    if (r == 0)
        r = hf__sql_check_routines(&s->sql, routines, err);
    if (r == 0 && s->sql.set.history > 0 && routines < HF__PG_TRAILS)
        r = hf__fail(
            err, HF_DENIED,
            "postgres: the functions are older than the trail; run `holdfast setup`, or leave "
            "history= out of the URL");
    return r;
}

/* How many times what the server refused so may be tried again. */
static unsigned tries(void *store, void *conn, const hf_error *why)
{
    struct hf__pg *s = store;
    struct hf__pg_conn *c = conn;

    if (c != NULL)
        c->replica = why->store_code == state_number("25006");
    if (why->store_code == state_number("HF001"))
        return atomic_exchange(&s->begin_first, true) ? 1 : HF__SQL_ALWAYS;
    if (why->store_code == state_number("42883") || why->store_code == state_number("42501") ||
        why->store_code == state_number("42P01") ||
        why->store_code == state_number(HF__PG_TOO_LATE)) {
        hf__sql_learn_again(&s->sql);
        return 1;
    }
    return why->store_code == state_number("40001") || why->store_code == state_number("40P01")
               ? HF__SQL_ALWAYS
               : 0;
}

const struct hf__sql_type hf__pg_sql_type = {
    .name = "postgres",
    .routines = "functions",
    .pool = &hf__pg_pool_type,
    .listener = &hf__pg_listener_type,
    .schema = HF__PG_SCHEMA,
    .rules = HF__PG_RULES,
    .retry_ms = 4,
    .learn = hf__pg_learn,
    .call = hf__pg_call,
    .give_back = hf__pg_give_back,
    .setup = hf__pg_setup,
    .purge = hf__pg_purge,
    .tries = tries,
};

HF__IS_SQL(struct hf__pg);

static const char *const schemes[] = {"postgres", "postgresql", NULL};

__attribute__((visibility("default"))) const struct hf__store_type hf_store_type_v1 = {
    .abi = HF__STORE_ABI,
    .name = "postgres",
    .schemes = schemes,
    .summary = "rows in a PostgreSQL database",
    .capabilities = HF__SQL_CAPABILITIES | HF__SQL_BEYOND | HF_CAN_PUSH | HF_CAN_HISTORY,
    .options = hf__pg_options,
    .ddl = hf__pg_ddl,
    .ddl_of = hf__pg_ddl_of,
    .open = hf__pg_open,
    .close = hf__pg_close,
    .operate = hf__sql_operate,
    .renew = hf__sql_renew,
    .inspect = hf__pg_inspect,
    .upkeep = hf__sql_upkeep,
    .diagnose = hf__pg_diagnose,
    .wake_fd = hf__sql_wake_fd,
    .wake = hf__pg_wake,
    .trail = hf__pg_trail,
};
