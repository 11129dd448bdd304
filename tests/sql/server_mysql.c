/* See server.h. */
#include <mysql.h>
#include <signal.h>
#include <stdlib.h>

#include "lib/check.h"
#include "sql/server.h"

struct server {
    MYSQL *my;
};

const char *const server_scheme = "mysql", *const server_account = "app:secret",
                  *const server_database = "locks";
const char *const server_waiters =
    "SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE '/*holdfast%'";

/* MySQL has no such limits; what is between M! and the end is a comment there. */
#define MARIADB_ONLY(settings) "SET /*M! " settings ", */ @limits = 1"
const char *const server_hold_limits[] = {
    MARIADB_ONLY("GLOBAL idle_transaction_timeout = 1, GLOBAL idle_write_transaction_timeout = 1,"
                 " GLOBAL max_statement_time = 0.5, SESSION max_statement_time = 0"),
    NULL};
const char *const server_hold_unlimits[] = {
    MARIADB_ONLY("GLOBAL idle_transaction_timeout = 0, GLOBAL idle_write_transaction_timeout = 0,"
                 " GLOBAL max_statement_time = 0"),
    NULL};

const char *const server_deadlocks =
    "SELECT variable_value FROM information_schema.global_status WHERE variable_name ="
    " 'innodb_deadlocks'";
const char *const server_quick_deadlocks = "SET GLOBAL innodb_deadlock_detect = ON";
const char *const server_limit_statements = "SET GLOBAL max_statement_time = 0.1";
const char *const server_unlimit_statements = "SET GLOBAL max_statement_time = 0";
const char *const server_no_limit = "SET max_statement_time = 0";
const char *const server_limit_text = "max_statement_time";
const char *const server_create_clock = "CREATE TABLE holdfast_test_clock (at DATETIME(6))";

const char *server_address(void)
{
    return getenv("HOLDFAST_TEST_MARIADB");
}

struct server *server_open(const char *database)
{
    struct server *s = calloc(1, sizeof *s);

    assert_non_null(s);
    s->my = mysql_init(NULL);
    if (mysql_real_connect(s->my, NULL, "root", NULL, database, 0,
                           getenv("HOLDFAST_TEST_MARIADB_SOCKET"), 0) == NULL)
        fail_msg("%s", mysql_error(s->my));
    return s;
}

void server_close(struct server *s)
{
    mysql_close(s->my);
    free(s);
}

void server_run(struct server *s, const char *sql)
{
    if (mysql_query(s->my, sql) != 0)
        fail_msg("%.200s: %s", sql, mysql_error(s->my));
}

bool server_try(struct server *s, const char *sql)
{
    if (mysql_query(s->my, sql) != 0)
        return false;
    mysql_free_result(mysql_store_result(s->my));
    return true;
}

int64_t server_number(struct server *s, const char *sql)
{
    server_run(s, sql);
    MYSQL_RES *result = mysql_store_result(s->my);
    assert_non_null(result);
    MYSQL_ROW row = mysql_fetch_row(result);
    int64_t n = row != NULL && row[0] != NULL ? strtoll(row[0], NULL, 10) : 0;
    mysql_free_result(result);
    return n;
}

/* KILL takes no list. */
void server_end_sessions(struct server *s)
{
    server_run(s, "SELECT CONCAT('KILL CONNECTION ', id) FROM information_schema.processlist WHERE"
                  " user = 'app'");
    MYSQL_RES *result = mysql_store_result(s->my);
    assert_true(mysql_num_rows(result) > 0);
    for (MYSQL_ROW row; (row = mysql_fetch_row(result)) != NULL;)
        mysql_query(s->my, row[0]);
    mysql_free_result(result);
}

const char *const server_sessions =
    "SELECT COUNT(*) FROM information_schema.processlist WHERE user = 'app'";

static pid_t stopped;

void server_stop(struct server *s)
{
    check_number("sessions", server_number(s, server_sessions), 1);
    stopped = (pid_t)strtol(getenv("HOLDFAST_TEST_MARIADB_PID"), NULL, 10);
    server_stop_process(stopped);
}

void server_go_on(void)
{
    if (stopped != 0)
        kill(stopped, SIGCONT);
    stopped = 0;
}
