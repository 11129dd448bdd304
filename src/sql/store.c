/* See store.h. */
#include "sql/store.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/bytes.h"

#include "base/banned.h"

static struct hf__sql *sql_of(struct hf__store *store)
{
    return &((struct hf__sql_store *)store)->sql;
}

int hf__sql_init(struct hf__store *store, const struct hf__sql_type *type, int code, hf_error *err)
{
    struct hf__sql *sql = sql_of(store);
    const struct hf_env *env = store->host->env;
    hf_error why = {0};

    sql->type = type;
    int pool = hf__pool_init(&sql->pool, type->pool, store, env, &why);
    int listener = hf__listener_init(&sql->listener, type->listener, store, env, &why);
    sql->pool.limits = sql->set.limits;
    sql->pool.host_count = sql->set.servers.count > 0 ? sql->set.servers.count : 1;
    store->capabilities = store->type->capabilities;
    if (store->type->wake_fd == hf__sql_wake_fd && !sql->set.push)
        store->capabilities &= ~(uint32_t)HF_CAN_PUSH;
    if (code == 0 && (pool != 0 || listener != 0)) {
        code = why.code;
        if (err != NULL)
            *err = why;
    }
    return code;
}

void hf__sql_clear(struct hf__sql *sql)
{
    hf__listener_clear(&sql->listener);
    hf__pool_clear(&sql->pool);
    hf__sql_settings_clear(&sql->set);
}

/* Learning ----------------------------------------------------------------- */

int hf__sql_check_tables(const struct hf__sql *sql, int64_t version, hf_error *err)
{
    int ours = sql->type->schema;

    if (version == ours)
        return 0;
    return hf__fail(err, HF_DENIED,
                    "%s: the tables are of version %" PRId64 ", this is for version %d; %s",
                    sql->type->name, version, ours,
                    version < ours ? "run `holdfast setup`" : "use a newer holdfast");
}

#define LET_A_DBA "run `holdfast setup`, or let a DBA apply what `holdfast setup --print` shows"

int hf__sql_check_routines(const struct hf__sql *sql, int64_t version, hf_error *err)
{
    const struct hf__sql_type *type = sql->type;

    if (version >= type->rules)
        return 0;
    return hf__fail(err, HF_DENIED,
                    "%s: the %s are of version %" PRId64 ", this is for version %d; " LET_A_DBA,
                    type->name, type->routines, version, type->rules);
}

int hf__sql_flags(const struct hf__bid *bid)
{
    return (bid->tell ? 1 : 0) | (bid->cached ? 8 : 0);
}

bool hf__sql_is_long_release(const struct hf__sql_operation *op)
{
    return op->kind == HF__OPERATION_RELEASE && (op->at_least_ms > 0 || op->generation != 0);
}

int hf__sql_fail_routines(const struct hf__sql *sql, hf_error *err)
{
    return hf__fail(err, HF_DENIED,
                    "%s: holdfast's %s are missing, or those of an older holdfast; " LET_A_DBA,
                    sql->type->name, sql->type->routines);
}

void hf__sql_learn_again(struct hf__sql *sql)
{
    atomic_store(&sql->learnt, false);
}

static int learn(struct hf__store *store, void *conn, int64_t deadline_ns, hf_error *err)
{
    struct hf__sql *sql = sql_of(store);
    int r = sql->type->learn(store, conn, deadline_ns, err);

    atomic_store(&sql->learnt_ns, hf__now_ns(store->host->env));
    atomic_store(&sql->learnt, r == 0);
    return r;
}

/* Clocks may differ in rate by a hundredth: in this time by little more than half a second. */
#define LEARN_EVERY_NS (60 * 1000 * HF__NS_PER_MS)

static bool must_learn(const struct hf__sql *sql)
{
    return !atomic_load(&sql->learnt) ||
           hf__now_ns(sql->pool.env) - atomic_load(&sql->learnt_ns) > LEARN_EVERY_NS;
}

void hf__sql_note_clock(struct hf__sql *sql, int64_t server_us)
{
    atomic_store(&sql->ahead_us, server_us - hf__now_ns(sql->pool.env) / 1000);
}

int64_t hf__sql_latest_us(const struct hf__sql *sql, int64_t deadline_ns)
{
    return deadline_ns / 1000 + atomic_load(&sql->ahead_us);
}

