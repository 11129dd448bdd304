/* Two processes that hand one lock to each other through Redis, against the bare delivery of one
 * message: PUBLISH by one, received by the other.
 *
 *     redis_handover LABEL ADDRESS HANDOVERS
 *
 * Ours counts from the call of hf_lock_release() in one process to the return of hf_acquire() in
 * the other, who was queued before; the floor from before the PUBLISH to when the subscriber has
 * it. */
#include <stdatomic.h>
#include <sys/mman.h>

#include "redis.h"
#include "two.h"

#define CHANNEL "0123456789abcdef0123456789abcdef"

/* Seen by both processes. */
struct shared {
    _Atomic int64_t since_ns;
    _Atomic size_t count;
    int64_t samples[];
};

struct plan {
    const char *address;
    int handovers; /* by each of the two */
    struct shared *shared;
};

static void sample(struct shared *shared)
{
    shared->samples[shared->count++] = bench_now_ns() - shared->since_ns;
}

static void hand_over(const void *arg, int first, int peer)
{
    const struct plan *plan = arg;
    struct waiting waiting = {.peer = peer};
    hf_options opt = HF_OPTIONS_INIT;
    hf_client *client = bench_open(plan->address);
    hf_lock *lock;
    hf_error err;

    opt.on_wait = tell_of_wait;
    opt.arg = &waiting;
    if (!first)
        be_told(peer); /* that the other one is inside */
    for (int i = 0; i < plan->handovers; i++) {
        waiting.told = 0;
        BENCH_MUST(hf_acquire(client, "bench", HF_NTS, &opt, &lock, &err) == HF_OK, "%s", err.text);
        if (!first || i > 0)
            sample(plan->shared);
        tell(peer); /* that we are inside */
        if (first || i < plan->handovers - 1)
            be_told(peer); /* that the other one is queued */
        plan->shared->since_ns = bench_now_ns();
        BENCH_MUST(hf_lock_release(lock, &err) == HF_OK, "%s", err.text);
        if (first || i < plan->handovers - 1)
            be_told(peer); /* that the other one is inside */
    }
    hf_close(client);
}

/* The first publishes, the other subscribes and says when it is ready for the next. */
static void deliver(const void *arg, int first, int peer)
{
    const struct plan *plan = arg;
    redisContext *redis = bench_connect(plan->address);
    void *reply = NULL;

    if (!first)
        freeReplyObject(bench_reply(redis, redisCommand(redis, "SUBSCRIBE " CHANNEL)));
    for (int i = 0; i < 2 * plan->handovers; i++) {
        if (first) {
            be_told(peer);
            plan->shared->since_ns = bench_now_ns();
            freeReplyObject(
                bench_reply(redis, redisCommand(redis, "PUBLISH " CHANNEL " " CHANNEL)));
            continue;
        }
        tell(peer);
        BENCH_MUST(redisGetReply(redis, &reply) == REDIS_OK, "%s", redis->errstr);
        sample(plan->shared);
        freeReplyObject(reply);
    }
    redisFree(redis);
}

static void measure(const char *label, const char *what, const struct plan *plan, two_role *play)
{
    plan->shared->count = 0;
    run_two(plan, play);
    bench_print_for(label, what, bench_p50_us(plan->shared->samples, plan->shared->count), "us");
}

int main(int argc, char **argv)
{
    BENCH_MUST(argc == 4, "usage: redis_handover LABEL ADDRESS HANDOVERS");
    struct plan plan = {.address = argv[2], .handovers = (int)strtol(argv[3], NULL, 10) / 2};
    size_t size = sizeof *plan.shared + 2 * (size_t)plan.handovers * sizeof(int64_t);

    plan.shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    BENCH_MUST(plan.shared != MAP_FAILED, "out of memory");
    measure(argv[1], "ours", &plan, hand_over);
    measure(argv[1], "floor", &plan, deliver);
    return 0;
}
