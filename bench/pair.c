/* One acquire and its release on sqlite:, against the bare SQLite transactions that they make.
 *
 *     pair DIRECTORY ROUNDS PAIRS [ours|floor]
 *
 * The statements are recorded from a pair of ours and played bare, on a database of their own. With
 * `ours` or `floor` only that side runs, for counting its instructions. */
#include <holdfast.h>
#include <string.h>

#include "bench.h"
#include "tape.h"

struct sides {
    hf_client *client;
    struct player player;
};

static void run_ours(struct sides *sides, int pairs)
{
    for (int i = 0; i < pairs; i++)
        bench_pair(sides->client);
}

static void run_floor(struct sides *sides, int pairs)
{
    for (int i = 0; i < pairs; i++)
        player_play(&sides->player, i & 1);
}

/* The time of the wall, and that of the processor, which other programs disturb less. */
static void measure(struct sides *sides, void (*run)(struct sides *, int), int pairs,
                    const char *side)
{
    char figure[40];
    int64_t wall = bench_now_ns(), cpu = bench_cpu_ns();

    run(sides, pairs);
    cpu = bench_cpu_ns() - cpu;
    wall = bench_now_ns() - wall;
    snprintf(figure, sizeof figure, "pair: %s", side);
    bench_print(figure, (double)wall / pairs / 1e3, "us");
    snprintf(figure, sizeof figure, "pair: %s, processor", side);
    bench_print(figure, (double)cpu / pairs / 1e3, "us");
}

int main(int argc, char **argv)
{
    BENCH_MUST(argc >= 4, "usage: pair DIRECTORY ROUNDS PAIRS [ours|floor]");
    int rounds = (int)strtol(argv[2], NULL, 10), pairs = (int)strtol(argv[3], NULL, 10);
    const char *only = argc > 4 ? argv[4] : "";
    char url[4096];
    struct learnt learnt = {0};
    struct sides sides = {0};
    hf_error err;

    snprintf(url, sizeof url, "sqlite:%s/floor.db", argv[1]);
    tape_learn(url, &learnt);
    player_open(&sides.player, url + strlen("sqlite:"), &learnt);
    snprintf(url, sizeof url, "sqlite:%s/ours.db", argv[1]);
    BENCH_MUST(hf_open(url, NULL, &sides.client, &err) == HF_OK, "%s", err.text);
    bench_pair(sides.client);

    bench_print("pair: statements", (double)sides.player.count, "");
    for (int i = 0; i < rounds; i++) {
        if (strcmp(only, "floor") != 0)
            measure(&sides, run_ours, pairs, "ours");
        if (strcmp(only, "ours") != 0)
            measure(&sides, run_floor, pairs, "floor");
    }
    hf_close(sides.client);
    player_close(&sides.player);
    return 0;
}