void hf__sql_note_loss(struct hf__sql *sql)
{
    atomic_store(&sql->lost, true);
}

void hf__sql_note_dial(struct hf__store *store)
{
    if (!atomic_exchange(&sql_of(store)->lost, false))
        return;
    hf__sql_learn_again(sql_of(store));
    atomic_store(&store->moved, true);
}

bool hf__sql_say_learnt(const struct hf__report *to, struct hf__store *store, void *conn,
                        int64_t deadline_ns)
{
    const struct hf__sql_type *type = sql_of(store)->type;
    hf_error err = {0};

    if (learn(store, conn, deadline_ns, &err) != 0) {
        hf__say(to, HF__LEVEL_PROBLEM, NULL, "%s", err.text);
        return false;
    }
    hf__say(to, HF__LEVEL_FINE, NULL,
            "tables of version %d, %s of version %d: one round trip an operation", type->schema,
            type->routines, type->rules);
    return true;
}

int64_t hf__sql_soon(const struct hf__store *store, int64_t deadline_ns)
{
    int64_t now_ns = hf__now_ns(store->host->env);

    return now_ns + (deadline_ns - now_ns) / 2;
}

/* Operations --------------------------------------------------------------- */

/* `ret_tries`: how many times it may be tried again. */
static int operate_once(struct hf__store *store, const struct hf__sql_operation *op,
                        int64_t deadline_ns, struct hf__answer *ret_answer, unsigned *ret_tries,
                        hf_error *err)
{
    struct hf__sql *sql = sql_of(store);
    struct hf__pooled *conn = NULL;
    int r = hf__pool_take(&sql->pool, deadline_ns, &conn, err);

    if (r == 0 && must_learn(sql))
        r = learn(store, conn, deadline_ns, err);
    if (r == 0)
        r = sql->type->call(store, conn, op, deadline_ns, ret_answer, err);
    *ret_tries = r != 0 && r != HF_UNKNOWN ? sql->type->tries(store, conn, err) : 0;
    if (conn != NULL)
        sql->type->give_back(store, conn);
    return r;
}

static int operate(struct hf__store *store, const struct hf__sql_operation *op, int64_t deadline_ns,
                   struct hf__answer *ret_answer, hf_error *err)
{
    struct hf__sql *sql = sql_of(store);
    hf_error why = {0};
    unsigned tries;
    int r;

    for (unsigned done = 0;; done++) {
        int64_t pause_ms = sql->type->retry_ms << (done < 5 ? done : 5);
        int64_t began_ns = hf__now_ns(sql->pool.env);
        r = operate_once(store, op, deadline_ns, ret_answer, &tries, &why);
        int64_t now_ns = hf__now_ns(sql->pool.env);
        /* What was refused is surely not applied; what is sent too late to be answered would be unknown. */
        int64_t needs_ms = 2 * pause_ms + sql->type->least_ms;
        int64_t needs_ns = needs_ms * HF__NS_PER_MS + 2 * (now_ns - began_ns);
        if (done >= tries || now_ns + (sql->type->least_ms > 0 ? needs_ns : 0) >= deadline_ns)
            break;
        hf__pool_sleep(&sql->pool, pause_ms);
        why = (hf_error){0};
    }
    if (r != 0 && err != NULL)
        *err = why;
    return r;
}

/* When a queued bid should ask again. Whoever is not called asks every poll_ms, the further behind
 * the more rarely; the first one that is called asks every recheck_ms: a wake-up is a hint that may
 * be lost. */
static void pace(struct hf__sql *sql, bool called, struct hf__answer *answer)
{
    int64_t behind = answer->position > 8   ? 8
                     : answer->position < 1 ? 1
                                            : (int64_t)answer->position;
    int64_t most_ms = called ? sql->set.recheck_ms : sql->set.poll_ms * behind;

    if (answer->verdict != HF__VERDICT_QUEUED || most_ms == 0 || (called && behind > 1))
        return;
    most_ms = most_ms * 3 / 4 + (int64_t)hf__pool_jitter(&sql->pool, (uint64_t)most_ms / 2 + 1);
    if (answer->ask_again_ms > most_ms)
        answer->ask_again_ms = most_ms;
}

