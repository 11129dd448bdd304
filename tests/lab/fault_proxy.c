/* The proxies between a group of workers and the servers of a store.
 *
 *     fault_proxy HOST:PORT...        prints their ports, in a line
 *
 * Then it does what it is told by its standard input, for one of them or for all, and says "done":
 *
 *     MODE [NUMBER [WHICH]]           pass, delay, c2s_hole, s2c_hole, hole, rst, end, refuse, split, cut */
#include <stdio.h>
#include <string.h>

#include "lib/proxy.h"

#define PROXIES_MAX 8

static const char *const modes[] = {
    [PROXY_PASS] = "pass",         [PROXY_DELAY] = "delay",   [PROXY_C2S_HOLE] = "c2s_hole",
    [PROXY_S2C_HOLE] = "s2c_hole", [PROXY_HOLE] = "hole",     [PROXY_RST] = "rst",
    [PROXY_END] = "end",           [PROXY_REFUSE] = "refuse", [PROXY_SPLIT] = "split",
    [PROXY_CUT] = "cut",
};

int main(int argc, char **argv)
{
    struct proxy *proxies[PROXIES_MAX];
    int count = argc - 1 < PROXIES_MAX ? argc - 1 : PROXIES_MAX, which;
    char line[128], word[32];
    long long number;

    for (int i = 0; i < count; i++) {
        proxies[i] = proxy_start(argv[i + 1]);
        printf("%s%d", i > 0 ? " " : "", proxy_port(proxies[i]));
    }
    puts("");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin) != NULL) {
        size_t mode = 0;
        number = 0;
        which = -1;
        if (sscanf(line, "%31s %lld %d", word, &number, &which) < 1)
            continue;
        while (mode < sizeof modes / sizeof *modes && strcmp(modes[mode], word) != 0)
            mode++;
        if (mode == sizeof modes / sizeof *modes)
            return fprintf(stderr, "fault_proxy: there is no mode '%s'\n", word), 64;
        for (int i = 0; i < count; i++) {
            if (which < 0 || which == i)
                proxy_set(proxies[i], (enum proxy_mode)mode, number);
        }
        puts("done");
        fflush(stdout);
    }
    return 0;
}
