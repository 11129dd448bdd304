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

#include "base/banned.h"

#define ROUTINES    16  /* procedures */
#define RENEW_BATCH 256 /* renewals in one transaction, then others get their turn */

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
    return hf__sql_check_version(&s->sql, version, err);
}

int hf__my_learn(void *store, void *conn, int64_t deadline_ns, hf_error *err)
{
    struct hf__my *s = store;
    hf_error why = {0};
    MYSQL_ROW row;
    int64_t routines = 0;
    int r = check_version(s, conn, deadline_ns, &why);

    if (r == 0) {
        MYSQL_RES *result = hf__my_look(
            s, conn,
            "SELECT COUNT(*) FROM information_schema.routines WHERE routine_schema = DATABASE() AND"
            " routine_name IN ('holdfast_begin', 'holdfast_move', 'holdfast_enter',"
            " 'holdfast_finish', 'holdfast_retire', 'holdfast_cut', 'holdfast_sweep',"
            " 'holdfast_let_in', 'holdfast_ask_again', 'holdfast_call', 'holdfast_listen',"
            " 'holdfast_attempt', 'holdfast_end', 'holdfast_renew_one', 'holdfast_renew',"
            " 'holdfast_break')",
            deadline_ns, &row, &why);
        r = result == NULL ? why.code : 0;
        routines = result == NULL ? 0 : hf__sql_integer(row[0], 0);
        mysql_free_result(result);
    }
    if (r == 0)
        hf__sql_learnt(&s->sql, routines == ROUTINES);
    else if (err != NULL)
        *err = why;
    return r;
}

/* How many times what the server refused so may be tried again. */
static unsigned tries(void *store, void *conn, const hf_error *why)
{
    static const long changed[] = {1305, 1370, 1318, 1146}, elsewhere[] = {1290, 1792, 1836, 1047};
    struct hf__my *s = store;

    (void)conn;
    for (size_t i = 0; i < sizeof changed / sizeof changed[0]; i++) {
        if (why->store_code == changed[i]) {
            hf__sql_forget_way(&s->sql);
            return 1;
        }
    }
    for (size_t i = 0; i < sizeof elsewhere / sizeof elsewhere[0]; i++) {
        if (why->store_code == elsewhere[i]) /* the connection was closed: dial another server */
            return (unsigned)s->sql.set.servers.count;
    }
    return hf__my_is_conflict(why->store_code) ? HF__SQL_ALWAYS : 0;
}

static size_t batch(struct hf__renewal *const *items, size_t count)
{
    (void)items;
    return count < RENEW_BATCH ? count : RENEW_BATCH;
}

const struct hf__sql_type hf__my_sql_type = {
    .name = "mysql",
    .pool = &hf__my_pool_type,
    .listener = &hf__my_listener_type,
    .schema = HF__MY_SCHEMA,
    .retry_ms = 4,
    .learn = hf__my_learn,
    .call = hf__my_call,
    .apply = hf__my_apply,
    .give_back = hf__my_give_back,
    .setup = hf__my_setup,
    .purge = hf__my_purge,
    .tries = tries,
    .batch = batch,
};

HF__IS_SQL(struct hf__my);

static const char *const schemes[] = {"mysql", "mariadb", NULL};

extern const struct hf__store_type hf_store_type_v1;
__attribute__((visibility("default"))) const struct hf__store_type hf_store_type_v1 = {
    .abi = HF__STORE_ABI,
    .name = "mysql",
    .schemes = schemes,
    .summary = "rows in a MariaDB or MySQL database",
    .capabilities = HF__SQL_CAPABILITIES | HF_CAN_PUSH,
    .options = hf__my_options,
    .ddl = hf__my_ddl,
    .open = hf__my_open,
    .close = hf__my_close,
    .operate = hf__sql_operate,
    .renew = hf__sql_renew,
    .inspect = hf__my_inspect,
    .upkeep = hf__sql_upkeep,
    .diagnose = hf__my_diagnose,
    .wake_fd = hf__sql_wake_fd,
    .wake = hf__my_wake,
};
