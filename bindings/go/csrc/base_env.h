/* Time and randomness, behind one seam, so that a test can own the clock.
 *
 * A client takes its clock, its timers and its random bits from here and from nowhere else. The
 * keeper is the only part that sleeps on a timer: whoever waits for time is woken by the keeper. */
#ifndef HF_BASE_ENV_H
#define HF_BASE_ENV_H

#include <stddef.h>
#include <stdint.h>

struct hf_env {
    void *ctx;
    /* Nanoseconds that also pass while the machine sleeps (CLOCK_BOOTTIME). */
    int64_t (*now_ns)(void *ctx);
    /* Microseconds since 1970, for generations and for people only; never for a deadline. */
    uint64_t (*wall_us)(void *ctx);
    /* Fills `buf` with bits nobody can guess. 0 or HF_SYSTEM. */
    int (*random)(void *ctx, void *buf, size_t size);
    /* A descriptor that becomes readable (8 bytes) when the moment set by timer_set has come.
     * Close-on-exec, non-blocking; the caller closes it. Negative: HF_SYSTEM. */
    int (*timer_open)(void *ctx);
    /* HF__NEVER disarms; a moment in the past fires at once. */
    void (*timer_set)(void *ctx, int fd, int64_t when_ns);
};

/* The real thing. */
extern const struct hf_env hf__system_env;

static inline int64_t hf__now_ns(const struct hf_env *env)
{
    return env->now_ns(env->ctx);
}

#define HF__NS_PER_MS INT64_C(1000000)

/* A moment that does not come, and a span that does not end. */
#define HF__NEVER INT64_MAX

/* The moment `ms` after another; HF__NEVER if that is too far ahead. */
static inline int64_t hf__moment_after(int64_t now_ns, int64_t ms)
{
    return ms > (INT64_MAX - now_ns) / HF__NS_PER_MS ? HF__NEVER : now_ns + ms * HF__NS_PER_MS;
}

#endif
