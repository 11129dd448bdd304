/* See server.h. */
#include <libpq-fe.h>
#include <signal.h>
#include <stdlib.h>

#include "lib/check.h"
#include "sql/server.h"

struct server {
    PGconn *pg;
};

const char *const server_scheme = "postgres", *const server_account = "postgres",
                  *const server_database = "postgres";
const char *const server_waiters =
    "SELECT count(*) FROM pg_locks l JOIN pg_stat_activity a USING (pid) WHERE NOT l.granted"
    " AND a.query LIKE '/*holdfast%'";

const char *const server_hold_limits[] = {
    "ALTER DATABASE postgres SET idle_session_timeout = '1s'",
    "ALTER DATABASE postgres SET idle_in_transaction_session_timeout = '1s'",
    "ALTER DATABASE postgres SET statement_timeout = '1s'",
    "ALTER DATABASE postgres SET lock_timeout = '1s'", NULL};
const char *const server_hold_unlimits[] = {"ALTER DATABASE postgres RESET ALL", NULL};

const char *const server_deadlocks =
    "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";
const char *const server_quick_deadlocks = "ALTER DATABASE postgres SET deadlock_timeout = '10ms'";
const char *const server_limit_statements =
    "ALTER DATABASE postgres SET statement_timeout = '100ms'";
const char *const server_unlimit_statements = "ALTER DATABASE postgres RESET statement_timeout";
const char *const server_no_limit = "SET statement_timeout = 0";
const char *const server_limit_text = "statement timeout";
const char *const server_create_clock = "CREATE TABLE holdfast_test_clock (at timestamptz)";

const char *server_address(void)
{
    return getenv("HOLDFAST_TEST_POSTGRES");
}

struct server *server_open(const char *database)
{
    const char *keywords[] = {"host", "port", "user", "dbname", "options", NULL};
    const char *values[] = {getenv("HOLDFAST_TEST_POSTGRES_DIR"),
                            strchr(server_address(), ':') + 1,
                            "postgres",
                            database,
                            "-c client_min_messages=error",
                            NULL};
    struct server *s = calloc(1, sizeof *s);

    assert_non_null(s);
    s->pg = PQconnectdbParams(keywords, values, 0);
    assert_int_equal(PQstatus(s->pg), CONNECTION_OK);
    return s;
}

void server_close(struct server *s)
{
    PQfinish(s->pg);
    free(s);
}

static PGresult *ask(struct server *s, const char *sql)
{
    PGresult *result = PQexec(s->pg, sql);
    ExecStatusType status = PQresultStatus(result);

    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK)
        fail_msg("%.200s: %s", sql, PQerrorMessage(s->pg));
    return result;
}

void server_run(struct server *s, const char *sql)
{
    PQclear(ask(s, sql));
}

bool server_try(struct server *s, const char *sql)
{
    PGresult *result = PQexec(s->pg, sql);
    bool done = PQresultStatus(result) != PGRES_FATAL_ERROR;

    PQclear(result);
    return done;
}

int64_t server_number(struct server *s, const char *sql)
{
    PGresult *result = ask(s, sql);
    int64_t n = strtoll(PQgetvalue(result, 0, 0), NULL, 10);

    PQclear(result);
    return n;
}

void server_end_sessions(struct server *s)
{
    assert_true(server_number(s, "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
                                 " WHERE query LIKE '/*holdfast%'") > 0);
}

#define LOCKERS " FROM pg_stat_activity WHERE application_name LIKE 'holdfast%'"
const char *const server_sessions = "SELECT count(*)" LOCKERS;

/* Those that are stopped: the postmaster, and the session of the one who locks. */
static pid_t stopped[2];

void server_stop(struct server *s)
{
    check_number("sessions", server_number(s, server_sessions), 1);
    stopped[0] = (pid_t)strtol(getenv("HOLDFAST_TEST_POSTGRES_PID"), NULL, 10);
    stopped[1] = (pid_t)server_number(s, "SELECT pid" LOCKERS);
    for (size_t i = 0; i < COUNT(stopped); i++)
        server_stop_process(stopped[i]);
}

void server_go_on(void)
{
    for (size_t i = 0; i < COUNT(stopped); i++) {
        if (stopped[i] != 0)
            kill(stopped[i], SIGCONT);
        stopped[i] = 0;
    }
}
