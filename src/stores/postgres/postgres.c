/* The store of a PostgreSQL server: lease rows, by the server's clock.
 *
 * Each operation is one question, and inside it
 *
 *      INSERT INTO holdfast_lock ... ON CONFLICT (name) DO UPDATE ...   -- from here on it is our
 * turn <the doorman's rules, on clock_timestamp() read after that>      -- rules.sql,
 * operations.sql NOTIFY                                                           -- those let in
 * who listen
 *
 * or, without the right to the functions, the same rules by the doorman itself between BEGIN and
 * COMMIT (record.c, save.c). Nothing is kept in the session, so a pooler in transaction mode may
 * stand between. */
#include "stores/postgres/postgres.h"

#include <inttypes.h>
#include <stdlib.h>

#include "util/banned.h"

#define RETRY_MS 4 /* the pause after a deadlock or a serialization failure, and its growth */

static long state_number(const char *state)
{
    return strtol(state, NULL, 36);
}

static int check_version(struct hf__pg *s, struct hf__pg_conn *c, int64_t deadline_ns,
                         hf_error *err)
{
    struct hf__pg_query q = {.sql = "SELECT version FROM holdfast_schema", .reads = true};
    PGresult *result = NULL;
    int r = hf__pg_ask(s, c, &q, deadline_ns, &result, err);

    if (r != 0)
        return r;
    int64_t version = PQntuples(result) == 1 ? hf__pg_cell(result, 0, 0, 0) : 0;
    PQclear(result);
    if (version == HF__PG_SCHEMA)
        return 0;
    return hf__fail(err, HF_DENIED,
                    "postgres: the tables are of version %" PRId64 ", this is for version %d; %s",
                    version, HF__PG_SCHEMA,
                    version < HF__PG_SCHEMA ? "run `holdfast setup`" : "use a newer holdfast");
}

int hf__pg_learn(struct hf__pg *s, struct hf__pg_conn *c, int64_t deadline_ns, hf_error *err)
{
    struct hf__pg_query q = {
        .sql =
            "SELECT to_regclass('holdfast_schema') IS NOT NULL,"
            " coalesce((SELECT bool_and(has_function_privilege(oid, 'execute')) AND count(*) >= 20"
            " FROM pg_proc WHERE proname LIKE 'holdfast\\_%' AND pg_function_is_visible(oid)), "
            "false),"
            " current_setting('transaction_isolation') <> 'read committed'",
        .reads = true};
    PGresult *result = NULL;
    int r = hf__pg_ask(s, c, &q, deadline_ns, &result, err);

    if (r != 0)
        return r;
    bool tables = hf__pg_cell_flag(result, 0, 0), routines = hf__pg_cell_flag(result, 0, 1);
    atomic_store(&s->begin_first, hf__pg_cell_flag(result, 0, 2));
    PQclear(result);
    if (!tables)
        return hf__fail(
            err, HF_DENIED,
            "postgres: holdfast's tables are not there; create them with `holdfast setup`,"
            " or correct the role's search_path");
    r = check_version(s, c, deadline_ns, err);
    if (r == 0)
        atomic_store(&s->way, routines && s->set.routines ? HF__PG_ROUTINES : HF__PG_PLAIN);
    return r;
}

static int apply_plain(struct hf__pg *s, struct hf__pg_conn *c, const struct hf__sql_operation *op,
                       int64_t deadline_ns, struct hf__answer *ret_answer, hf_error *err)
{
    int r = 0;

    if (op->kind != HF__SQL_RENEW)
        return hf__pg_apply(s, c, op, deadline_ns, ret_answer, err);
    for (size_t i = 0; i < op->count && r == 0; i++) {
        struct hf__renewal *item = op->items[i];
        struct hf__bid bid = {
            .name = item->name, .name_len = item->name_len, .ticket = item->ticket};
        struct hf__sql_operation one = {
            .kind = HF__SQL_RENEW, .bid = &bid, .generation = item->generation};
        r = hf__pg_apply(s, c, &one, deadline_ns, &item->answer, err);
        if (r == HF_UNAVAILABLE && i > 0) /* those before it were applied */
            r = hf__fail(err, HF_UNKNOWN, "postgres: some were renewed, then the server failed");
    }
    return r;
}

static int operate_once(struct hf__pg *s, const struct hf__sql_operation *op, int64_t deadline_ns,
                        struct hf__answer *ret_answer, hf_error *err)
{
    struct hf__pg_conn *c = NULL;
    int r = hf__pg_borrow(s, deadline_ns, &c, err);

    if (r != 0)
        return r;
    if (atomic_load(&s->way) == HF__PG_NOT_KNOWN)
        r = hf__pg_learn(s, c, deadline_ns, err);
    if (r == 0)
        r = atomic_load(&s->way) == HF__PG_ROUTINES
                ? hf__pg_call(s, c, op, deadline_ns, ret_answer, err)
                : apply_plain(s, c, op, deadline_ns, ret_answer, err);
    if (r != 0 && err->store_code == state_number("25006"))
        hf__pg_hang_up_borrowed(s, c); /* it became a replica: the next one finds the primary */
    else
        hf__pg_give_back(s, c);
    return r;
}

