/* Two processes that hand one lock to each other through Redis, against the bare delivery of one
 * message: PUBLISH by one, received by the other.
 *
 *     redis_handover LABEL ADDRESS HANDOVERS
 *
 * Ours counts from the call of hf_lock_release() in one process to the return of hf_acquire() in
 * the other, who was queued before; the floor from before the PUBLISH to when the subscriber has
 * it. */
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "redis.h"

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

typedef void role(const struct plan *plan, int first, int peer);

static void tell(int peer)
{
    BENCH_MUST(send(peer, "", 1, 0) == 1, "send failed");
}

static void be_told(int peer)
{
    char byte;
    BENCH_MUST(recv(peer, &byte, 1, 0) == 1, "recv failed");
}

static void sample(struct shared *shared)
{
    shared->samples[shared->count++] = bench_now_ns() - shared->since_ns;
}

struct waiting {
    int peer, told;
};

static void on_wait(size_t position, void *arg)
{
    struct waiting *waiting = arg;
    (void)position;
    if (!waiting->told)
        tell(waiting->peer);
    waiting->told = 1;
}

static void hand_over(const struct plan *plan, int first, int peer)
{
    struct waiting waiting = {.peer = peer};
    hf_options opt = HF_OPTIONS_INIT;
    hf_client *client = bench_open(plan->address);
    hf_lock *lock;
    hf_error err;

    opt.on_wait = on_wait;
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
static void deliver(const struct plan *plan, int first, int peer)
{
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

static void run_two(const char *label, const char *what, const struct plan *plan, role *play)
{
    int ends[2];

    plan->shared->count = 0;
    BENCH_MUST(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends) == 0, "socketpair failed");
    for (int i = 0; i < 2; i++) {
        pid_t pid = fork();
        BENCH_MUST(pid >= 0, "fork failed");
        if (pid == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL); /* if the other one fails */
            play(plan, i == 0, ends[i]);
            exit(0);
        }
    }
    for (int i = 0; i < 2; i++) {
        int status;
        BENCH_MUST(wait(&status) > 0 && status == 0, "one of the two failed");
    }
    close(ends[0]);
    close(ends[1]);
    bench_print_for(label, what, bench_p50_us(plan->shared->samples, plan->shared->count), "us");
}

int main(int argc, char **argv)
{
    BENCH_MUST(argc == 4, "usage: redis_handover LABEL ADDRESS HANDOVERS");
    struct plan plan = {.address = argv[2], .handovers = (int)strtol(argv[3], NULL, 10) / 2};
    size_t size = sizeof *plan.shared + 2 * (size_t)plan.handovers * sizeof(int64_t);

    plan.shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    BENCH_MUST(plan.shared != MAP_FAILED, "out of memory");
    run_two(argv[1], "ours", &plan, hand_over);
    run_two(argv[1], "floor", &plan, deliver);
    return 0;
}
