/* LD_PRELOAD: puts clocks of a process off by the milliseconds in a file (an int64_t, mapped, so that a
 * test can change it while the process runs).
 *
 *     HOLDFAST_TEST_CLOCK        the wall clock: a server whose clock is wrong, or steps
 *     HOLDFAST_TEST_MOMENT       the same, but it stands still, at so many microseconds since 1970
 *     HOLDFAST_TEST_MONOTONIC    CLOCK_MONOTONIC: set back by the time for which a process was stopped,
 *                                it has slept as a suspended machine does
 *
 * Other clocks are left alone; so is a process that knows none of the variables. */
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

static const volatile int64_t *wall_ms, *wall_stands_us, *monotonic_ms;

static const int64_t *map_number(const char *variable)
{
    const char *path = getenv(variable);
    int fd = path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;

    if (fd < 0)
        return NULL;
    void *map = mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    return map != MAP_FAILED ? map : NULL;
}

__attribute__((constructor)) static void map_numbers(void)
{
    wall_ms = map_number("HOLDFAST_TEST_CLOCK");
    wall_stands_us = map_number("HOLDFAST_TEST_MOMENT");
    monotonic_ms = map_number("HOLDFAST_TEST_MONOTONIC");
}

EXPORT int clock_gettime(clockid_t id, struct timespec *ts)
{
    int r = (int)syscall(SYS_clock_gettime, id, ts);
    const volatile int64_t *offset_ms = NULL;
    bool wall = id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE;

    if (r == 0 && wall && wall_stands_us != NULL) {
        int64_t us = *wall_stands_us;
        *ts = (struct timespec){.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};
        return 0;
    }
    if (wall)
        offset_ms = wall_ms;
    else if (id == CLOCK_MONOTONIC || id == CLOCK_MONOTONIC_COARSE)
        offset_ms = monotonic_ms;
    if (r == 0 && offset_ms != NULL) {
        int64_t ns = ts->tv_nsec + *offset_ms % 1000 * 1000000;
        ts->tv_sec += *offset_ms / 1000 + ns / 1000000000;
        ts->tv_nsec = ns % 1000000000;
        if (ts->tv_nsec < 0) {
            ts->tv_nsec += 1000000000;
            ts->tv_sec--;
        }
    }
    return r;
}

EXPORT int gettimeofday(struct timeval *restrict tv, void *restrict tz)
{
    struct timespec ts;

    (void)tz;
    if (clock_gettime(CLOCK_REALTIME, &ts) != 0)
        return -1;
    *tv = (struct timeval){.tv_sec = ts.tv_sec, .tv_usec = ts.tv_nsec / 1000};
    return 0;
}
