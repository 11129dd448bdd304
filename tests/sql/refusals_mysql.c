/* See refusals.h. */
#include <mysql.h>
#include <stdlib.h>

#include "lib/check.h"
#include "sql/refusals.h"

const char *const conflicts[] = {"1213", NULL};
const struct refusal refusals[] = {
    {"1021", HF_FULL, "full"},
    {"1114", HF_FULL, "full"},
    {"1142", HF_DENIED, "rights"},
    {0},
};
const struct refusal refused_urls[] = {
    {"mysql://app:secret@%s/nowhere", HF_DENIED, "rights"},
    {"mysql://app:wrong@%s/locks", HF_DENIED, "check user and password"},
    {"mysql://app:secret@%s/locks?tls=maybe", HF_INVALID, "verify, insecure or off"},
    {"mysql://app:secret@%s/locks?tls=verify", HF_DENIED, "tls=off"},
    {"mysql://app:secret@%s/locks?tls=insecure", HF_DENIED, "tls=off"},
    {"mysql://app:secret@%s/", HF_INVALID, "name a database"},
    {0},
};

/* When somebody is let in, in the middle of the transaction. MyISAM keeps the count of what is rolled
 * back. */
void refuse(struct server *s, const char *what, int times)
{
    char sql[400];

    server_run(s, "CREATE TABLE refusals (n INT NOT NULL) ENGINE = MyISAM");
    server_run(s, "INSERT INTO refusals VALUES (0)");
    snprintf(sql, sizeof sql,
             "CREATE TRIGGER refuse BEFORE UPDATE ON holdfast_lock FOR EACH ROW"
             " IF NEW.inside IS NOT NULL THEN"
             " UPDATE refusals SET n = n + 1; IF (SELECT n FROM refusals) <= %d THEN"
             " SIGNAL SQLSTATE '%s' SET MYSQL_ERRNO = %s, MESSAGE_TEXT = 'x'; END IF; END IF",
             times, strcmp(what, "1213") == 0 ? "40001" : "HY000", what);
    server_run(s, sql);
}

void stop_refusing(struct server *s)
{
    server_run(s, "DROP TRIGGER refuse");
    server_run(s, "DROP TABLE refusals");
}

const char *const refusals_tried = "SELECT n FROM refusals";

void kill_connections(struct server *s)
{
    server_end_sessions(s);
}

const char *const connections =
    "SELECT COUNT(*) FROM information_schema.processlist WHERE user = 'app'";
const char *const connections_by_name = NULL;

const char *const forget_grants[] = {
    "DELETE FROM holdfast_holder WHERE name = 'forgotten'",
    "UPDATE holdfast_lock SET inside = NULL WHERE name = 'forgotten'", NULL};

void make_least_account(struct server *s)
{
    server_run(s, "CREATE USER least IDENTIFIED BY 'secret'");
    server_run(s, "GRANT SELECT, INSERT, UPDATE, DELETE, EXECUTE ON locks.* TO least");
}

const char *const least_account = "least:secret", *const admin_account = "root";
const char *const revoke_routines = "REVOKE EXECUTE ON locks.* FROM least";
const char *const grant_routines = "GRANT EXECUTE ON locks.* TO least";
const char *const drop_version = "DROP PROCEDURE holdfast_routines";
const char *const lower_version = "CREATE PROCEDURE holdfast_routines() SELECT 1";

/* Numbers of connections begin anew with the server: whoever has ours now must be left alone. */
static void c12_a_strangers_statement_is_not_ended(void **state)
{
    struct refusals *f = *state;
    MYSQL *stranger = mysql_init(NULL);
    char sql[200];

    assert_non_null(mysql_real_connect(stranger, NULL, "root", NULL, "locks", 0,
                                       getenv("HOLDFAST_TEST_MARIADB_SOCKET"), 0));
    snprintf(sql, sizeof sql, "CALL holdfast_call('%lu 00112233445566778899aabbccddeeff,')",
             mysql_thread_id(stranger));
    assert_int_equal(mysql_send_query(stranger, "SELECT SLEEP(0.3)", 17), 0);
    server_run(f->admin, sql);
    assert_int_equal(mysql_read_query_result(stranger), 0);
    MYSQL_RES *result = mysql_store_result(stranger);
    assert_string_equal(mysql_fetch_row(result)[0], "0");
    mysql_free_result(result);
    mysql_close(stranger);
}

