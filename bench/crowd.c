/* Very many who want the one SQLite file, or the one lock, at once: does everybody get a turn, and how soon?
 *
 *     crowd URL pairs   processes|threads COUNT SECONDS   each takes and releases a lock of its own
 *     crowd URL turns   processes|threads COUNT TTL_MS    all wait for the same lock, whose holder keeps it
 *                                                         until all wait
 *
 * Threads are those of one client. */
#include <holdfast.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

struct member {
    int64_t pairs, slowest_ns;
};

struct crowd {
    const char *url;
    int64_t ttl_ms, seconds;
    atomic_int ready, waiting, had_it, failed;
    int gate[2]; /* a pipe: all wait for its end to be closed */
    atomic_llong until_ns, last_ns;
    struct member members[];
};

struct task {
    struct crowd *crowd;
    hf_client *client;
    int index;
    bool waits;
    void (*run)(struct task *task);
};

static struct crowd *make_crowd(const char *url, size_t count)
{
    size_t size = sizeof(struct crowd) + count * sizeof(struct member);
    struct crowd *c = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    BENCH_MUST(c != MAP_FAILED, "out of memory");
    BENCH_MUST(pipe(c->gate) == 0, "pipe");
    c->url = url;
    return c;
}

static void sleep_ms(int ms)
{
    usleep((useconds_t)ms * 1000);
}

static void note_failure(struct crowd *c, const hf_error *err)
{
    if (atomic_fetch_add(&c->failed, 1) < 3)
        fprintf(stderr, "%s\n", err->text);
}

static void wait_for_go(struct crowd *c)
{
    char nothing;

    atomic_fetch_add(&c->ready, 1);
    BENCH_MUST(read(c->gate[0], &nothing, 1) == 0, "the gate");
}

static void make_pairs(struct task *t)
{
    struct member *m = &t->crowd->members[t->index];
    hf_error err;
    char name[32];

    snprintf(name, sizeof name, "own/%d", t->index);
    while (bench_now_ns() < atomic_load(&t->crowd->until_ns)) {
        int64_t from_ns = bench_now_ns();
        hf_lock *lock;
        if (hf_acquire(t->client, name, HF_NTS, NULL, &lock, &err) != HF_OK) {
            note_failure(t->crowd, &err);
            return;
        }
        hf_lock_release(lock, NULL);
        int64_t took_ns = bench_now_ns() - from_ns;
        m->pairs++;
        if (took_ns > m->slowest_ns)
            m->slowest_ns = took_ns;
    }
}

static void on_wait(size_t position, void *arg)
{
    struct task *t = arg;

    (void)position;
    if (!t->waits)
        atomic_fetch_add(&t->crowd->waiting, 1);
    t->waits = true;
}

static void take_turn(struct task *t)
{
    struct crowd *c = t->crowd;
    hf_options opt = HF_OPTIONS_INIT;
    hf_lock *lock;
    hf_error err;

    opt.ttl_ms = c->ttl_ms;
    opt.on_wait = on_wait;
    opt.arg = t;
    if (hf_acquire(t->client, "one", HF_NTS, &opt, &lock, &err) != HF_OK) {
        note_failure(c, &err);
        return;
    }
    atomic_fetch_add(&c->had_it, 1);
    if (hf_lock_release(lock, &err) != HF_OK)
        note_failure(c, &err);
    atomic_store(&c->last_ns, bench_now_ns());
}

static void *thread_main(void *arg)
{
    struct task *t = arg;

    wait_for_go(t->crowd);
    t->run(t);
    pause(); /* to end a thread costs the kernel more than a hand-over costs us */
    return NULL;
}

static void process_main(struct task *t)
{
    bool opens_first = t->run == make_pairs; /* else all of them open it at once as well */
    hf_error err;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(t->crowd->gate[1]);
    if (!opens_first)
        wait_for_go(t->crowd);
    if (hf_open(t->crowd->url, NULL, &t->client, &err) != HF_OK) {
        note_failure(t->crowd, &err);
        _exit(0);
    }
    if (opens_first)
        wait_for_go(t->crowd);
    t->run(t);
    hf_close(t->client);
    _exit(0);
}

