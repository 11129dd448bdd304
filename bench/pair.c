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

static double ours_us(hf_client *client, int pairs)
{
    int64_t start = bench_now_ns();
    for (int i = 0; i < pairs; i++)
        bench_pair(client);
    return (double)(bench_now_ns() - start) / pairs / 1e3;
}

static double floor_us(struct player *player, int pairs)
{
    int64_t start = bench_now_ns();
    for (int i = 0; i < pairs; i++)
        player_play(player, i & 1);
    return (double)(bench_now_ns() - start) / pairs / 1e3;
}

int main(int argc, char **argv)
{
    BENCH_MUST(argc >= 4, "usage: pair DIRECTORY ROUNDS PAIRS [ours|floor]");
    int rounds = (int)strtol(argv[2], NULL, 10), pairs = (int)strtol(argv[3], NULL, 10);
    const char *only = argc > 4 ? argv[4] : "";
    char url[4096];
    struct learnt learnt = {0};
    struct player player = {0};
    hf_client *client;
    hf_error err;

    snprintf(url, sizeof url, "sqlite:%s/floor.db", argv[1]);
    tape_learn(url, &learnt);
    player_open(&player, url + strlen("sqlite:"), &learnt);
    snprintf(url, sizeof url, "sqlite:%s/ours.db", argv[1]);
    BENCH_MUST(hf_open(url, NULL, &client, &err) == HF_OK, "%s", err.text);
    bench_pair(client);

    bench_print("pair: statements", (double)player.count, "");
    for (int i = 0; i < rounds; i++) {
        if (strcmp(only, "floor") != 0)
            bench_print("pair: ours", ours_us(client, pairs), "us");
        if (strcmp(only, "ours") != 0)
            bench_print("pair: floor", floor_us(&player, pairs), "us");
    }
    hf_close(client);
    player_close(&player);
    return 0;
}
