/* holdfast on cassandra:, against the bare statements that it is made of, on the same server.
 *
 *     cassandra URL ROUNDS PAIRS cassandra_leases.py
 *
 * Pair: acquire and release, against a SERIAL read and a conditional update, twice. The published
 * recipe: layout=simple, against INSERT IF NOT EXISTS and DELETE IF by the same client, and by the
 * Python driver, if Debian's python3-cassandra is there. Hand-over: a queue of 20 who each release
 * at once, and how many conditional writes each cost. */
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "core/client.h"
#include "cql/cql.h"
#include "stores/cassandra/cassandra.h"

#define CROWD   20
#define WARM_UP 3 /* rounds */

static const struct hf__cql_statement create[] = {
    {HF__CQL_KIND_SCHEMA, "CREATE KEYSPACE IF NOT EXISTS bench WITH replication = "
                          "{'class': 'SimpleStrategy', 'replication_factor': 1}"},
    {HF__CQL_KIND_SCHEMA, "CREATE TABLE IF NOT EXISTS bench.locks (name blob PRIMARY KEY, "
                          "version bigint, holder text)"},
    {HF__CQL_KIND_SCHEMA, "CREATE TABLE IF NOT EXISTS bench.leases (name text PRIMARY KEY, "
                          "owner text, value text) WITH default_time_to_live = 180"},
};
static const struct hf__cql_statement begin = {
    HF__CQL_KIND_SWAP, "INSERT INTO bench.locks (name, version) VALUES (?, ?) IF NOT EXISTS"};
static const struct hf__cql_statement look = {
    HF__CQL_KIND_READ, "SELECT version, holder FROM bench.locks WHERE name = ?"};
static const struct hf__cql_statement swap = {
    HF__CQL_KIND_SWAP,
    "UPDATE bench.locks SET version = ?, holder = ? WHERE name = ? IF version = ?"};
static const struct hf__cql_statement claim = {
    HF__CQL_KIND_SWAP, "INSERT INTO bench.leases (name, owner) VALUES (?, ?) IF NOT EXISTS"};
static const struct hf__cql_statement drop = {
    HF__CQL_KIND_SWAP, "DELETE FROM bench.leases WHERE name = ? IF owner = ?"};

static const char holder[] =
    "the details of a holder, about as long as ours are: host and user and program, its pid, a "
    "note, the ttl and the lock-delay, when it came and until when it stays, its ticket, its mode";

/* Bare --------------------------------------------------------------------- */
static struct hf__cql *open_bare(const char *url)
{
    static const struct hf__option options[] = {HF__CQL_OPTIONS, {0}};
    struct hf__cql_settings settings = {0};
    struct hf__url parsed;
    struct hf__cql *cql;
    hf_error err;

    BENCH_MUST(hf__url_parse(url, &parsed, &err) == 0, "%s", err.text);
    BENCH_MUST(hf__url_check(&parsed, options, &err) == 0, "%s", err.text);
    BENCH_MUST(hf__cql_settings_read(&parsed, &settings, &err) == 0, "%s", err.text);
    hf__url_clear(&parsed);
    BENCH_MUST(hf__cql_open(&settings, &hf__system_env, &cql, &err) == 0, "%s", err.text);
    return cql;
}

static struct hf__cql_result run(struct hf__cql *cql, const struct hf__cql_statement *statement,
                                 const struct hf__cql_value *values, size_t count)
{
    struct hf__cql_request request = {
        .statement = statement,
        .values = values,
        .value_count = count,
        .consistency = statement->kind == HF__CQL_KIND_READ ? HF__CQL_CONSISTENCY_SERIAL
                                                            : HF__CQL_CONSISTENCY_QUORUM,
        .serial = HF__CQL_CONSISTENCY_SERIAL,
        .deadline_ns = hf__moment_after(hf__now_ns(&hf__system_env), 30000)};
    struct hf__cql_result result;
    hf_error err;

    BENCH_MUST(hf__cql_execute(cql, &request, &result, &err) == 0, "%s", err.text);
    return result;
}

static void must_apply(struct hf__cql *cql, const struct hf__cql_statement *statement,
                       const struct hf__cql_value *values, size_t count)
{
    struct hf__cql_result result = run(cql, statement, values, count);
    bool applied = false;

    BENCH_MUST(hf__cql_applied(&result, &applied, NULL) == 0 && applied, "not applied");
    hf__cql_result_clear(&result);
}

