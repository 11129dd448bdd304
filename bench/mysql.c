/* MariaDB and MySQL: what we do against the bare statements that do the least for the same purpose.
 *
 *     mysql ROUNDS PAIRS LABEL
 *
 * beside a server started by tests/fleet/with-mariadb. LABEL goes into the figures' names.
 *  - a pair: acquire and release, against INSERT ... ON DUPLICATE KEY UPDATE and DELETE, two
 *    commits each;
 *  - a hand-over to one waiter, against one commit and a KILL QUERY that ends another connection's
 *    statement;
 *  - a chain of hand-overs through 2 and through 200 waiters. */
#include <mysql.h>
#include <string.h>

#include "sql.h"

static MYSQL *dial(void)
{
    MYSQL *my = mysql_init(NULL);
    const char *server = getenv("HOLDFAST_TEST_MARIADB");

    BENCH_MUST(server != NULL, "start this by tests/fleet/with-mariadb");
    unsigned port = (unsigned)strtoul(strchr(server, ':') + 1, NULL, 10);
    BENCH_MUST(mysql_real_connect(my, "127.0.0.1", "root", NULL, "locks", port, NULL, 0) != NULL,
               "%s", mysql_error(my));
    return my;
}

static void run(void *my, const char *sql)
{
    BENCH_MUST(mysql_query(my, sql) == 0, "%s: %s", sql, mysql_error(my));
}

static long number(void *my, const char *sql)
{
    run(my, sql);
    MYSQL_RES *result = mysql_store_result(my);
    long n = strtol(mysql_fetch_row(result)[0], NULL, 10);
    mysql_free_result(result);
    return n;
}

/* From before the commit to the end of what the other connection runs. */
static int64_t kill_once(void *my, void *ear)
{
    static const char wait[] = "DO GET_LOCK('bench', 60)";
    char listens[120], kill[60];

    snprintf(kill, sizeof kill, "KILL QUERY %lu", mysql_thread_id(ear));
    snprintf(listens, sizeof listens,
             "SELECT COUNT(*) FROM information_schema.processlist WHERE state = 'User lock'"
             " AND id = %lu",
             mysql_thread_id(ear));
    BENCH_MUST(mysql_send_query(ear, wait, sizeof wait - 1) == 0, "%s", mysql_error(ear));
    while (number(my, listens) != 1)
        continue;
    int64_t from = bench_now_ns();
    run(my, "INSERT INTO bare (name, ticket) VALUES ('n', 't') ON DUPLICATE KEY UPDATE"
            " ticket = IF(ticket = 't', 'u', 't')");
    run(my, kill);
    mysql_read_query_result(ear); /* an error, or no lock: both are the wake-up */
    return bench_now_ns() - from;
}

int main(int argc, char **argv)
{
    BENCH_MUST(argc == 4, "usage: mysql ROUNDS PAIRS LABEL");
    int rounds = (int)strtol(argv[1], NULL, 10), count = (int)strtol(argv[2], NULL, 10);
    MYSQL *my = dial(), *ear = dial(), *gate = dial();
    char url[200];

    BENCH_MUST(number(gate, "SELECT GET_LOCK('bench', 0)") == 1, "GET_LOCK");
    run(my, "CREATE TABLE IF NOT EXISTS bare (name VARBINARY(512) PRIMARY KEY, ticket BINARY(16))"
            " ENGINE = InnoDB");
    snprintf(url, sizeof url, "mysql://app:secret@%s/locks", getenv("HOLDFAST_TEST_MARIADB"));
    struct sql_bench b = {.store = "mysql",
                          .label = argv[3],
                          .client = sql_open(url),
                          .other = sql_open(url),
                          .db = my,
                          .ear = ear,
                          .run = run,
                          .number = number,
                          .wake_once = kill_once};
    struct sql_pair pair = {
        "pair", b.client,
        "INSERT INTO bare (name, ticket) VALUES ('bench', '0123456789abcdef') ON DUPLICATE KEY"
        " UPDATE name = name",
        "DELETE FROM bare WHERE name = 'bench' AND ticket = '0123456789abcdef'"};
    for (int i = 0; i < rounds; i++) {
        sql_pairs(&b, &pair, count);
        sql_handovers(&b, count / 20 + 1);
    }
    hf_close(b.other);
    hf_close(b.client);
    mysql_close(gate);
    mysql_close(ear);
    mysql_close(my);
    return 0;
}
