/* MariaDB and MySQL: what we do against the bare statements that do the least for the same purpose.
 *
 *     mysql ROUNDS PAIRS LABEL
 *
 * beside a server started by tests/fleet/with-mariadb. LABEL goes into the figures' names.
 *  - a pair: acquire and release, against INSERT ... ON DUPLICATE KEY UPDATE and DELETE, two commits
 *    each;
 *  - a hand-over to one waiter, against one commit and a KILL QUERY that ends another connection's
 *    statement;
 *  - a chain of hand-overs through 2 and through 200 waiters. */
#include <holdfast.h>
#include <mysql.h>
#include <pthread.h>
#include <string.h>

#include "bench.h"

#define CROWD 200

static hf_client *client, *other;

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

static void run(MYSQL *my, const char *sql)
{
    BENCH_MUST(mysql_query(my, sql) == 0, "%s: %s", sql, mysql_error(my));
}

static long number(MYSQL *my, const char *sql)
{
    run(my, sql);
    MYSQL_RES *result = mysql_store_result(my);
    long n = strtol(mysql_fetch_row(result)[0], NULL, 10);
    mysql_free_result(result);
    return n;
}

static hf_client *open_client(void)
{
    char url[200];
    hf_client *c;
    hf_error err;

    snprintf(url, sizeof url, "mysql://app:secret@%s/locks", getenv("HOLDFAST_TEST_MARIADB"));
    BENCH_MUST(hf_open(url, NULL, &c, &err) == HF_OK, "%s", err.text);
    return c;
}

static hf_lock *take(hf_client *c, uint64_t owner)
{
    hf_options opt = HF_OPTIONS_INIT;
    hf_lock *lock;
    hf_error err;

    opt.owner = owner;
    BENCH_MUST(hf_acquire(c, "bench", HF_NTS, &opt, &lock, &err) == HF_OK, "%s", err.text);
    return lock;
}

static void release(hf_lock *lock)
{
    hf_error err;

    BENCH_MUST(hf_lock_release(lock, &err) == HF_OK, "%s", err.text);
}

static void print(const char *figure, const char *label, int64_t ns, int count)
{
    char name[100];

    snprintf(name, sizeof name, "mysql %s: %s", label, figure);
    bench_print(name, (double)ns / count / 1e3, "us");
}

static void pairs(MYSQL *my, const char *label, int count)
{
    int64_t from = bench_now_ns();

    for (int i = 0; i < count; i++)
        release(take(client, 1));
    print("pair, ours", label, bench_now_ns() - from, count);
    from = bench_now_ns();
    for (int i = 0; i < count; i++) {
        run(my,
            "INSERT INTO bare (name, ticket) VALUES ('bench', '0123456789abcdef') ON DUPLICATE KEY"
            " UPDATE name = name");
        run(my, "DELETE FROM bare WHERE name = 'bench' AND ticket = '0123456789abcdef'");
    }
    print("pair, bare", label, bench_now_ns() - from, count);
}

struct waiter {
    pthread_t thread;
    uint64_t owner;
    int64_t got_ns;
};

static void *wait_and_pass(void *arg)
{
    struct waiter *w = arg;
    hf_lock *lock = take(other, w->owner);

    w->got_ns = bench_now_ns();
    release(lock);
    return NULL;
}

/* From the first release to the last waiter's return. */
static int64_t chain(MYSQL *my, int count)
{
    static struct waiter waiters[CROWD];
    hf_lock *lock = take(client, 1);
    int64_t last = 0;

    for (int i = 0; i < count; i++) {
        waiters[i].owner = (uint64_t)i + 2;
        pthread_create(&waiters[i].thread, NULL, wait_and_pass, &waiters[i]);
    }
    while (number(my, "SELECT COUNT(*) FROM holdfast_waiter WHERE wake IS NOT NULL") != count)
        continue;
    int64_t from = bench_now_ns();
    release(lock);
    for (int i = 0; i < count; i++) {
        pthread_join(waiters[i].thread, NULL);
        last = waiters[i].got_ns > last ? waiters[i].got_ns : last;
    }
    return last - from;
}

/* From before the commit to the end of what the other connection runs. */
static int64_t kill_once(MYSQL *my, MYSQL *ear)
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

static void handovers(MYSQL *my, MYSQL *ear, const char *label, int count)
{
    int64_t ours = 0, bare = 0;

    for (int i = 0; i < count; i++) {
        ours += chain(my, 1);
        bare += kill_once(my, ear);
    }
    print("hand-over, ours", label, ours, count);
    print("hand-over, bare", label, bare, count);
    print("chain of 2, each", label, chain(my, 2), 2);
    print("chain of 200, each", label, chain(my, CROWD), CROWD);
}

int main(int argc, char **argv)
{
    BENCH_MUST(argc == 4, "usage: mysql ROUNDS PAIRS LABEL");
    int rounds = (int)strtol(argv[1], NULL, 10), count = (int)strtol(argv[2], NULL, 10);
    MYSQL *my = dial(), *ear = dial(), *gate = dial();

    BENCH_MUST(number(gate, "SELECT GET_LOCK('bench', 0)") == 1, "GET_LOCK");
    run(my, "CREATE TABLE IF NOT EXISTS bare (name VARBINARY(512) PRIMARY KEY, ticket BINARY(16))"
            " ENGINE = InnoDB");
    client = open_client();
    other = open_client();
    release(take(client, 1));
    for (int i = 0; i < rounds; i++) {
        pairs(my, argv[3], count);
        handovers(my, ear, argv[3], count / 20 + 1);
    }
    hf_close(other);
    hf_close(client);
    mysql_close(gate);
    mysql_close(ear);
    mysql_close(my);
    return 0;
}