static void prepare_bare(struct hf__cql *cql)
{
    const struct hf__cql_value row[] = {hf__cql_text("pair"), hf__cql_bigint(1)};
    struct hf__cql_result result;

    for (size_t i = 0; i < sizeof create / sizeof create[0]; i++) {
        result = run(cql, &create[i], NULL, 0);
        hf__cql_result_clear(&result);
    }
    result = run(cql, &begin, row, 2);
    hf__cql_result_clear(&result);
}

/* Reads the version and raises it. */
static void read_and_swap(struct hf__cql *cql, const char *text)
{
    const struct hf__cql_value name = hf__cql_text("pair");
    struct hf__cql_result result = run(cql, &look, &name, 1);
    int64_t version = 0;

    BENCH_MUST(hf__cql_next_row(&result) &&
                   hf__cql_get_bigint(hf__cql_column(&result, 0), &version),
               "no row");
    hf__cql_result_clear(&result);
    const struct hf__cql_value values[] = {hf__cql_bigint(version + 1), hf__cql_text(text), name,
                                           hf__cql_bigint(version)};
    must_apply(cql, &swap, values, 4);
}

static bool warm; /* the server has compiled what it runs: figures count from here on */

static void report(const char *figure, int64_t began_ns, int count)
{
    if (warm)
        bench_print(figure, (double)(bench_now_ns() - began_ns) / count / 1e3, "us");
}

static void pair_bare(struct hf__cql *cql, int pairs)
{
    int64_t began = bench_now_ns();

    for (int i = 0; i < pairs; i++) {
        read_and_swap(cql, holder);
        read_and_swap(cql, "");
    }
    report("cassandra pair: bare reads and swaps", began, pairs);
}

static void leases_bare(struct hf__cql *cql, int pairs)
{
    const struct hf__cql_value values[] = {hf__cql_text("pair"), hf__cql_text("me")};
    int64_t began = bench_now_ns();

    for (int i = 0; i < pairs; i++) {
        must_apply(cql, &claim, values, 2);
        must_apply(cql, &drop, values, 2);
    }
    report("cassandra leases: bare statements", began, pairs);
}

/* The Python driver -------------------------------------------------------- */
struct peer {
    FILE *to, *from; /* NULL: it is not there */
    pid_t pid;
};

static struct peer start_peer(const char *script, const char *hosts)
{
    int to[2], from[2];
    char line[100] = "";

    BENCH_MUST(pipe(to) == 0 && pipe(from) == 0, "pipe");
    pid_t pid = fork();
    if (pid == 0) {
        dup2(to[0], 0);
        dup2(from[1], 1);
        close(to[1]);
        close(from[0]);
        execl("/usr/bin/python3", "/usr/bin/python3", script, hosts, (char *)NULL);
        _exit(127);
    }
    close(to[0]);
    close(from[1]);
    struct peer peer = {fdopen(to[1], "w"), fdopen(from[0], "r"), pid};
    if (fgets(line, sizeof line, peer.from) == NULL || strcmp(line, "ready\n") != 0) {
        fprintf(stderr, "cassandra: without the Python driver (python3-cassandra)\n");
        peer.to = NULL;
    }
    return peer;
}

static void leases_peer(struct peer *peer, int pairs)
{
    char line[100];

    if (peer->to == NULL)
        return;
    fprintf(peer->to, "%d\n", pairs);
    fflush(peer->to);
    BENCH_MUST(fgets(line, sizeof line, peer->from) != NULL, "the Python driver has gone");
    if (warm)
        bench_print("cassandra leases: the Python driver", strtod(line, NULL), "us");
}

static void end_peer(struct peer *peer)
{
    if (peer->to != NULL)
        fclose(peer->to);
    fclose(peer->from);
    waitpid(peer->pid, NULL, 0);
}

/* Ours --------------------------------------------------------------------- */
static hf_client *open_ours(const char *url, const char *options)
{
    char text[600];
    hf_client *client;
    hf_error err;

    snprintf(text, sizeof text, "%s%s", url, options);
    BENCH_MUST(hf_open(text, NULL, &client, &err) == HF_OK, "%s", err.text);
    return client;
}

