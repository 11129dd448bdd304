/* The floor of a crowd in one process: what it costs to go from thread to thread, without locks.
 *
 *     chain COUNT
 *
 * COUNT threads wait, each on a condition of its own. Whoever has been woken writes to a descriptor; the
 * thread that reads it wakes the next one. That is the way of a wake-up on memory://. */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "bench.h"

struct link {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    int woken;
};

static struct {
    struct link *links;
    int count, fd;
    atomic_int waiting, through;
} chain;

static void *wait_for_turn(void *arg)
{
    struct link *l = arg;

    pthread_mutex_lock(&l->mutex);
    atomic_fetch_add(&chain.waiting, 1);
    while (!l->woken)
        pthread_cond_wait(&l->cond, &l->mutex);
    pthread_mutex_unlock(&l->mutex);
    atomic_fetch_add(&chain.through, 1);
    eventfd_write(chain.fd, 1);
    pause();
    return NULL;
}

static void wake(struct link *l)
{
    pthread_mutex_lock(&l->mutex);
    l->woken = 1;
    pthread_cond_signal(&l->cond);
    pthread_mutex_unlock(&l->mutex);
}

static void start(void)
{
    pthread_attr_t attr;
    pthread_t thread;

    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 128 * 1024);
    for (int i = 0; i < chain.count; i++) {
        pthread_mutex_init(&chain.links[i].mutex, NULL);
        pthread_cond_init(&chain.links[i].cond, NULL);
        BENCH_MUST(pthread_create(&thread, &attr, wait_for_turn, &chain.links[i]) == 0,
                   "no thread");
    }
    while (atomic_load(&chain.waiting) < chain.count)
        usleep(2000);
}

int main(int argc, char **argv)
{
    char figure[100];
    eventfd_t nothing;

    BENCH_MUST(argc == 2, "usage: chain COUNT");
    chain.count = (int)strtol(argv[1], NULL, 10);
    chain.links = calloc((size_t)chain.count, sizeof *chain.links);
    chain.fd = eventfd(0, EFD_CLOEXEC);
    BENCH_MUST(chain.links != NULL && chain.fd >= 0, "out of memory");
    start();
    int64_t from_ns = bench_now_ns();
    wake(&chain.links[0]);
    for (int i = 1; i <= chain.count; i++) {
        BENCH_MUST(eventfd_read(chain.fd, &nothing) == 0, "read");
        if (i < chain.count)
            wake(&chain.links[i]);
    }
    snprintf(figure, sizeof figure, "chain of %d threads: a hand-over", chain.count);
    bench_print(figure, (double)(bench_now_ns() - from_ns) / 1e3 / chain.count, "us");
    return 0;
}