int hf__sql_operate(struct hf__store *store, const struct hf__operation *op, int64_t deadline_ns,
                    struct hf__answer *ret_answer, hf_error *err)
{
    struct hf__sql *sql = sql_of(store);
    struct hf__sql_operation ask = {.kind = op->kind,
                                    .bid = op->bid,
                                    .retire_ms = op->retire_ms,
                                    .at_least_ms = op->at_least_ms,
                                    .now = op->now,
                                    .generation = op->generation,
                                    .value = op->value};
    bool attempt = op->kind == HF__OPERATION_ATTEMPT;
    char wake[HF__LISTENER_ADDRESS];

    if (attempt && hf__listener_again(&sql->listener, deadline_ns, wake))
        ask.wake = wake;
    int r = operate(store, &ask, deadline_ns, ret_answer, err);
    if (r == 0 && attempt)
        pace(sql, ask.wake != NULL, ret_answer);
    return r;
}

/* Renewals ----------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    const struct hf__renewal *x = *(struct hf__renewal *const *)a;
    const struct hf__renewal *y = *(struct hf__renewal *const *)b;

    return hf__bytes_order(x->name, x->name_len, y->name, y->name_len);
}

/* In the order of their names, so that two clients cannot wait for each other. For the caller to
 * free; NULL: no memory. */
static struct hf__renewal **in_order(struct hf__renewal *items, size_t count)
{
    struct hf__renewal **order = calloc(count + 1, sizeof(struct hf__renewal *));

    for (size_t i = 0; order != NULL && i < count; i++)
        order[i] = &items[i];
    if (order != NULL)
        qsort(order, count, sizeof(struct hf__renewal *), by_name);
    return order;
}

int hf__sql_renew(struct hf__store *store, struct hf__renewal *items, size_t count,
                  int64_t deadline_ns, hf_error *err)
{
    const struct hf__sql *sql = sql_of(store);
    struct hf__renewal **order = in_order(items, count);
    int r = order == NULL ? hf__fail(err, HF_NO_MEMORY, NULL) : 0;

    for (size_t done = 0; done < count && r == 0;) {
        size_t left = count - done;
        struct hf__sql_operation op = {
            .kind = HF__OPERATION_RENEW,
            .items = order + done,
            .count = sql->type->batch != NULL ? sql->type->batch(order + done, left) : left};
        r = operate(store, &op, deadline_ns, NULL, err);
        if (r == HF_UNAVAILABLE && done > 0) /* those before it were applied */
            r = hf__fail(err, HF_UNKNOWN, "%s: some were renewed, then the server failed",
                         sql->type->name);
        done += op.count;
    }
    free(order);
    return r;
}

/* Upkeep, wake-ups --------------------------------------------------------- */

static int purge(struct hf__store *store, void *conn, int64_t retain_ms, int64_t deadline_ns,
                 uint64_t *count, hf_error *err)
{
    const struct hf__sql *sql = sql_of(store);
    uint64_t before;
    int r;

    do {
        before = *count;
        r = sql->type->purge(store, conn, retain_ms > 0 ? retain_ms : sql->set.retain_ms,
                             deadline_ns, count, err);
    } while (r == 0 && *count - before == HF__SQL_PURGE_BATCH);
    return r;
}

int hf__sql_upkeep(struct hf__store *store, enum hf__upkeep what, int64_t retain_ms,
                   int64_t deadline_ns, uint64_t *ret_count, hf_error *err)
{
    struct hf__sql *sql = sql_of(store);
    struct hf__pooled *conn = NULL;
    uint64_t count = 0;
    int r = hf__pool_take(&sql->pool, deadline_ns, &conn, err);

    if (r != 0)
        return r;
    r = what == HF__UPKEEP_SETUP ? sql->type->setup(store, conn, deadline_ns, err)
                                 : purge(store, conn, retain_ms, deadline_ns, &count, err);
    sql->type->give_back(store, conn);
    if (ret_count != NULL)
        *ret_count = count;
    return r;
}

int hf__sql_wake_fd(struct hf__store *store)
{
    struct hf__sql *sql = sql_of(store);
    const struct hf__host *host = store->host;
    int fd = sql->set.push ? hf__listener_open(&sql->listener) : -1;

    if (fd < 0)
        return fd;
    int64_t deadline_ns = hf__now_ns(host->env) + host->op_timeout_ms * HF__NS_PER_MS;
    return hf__listener_start(&sql->listener, deadline_ns) ? fd : -1;
}
