/* What the benchmarks share: the clock, and how a series of rounds is printed.
 *
 * A benchmark measures ours and its floor in turns, round by round in one run, so that whatever
 * else the machine does meets both. It prints one JSON object per line on standard output;
 * bench/run makes medians and ratios of them. */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static inline int64_t bench_clock_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static inline int64_t bench_now_ns(void)
{
    return bench_clock_ns(CLOCK_MONOTONIC);
}

/* What all threads of this process have used. */
static inline int64_t bench_cpu_ns(void)
{
    return bench_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

/* One figure of one round. */
static inline void bench_print(const char *figure, double value, const char *unit)
{
    printf("{\"figure\": \"%s\", \"value\": %.3f, \"unit\": \"%s\"}\n", figure, value, unit);
    fflush(stdout);
}

static inline int bench_compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* The median, so that one in which somebody else had the processor does not count. Sorts them. */
static inline double bench_p50_us(int64_t *samples, size_t count)
{
    qsort(samples, count, sizeof *samples, bench_compare);
    return (double)samples[count / 2] / 1e3;
}

#define BENCH_MUST(condition, ...)                          \
    do {                                                    \
        if (!(condition)) {                                 \
            fprintf(stderr, "%s:%d: ", __FILE__, __LINE__); \
            fprintf(stderr, __VA_ARGS__);                   \
            fputc('\n', stderr);                            \
            exit(1);                                        \
        }                                                   \
    } while (0)

#endif
