/* The store of a MariaDB or MySQL server: lease rows, by the server's clock.
 *
 * A lock without a queue is taken and released by one UPDATE of its row (quick.c). Every other
 * operation is one CALL, and inside it
 *
 *      INSERT INTO holdfast_lock ... ON DUPLICATE KEY UPDATE ...   -- from here on it is our turn
 *      <the doorman's rules, on SYSDATE(6) in UTC read after that> -- rules.sql, operations.sql
 *      COMMIT
 *      KILL QUERY <listener>                                       -- of those let in who listen
 *
 * or, without the right to the procedures, the same rules by the doorman itself between START
 * TRANSACTION and COMMIT (record.c, save.c). */
#include "stores/mysql/mysql.h"

#include <inttypes.h>
#include <stdlib.h>

#include "util/banned.h"

#define ROUTINES    16  /* procedures */
#define RETRY_MS    4   /* the pause after a deadlock, and its growth */
#define RENEW_BATCH 256 /* renewals in one transaction, then others get their turn */

bool hf__my_is_conflict(long store_code)
{
    return store_code == 1213 || store_code == 1205 || store_code == 1020;
}

static int check_version(struct hf__my *s, struct hf__my_conn *c, int64_t deadline_ns,
                         hf_error *err)
{
    MYSQL_ROW row;
    MYSQL_RES *result =
        hf__my_look(s, c, "SELECT MAX(version) FROM holdfast_schema", deadline_ns, &row, err);

    if (result == NULL)
        return err->code;
    int64_t version = hf__sql_integer(row[0], 0);
    mysql_free_result(result);
    if (version == HF__MY_SCHEMA)
        return 0;
    return hf__fail(err, HF_DENIED,
                    "mysql: the tables are of version %" PRId64 ", this is for version %d; %s",
                    version, HF__MY_SCHEMA,
                    version < HF__MY_SCHEMA ? "run `holdfast setup`" : "use a newer holdfast");
}

int hf__my_learn(struct hf__my *s, struct hf__my_conn *c, int64_t deadline_ns, hf_error *err)
{
    hf_error why = {0};
    MYSQL_ROW row;
    int64_t routines = 0;
    int r = check_version(s, c, deadline_ns, &why);

    if (r == 0) {
        MYSQL_RES *result = hf__my_look(
            s, c,
            "SELECT COUNT(*) FROM information_schema.routines WHERE routine_schema = DATABASE() AND"
            " routine_name IN ('holdfast_begin', 'holdfast_move', 'holdfast_enter', "
            "'holdfast_finish',"
            " 'holdfast_retire', "
            "'holdfast_cut',"
            " 'holdfast_sweep', 'holdfast_let_in', 'holdfast_ask_again', 'holdfast_call', "
            "'holdfast_listen',"
            " 'holdfast_attempt', 'holdfast_end', 'holdfast_renew_one', 'holdfast_renew',"
            " 'holdfast_break')",
            deadline_ns, &row, &why);
        r = result == NULL ? why.code : 0;
        routines = result == NULL ? 0 : hf__sql_integer(row[0], 0);
        mysql_free_result(result);
    }
    if (r == 0)
        atomic_store(&s->way,
                     routines == ROUTINES && s->set.routines ? HF__MY_ROUTINES : HF__MY_PLAIN);
    else if (err != NULL)
        *err = why;
    return r;
}

static int apply_plain(struct hf__my *s, struct hf__my_conn *c, const struct hf__sql_operation *op,
                       int64_t deadline_ns, struct hf__answer *ret_answer, hf_error *err)
{
    int r = 0;

    if (op->kind != HF__SQL_RENEW)
        return hf__my_apply(s, c, op, deadline_ns, ret_answer, err);
    for (size_t i = 0; i < op->count && r == 0; i++) {
        struct hf__renewal *item = op->items[i];
        struct hf__bid bid = {
            .name = item->name, .name_len = item->name_len, .ticket = item->ticket};
        struct hf__sql_operation one = {
            .kind = HF__SQL_RENEW, .bid = &bid, .generation = item->generation};
        r = hf__my_apply(s, c, &one, deadline_ns, &item->answer, err);
        if (r == HF_UNAVAILABLE && i > 0) /* those before it were applied */
            r = hf__fail(err, HF_UNKNOWN, "mysql: some were renewed, then the server failed");
    }
    return r;
}