/* Starts them, all before the client that `threads` share is there. */
static void start(struct crowd *c, void (*run)(struct task *), bool threads, int count)
{
    static hf_client *shared;
    hf_error err;
    pthread_attr_t attr;

    if (threads)
        BENCH_MUST(hf_open(c->url, NULL, &shared, &err) == HF_OK, "%s", err.text);
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 128 * 1024);
    for (int i = 0; i < count; i++) {
        struct task *t = calloc(1, sizeof *t);
        pthread_t thread;
        BENCH_MUST(t != NULL, "out of memory");
        *t = (struct task){.crowd = c, .client = shared, .index = i, .run = run};
        if (threads) {
            BENCH_MUST(pthread_create(&thread, &attr, thread_main, t) == 0, "no thread");
            pthread_detach(thread);
            continue;
        }
        pid_t pid = fork();
        BENCH_MUST(pid >= 0, "fork");
        if (pid == 0)
            process_main(t);
    }
    while (atomic_load(&c->ready) < count)
        sleep_ms(2);
}

static int compare_pairs(const void *a, const void *b)
{
    const struct member *x = a, *y = b;

    return (x->pairs > y->pairs) - (x->pairs < y->pairs);
}

static void measure_pairs(struct crowd *c, const char *label, int count)
{
    int64_t total = 0, slowest_ns = 0;
    char figure[100];

    atomic_store(&c->until_ns, bench_now_ns() + c->seconds * 1000000000);
    close(c->gate[1]);
    sleep((unsigned)c->seconds + 2);
    while (wait(NULL) > 0)
        continue;
    for (int i = 0; i < count; i++) {
        total += c->members[i].pairs;
        if (c->members[i].slowest_ns > slowest_ns)
            slowest_ns = c->members[i].slowest_ns;
    }
    qsort(c->members, (size_t)count, sizeof c->members[0], compare_pairs);
    snprintf(figure, sizeof figure, "%s: pairs", label);
    bench_print(figure, (double)total / (double)c->seconds, "/s");
    snprintf(figure, sizeof figure, "%s: the slowest pair", label);
    bench_print(figure, (double)slowest_ns / 1e6, "ms");
    snprintf(figure, sizeof figure, "%s: pairs of the last / the median", label);
    bench_print(figure, (double)c->members[0].pairs / (double)(c->members[count / 2].pairs + 1),
                "");
}

static void measure_turns(struct crowd *c, const char *label, int count)
{
    hf_options opt = HF_OPTIONS_INIT;
    hf_client *client;
    hf_lock *lock;
    hf_error err;
    char figure[100];

    opt.ttl_ms = c->ttl_ms;
    BENCH_MUST(hf_open(c->url, NULL, &client, &err) == HF_OK &&
                   hf_acquire(client, "one", HF_NTS, &opt, &lock, &err) == HF_OK,
               "%s", err.text);
    int64_t from_ns = bench_now_ns();
    close(c->gate[1]);
    while (atomic_load(&c->waiting) + atomic_load(&c->failed) < count)
        sleep_ms(2);
    int64_t wait_ns = bench_now_ns();
    int lost = hf_lock_state(lock) == HF_STATE_LOST;
    hf_lock_release(lock, NULL);
    while (atomic_load(&c->had_it) + atomic_load(&c->failed) < count)
        sleep_ms(2);
    snprintf(figure, sizeof figure, "%s: until all wait", label);
    bench_print(figure, (double)(wait_ns - from_ns) / 1e6, "ms");
    snprintf(figure, sizeof figure, "%s: until all had it", label);
    bench_print(figure, (double)(atomic_load(&c->last_ns) - wait_ns) / 1e6, "ms");
    snprintf(figure, sizeof figure, "%s: a hand-over", label);
    bench_print(figure, (double)(atomic_load(&c->last_ns) - wait_ns) / 1e3 / count, "us");
    snprintf(figure, sizeof figure, "%s: failed", label);
    bench_print(figure, atomic_load(&c->failed), "");
    snprintf(figure, sizeof figure, "%s: holder lost", label);
    bench_print(figure, lost, "");
}

int main(int argc, char **argv)
{
    BENCH_MUST(argc == 6, "usage: crowd URL pairs|turns processes|threads COUNT SECONDS|TTL_MS");
    bool pairs = strcmp(argv[2], "pairs") == 0, threads = strcmp(argv[3], "threads") == 0;
    int count = (int)strtol(argv[4], NULL, 10);
    struct crowd *c = make_crowd(argv[1], (size_t)count);
    char label[60];

    c->seconds = c->ttl_ms = strtol(argv[5], NULL, 10);
    snprintf(label, sizeof label, "crowd of %d %s, %s", count, argv[3], argv[2]);
    start(c, pairs ? make_pairs : take_turn, threads, count);
    if (pairs)
        measure_pairs(c, label, count);
    else
        measure_turns(c, label, count);
    return 0;
}
