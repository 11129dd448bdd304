/* PostgreSQL: what we do against the bare statements that do the least for the same purpose.
 *
 *     postgres ROUNDS PAIRS LABEL
 *
 * beside a server started by tests/fleet/with-postgres. LABEL goes into the figures' names.
 *  - a pair: acquire and release, against INSERT ... ON CONFLICT and DELETE, two commits each;
 *  - hold=advisory against pg_advisory_lock and pg_advisory_unlock;
 *  - a hand-over from the release to the next holder's return, against a commit with a NOTIFY to
 * the moment another connection has it;
 *  - a chain of hand-overs through 2 and through 200 waiters.
 * Pairs and hand-overs are medians of one round, taken one by one in turns. */
#include <holdfast.h>
#include <libpq-fe.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>

#include "bench.h"

#define CROWD 200

static hf_client *client, *other, *advisory;

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

static void run(PGconn *pg, const char *sql)
{
    PGresult *result = PQexecParams(pg, sql, 0, NULL, NULL, NULL, NULL, 0);

    BENCH_MUST(PQresultStatus(result) == PGRES_COMMAND_OK ||
                   PQresultStatus(result) == PGRES_TUPLES_OK,
               "%s: %s", sql, PQerrorMessage(pg));
    PQclear(result);
}

static hf_client *open_client(const char *options)
{
    char url[200];
    hf_client *c;
    hf_error err;

    snprintf(url, sizeof url, "postgres://postgres@%s/postgres%s", getenv("HOLDFAST_TEST_POSTGRES"),
             options);
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

static void print(const char *figure, const char *label, double us)
{
    char name[100];

    snprintf(name, sizeof name, "postgres %s: %s", label, figure);
    bench_print(name, us, "us");
}

/* Acquire and release by the client, and two bare statements, in turns. */
struct pair {
    hf_client *client;
    const char *take, *give;
};

static void pairs(PGconn *pg, const struct pair *pair, const char *what, const char *label,
                  int count)
{
    int64_t *ours = calloc((size_t)count, sizeof *ours),
            *bare = calloc((size_t)count, sizeof *bare);
    char figure[60];

    BENCH_MUST(ours != NULL && bare != NULL, "no memory");
    for (int i = 0; i < count; i++) {
        int64_t from = bench_now_ns();
        release(take(pair->client, 1));
        int64_t between = bench_now_ns();
        run(pg, pair->take);
        run(pg, pair->give);
        ours[i] = between - from;
        bare[i] = bench_now_ns() - between;
    }
    snprintf(figure, sizeof figure, "%s, ours", what);
    print(figure, label, bench_p50_us(ours, (size_t)count));
    snprintf(figure, sizeof figure, "%s, bare", what);
    print(figure, label, bench_p50_us(bare, (size_t)count));
    free(ours);
    free(bare);
}

/* Waiters that pass the lock on. -----------------------------------------------------------------
 */

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

static void await_waiters(PGconn *pg, int count)
{
    for (int there = -1; there != count;) {
        PGresult *result =
            PQexec(pg, "SELECT count(*) FROM holdfast_waiter WHERE wake IS NOT NULL");
        there = (int)strtol(PQgetvalue(result, 0, 0), NULL, 10);
        PQclear(result);
    }
}

/* From the first release to the last waiter's return. */
static int64_t chain(PGconn *pg, int count)
{
    static struct waiter waiters[CROWD];
    hf_lock *lock = take(client, 1);
    int64_t last = 0;

    for (int i = 0; i < count; i++) {
        waiters[i].owner = (uint64_t)i + 2;
        pthread_create(&waiters[i].thread, NULL, wait_and_pass, &waiters[i]);
    }
    await_waiters(pg, count);
    int64_t from = bench_now_ns();
    release(lock);
    for (int i = 0; i < count; i++) {
        pthread_join(waiters[i].thread, NULL);
        last = waiters[i].got_ns > last ? waiters[i].got_ns : last;
    }
    return last - from;
}

static int64_t notify_once(PGconn *pg, PGconn *ear)
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

static void handovers(PGconn *pg, PGconn *ear, const char *label, int count)
{
    int64_t ours[CROWD], bare[CROWD];

    for (int i = 0; i < count; i++) {
        ours[i] = chain(pg, 1);
        bare[i] = notify_once(pg, ear);
    }
    print("hand-over, ours", label, bench_p50_us(ours, (size_t)count));
    print("hand-over, bare", label, bench_p50_us(bare, (size_t)count));
    print("chain of 2, each", label, (double)chain(pg, 2) / 2 / 1e3);
    print("chain of 200, each", label, (double)chain(pg, CROWD) / CROWD / 1e3);
}

int main(int argc, char **argv)
{
    BENCH_MUST(argc == 4, "usage: postgres ROUNDS PAIRS LABEL");
    int rounds = (int)strtol(argv[1], NULL, 10), count = (int)strtol(argv[2], NULL, 10);
    BENCH_MUST(count > 0 && count < 10 * CROWD, "PAIRS: 1 to %d", 10 * CROWD - 1);
    PGconn *pg = dial(), *ear = dial();

    run(pg, "CREATE TABLE IF NOT EXISTS bare (name bytea PRIMARY KEY, ticket bytea)");
    run(ear, "LISTEN bench");
    client = open_client("");
    other = open_client("");
    advisory = open_client("?hold=advisory");
    release(take(client, 1));
    struct pair lease = {client,
                         "INSERT INTO bare (name, ticket) VALUES ('bench', 'ticket') ON CONFLICT "
                         "(name) DO NOTHING",
                         "DELETE FROM bare WHERE name = 'bench' AND ticket = 'ticket'"};
    struct pair server = {advisory, "SELECT pg_advisory_lock(4711)",
                          "SELECT pg_advisory_unlock(4711)"};
    for (int i = 0; i < rounds; i++) {
        pairs(pg, &lease, "pair", argv[3], count);
        pairs(pg, &server, "advisory", argv[3], 10 * count);
        handovers(pg, ear, argv[3], count / 10 + 1);
    }
    hf_close(advisory);
    hf_close(other);
    hf_close(client);
    PQfinish(ear);
    PQfinish(pg);
    return 0;
}
