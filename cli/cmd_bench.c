/* holdfast bench: takes and releases locks as fast as it can, and says how fast that was.
 *
 * Each thread has a lock of its own unless --same, so that the figure is the store's and not that
 * of the queue. The names are fixed: a second bench at the same time would wait for this one. */
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli.h"
#include "json.h"

#include "base/banned.h"

#define THREADS_MAX 256

static int64_t count = 1000, threads = 1;
static bool same, shared;

static const struct cli_option options[] = {
    {0, "count", CLI_NUMBER, &count, "N", NULL, 1, 1000000, "rounds per thread (1000)"},
    {0, "threads", CLI_NUMBER, &threads, "N", NULL, 1, THREADS_MAX, "number of threads (1)"},
    {0, "same", CLI_FLAG, &same, NULL, NULL, 0, 0,
     "all threads share one lock: measures hand-overs"},
    {'s', "shared", CLI_FLAG, &shared, NULL, NULL, 0, 0, "take shared locks"},
    {0},
};

struct worker {
    hf_client *client;
    pthread_t thread;
    char name[48];
    int64_t *took_ns; /* of each round */
    int64_t done;
    hf_error err; /* why it stopped early */
};

struct result {
    int64_t rounds, elapsed_ns, p50, p90, p99, max;
};

static int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static bool one_round(struct worker *w)
{
    hf_options o = HF_OPTIONS_INIT;
    hf_lock *lock;

    o.mode = shared ? HF_SHARED : HF_EXCLUSIVE;
    o.ttl_ms = 5000; /* all that is left behind if somebody interrupts it */
    o.note = "holdfast bench";
    return hf_acquire(w->client, w->name, HF_NTS, &o, &lock, &w->err) == HF_OK &&
           hf_lock_release(lock, &w->err) == HF_OK;
}

static void *work(void *arg)
{
    struct worker *w = arg;

    for (int64_t start = now_ns(); w->done < count && one_round(w);) {
        int64_t end = now_ns();
        w->took_ns[w->done++] = end - start;
        start = end;
    }
    return NULL;
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

/* `took_ns` of all threads, sorted here. */
static struct result sum_up(int64_t *took_ns, int64_t rounds, int64_t elapsed_ns)
{
    qsort(took_ns, (size_t)rounds, sizeof *took_ns, compare);
    return (struct result){.rounds = rounds,
                           .elapsed_ns = elapsed_ns,
                           .p50 = took_ns[rounds / 2],
                           .p90 = took_ns[rounds * 9 / 10],
                           .p99 = took_ns[rounds * 99 / 100],
                           .max = took_ns[rounds - 1]};
}

static void print_result(const struct cli *cli, const struct result *r)
{
    double per_second = (double)r->rounds * 1e9 / (double)(r->elapsed_ns > 0 ? r->elapsed_ns : 1);
    struct cli_json json = {.out = stdout};

    if (!cli->json) {
        printf("%" PRId64 " rounds of acquire and release, %.0f a second\n"
               "p50 %.1f us, p90 %.1f us, p99 %.1f us, longest %.1f us\n",
               r->rounds, per_second, (double)r->p50 / 1e3, (double)r->p90 / 1e3,
               (double)r->p99 / 1e3, (double)r->max / 1e3);
        return;
    }
    cli_json_open(&json, NULL, '{');
    cli_json_number(&json, "threads", threads);
    cli_json_number(&json, "rounds", r->rounds);
    cli_json_number(&json, "elapsed_ns", r->elapsed_ns);
    cli_json_number(&json, "per_second", (int64_t)per_second);
    cli_json_number(&json, "p50_ns", r->p50);
    cli_json_number(&json, "p90_ns", r->p90);
    cli_json_number(&json, "p99_ns", r->p99);
    cli_json_number(&json, "max_ns", r->max);
    cli_json_close(&json, '}');
    cli_json_end(&json);
}

/* 0, or the exit status of the first thread that failed. */
static int run_workers(struct worker *workers)
{
    int64_t started = 0;
    int status = 0;

    for (; started < threads; started++) {
        struct worker *w = &workers[started];
        if (pthread_create(&w->thread, NULL, work, w) != 0) {
            status = cli_fail(EXIT_MACHINE, "cannot start %" PRId64 " threads", threads);
            break;
        }
    }
    for (int64_t i = 0; i < started; i++) {
        pthread_join(workers[i].thread, NULL);
        if (status == 0 && workers[i].done < count)
            status = cli_fail_error(&workers[i].err);
    }
    return status;
}

static int measure(const struct cli *cli, hf_client *client)
{
    struct worker *workers = calloc((size_t)threads, sizeof *workers);
    int64_t *took_ns = calloc((size_t)(threads * count), sizeof *took_ns);
    int status = EXIT_MACHINE;

    if (workers == NULL || took_ns == NULL) {
        cli_fail(status, "out of memory for %" PRId64 " rounds", threads * count);
    } else {
        for (int64_t i = 0; i < threads; i++) {
            workers[i].client = client;
            workers[i].took_ns = took_ns + i * count;
            snprintf(workers[i].name, sizeof workers[i].name, "holdfast/bench/%" PRId64,
                     same ? 0 : i);
        }
        int64_t start = now_ns();
        status = run_workers(workers);
        if (status == 0) {
            struct result r = sum_up(took_ns, threads * count, now_ns() - start);
            print_result(cli, &r);
        }
    }
    free(workers);
    free(took_ns);
    return status;
}

static int run(struct cli *cli, int argc, char **argv)
{
    hf_client *client;

    (void)argv;
    if (!cli_check_operands(&cli_verb_bench, argc, 0))
        return EXIT_USAGE;
    int status = cli_open(cli, &client);
    if (status != 0)
        return status;
    status = measure(cli, client);
    hf_close(client);
    return status;
}

const struct cli_verb cli_verb_bench = {
    .name = "bench",
    .operands = "",
    .summary = "Measure how fast the store takes and releases locks.",
    .options = options,
    .run = run,
};
