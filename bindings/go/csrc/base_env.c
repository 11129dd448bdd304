/* The machine's own clock, timers and randomness. */
#include "base_env.h"

#include <errno.h>
#include <sys/random.h>
#include <sys/timerfd.h>
#include <time.h>

#include "holdfast.h"

#include "base_banned.h"

static int64_t now_ns(void *ctx)
{
    struct timespec t;

    (void)ctx;
    clock_gettime(CLOCK_BOOTTIME, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static uint64_t wall_us(void *ctx)
{
    struct timespec t;

    (void)ctx;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/* Straight from the kernel each time: a buffer in user space would be the same in a forked
 * child. */
static int fill_random(void *ctx, void *buf, size_t size)
{
    unsigned char *at = buf;

    (void)ctx;
    while (size > 0) {
        ssize_t n = getrandom(at, size, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return HF_SYSTEM;
        at += n;
        size -= (size_t)n;
    }
    return 0;
}

static int timer_open(void *ctx)
{
    (void)ctx;
    int fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    return fd < 0 ? HF_SYSTEM : fd;
}

static void timer_set(void *ctx, int fd, int64_t when_ns)
{
    struct itimerspec spec = {0};

    (void)ctx;
    if (when_ns != INT64_MAX) {
        if (when_ns < 1)
            when_ns = 1; /* zero would disarm */
        spec.it_value.tv_sec = when_ns / 1000000000;
        spec.it_value.tv_nsec = when_ns % 1000000000;
    }
    timerfd_settime(fd, TFD_TIMER_ABSTIME, &spec, NULL);
}

const struct hf_env hf__system_env = {
    .now_ns = now_ns,
    .wall_us = wall_us,
    .random = fill_random,
    .timer_open = timer_open,
    .timer_set = timer_set,
};
