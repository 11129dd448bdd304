/* The etcd store against the bare calls of its recipe, and against etcd's own client, in turns.
 *
 *     etcd HOST:PORT ROUNDS PAIRS HANDOVERS HOLDFAST LABEL [MUTEX]
 *
 * pair: acquire and release, against LeaseGrant, a transaction that creates a key, one that deletes
 * it, and LeaseRevoke, which is what the recipe needs of anybody; against the server's own Lock and
 * Unlock between the same two lease calls; and against Lock and Unlock of the Mutex of etcd's Go client,
 * whose session has its lease for all of them, as ours has: MUTEX is tests/etcd/go, built.
 * hand-over: from just before a release to the return of the acquire that waited, with 2 and
 * with 500 waiting, against a delete and the arrival of its event at a watch; and against the same
 * with the transaction after it, in which the published recipe makes sure that its own key is still
 * there. Both once in a loop that never rests, and once as somebody who waits for a lock finds it:
 * after a pause, in which every thread of client and server has gone to sleep.
 * run: HOLDFAST run NAME -- true, against etcdctl lock NAME true. */
#include "etcd.h"

#include <holdfast.h>
#include <pthread.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include "grpc/conn.h"

const char *etcd_host, *etcd_label;

/* The Go client, a process that is told how many and says how long each took. */
static FILE *mutex_in, *mutex_out;

