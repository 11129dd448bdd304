/* See report.h. */
#include "base_report.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base_banned.h"

#define LATENCY_ROUNDS 9
#define SLOW_US        50000
#define FAR_APART_MS   60000

void hf__say(const struct hf__report *r, int level, const char *clause, const char *format, ...)
{
    char text[400];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    r->found(level, clause, text, r->arg);
}

void hf__say_clock(const struct hf__report *r, int64_t store_us, int64_t before_us,
                   const char *more)
{
    int64_t after_us = (int64_t)r->env->wall_us(r->env->ctx);
    int64_t apart_ms = (store_us - before_us / 2 - after_us / 2) / 1000;

    hf__say(
        r, apart_ms > FAR_APART_MS || apart_ms < -FAR_APART_MS ? HF__LEVEL_WARNING : HF__LEVEL_FINE,
        "C3", "the server's clock decides; it is %" PRId64 " ms ahead of this machine's%s",
        apart_ms, more);
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

void hf__say_latency(const struct hf__report *r, int (*ask)(void *ctx), void *ctx)
{
    int64_t took_ns[LATENCY_ROUNDS];

    for (int i = 0; i < LATENCY_ROUNDS; i++) {
        int64_t from_ns = hf__now_ns(r->env);
        if (ask(ctx) != 0)
            return;
        took_ns[i] = hf__now_ns(r->env) - from_ns;
    }
    qsort(took_ns, LATENCY_ROUNDS, sizeof took_ns[0], compare);
    int64_t median_us = took_ns[LATENCY_ROUNDS / 2] / 1000;
    hf__say(r, median_us > SLOW_US ? HF__LEVEL_WARNING : HF__LEVEL_FINE, NULL,
            "a round trip takes %" PRId64 " us (median)", median_us);
}

void hf__say_gc(const struct hf__report *r)
{
    hf__say(r, HF__LEVEL_NOTE, NULL,
            "the record of a name stays when nobody uses it any more: run 'holdfast gc' now and "
            "then, by cron for example");
}
