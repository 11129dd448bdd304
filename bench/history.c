/* bench_history URL [ROUNDS [PAIRS]]: what a trail costs. Acquire and release on the store as it is and with
 * history=100, in turns, PAIRS of them a round; then the ratio of the medians, in time and in the processor
 * time of this process (on sqlite: and memory:// that is the store's as well). */
#include <string.h>

#include "bench.h"
#include "holdfast.h"

static hf_client *open_url(const char *url, const char *option)
{
    char text[2000];
    hf_client *client;
    hf_error err;

    snprintf(text, sizeof text, "%s%s%s", url,
             option[0] == '\0'  ? ""
             : strchr(url, '?') ? "&"
                                : "?",
             option);
    BENCH_MUST(hf_open(text, NULL, &client, &err) == HF_OK, "open %s: %s", text, err.text);
    return client;
}

/* One round; the samples are of one pair each. */
static void measure(hf_client *client, const char *name, int pairs, int64_t *ret_ns,
                    int64_t *ret_cpu_ns)
{
    hf_options opt = HF_OPTIONS_INIT;
    hf_error err;
    hf_lock *lock;
    int64_t *samples = calloc((size_t)pairs, sizeof *samples);

    BENCH_MUST(samples != NULL, "out of memory");
    int64_t cpu_ns = bench_cpu_ns();
    for (int i = 0; i < pairs; i++) {
        int64_t start = bench_now_ns();
        BENCH_MUST(hf_acquire(client, name, HF_NTS, &opt, &lock, &err) == HF_OK, "%s", err.text);
        BENCH_MUST(hf_lock_release(lock, &err) == HF_OK, "%s", err.text);
        samples[i] = bench_now_ns() - start;
    }
    *ret_cpu_ns = (bench_cpu_ns() - cpu_ns) / pairs;
    *ret_ns = (int64_t)(bench_p50_us(samples, (size_t)pairs) * 1e3);
    free(samples);
}

int main(int argc, char **argv)
{
    int rounds = argc > 2 ? atoi(argv[2]) : 21, pairs = argc > 3 ? atoi(argv[3]) : 500;

    BENCH_MUST(argc > 1 && rounds > 0 && pairs > 0, "usage: bench_history URL [ROUNDS [PAIRS]]");
    hf_client *clients[] = {open_url(argv[1], ""), open_url(argv[1], "history=100")};
    static const char *const names[] = {"bench/plain", "bench/trail"};
    int64_t *ns[2], *cpu_ns[2], unused;
    for (int k = 0; k < 2; k++) {
        ns[k] = calloc((size_t)rounds, sizeof(int64_t));
        cpu_ns[k] = calloc((size_t)rounds, sizeof(int64_t));
        BENCH_MUST(ns[k] != NULL && cpu_ns[k] != NULL, "out of memory");
        measure(clients[k], names[k], pairs, &unused, &unused);
    }
    for (int i = 0; i < rounds; i++) {
        for (int k = 0; k < 2; k++)
            measure(clients[k], names[k], pairs, &ns[k][i], &cpu_ns[k][i]);
    }
    double us[2], cpu_us[2];
    for (int k = 0; k < 2; k++) {
        us[k] = bench_p50_us(ns[k], (size_t)rounds);
        cpu_us[k] = bench_p50_us(cpu_ns[k], (size_t)rounds);
        hf_close(clients[k]);
        free(ns[k]);
        free(cpu_ns[k]);
    }
    printf("plain %.1f us (processor %.1f), with a trail %.1f us (%.1f): ratio %.3f (%.3f)\n",
           us[0], cpu_us[0], us[1], cpu_us[1], us[1] / us[0], cpu_us[1] / cpu_us[0]);
    return 0;
}