/* Whether the server's refusal is a reason to ask once more. */
static bool worth_another(struct hf__pg *s, const hf_error *why, unsigned tries)
{
    if (why->store_code == state_number("HF001")) {
        return !atomic_exchange(&s->begin_first, true) || tries == 0;
    }
    if (why->store_code == state_number("42883") || why->store_code == state_number("42501") ||
        why->store_code == state_number("42P01")) {
        atomic_store(&s->way, HF__PG_NOT_KNOWN); /* somebody has changed something: look again */
        return tries == 0;
    }
    return why->store_code == state_number("40001") || why->store_code == state_number("40P01");
}

static int operate(struct hf__store *store, struct hf__sql_operation *op, int64_t deadline_ns,
                   struct hf__answer *ret_answer, hf_error *err)
{
    struct hf__pg *s = (struct hf__pg *)store;
    hf_error why = {0};
    int r;

    if (op->kind == HF__SQL_ATTEMPT)
        op->wake = hf__pg_channel(s, deadline_ns);
    for (unsigned tries = 0;; tries++) {
        r = operate_once(s, op, deadline_ns, ret_answer, &why);
        if (r == 0 || r == HF_UNKNOWN || !worth_another(s, &why, tries) ||
            hf__now_ns(s->base.host->env) >= deadline_ns)
            break;
        hf__pool_sleep(&s->pool, RETRY_MS << (tries < 5 ? tries : 5));
        why = (hf_error){0};
    }
    if (r != 0 && err != NULL)
        *err = why;
    return r;
}

static int attempt(struct hf__store *store, const struct hf__bid *bid, int64_t deadline_ns,
                   struct hf__answer *ret_answer, hf_error *err)
{
    struct hf__pg *s = (struct hf__pg *)store;
    struct hf__sql_operation op = {.kind = HF__SQL_ATTEMPT, .bid = bid};
    int r = operate(store, &op, deadline_ns, ret_answer, err);

    if (r == 0)
        hf__sql_pace(&s->pool, op.wake != NULL, s->set.poll_ms, 0, ret_answer);
    return r;
}

static int withdraw(struct hf__store *store, const struct hf__bid *bid, int64_t retire_ms,
                    int64_t deadline_ns, struct hf__answer *ret_answer, hf_error *err)
{
    struct hf__sql_operation op = {.kind = HF__SQL_WITHDRAW, .bid = bid, .retire_ms = retire_ms};

    return operate(store, &op, deadline_ns, ret_answer, err);
}

static int release(struct hf__store *store, const struct hf__bid *bid, int64_t retire_ms,
                   int64_t deadline_ns, struct hf__answer *ret_answer, hf_error *err)
{
    struct hf__sql_operation op = {.kind = HF__SQL_RELEASE, .bid = bid, .retire_ms = retire_ms};

    return operate(store, &op, deadline_ns, ret_answer, err);
}

static int renew(struct hf__store *store, struct hf__renewal *items, size_t count,
                 int64_t deadline_ns, hf_error *err)
{
    struct hf__sql_operation op = {
        .kind = HF__SQL_RENEW, .items = hf__sql_in_order(items, count), .count = count};
    int r = 0;

    if (op.items == NULL)
        r = hf__fail(err, HF_NO_MEMORY, NULL);
    else if (count > 0)
        r = operate(store, &op, deadline_ns, NULL, err);
    free(op.items);
    return r;
}

static int break_ticket(struct hf__store *store, const struct hf__bid *bid, bool now,
                        int64_t deadline_ns, struct hf__answer *ret_answer, hf_error *err)
{
    struct hf__sql_operation op = {.kind = HF__SQL_BREAK, .bid = bid, .now = now};

    return operate(store, &op, deadline_ns, ret_answer, err);
}

static const char *const schemes[] = {"postgres", "postgresql", NULL};

extern const struct hf__store_type hf_store_type_v1;
__attribute__((visibility("default"))) const struct hf__store_type hf_store_type_v1 = {
    .abi = HF__STORE_ABI,
    .name = "postgres",
    .schemes = schemes,
    .summary = "rows in a PostgreSQL database",
    .capabilities = HF_CAN_SHARE | HF_CAN_LIMIT | HF_CAN_LEASE | HF_CAN_NEVER | HF_CAN_DELAY |
                    HF_CAN_QUEUE | HF_CAN_PUSH | HF_CAN_TOKEN | HF_CAN_CHECK | HF_CAN_BREAK |
                    HF_CAN_DETACH | HF_CAN_PROCESS | HF_CAN_PERSIST,
    .options = hf__pg_options,
    .ddl = hf__pg_ddl,
    .open = hf__pg_open,
    .close = hf__pg_close,
    .attempt = attempt,
    .withdraw = withdraw,
    .release = release,
    .renew = renew,
    .inspect = hf__pg_inspect,
    .break_ticket = break_ticket,
    .upkeep = hf__pg_upkeep,
    .diagnose = hf__pg_diagnose,
    .wake_fd = hf__pg_wake_fd,
    .wake = hf__pg_wake,
};
