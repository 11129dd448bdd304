/* The store of an Oracle database: lease rows, by the server's clock, over ODBC.
 *
 * Each operation is one {call}, and inside it
 *
 *      SELECT ... FROM holdfast_lock WHERE name = ... FOR UPDATE NOWAIT  -- from here on our turn
 *      <the doorman's rules, on SYSTIMESTAMP read after that>            -- rules.sql
 *      COMMIT
 *
 * or, without the right to the package, the same rules by the doorman itself in one transaction
 * (record.c, save.c). Nobody is called: waiters ask. */
#include "stores/oracle/oracle.h"

#include <inttypes.h>
#include <stdlib.h>

#include "util/banned.h"

#define RETRY_MS 2  /* the pause after a conflict, and its growth: up to 32 times as long */
#define LEAST_MS 50 /* less time is too little for another try: it would only end as unknown */

static int check_version(struct hf__ora *s, struct hf__ora_conn *c, int64_t deadline_ns,
                         hf_error *err)
{
    hf__ora_start(c, "SELECT '' || MAX(version) FROM holdfast_schema");
    int r = hf__ora_run(s, c, true, deadline_ns, err);
    if (r != 0)
        return r;
    int64_t version = hf__sql_integer(hf__ora_cell(c, 0), 0);
    if (version == HF__ORA_SCHEMA)
        return 0;
    return hf__fail(err, HF_DENIED,
                    "oracle: the tables are of version %" PRId64 ", this is for version %d; %s",
                    version, HF__ORA_SCHEMA,
                    version < HF__ORA_SCHEMA ? "run `holdfast setup`" : "use a newer holdfast");
}

/* Whether the package is there, may be used, and speaks our version: it is asked. */
static int try_package(struct hf__ora *s, struct hf__ora_conn *c, int64_t deadline_ns,
                       bool *ret_there, hf_error *err)
{
    hf__ora_start(c, "{call holdfast_rules.version(?)}");
    c->job.answers = true;
    int r = hf__ora_run(s, c, true, deadline_ns, err);
    *ret_there = r == 0 && hf__sql_integer(c->job.answer, 0) == HF__ORA_SCHEMA;
    return r == HF_DENIED ? 0 : r;
}

int hf__ora_learn(struct hf__ora *s, struct hf__ora_conn *c, int64_t deadline_ns, hf_error *err)
{
    hf_error why = {0};
    bool there = false;
    int r = check_version(s, c, deadline_ns, &why);

    if (r == 0 && c->dialect->has_routines)
        r = try_package(s, c, deadline_ns, &there, &why);
    if (r == 0)
        atomic_store(&s->way, there && s->set.routines ? HF__ORA_ROUTINES : HF__ORA_PLAIN);
    else if (err != NULL)
        *err = why;
    return r;
}

static int apply_plain(struct hf__ora *s, struct hf__ora_conn *c,
                       const struct hf__sql_operation *op, int64_t deadline_ns,
                       struct hf__answer *ret_answer, hf_error *err)
{
    int r = 0;

    if (op->kind != HF__SQL_RENEW)
        return hf__ora_apply(s, c, op, deadline_ns, ret_answer, err);
    for (size_t i = 0; i < op->count && r == 0; i++) {
        struct hf__renewal *item = op->items[i];
        struct hf__bid bid = {
            .name = item->name, .name_len = item->name_len, .ticket = item->ticket};
        struct hf__sql_operation one = {
            .kind = HF__SQL_RENEW, .bid = &bid, .generation = item->generation};
        r = hf__ora_apply(s, c, &one, deadline_ns, &item->answer, err);
        if (r == HF_UNAVAILABLE && i > 0 && c->kind != HF__ORA_AGAIN)
            r = hf__fail(err, HF_UNKNOWN, "oracle: some were renewed, then the server failed");
    }
    return r;
}

/* `ret_kind`: of the error. */
static int operate_once(struct hf__ora *s, const struct hf__sql_operation *op, int64_t deadline_ns,
                        struct hf__answer *ret_answer, enum hf__ora_kind *ret_kind, hf_error *err)
{
    struct hf__ora_conn *c = NULL;
    int r = hf__ora_borrow(s, deadline_ns, &c, err);

    *ret_kind = HF__ORA_OTHER;
    if (r != 0)
        return r;
    if (atomic_load(&s->way) == HF__ORA_NOT_KNOWN)
        r = hf__ora_learn(s, c, deadline_ns, err);
    if (r == 0)
        r = atomic_load(&s->way) == HF__ORA_ROUTINES
                ? hf__ora_call(s, c, op, deadline_ns, ret_answer, err)
                : apply_plain(s, c, op, deadline_ns, ret_answer, err);
    *ret_kind = c->kind;
    hf__ora_give_back(s, c);
    return r;
}

