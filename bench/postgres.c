/* PostgreSQL: what we do against the bare statements that do the least for the same purpose.
 *
 *     postgres ROUNDS PAIRS LABEL
 *
 * beside a server started by tests/fleet/with-postgres. LABEL goes into the figures' names.
 *  - a pair: acquire and release, against INSERT ... ON CONFLICT and DELETE, two commits each;
 *  - hold=advisory against pg_advisory_lock and pg_advisory_unlock;
 *  - a hand-over from the release to the next holder's return, against a commit with a NOTIFY to
 *    the moment another connection has it;
 *  - a chain of hand-overs through 2 and through 200 waiters. */
#include <libpq-fe.h>
#include <poll.h>
#include <string.h>

#include "sql.h"

static PGconn *dial(void)
{
    const char *server = getenv("HOLDFAST_TEST_POSTGRES");
    char conninfo[200];

    BENCH_MUST(server != NULL, "start this by tests/fleet/with-postgres");
    snprintf(conninfo, sizeof conninfo,
             "host=127.0.0.1 port=%s user=postgres dbname=postgres sslmode=disable"
             " gssencmode=disable options='-c client_min_messages=error'",
             strchr(server, ':') + 1);
    PGconn *pg = PQconnectdb(conninfo);
    BENCH_MUST(PQstatus(pg) == CONNECTION_OK, "%s", PQerrorMessage(pg));
    return pg;
}

static PGresult *query(PGconn *pg, const char *sql)
{
    PGresult *result = PQexecParams(pg, sql, 0, NULL, NULL, NULL, NULL, 0);

    BENCH_MUST(PQresultStatus(result) == PGRES_COMMAND_OK ||
                   PQresultStatus(result) == PGRES_TUPLES_OK,
               "%s: %s", sql, PQerrorMessage(pg));
    return result;
}

static void run(void *pg, const char *sql)
{
    PQclear(query(pg, sql));
}

static long number(void *pg, const char *sql)
{
    PGresult *result = query(pg, sql);
    long n = strtol(PQgetvalue(result, 0, 0), NULL, 10);

    PQclear(result);
    return n;
}

static int64_t notify_once(void *pg, void *ear)
{
    struct pollfd fd = {.fd = PQsocket(ear), .events = POLLIN};
    int64_t from = bench_now_ns();
    PGnotify *call;

    run(pg, "WITH w AS (INSERT INTO bare (name, ticket) VALUES ('n', 't') ON CONFLICT (name)"
            " DO UPDATE SET ticket = 't') SELECT pg_notify('bench', 'x')");
    while ((call = PQnotifies(ear)) == NULL) {
        poll(&fd, 1, -1);
        PQconsumeInput(ear);
    }
    PQfreemem(call);
    return bench_now_ns() - from;
}

static hf_client *open_client(const char *options)
{
    char url[200];

    snprintf(url, sizeof url, "postgres://postgres@%s/postgres%s", getenv("HOLDFAST_TEST_POSTGRES"),
             options);
    return sql_open(url);
}

int main(int argc, char **argv)
{
    BENCH_MUST(argc == 4, "usage: postgres ROUNDS PAIRS LABEL");
    int rounds = (int)strtol(argv[1], NULL, 10), count = (int)strtol(argv[2], NULL, 10);
    PGconn *pg = dial(), *ear = dial();

    run(pg, "CREATE TABLE IF NOT EXISTS bare (name bytea PRIMARY KEY, ticket bytea)");
    run(ear, "LISTEN bench");
    struct sql_bench b = {.store = "postgres",
                          .label = argv[3],
                          .client = open_client(""),
                          .other = open_client(""),
                          .db = pg,
                          .ear = ear,
                          .run = run,
                          .number = number,
                          .wake_once = notify_once};
    struct sql_pair lease = {"pair", b.client,
                             "INSERT INTO bare (name, ticket) VALUES ('bench', 'ticket')"
                             " ON CONFLICT (name) DO NOTHING",
                             "DELETE FROM bare WHERE name = 'bench' AND ticket = 'ticket'"};
    struct sql_pair server = {"advisory", open_client("?hold=advisory"),
                              "SELECT pg_advisory_lock(4711)", "SELECT pg_advisory_unlock(4711)"};
    for (int i = 0; i < rounds; i++) {
        sql_pairs(&b, &lease, count);
        sql_pairs(&b, &server, 10 * count);
        sql_handovers(&b, count / 10 + 1);
    }
    hf_close(server.client);
    hf_close(b.other);
    hf_close(b.client);
    PQfinish(ear);
    PQfinish(pg);
    return 0;
}
