/* A program that uses libholdfast: it takes locks, writes to the resource while it holds them, and
 * writes down what it was told and when. Ends on SIGTERM, when its turn is over.
 *
 *     worker --url URL --id ID --history FILE --resource SOCKET --prefix NAME [--kinds LIST]
 *            [--threads N] [--seed N] [--turns N] [--ttl MS] [--delay MS] [--wait MS]
 *            [--hold MIN] [--hold-max MAX] [--long PERCENT] [--pause MS] */
#include "lab/worker.h"

#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lab/history.h"

#define THREADS_MAX 512
#define BEAT_NS     5000000
#define GAP_NS      20000000

static struct worker *signalled; /* for the handler */

struct seat {
    struct worker *worker;
    unsigned number;
    pthread_t thread;
};

static const struct {
    const char *name;
    uint32_t needs;
} kinds[] = {
#define KIND_X(id, name, needs) [id] = {name, needs},
    WORKER_KINDS(KIND_X)
#undef KIND_X
};

static void on_term(int number)
{
    (void)number;
    atomic_store(&signalled->stopping, true);
    hf_cancel_fire(signalled->stop);
}

/* Notices when the process did not run: stopped by a signal, or without a processor. The checker
 * holds nobody to a time at which it could not act. */
static void *beat(void *arg)
{
    struct worker *worker = arg;
    struct timespec pause = {.tv_nsec = BEAT_NS};
    int64_t before = history_now_ns();

    for (;;) {
        nanosleep(&pause, NULL);
        int64_t now = history_now_ns();
        if (now - before > GAP_NS)
            history_add(worker->history, now, worker->id, "gap", ",\"from\":%lld",
                        (long long)before);
        before = now;
    }
    return NULL;
}

static void *take_turns(void *arg)
{
    struct seat *seat = arg;

    worker_run(seat->worker, seat->number);
    return NULL;
}

static unsigned parse_kinds(char *list)
{
    unsigned bits = 0;

    for (char *word = strtok(list, ","); word != NULL; word = strtok(NULL, ",")) {
        size_t i = 0;
        while (i < KINDS && strcmp(kinds[i].name, word) != 0)
            i++;
        if (i == KINDS) {
            fprintf(stderr, "worker: there is no kind '%s'\n", word);
            exit(64);
        }
        bits |= 1U << i;
    }
    return bits;
}

static unsigned parse(int argc, char **argv, struct worker *w, const char **ret_history)
{
    static const struct option names[] = {
        {"url", 1, NULL, 'u'},   {"id", 1, NULL, 'i'},       {"history", 1, NULL, 'f'},
        {"kinds", 1, NULL, 'k'}, {"resource", 1, NULL, 'r'}, {"prefix", 1, NULL, 'n'},
        {"seed", 1, NULL, 's'},  {"threads", 1, NULL, 't'},  {"turns", 1, NULL, 'c'},
        {"ttl", 1, NULL, 'l'},   {"delay", 1, NULL, 'd'},    {"wait", 1, NULL, 'w'},
        {"hold", 1, NULL, 'h'},  {"hold-max", 1, NULL, 'H'}, {"long", 1, NULL, 'L'},
        {"pause", 1, NULL, 'p'}, {NULL, 0, NULL, 0}};
    unsigned threads = 1;

    for (int c; (c = getopt_long(argc, argv, "", names, NULL)) != -1;) {
        long long number = optarg != NULL ? strtoll(optarg, NULL, 10) : 0;
        switch (c) {
        case 'u':
            w->url = optarg;
            break;
        case 'i':
            w->id = optarg;
            break;
        case 'f':
            *ret_history = optarg;
            break;
        case 'k':
            w->kinds = parse_kinds(optarg);
            break;
        case 'r':
            w->resource = optarg;
            break;
        case 'n':
            w->prefix = optarg;
            break;
        case 's':
            w->seed = (uint64_t)number;
            break;
        case 't':
            threads = number > 0 && number <= THREADS_MAX ? (unsigned)number : 1;
            break;
        case 'c':
            w->turns = (unsigned)number;
            break;
        case 'l':
            w->ttl_ms = number;
            break;
        case 'd':
            w->delay_ms = number;
            break;
        case 'w':
            w->wait_ms = number;
            break;
        case 'h':
            w->hold_min_ms = number;
            break;
        case 'H':
            w->hold_max_ms = number;
            break;
        case 'L':
            w->long_percent = (unsigned)number;
            break;
        case 'p':
            w->pause_ms = number;
            break;
        default:
            exit(64);
        }
    }
    if (w->url == NULL || w->id == NULL || *ret_history == NULL || w->resource == NULL ||
        w->prefix == NULL) {
        fputs("worker: --url, --id, --history, --resource and --prefix are needed\n", stderr);
        exit(64);
    }
    return threads;
}

/* Leaves out what the store cannot do. */
static void suit_store(struct worker *w)
{
    uint32_t can = hf_capabilities(w->client);

    for (size_t i = 0; i < KINDS; i++) {
        if ((can & kinds[i].needs) != kinds[i].needs)
            w->kinds &= ~(1U << i);
    }
    if (w->kinds == 0)
        w->kinds = 1U << KIND_EXCLUSIVE;
    if ((can & HF_CAN_DELAY) == 0)
        w->delay_ms = 0;
}

int main(int argc, char **argv)
{
    static struct worker w = {.kinds = 1U << KIND_EXCLUSIVE,
                              .ttl_ms = 1000,
                              .wait_ms = 20000,
                              .hold_min_ms = 5,
                              .hold_max_ms = 30,
                              .seed = 1,
                              .pause_ms = 2};
    static struct seat seats[THREADS_MAX];
    const char *history = NULL;
    unsigned threads = parse(argc, argv, &w, &history);
    struct sigaction term = {.sa_handler = on_term};
    pthread_t beating;
    hf_error err;

    w.history = history_open(history);
    if (w.history < 0)
        return perror(history), 71;
    if (hf_cancel_new(&w.stop) != HF_OK || hf_open(w.url, NULL, &w.client, &err) != HF_OK)
        return fprintf(stderr, "worker %s: %s\n", w.id, err.text), 69;
    signalled = &w;
    sigaction(SIGTERM, &term, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGCHLD, SIG_IGN); /* the children of forking turns leave no zombies */
    suit_store(&w);
    pthread_create(&beating, NULL, beat, &w);
    for (unsigned i = 0; i < threads; i++) {
        seats[i] = (struct seat){.worker = &w, .number = i};
        if (pthread_create(&seats[i].thread, NULL, take_turns, &seats[i]) != 0)
            return perror("worker: thread"), 71;
    }
    for (unsigned i = 0; i < threads; i++)
        pthread_join(seats[i].thread, NULL);
    hf_close(w.client);
    history_add(w.history, history_now_ns(), w.id, "end", "%s", "");
    return 0;
}
