/* The store of a MariaDB or MySQL server: lease rows, by the server's clock.
 *
 * A lock without a queue is taken and released by one UPDATE of its row (quick.c). Every other
 * operation is one CALL, and inside it
 *
 *      INSERT INTO holdfast_lock ... ON DUPLICATE KEY UPDATE ...   -- from here on it is our turn
 *      <the doorman's rules, on SYSDATE(6) in UTC read after that> -- rules.sql, operations.sql
 *      COMMIT
 *      KILL QUERY <listener>                                       -- of those let in who listen
 */
#include "stores/mysql/mysql.h"

#include "base/banned.h"

#define NO_ROUTINE  1305
#define RENEW_BATCH 256 /* renewals in one transaction, then others get their turn */

/* The number that a statement answers with, and the clock if it does so. */
static int ask_number(struct hf__my *s, struct hf__my_conn *c, const char *sql, int64_t deadline_ns,
                      int64_t *ret_number, hf_error *err)
{
    MYSQL_ROW row;
    hf_error why = {0};
    MYSQL_RES *result = hf__my_look(s, c, sql, deadline_ns, &row, &why);

    if (result != NULL)
        *ret_number = hf__sql_integer(row[0], 0);
    if (result != NULL && mysql_num_fields(result) > 1)
        hf__sql_note_clock(&s->sql, hf__sql_integer(row[1], 0));
    if (result == NULL && err != NULL)
        *err = why;
    mysql_free_result(result);
    return result != NULL ? 0 : why.code;
}

int hf__my_learn(void *store, void *conn, int64_t deadline_ns, hf_error *err)
{
    struct hf__my *s = store;
    hf_error why = {0};
    int64_t version = 0;
    int r = ask_number(s, conn, "SELECT MAX(version) FROM holdfast_schema", deadline_ns, &version,
                       &why);

    if (r == 0)
        r = hf__sql_check_tables(&s->sql, version, &why);
    if (r == 0) {
        r = ask_number(s, conn, "CALL holdfast_routines()", deadline_ns, &version, &why);
        if (why.store_code == NO_ROUTINE) {
            r = hf__sql_fail_routines(&s->sql, &why);
            hf__set_store_code(&why, NO_ROUTINE);
        }
        if (r == 0)
            r = hf__sql_check_routines(&s->sql, version, &why);
    }
    if (r != 0 && err != NULL)
        *err = why;
    return r;
}

/* How many times what the server refused so may be tried again. */
static unsigned tries(void *store, void *conn, const hf_error *why)
{
    static const long changed[] = {NO_ROUTINE, 1370, 1318, 1146, HF__MY_TOO_LATE},
                      elsewhere[] = {1290, 1792, 1836, 1047};
    struct hf__my *s = store;

    (void)conn;
    for (size_t i = 0; i < sizeof changed / sizeof changed[0]; i++) {
        if (why->store_code == changed[i]) {
            hf__sql_learn_again(&s->sql);
            return why->store_code == NO_ROUTINE ? HF__SQL_MISSING_TRIES : 1;
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
    .routines = "procedures",
    .pool = &hf__my_pool_type,
    .listener = &hf__my_listener_type,
    .schema = HF__MY_SCHEMA,
    .rules = HF__MY_RULES,
    .retry_ms = 4,
    .learn = hf__my_learn,
    .call = hf__my_call,
    .give_back = hf__my_give_back,
    .setup = hf__my_setup,
    .purge = hf__my_purge,
    .tries = tries,
    .batch = batch,
};

HF__IS_SQL(struct hf__my);

static const char *const schemes[] = {"mysql", "mariadb", NULL};

__attribute__((visibility("default"))) const struct hf__store_type hf_store_type_v1 = {
    .abi = HF__STORE_ABI,
    .name = "mysql",
    .schemes = schemes,
    .summary = "rows in a MariaDB or MySQL database",
    .capabilities = HF__SQL_CAPABILITIES | HF__SQL_BEYOND | HF_CAN_PUSH,
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
