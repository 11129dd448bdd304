/* Many who want few locks, for as long as it is told, whatever happens to the servers meanwhile:
 *
 *     storm URL CLIENTS THREADS LOCKS SECONDS
 *
 * Each turn has a witness: at no moment do two believe that they hold the same lock, and tokens rise in
 * the order in which it is held. Prints what happened, and how long a lock lay idle that somebody
 * waited for. Status 1: it was held twice, or a token went back. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "holdfast.h"

#define CLIENTS_MAX 256
#define THREADS_MAX 256
#define LOCKS_MAX   64
#define TTL_MS      4000
#define WAIT_MS     20000

struct place {
    pthread_mutex_t mutex;
    char name[32];
    hf_lock *inside; /* who believes so */
    uint64_t last;   /* token */
    int64_t left_ms;
};

struct storm {
    hf_client *clients[CLIENTS_MAX];
    struct place places[LOCKS_MAX];
    long client_count, place_count;
    int64_t end_ms;
    atomic_long turns, overlaps, steps_back, unknown, failed, lost;
    atomic_long idle[5]; /* below 20 ms, 100 ms, 1 s, 3 s, and more */
    _Atomic int64_t worst_ms;
};

struct racer {
    struct storm *storm;
    unsigned number;
    pthread_t thread;
};

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_BOOTTIME, &now);
    return now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;
}

static void note_idle(struct storm *s, int64_t ms)
{
    static const int64_t bounds[] = {20, 100, 1000, 3000};
    size_t i = 0;

    while (i < 4 && ms >= bounds[i])
        i++;
    s->idle[i]++;
    if (ms > s->worst_ms)
        s->worst_ms = ms;
}

/* Whoever is lost by its own clock does not count. */
static void enter(struct storm *s, struct place *p, hf_lock *lock, int64_t asked_ms)
{
    uint64_t token = 0;

    pthread_mutex_lock(&p->mutex);
    hf_lock_generation(lock, &token);
    bool held = hf_lock_state(lock) != HF_STATE_LOST;
    if (held && p->inside != NULL && hf_lock_state(p->inside) != HF_STATE_LOST)
        s->overlaps++;
    if (held && token <= p->last)
        s->steps_back++;
    if (held && token > p->last)
        p->last = token;
    p->inside = lock;
    int64_t since_ms = p->left_ms > asked_ms ? p->left_ms : asked_ms;
    pthread_mutex_unlock(&p->mutex);
    s->turns++;
    note_idle(s, now_ms() - since_ms);
}

static void leave(struct storm *s, struct place *p, hf_lock *lock)
{
    pthread_mutex_lock(&p->mutex);
    s->lost += hf_lock_state(lock) == HF_STATE_LOST;
    if (p->inside == lock)
        p->inside = NULL;
    p->left_ms = now_ms();
    pthread_mutex_unlock(&p->mutex);
    s->unknown += hf_lock_release(lock, NULL) == HF_UNKNOWN;
}

static void *race(void *arg)
{
    struct racer *r = arg;
    struct storm *s = r->storm;
    unsigned seed = r->number;
    hf_options opt = HF_OPTIONS_INIT;

    opt.ttl_ms = TTL_MS;
    opt.wait_ms = WAIT_MS;
    opt.owner = r->number + 1;
    while (now_ms() < s->end_ms) {
        struct place *p = &s->places[rand_r(&seed) % (unsigned)s->place_count];
        struct timespec work = {.tv_nsec = (rand_r(&seed) % 3000) * 1000L};
        hf_lock *lock;
        int64_t asked_ms = now_ms();
        int code =
            hf_acquire(s->clients[r->number % s->client_count], p->name, HF_NTS, &opt, &lock, NULL);
        s->unknown += code == HF_UNKNOWN;
        s->failed += code != HF_OK && code != HF_UNKNOWN;
        if (code == HF_OK)
            enter(s, p, lock, asked_ms);
        nanosleep(&work, NULL);
        if (code == HF_OK)
            leave(s, p, lock);
    }
    return NULL;
}

static void print(struct storm *s)
{
    printf("%ld turns, %ld overlaps, %ld tokens that went back; %ld lost, %ld unknown, %ld failed\n"
           "idle: %ld below 20 ms, %ld below 100 ms, %ld below 1 s, %ld below 3 s, %ld longer; "
           "%lld ms at most\n",
           s->turns, s->overlaps, s->steps_back, s->lost, s->unknown, s->failed, s->idle[0],
           s->idle[1], s->idle[2], s->idle[3], s->idle[4], (long long)s->worst_ms);
}

int main(int argc, char **argv)
{
    static struct storm storm;
    static struct racer racers[THREADS_MAX];
    long threads = argc == 6 ? strtol(argv[3], NULL, 10) : 0;
    hf_error err;

    storm.client_count = argc == 6 ? strtol(argv[2], NULL, 10) : 0;
    storm.place_count = argc == 6 ? strtol(argv[4], NULL, 10) : 0;
    if (threads < 1 || threads > THREADS_MAX || storm.client_count < 1 ||
        storm.client_count > CLIENTS_MAX || storm.place_count < 1 ||
        storm.place_count > LOCKS_MAX) {
        fputs("usage: storm URL CLIENTS THREADS LOCKS SECONDS\n", stderr);
        return 64;
    }
    storm.end_ms = now_ms() + 1000 * strtol(argv[5], NULL, 10);
    for (long i = 0; i < storm.place_count; i++) {
        pthread_mutex_init(&storm.places[i].mutex, NULL);
        snprintf(storm.places[i].name, sizeof storm.places[i].name, "storm %ld", i);
    }
    for (long i = 0; i < storm.client_count; i++) {
        if (hf_open(argv[1], NULL, &storm.clients[i], &err) != HF_OK) {
            fprintf(stderr, "%s\n", err.text);
            return 69;
        }
    }
    for (long i = 0; i < threads; i++) {
        racers[i] = (struct racer){.storm = &storm, .number = (unsigned)i};
        if (pthread_create(&racers[i].thread, NULL, race, &racers[i]) != 0)
            return 71;
    }
    for (long i = 0; i < threads; i++)
        pthread_join(racers[i].thread, NULL);
    for (long i = 0; i < storm.client_count; i++)
        hf_close(storm.clients[i]);
    print(&storm);
    return storm.overlaps > 0 || storm.steps_back > 0 || storm.turns == 0;
}