static int operate_once(struct hf__my *s, const struct hf__sql_operation *op, int64_t deadline_ns,
                        struct hf__answer *ret_answer, hf_error *err)
{
    struct hf__my_conn *c = NULL;
    int r = hf__my_borrow(s, deadline_ns, &c, err);

    if (r != 0)
        return r;
    if (atomic_load(&s->way) == HF__MY_NOT_KNOWN)
        r = hf__my_learn(s, c, deadline_ns, err);
    if (r == 0)
        r = atomic_load(&s->way) == HF__MY_ROUTINES
                ? hf__my_call(s, c, op, deadline_ns, ret_answer, err)
                : apply_plain(s, c, op, deadline_ns, ret_answer, err);
    hf__my_give_back(s, c);
    return r;
}

/* Whether the server's refusal is a reason to ask once more. */
static bool worth_another(struct hf__my *s, const hf_error *why, unsigned tries)
{
    static const long changed[] = {1305, 1370, 1318, 1146}, elsewhere[] = {1290, 1792, 1836, 1047};

    for (size_t i = 0; i < sizeof changed / sizeof changed[0]; i++) {
        if (why->store_code == changed[i]) {
            atomic_store(&s->way,
                         HF__MY_NOT_KNOWN); /* somebody has changed something: look again */
            return tries == 0;
        }
    }
    for (size_t i = 0; i < sizeof elsewhere / sizeof elsewhere[0]; i++) {
        if (why->store_code == elsewhere[i])
            return tries < s->set.hosts.count; /* the connection was closed: dial another server */
    }
    return hf__my_is_conflict(why->store_code);
}

static int operate(struct hf__store *store, struct hf__sql_operation *op, int64_t deadline_ns,
                   struct hf__answer *ret_answer, hf_error *err)
{
    struct hf__my *s = (struct hf__my *)store;
    hf_error why = {0};
    int r;

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
    struct hf__my *s = (struct hf__my *)store;
    struct hf__sql_operation op = {.kind = HF__SQL_ATTEMPT, .bid = bid};
    char wake[HF__SQL_WAKE];

    if (hf__my_listens(s, deadline_ns, wake))
        op.wake = wake;
    int r = operate(store, &op, deadline_ns, ret_answer, err);
    /* The wake-up is a hint that may be lost: another account's listener cannot be called. */
    if (r == 0)
        hf__sql_pace(&s->pool, op.wake != NULL, s->set.poll_ms, s->set.recheck_ms, ret_answer);
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
    int r = order == NULL ? hf__fail(err, HF_NO_MEMORY, NULL) : 0;

    for (size_t done = 0; done < count && r == 0; done += RENEW_BATCH) {
        struct hf__sql_operation op = {.kind = HF__SQL_RENEW,
                                       .items = order + done,
                                       .count =
                                           count - done < RENEW_BATCH ? count - done : RENEW_BATCH};
        r = operate(store, &op, deadline_ns, NULL, err);
        if (r == HF_UNAVAILABLE && done > 0) /* those before it were applied */
            r = hf__fail(err, HF_UNKNOWN, "mysql: some were renewed, then the server failed");
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

static const char *const schemes[] = {"mysql", "mariadb", NULL};

extern const struct hf__store_type hf_store_type_v1;
__attribute__((visibility("default"))) const struct hf__store_type hf_store_type_v1 = {
    .abi = HF__STORE_ABI,
    .name = "mysql",
    .schemes = schemes,
    .summary = "rows in a MariaDB or MySQL database",
    .capabilities = HF_CAN_SHARE | HF_CAN_LIMIT | HF_CAN_LEASE | HF_CAN_NEVER | HF_CAN_DELAY |
                    HF_CAN_QUEUE | HF_CAN_PUSH | HF_CAN_TOKEN | HF_CAN_CHECK | HF_CAN_BREAK |
                    HF_CAN_DETACH | HF_CAN_PROCESS | HF_CAN_PERSIST,
    .options = hf__my_options,
    .ddl = hf__my_ddl,
    .open = hf__my_open,
    .close = hf__my_close,
    .attempt = attempt,
    .withdraw = withdraw,
    .release = release,
    .renew = renew,
    .inspect = hf__my_inspect,
    .break_ticket = break_ticket,
    .upkeep = hf__my_upkeep,
    .diagnose = hf__my_diagnose,
    .wake_fd = hf__my_wake_fd,
    .wake = hf__my_wake,
};