/* Whether the server's refusal is a reason to ask once more: somebody else was there, or somebody
 * has changed something and we have to look again. All operations are idempotent by ticket. */
static bool worth_another(struct hf__ora *s, enum hf__ora_kind kind, unsigned tries)
{
    if (kind != HF__ORA_CHANGED)
        return kind == HF__ORA_AGAIN;
    atomic_store(&s->way, HF__ORA_NOT_KNOWN);
    return tries == 0;
}

static bool has_time(struct hf__ora *s, int64_t ms, int64_t deadline_ns)
{
    return hf__now_ns(s->base.host->env) + ms * HF__NS_PER_MS < deadline_ns;
}

static int operate(struct hf__store *store, const struct hf__sql_operation *op, int64_t deadline_ns,
                   struct hf__answer *ret_answer, hf_error *err)
{
    struct hf__ora *s = (struct hf__ora *)store;
    hf_error why = {0};
    enum hf__ora_kind kind;
    int r;

    for (unsigned tries = 0;; tries++) {
        int64_t pause_ms = RETRY_MS << (tries < 5 ? tries : 5);
        r = operate_once(s, op, deadline_ns, ret_answer, &kind, &why);
        if (r == 0 || r == HF_UNKNOWN || !worth_another(s, kind, tries) ||
            !has_time(s, 2 * pause_ms + LEAST_MS, deadline_ns))
            break;
        hf__pool_sleep(&s->pool, pause_ms);
        why = (hf_error){0};
    }
    if (r != 0 && err != NULL)
        *err = why;
    return r;
}

static int attempt(struct hf__store *store, const struct hf__bid *bid, int64_t deadline_ns,
                   struct hf__answer *ret_answer, hf_error *err)
{
    struct hf__ora *s = (struct hf__ora *)store;
    struct hf__sql_operation op = {.kind = HF__SQL_ATTEMPT, .bid = bid};

    atomic_store(&s->locks, true);
    int r = operate(store, &op, deadline_ns, ret_answer, err);

    if (r == 0)
        hf__sql_pace(&s->pool, false, s->set.poll_ms, 0, ret_answer);
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
    struct hf__renewal **order = hf__sql_in_order(items, count);
    size_t done = 0;
    int r = order == NULL ? hf__fail(err, HF_NO_MEMORY, NULL) : 0;

    while (done < count && r == 0) {
        struct hf__sql_operation op = {.kind = HF__SQL_RENEW,
                                       .items = order + done,
                                       .count = hf__ora_renewals(order + done, count - done)};
        r = operate(store, &op, deadline_ns, NULL, err);
        if (r == HF_UNAVAILABLE && done > 0) /* those before it were applied */
            r = hf__fail(err, HF_UNKNOWN, "oracle: some were renewed, then the server failed");
        done += op.count;
    }
    free(order);
    return r;
}

static int break_ticket(struct hf__store *store, const struct hf__bid *bid, bool now,
                        int64_t deadline_ns, struct hf__answer *ret_answer, hf_error *err)
{
    struct hf__sql_operation op = {.kind = HF__SQL_BREAK, .bid = bid, .now = now};

    return operate(store, &op, deadline_ns, ret_answer, err);
}

static const char *const schemes[] = {"oracle", NULL};

extern const struct hf__store_type hf_store_type_v1;
__attribute__((visibility("default"))) const struct hf__store_type hf_store_type_v1 = {
    .abi = HF__STORE_ABI,
    .name = "oracle",
    .schemes = schemes,
    .summary = "rows in an Oracle database, over ODBC",
    .capabilities = HF_CAN_SHARE | HF_CAN_LIMIT | HF_CAN_LEASE | HF_CAN_NEVER | HF_CAN_DELAY |
                    HF_CAN_QUEUE | HF_CAN_TOKEN | HF_CAN_CHECK | HF_CAN_BREAK | HF_CAN_DETACH |
                    HF_CAN_PROCESS | HF_CAN_PERSIST,
    .options = hf__ora_options,
    .ddl = hf__ora_ddl,
    .open = hf__ora_open,
    .close = hf__ora_close,
    .attempt = attempt,
    .withdraw = withdraw,
    .release = release,
    .renew = renew,
    .inspect = hf__ora_inspect,
    .break_ticket = break_ticket,
    .upkeep = hf__ora_upkeep,
    .diagnose = hf__ora_diagnose,
};
