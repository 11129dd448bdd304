/* The store of a PostgreSQL server: lease rows, by the server's clock.
 *
 * Each operation is one question, and inside it
 *
 *      INSERT INTO holdfast_lock ... ON CONFLICT (name) DO UPDATE ...  -- from here on our turn
 *      <the doorman's rules, on clock_timestamp() read after that>     -- rules.sql, operations.sql
 *      NOTIFY                                                          -- those let in who listen
 *
 * or, without the right to the functions, the same rules by the doorman itself between BEGIN and
 * COMMIT (record.c, save.c). Nothing is kept in the session, so a pooler in transaction mode may
 * stand between. */
#include "stores/postgres/postgres.h"

#include <stdlib.h>

#include "base/banned.h"

static long state_number(const char *state)
{
    return strtol(state, NULL, 36);
}

static int check_version(struct hf__pg *s, struct hf__pg_conn *c, int64_t deadline_ns,
                         hf_error *err)
{
    struct hf__pg_query q = {.sql = "SELECT version FROM public.holdfast_schema", .reads = true};
    PGresult *result = NULL;
    int r = hf__pg_ask(s, c, &q, deadline_ns, &result, err);

    if (r != 0)
        return r;
    int64_t version = PQntuples(result) == 1 ? hf__pg_cell(result, 0, 0, 0) : 0;
    PQclear(result);
    return hf__sql_check_version(&s->sql, version, err);
}

/* Functions without a search_path of their own are older ones, which the caller's could mislead: they are not
 * used. */
int hf__pg_learn(void *store, void *conn, int64_t deadline_ns, hf_error *err)
{
    struct hf__pg *s = store;
    struct hf__pg_query q = {
        .sql = "SELECT to_regclass('public.holdfast_schema') IS NOT NULL, coalesce((SELECT"
               " bool_and(has_function_privilege(oid, 'execute')) AND count(*) >= 20 AND"
               " count(proconfig) >= 5 FROM pg_proc WHERE starts_with(proname::text, 'holdfast_')"
               " AND pronamespace = (SELECT oid FROM pg_namespace WHERE nspname = $1)), false),"
               " current_setting('transaction_isolation') <> 'read committed'",
        .reads = true};
    PGresult *result = NULL;

    hf__pg_text(&q, hf__pg_schema(s));
    int r = hf__pg_ask(s, conn, &q, deadline_ns, &result, err);
    if (r != 0)
        return r;
    bool tables = hf__pg_cell_flag(result, 0, 0), routines = hf__pg_cell_flag(result, 0, 1);
    atomic_store(&s->begin_first, hf__pg_cell_flag(result, 0, 2));
    PQclear(result);
    if (!tables)
        return hf__pg_fail_missing(s, conn, deadline_ns, err);
    r = check_version(s, conn, deadline_ns, err);
    if (r == 0)
        hf__sql_learnt(&s->sql, routines);
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
        why->store_code == state_number("42P01")) {
        hf__sql_forget_way(&s->sql);
        return 1;
    }
    return why->store_code == state_number("40001") || why->store_code == state_number("40P01")
               ? HF__SQL_ALWAYS
               : 0;
}

/* The queue of notifications is full: somebody listens and does not take them. That is seen at the commit, so nothing
 * was applied. */
static bool could_not_call(const hf_error *why)
{
    return why->store_code == state_number("54000");
}

const struct hf__sql_type hf__pg_sql_type = {
    .name = "postgres",
    .pool = &hf__pg_pool_type,
    .listener = &hf__pg_listener_type,
    .schema = HF__PG_SCHEMA,
    .retry_ms = 4,
    .learn = hf__pg_learn,
    .call = hf__pg_call,
    .apply = hf__pg_apply,
    .give_back = hf__pg_give_back,
    .setup = hf__pg_setup,
    .purge = hf__pg_purge,
    .tries = tries,
    .could_not_call = could_not_call,
};

HF__IS_SQL(struct hf__pg);

static const char *const schemes[] = {"postgres", "postgresql", NULL};

extern const struct hf__store_type hf_store_type_v1;
__attribute__((visibility("default"))) const struct hf__store_type hf_store_type_v1 = {
    .abi = HF__STORE_ABI,
    .name = "postgres",
    .schemes = schemes,
    .summary = "rows in a PostgreSQL database",
    .capabilities = HF__SQL_CAPABILITIES | HF_CAN_PUSH,
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
};
