/* Two processes that hand one lock to each other, against two that do the same transactions bare
 * and tell each other by a unix datagram.
 *
 *     handover DIRECTORY ROUNDS HANDOVERS
 *
 * Ours: whoever holds waits until the other one is queued, so that every release is a hand-over.
 * One hand-over is then: an attempt that queues, a release that lets the other in, and a wake-up.
 * The floor of it: the transactions of one acquire and release, and one datagram. */
#include <holdfast.h>
#include <string.h>

#include "tape.h"
#include "two.h"

struct plan {
    const char *url, *path;
    int handovers; /* by each of the two */
    struct learnt learnt;
};

static void hand_over(const void *arg, int first, int peer)
{
    const struct plan *plan = arg;
    struct waiting waiting = {.peer = peer};
    hf_options opt = HF_OPTIONS_INIT;
    hf_client *client;
    hf_lock *lock;
    hf_error err;
    int64_t start = 0;

    opt.on_wait = tell_of_wait;
    opt.arg = &waiting;
    BENCH_MUST(hf_open(plan->url, NULL, &client, &err) == HF_OK, "%s", err.text);
    if (!first)
        be_told(peer); /* that the other one is inside */
    for (int i = 0; i < plan->handovers; i++) {
        waiting.told = 0;
        BENCH_MUST(hf_acquire(client, "bench", HF_NTS, &opt, &lock, &err) == HF_OK, "%s", err.text);
        if (first && i == 0) {
            tell(peer);
            be_told(peer);
            start = bench_now_ns();
        } else if (first || i < plan->handovers - 1) {
            be_told(peer); /* that the other one is queued */
        }
        BENCH_MUST(hf_lock_release(lock, &err) == HF_OK, "%s", err.text);
    }
    if (first)
        bench_print("hand-over: ours",
                    (double)(bench_now_ns() - start) / (2.0 * plan->handovers - 1) / 1e3, "us");
    hf_close(client);
}

static void play_and_tell(const void *arg, int first, int peer)
{
    const struct plan *plan = arg;
    struct player player;
    player_open(&player, plan->path, &plan->learnt);
    if (first)
        be_told(peer); /* that the other one is ready */
    else
        tell(peer);
    int64_t start = bench_now_ns();
    for (int i = 0; i < plan->handovers; i++) {
        if (!first)
            be_told(peer);
        player_play(&player, first);
        tell(peer);
        if (first)
            be_told(peer);
    }
    if (first)
        bench_print("hand-over: floor",
                    (double)(bench_now_ns() - start) / (2.0 * plan->handovers) / 1e3, "us");
    player_close(&player);
}

int main(int argc, char **argv)
{
    BENCH_MUST(argc == 4, "usage: handover DIRECTORY ROUNDS HANDOVERS");
    int rounds = (int)strtol(argv[2], NULL, 10);
    char ours[4096], floor[4096];
    struct plan plan = {.url = ours, .path = floor + strlen("sqlite:")};

    plan.handovers = (int)strtol(argv[3], NULL, 10) / 2;
    snprintf(ours, sizeof ours, "sqlite:%s/handover.db", argv[1]);
    snprintf(floor, sizeof floor, "sqlite:%s/handover-floor.db", argv[1]);
    tape_learn(floor, &plan.learnt);
    for (int i = 0; i < rounds; i++) {
        run_two(&plan, hand_over);
        run_two(&plan, play_and_tell);
    }
    return 0;
}