static void start_mutex(const char *program)
{
    int in[2], out[2];
    BENCH_MUST(pipe(in) == 0 && pipe(out) == 0, "no pipe");
    pid_t pid = fork();

    BENCH_MUST(pid >= 0, "no process");
    if (pid == 0) {
        dup2(in[0], 0);
        dup2(out[1], 1);
        close(in[1]);
        close(out[0]);
        execl(program, program, etcd_host, "pairs", "bench/mutex", "30", (char *)NULL);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    mutex_in = fdopen(in[1], "w");
    mutex_out = fdopen(out[0], "r");
}

static void measure_mutex(int pairs)
{
    double us;

    if (mutex_in == NULL)
        return;
    fprintf(mutex_in, "%d\n", pairs);
    fflush(mutex_in);
    BENCH_MUST(fscanf(mutex_out, "%lf", &us) == 1, "the Go client has ended");
    etcd_print("pair, Go's Mutex", us);
}

static void measure_pairs(hf_client *client, struct hf__grpc_conn *conn, int pairs)
{
    hf_options opt = HF_OPTIONS_INIT;
    hf_lock *lock;
    hf_error err;
    int64_t start = bench_now_ns();

    for (int i = 0; i < pairs; i++) {
        BENCH_MUST(hf_acquire(client, "pair", HF_NTS, &opt, &lock, &err) == HF_OK, "%s", err.text);
        BENCH_MUST(hf_lock_release(lock, &err) == HF_OK, "%s", err.text);
    }
    etcd_print("pair, ours", (double)(bench_now_ns() - start) / pairs / 1e3);
    start = bench_now_ns();
    for (int i = 0; i < pairs; i++)
        etcd_bare_pair(conn);
    etcd_print("pair, bare", (double)(bench_now_ns() - start) / pairs / 1e3);
    start = bench_now_ns();
    for (int i = 0; i < pairs; i++)
        etcd_v3lock_pair(conn);
    etcd_print("pair, v3lock", (double)(bench_now_ns() - start) / pairs / 1e3);
    measure_mutex(pairs);
}

/* Hand-over. --------------------------------------------------------------------------------------
 */
struct taker {
    hf_client *client;
    const char *name;
    pthread_t thread;
    _Atomic int64_t got_ns;
    atomic_bool waiting;
    hf_lock *lock;
};

static void on_wait(size_t position, void *arg)
{
    struct taker *t = arg;

    (void)position;
    t->waiting = true;
}

static void *acquire(void *arg)
{
    struct taker *t = arg;
    hf_options opt = HF_OPTIONS_INIT;
    hf_error err;

    opt.on_wait = on_wait;
    opt.arg = t;
    opt.owner = (uint64_t)(uintptr_t)t;
    BENCH_MUST(hf_acquire(t->client, t->name, HF_NTS, &opt, &t->lock, &err) == HF_OK, "%s",
               err.text);
    t->got_ns = bench_now_ns();
    return NULL;
}

static void start_taker(struct taker *t, hf_client *client, const char *name)
{
    *t = (struct taker){.client = client, .name = name};
    BENCH_MUST(pthread_create(&t->thread, NULL, acquire, t) == 0, "no thread");
    while (!t->waiting && t->got_ns == 0)
        usleep(100);
}

/* A queue of `crowd` takers of two clients in turn, who release one after the other. */
static void measure_handover(hf_client *holder, hf_client *const takers[2], int handovers,
                             int crowd)
{
    struct taker *all = calloc((size_t)crowd, sizeof *all);
    int64_t *took_ns = calloc((size_t)(handovers + crowd), sizeof *took_ns);
    char figure[60];
    size_t count = 0;

    while (count < (size_t)handovers) {
        hf_options opt = HF_OPTIONS_INIT;
        hf_lock *lock;
        hf_error err;
        BENCH_MUST(hf_acquire(holder, "hand", HF_NTS, &opt, &lock, &err) == HF_OK, "%s", err.text);
        for (int i = 0; i < crowd; i++)
            start_taker(&all[i], takers[i % 2], "hand");
        etcd_rest();
        for (int i = 0; i < crowd; i++) {
            int64_t start = bench_now_ns();
            BENCH_MUST(hf_lock_release(lock, &err) == HF_OK, "%s", err.text);
            pthread_join(all[i].thread, NULL);
            took_ns[count++] = all[i].got_ns - start;
            lock = all[i].lock;
        }
        BENCH_MUST(hf_lock_release(lock, &err) == HF_OK, "%s", err.text);
    }
    snprintf(figure, sizeof figure, "hand-over, ours, %d wait", crowd);
    etcd_print(figure, bench_p50_us(took_ns, count));
    free(took_ns);
    free(all);
}

/* Commands. ------------------------------------------------------------------------------------ */
static void measure_command(const char *figure, const char *const *argv)
{
    enum { RUNS = 20 };
    int64_t start = bench_now_ns();
    extern char **environ;

    for (int i = 0; i < RUNS; i++) {
        pid_t pid;
        int status;
        BENCH_MUST(posix_spawnp(&pid, argv[0], NULL, NULL, (char *const *)argv, environ) == 0,
                   "no %s", argv[0]);
        BENCH_MUST(waitpid(pid, &status, 0) == pid && status == 0, "%s failed", argv[0]);
    }
    etcd_print(figure, (double)(bench_now_ns() - start) / RUNS / 1e3);
}

static void measure_commands(const char *holdfast, const char *url)
{
    const char *ours[] = {holdfast, "run", "-u", url, "run", "--", "true", NULL};
    char endpoint[220];
    const char *theirs[] = {"etcdctl", "--endpoints", endpoint, "lock", "run-theirs", "true", NULL};

    snprintf(endpoint, sizeof endpoint, "%s", etcd_host);
    setenv("ETCDCTL_API", "3", 1);
    measure_command("run, ours", ours);
    if (access("/usr/bin/etcdctl", X_OK) == 0)
        measure_command("run, etcdctl lock", theirs);
}

int main(int argc, char **argv)
{
    hf_client *one, *others[2];
    hf_error err;
    char url[200];

    BENCH_MUST(argc == 7 || argc == 8,
               "usage: etcd HOST:PORT ROUNDS PAIRS HANDOVERS HOLDFAST LABEL [MUTEX]");
    etcd_host = argv[1];
    etcd_label = argv[6];
    etcd_start_somebody();
    if (argc == 8)
        start_mutex(argv[7]);
    struct hf__grpc_conn *conn = etcd_dial();
    snprintf(url, sizeof url, "etcd://%s/bench", etcd_host);
    BENCH_MUST(hf_open(url, NULL, &one, &err) == HF_OK, "%s", err.text);
    for (int i = 0; i < 2; i++)
        BENCH_MUST(hf_open(url, NULL, &others[i], &err) == HF_OK, "%s", err.text);
    for (long i = 0; i < strtol(argv[2], NULL, 10); i++) {
        measure_pairs(one, conn, (int)strtol(argv[3], NULL, 10));
        int handovers = (int)strtol(argv[4], NULL, 10);
        etcd_bare_handover(conn, handovers, false);
        etcd_bare_handover(conn, handovers / 10, true);
        measure_handover(one, others, handovers / 10, 2);
        measure_handover(one, others, handovers, 500);
        measure_commands(argv[5], url);
    }
    hf_close(one);
    hf_close(others[0]);
    hf_close(others[1]);
    hf__grpc_unref(conn);
    return 0;
}