static void pair_ours(hf_client *client, const char *figure, int pairs)
{
    int64_t began = bench_now_ns();

    for (int i = 0; i < pairs; i++) {
        hf_lock *lock;
        hf_error err;
        BENCH_MUST(hf_acquire(client, "pair", HF_NTS, NULL, &lock, &err) == HF_OK, "%s", err.text);
        BENCH_MUST(hf_lock_release(lock, &err) == HF_OK, "%s", err.text);
    }
    report(figure, began, pairs);
}

static void *pass_on(void *arg)
{
    hf_options opt = HF_OPTIONS_INIT;
    hf_lock *lock;
    hf_error err;

    opt.ttl_ms = 30000;
    BENCH_MUST(hf_acquire(arg, "queue", HF_NTS, &opt, &lock, &err) == HF_OK, "%s", err.text);
    BENCH_MUST(hf_lock_release(lock, &err) == HF_OK, "%s", err.text);
    return NULL;
}

static void await_queue(hf_client *client, size_t count)
{
    hf_query query = {.size = sizeof query, .name = "queue", .name_len = HF_NTS};

    for (size_t found = 0; found < count + 1;) {
        hf_view *view;
        BENCH_MUST(hf_inspect(client, &query, &view, NULL) == HF_OK, "inspect");
        found = hf_view_count(view);
        hf_view_free(view);
    }
}

static unsigned long swaps_of(hf_client *const *clients)
{
    unsigned long sum = 0;

    for (size_t i = 0; i <= CROWD; i++)
        sum += atomic_load(&((struct hf__cs *)clients[i]->store)->swaps);
    return sum;
}

/* The first client holds; each of the others waits in a thread. Writes are counted from the release
 * on: joining the queue is not handing over. */
static void hand_over(hf_client *const *clients)
{
    pthread_t threads[CROWD];
    hf_options opt = HF_OPTIONS_INIT;
    hf_lock *lock;

    opt.ttl_ms = 30000;
    BENCH_MUST(hf_acquire(clients[0], "queue", HF_NTS, &opt, &lock, NULL) == HF_OK, "acquire");
    for (size_t i = 0; i < CROWD; i++) {
        BENCH_MUST(pthread_create(&threads[i], NULL, pass_on, clients[i + 1]) == 0, "thread");
        await_queue(clients[0], i + 1);
    }
    unsigned long before = swaps_of(clients);
    int64_t began = bench_now_ns();
    BENCH_MUST(hf_lock_release(lock, NULL) == HF_OK, "release");
    for (size_t i = 0; i < CROWD; i++)
        pthread_join(threads[i], NULL);
    report("cassandra hand-over: 20 wait", began, CROWD);
    bench_print("cassandra hand-over: conditional writes each",
                (double)(swaps_of(clients) - before) / CROWD, "");
}

int main(int argc, char **argv)
{
    BENCH_MUST(argc == 5, "usage: cassandra URL ROUNDS PAIRS cassandra_leases.py");
    int rounds = (int)strtol(argv[2], NULL, 10), pairs = (int)strtol(argv[3], NULL, 10);
    struct hf__cql *bare = open_bare(argv[1]);
    hf_client *simple = open_ours(argv[1], "?layout=simple"), *clients[CROWD + 1];

    prepare_bare(bare);
    struct peer peer = start_peer(argv[4], getenv("HOLDFAST_TEST_CASSANDRA"));
    for (size_t i = 0; i <= CROWD; i++)
        clients[i] = open_ours(argv[1], "");
    for (int i = 0; i < WARM_UP + rounds; i++) {
        warm = i >= WARM_UP;
        pair_ours(clients[0], "cassandra pair: ours", pairs);
        pair_bare(bare, pairs);
        pair_ours(simple, "cassandra leases: ours, layout=simple", pairs);
        leases_bare(bare, pairs);
        leases_peer(&peer, pairs);
    }
    for (int i = 0; i < 3; i++)
        hand_over(clients);
    end_peer(&peer);
    for (size_t i = 0; i <= CROWD; i++)
        hf_close(clients[i]);
    hf_close(simple);
    hf__cql_close(bare);
    return 0;
}