/* Whoever may write the table may have put anything there: here, what every statement matches. */
static void c12_a_forged_listener_is_not_believed(void **state)
{
    struct refusals *f = *state;
    struct refusals_waiter w = {.client = f->client, .name = "forged"};
    MYSQL *stranger = mysql_init(NULL);
    char sql[200];
    hf_lock *lock;

    assert_non_null(mysql_real_connect(stranger, NULL, "app", "secret", "locks", 0,
                                       getenv("HOLDFAST_TEST_MARIADB_SOCKET"), 0));
    refusals_check(f, refusals_take(f, f->client, "forged", &lock), 0);
    refusals_wait(&w);
    server_await(f->admin,
                 "SELECT COUNT(*) FROM holdfast_waiter WHERE name = 'forged' AND wake IS NOT NULL",
                 1);
    snprintf(sql, sizeof sql, "UPDATE holdfast_waiter SET wake = '%lu %%' WHERE name = 'forged'",
             mysql_thread_id(stranger));
    server_run(f->admin, sql);
    assert_int_equal(mysql_send_query(stranger, "SELECT SLEEP(1)", 15), 0);
    refusals_check(f, hf_lock_release(lock, &f->err), 0);
    assert_int_equal(mysql_read_query_result(stranger), 0);
    MYSQL_RES *result = mysql_store_result(stranger);
    assert_non_null(result); /* its statement was not ended */
    assert_string_equal(mysql_fetch_row(result)[0], "0");
    mysql_free_result(result);
    mysql_close(stranger);
    pthread_join(w.thread, NULL);
    check_number("waiter", w.code, 0);
    refusals_check(f, hf_lock_release(w.lock, &f->err), 0);
}

/* The procedure that calls is gone: what was committed before it was missed is committed. */
static void c2_release_that_was_applied_is_told_so_although_nobody_can_be_called(void **state)
{
    struct refusals *f = *state;
    struct refusals_waiter w = {.client = f->client, .name = "mute"};
    hf_lock *lock;

    refusals_check(f, refusals_take(f, f->client, "mute", &lock), 0);
    refusals_wait(&w);
    server_await(f->admin,
                 "SELECT COUNT(*) FROM holdfast_waiter WHERE name = 'mute' AND wake IS NOT NULL",
                 1);
    server_run(f->admin, "DROP PROCEDURE holdfast_call");
    int code = hf_lock_release(lock, &f->err);
    pthread_join(w.thread, NULL);
    hf_client *admin = refusals_open(f, admin_account, server_database);
    refusals_check(f, hf_setup(admin, &f->err), 0);
    hf_close(admin);
    refusals_check(f, code, 0);
    check_number("waiter", w.code, 0);
    refusals_check(f, hf_lock_release(w.lock, &f->err), 0);
}

static int call(const char *sql, char *ret_first, size_t size)
{
    MYSQL *my = mysql_init(NULL);
    int columns = 0;

    assert_non_null(mysql_real_connect(my, NULL, "app", "secret", "locks", 0,
                                       getenv("HOLDFAST_TEST_MARIADB_SOCKET"),
                                       CLIENT_MULTI_RESULTS));
    if (mysql_query(my, sql) != 0)
        fail_msg("%.60s: %s", sql, mysql_error(my));
    MYSQL_RES *result = mysql_store_result(my);
    assert_non_null(result);
    columns = (int)mysql_num_fields(result);
    snprintf(ret_first, size, "%s", mysql_fetch_row(result)[0]);
    mysql_free_result(result);
    mysql_next_result(my);
    mysql_close(my);
    return columns;
}

/* What a client of version 2 calls, while others wait for the same lock by what is called now. */
static void clients_of_before_go_on(void **state)
{
    struct refusals *f = *state;
    struct refusals_waiter w = {.client = f->client, .name = "before"};
    char first[100];

    check_number("columns", call("CALL holdfast_version()", first, sizeof first), 1);
    assert_string_equal(first, "2");
    check_number("columns",
                 call("CALL holdfast_attempt('before', UNHEX(REPEAT('ab', 16)), 0, NULL, 20000, 0,"
                      " 60000, 1, NULL, 'host', 'user', 'program', 1, 'note')",
                      first, sizeof first),
                 6);
    assert_string_equal(first, "granted");
    refusals_wait(&w);
    server_await(f->admin, "SELECT COUNT(*) FROM holdfast_waiter WHERE name = 'before'", 1);
    call("CALL holdfast_renew(CONCAT(HEX('before'), ' ', REPEAT('ab', 16), ' 0;'))", first,
         sizeof first);
    assert_memory_equal(first, "granted ", 8);
    call("CALL holdfast_end('before', UNHEX(REPEAT('ab', 16)), 0, 0)", first, sizeof first);
    assert_string_equal(first, "done");
    pthread_join(w.thread, NULL);
    check_number("waiter", w.code, 0);
    refusals_check(f, hf_lock_release(w.lock, &f->err), 0);
}

const struct own_case own_cases[] = {
    {"clients_of_before_go_on", clients_of_before_go_on},
    {"c2_release_that_was_applied_is_told_so_although_nobody_can_be_called",
     c2_release_that_was_applied_is_told_so_although_nobody_can_be_called},
    {"c12_a_strangers_statement_is_not_ended", c12_a_strangers_statement_is_not_ended},
    {"c12_a_forged_listener_is_not_believed", c12_a_forged_listener_is_not_believed},
    {0},
};
