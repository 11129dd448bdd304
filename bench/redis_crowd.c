/* Very many threads that wait for one lock on Redis, each again as soon as it has had it: how long
 * a hand-over takes, and how many commands the server gets for it.
 *
 *     redis_crowd LABEL ADDRESS WAITERS HANDOVERS
 *
 * The threads belong to two clients. A hand-over counts from the call of hf_lock_release() to the
 * return of hf_acquire() in whoever is next. The last one reads the server's figures while it
 * holds. */
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "redis.h"

#define CLIENTS 2

struct crowd {
    const char *label;
    redisContext *redis;
    size_t waiters, handovers, count;
    int64_t since_ns; /* these three belong to whoever holds the lock */
    int64_t *samples;
    atomic_size_t queued;
    atomic_int done;
};

struct member {
    pthread_t thread;
    struct crowd *crowd;
    hf_client *client;
    int counted; /* in the first wait */
};

static double calls_of(const char *stats, const char *command)
{
    char field[60];
    snprintf(field, sizeof field, "cmdstat_%s:calls=", command);
    const char *at = strstr(stats, field);
    return at != NULL ? strtod(at + strlen(field), NULL) : 0;
}

static void report(struct crowd *crowd)
{
    redisReply *reply = bench_reply(crowd->redis, redisCommand(crowd->redis, "INFO commandstats"));
    double count = (double)crowd->count;

    bench_print_for(crowd->label, "p50", bench_p50_us(crowd->samples, crowd->count), "us");
    bench_print_for(crowd->label, "scripts called", calls_of(reply->str, "evalsha") / count, "");
    bench_print_for(crowd->label, "messages", calls_of(reply->str, "publish") / count, "");
    freeReplyObject(reply);
}

static void on_wait(size_t position, void *arg)
{
    struct member *member = arg;
    (void)position;
    if (!member->counted)
        member->crowd->queued++;
    member->counted = 1;
}

/* With the lock held. */
static void take_sample(struct crowd *crowd)
{
    if (crowd->done)
        return;
    crowd->samples[crowd->count++] = bench_now_ns() - crowd->since_ns;
    if (crowd->count == crowd->handovers) {
        report(crowd);
        crowd->done = 1;
    }
}

static void *wait_in_turn(void *arg)
{
    struct member *member = arg;
    struct crowd *crowd = member->crowd;
    hf_options opt = HF_OPTIONS_INIT;
    hf_lock *lock;
    hf_error err;

    opt.on_wait = on_wait;
    opt.arg = member;
    do {
        BENCH_MUST(hf_acquire(member->client, "bench", HF_NTS, &opt, &lock, &err) == HF_OK, "%s",
                   err.text);
        take_sample(crowd);
        crowd->since_ns = bench_now_ns();
        BENCH_MUST(hf_lock_release(lock, &err) == HF_OK, "%s", err.text);
    } while (!crowd->done);
    return NULL;
}

/* One more than wait, for one of them is always inside. They start while we hold the lock. */
static void gather(struct crowd *crowd, struct member *members, hf_client **clients)
{
    pthread_attr_t small;
    hf_lock *lock;
    hf_error err;

    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 256 * 1024);
    BENCH_MUST(hf_acquire(clients[0], "bench", HF_NTS, NULL, &lock, &err) == HF_OK, "%s", err.text);
    for (size_t i = 0; i <= crowd->waiters; i++) {
        members[i] = (struct member){.crowd = crowd, .client = clients[i % CLIENTS]};
        BENCH_MUST(pthread_create(&members[i].thread, &small, wait_in_turn, &members[i]) == 0,
                   "no thread");
    }
    while (crowd->queued <= crowd->waiters)
        usleep(1000);
    freeReplyObject(bench_reply(crowd->redis, redisCommand(crowd->redis, "CONFIG RESETSTAT")));
    crowd->since_ns = bench_now_ns();
    BENCH_MUST(hf_lock_release(lock, &err) == HF_OK, "%s", err.text);
    pthread_attr_destroy(&small);
}

int main(int argc, char **argv)
{
    BENCH_MUST(argc == 5, "usage: redis_crowd LABEL ADDRESS WAITERS HANDOVERS");
    struct crowd crowd = {.label = argv[1], .redis = bench_connect(argv[2])};
    hf_client *clients[CLIENTS];

    crowd.waiters = strtoul(argv[3], NULL, 10);
    crowd.handovers = strtoul(argv[4], NULL, 10);
    crowd.samples = calloc(crowd.handovers, sizeof *crowd.samples);
    struct member *members = calloc(crowd.waiters + 1, sizeof *members);
    BENCH_MUST(crowd.samples != NULL && members != NULL, "out of memory");

    for (size_t i = 0; i < CLIENTS; i++)
        clients[i] = bench_open(argv[2]);
    gather(&crowd, members, clients);
    for (size_t i = 0; i <= crowd.waiters; i++)
        pthread_join(members[i].thread, NULL);
    for (size_t i = 0; i < CLIENTS; i++)
        hf_close(clients[i]);
    redisFree(crowd.redis);
    free(crowd.samples);
    free(members);
    return 0;
}
