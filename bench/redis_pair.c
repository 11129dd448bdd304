/* One acquire and its release on Redis, against the two bare requests that any lock needs:
 * SET NX PX, and EVALSHA of a compare-and-delete.
 *
 *     redis_pair LABEL ADDRESS THREADS PAIRS [ours|floor]
 *
 * PAIRS are done by all threads together, each on a lock of its own; ours share one client, the
 * floor has a connection for each. Prints microseconds of the wall per pair, the median pair of
 * one thread, and what the client's and both processors used: other programs disturb these less.
 * With `ours` or `floor` only that side runs, for counting its instructions. */
#include <pthread.h>

#include "redis.h"

#define COMPARE_AND_DELETE \
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"

#define VALUE   "0123456789abcdef0123456789abcdef"
#define WARM_UP 20

struct worker;

struct side {
    const char *name;
    void (*pair)(struct worker *w);
};

struct worker {
    pthread_t thread;
    pthread_barrier_t *barrier;
    const struct side *side;
    hf_client *client;
    redisContext *redis;
    char key[24], sha1[41];
    int pairs;
    int64_t *samples; /* of each pair */
};

static void pair_ours(struct worker *w)
{
    hf_lock *lock;
    hf_error err;

    BENCH_MUST(hf_acquire(w->client, w->key, HF_NTS, NULL, &lock, &err) == HF_OK, "%s", err.text);
    BENCH_MUST(hf_lock_release(lock, &err) == HF_OK, "%s", err.text);
}

static void pair_floor(struct worker *w)
{
    redisReply *reply =
        bench_reply(w->redis, redisCommand(w->redis, "SET %s " VALUE " NX PX 30000", w->key));

    BENCH_MUST(reply->type == REDIS_REPLY_STATUS, "the floor's key was taken");
    freeReplyObject(reply);
    reply =
        bench_reply(w->redis, redisCommand(w->redis, "EVALSHA %s 1 %s " VALUE, w->sha1, w->key));
    BENCH_MUST(reply->integer == 1, "the floor's key was lost");
    freeReplyObject(reply);
}

static void run(struct worker *w, const struct side *side, int pairs)
{
    int64_t from_ns = bench_now_ns();

    for (int i = 0; i < pairs; i++) {
        side->pair(w);
        int64_t now_ns = bench_now_ns();
        w->samples[i] = now_ns - from_ns;
        from_ns = now_ns;
    }
}

static const struct side sides[] = {{"ours", pair_ours}, {"floor", pair_floor}};

static void *work(void *arg)
{
    struct worker *w = arg;

    pthread_barrier_wait(w->barrier);
    run(w, w->side, w->pairs);
    pthread_barrier_wait(w->barrier);
    return NULL;
}

static void prepare(struct worker *w, int i, const char *address, hf_client *client)
{
    redisReply *reply;

    snprintf(w->key, sizeof w->key, "bench/%d", i);
    w->client = client;
    w->redis = bench_connect(address);
    reply = bench_reply(w->redis, redisCommand(w->redis, "SCRIPT LOAD %s", COMPARE_AND_DELETE));
    snprintf(w->sha1, sizeof w->sha1, "%s", reply->str);
    freeReplyObject(reply);
    /* Connections, scripts and the keeper are there before it counts. */
    for (size_t side = 0; side < 2; side++)
        run(w, &sides[side], WARM_UP);
}

/* What the server has used of its processor, in nanoseconds. */
static int64_t server_ns(redisContext *redis)
{
    redisReply *reply = bench_reply(redis, redisCommand(redis, "INFO cpu"));
    const char *kernel = strstr(reply->str, "used_cpu_sys:"),
               *user = strstr(reply->str, "used_cpu_user:");

    BENCH_MUST(kernel != NULL && user != NULL, "INFO does not tell the processor time");
    double seconds = strtod(kernel + 13, NULL) + strtod(user + 14, NULL);
    freeReplyObject(reply);
    return (int64_t)(seconds * 1e9);
}

static void print_per_pair(const char *label, const char *side, const char *what, double ns)
{
    char figure[60];
    snprintf(figure, sizeof figure, "%s%s", side, what);
    bench_print_for(label, figure, ns / 1e3, "us");
}

/* Each thread does its share at the same time. */
static void measure(const char *label, struct worker *workers, int threads, const struct side *side)
{
    pthread_barrier_t barrier;
    double pairs = (double)workers[0].pairs * threads;
    int64_t server = server_ns(workers[0].redis);

    pthread_barrier_init(&barrier, NULL, (unsigned)threads + 1);
    for (int i = 0; i < threads; i++) {
        workers[i].side = side;
        workers[i].barrier = &barrier;
        BENCH_MUST(pthread_create(&workers[i].thread, NULL, work, &workers[i]) == 0, "no thread");
    }
    pthread_barrier_wait(&barrier);
    int64_t wall = bench_now_ns(), cpu = bench_cpu_ns();
    pthread_barrier_wait(&barrier);
    wall = bench_now_ns() - wall;
    cpu = bench_cpu_ns() - cpu;
    for (int i = 0; i < threads; i++)
        pthread_join(workers[i].thread, NULL);
    pthread_barrier_destroy(&barrier);
    server = server_ns(workers[0].redis) - server;
    print_per_pair(label, side->name, "", (double)wall / pairs);
    print_per_pair(label, side->name, ", p50",
                   1e3 * bench_p50_us(workers[0].samples, (size_t)workers[0].pairs));
    print_per_pair(label, side->name, ", client's processor", (double)cpu / pairs);
    print_per_pair(label, side->name, ", both processors", (double)(cpu + server) / pairs);
}

int main(int argc, char **argv)
{
    BENCH_MUST(argc >= 5, "usage: redis_pair LABEL ADDRESS THREADS PAIRS [ours|floor]");
    int threads = (int)strtol(argv[3], NULL, 10), pairs = (int)strtol(argv[4], NULL, 10);
    struct worker *workers = calloc((size_t)threads, sizeof *workers);
    hf_client *client = bench_open(argv[2]);

    BENCH_MUST(workers != NULL, "out of memory");
    for (int i = 0; i < threads; i++) {
        workers[i].pairs = pairs / threads;
        workers[i].samples = calloc((size_t)(pairs / threads + WARM_UP), sizeof(int64_t));
        BENCH_MUST(workers[i].samples != NULL, "out of memory");
        prepare(&workers[i], i, argv[2], client);
    }
    for (size_t i = 0; i < 2; i++)
        if (argc < 6 || strcmp(argv[5], sides[i].name) == 0)
            measure(argv[1], workers, threads, &sides[i]);
    for (int i = 0; i < threads; i++) {
        redisFree(workers[i].redis);
        free(workers[i].samples);
    }
    hf_close(client);
    free(workers);
    return 0;
}
