/* `holdfast run x -- true` against `flock FILE true` and `true` alone, in turns.
 *
 *     spawn DIRECTORY ROUNDS CALLS HOLDFAST */
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>

#include "bench.h"

static double us_per_call(const char *const command[], int calls)
{
    int64_t start = bench_now_ns();
    for (int i = 0; i < calls; i++) {
        pid_t pid;
        int status;
        BENCH_MUST(posix_spawnp(&pid, command[0], NULL, NULL, (char *const *)command, environ) == 0,
                   "cannot start %s", command[0]);
        BENCH_MUST(waitpid(pid, &status, 0) == pid && status == 0, "%s failed", command[0]);
    }
    return (double)(bench_now_ns() - start) / calls / 1e3;
}

int main(int argc, char **argv)
{
    BENCH_MUST(argc == 5, "usage: spawn DIRECTORY ROUNDS CALLS HOLDFAST");
    int rounds = (int)strtol(argv[2], NULL, 10), calls = (int)strtol(argv[3], NULL, 10);
    char url[4096], file[4096];
    snprintf(url, sizeof url, "sqlite:%s/run.db", argv[1]);
    snprintf(file, sizeof file, "%s/flock", argv[1]);

    const char *ours[] = {argv[4], "run", "-u", url, "x", "--", "true", NULL};
    const char *flock[] = {"flock", file, "true", NULL};
    const char *bare[] = {"true", NULL};
    us_per_call(ours, 2);
    us_per_call(flock, 2);
    for (int i = 0; i < rounds; i++) {
        bench_print("run: ours", us_per_call(ours, calls), "us");
        bench_print("run: flock", us_per_call(flock, calls), "us");
        bench_print("run: true alone", us_per_call(bare, calls), "us");
    }
    return 0;
}
