/* LD_PRELOAD: puts the wall clock of a server off by the milliseconds in the file named by
 * HOLDFAST_TEST_CLOCK (an int64_t, mapped, so that a test can change it while the server runs).
 * Clocks that count from boot are left alone. */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

static const volatile int64_t *offset_ms;

__attribute__((constructor)) static void map_offset(void)
{
    const char *path = getenv("HOLDFAST_TEST_CLOCK");
    int fd = path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;

    if (fd < 0)
        return;
    void *map = mmap(NULL, sizeof *offset_ms, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (map != MAP_FAILED)
        offset_ms = map;
}

EXPORT int clock_gettime(clockid_t id, struct timespec *ts)
{
    int r = (int)syscall(SYS_clock_gettime, id, ts);

    if (r == 0 && offset_ms != NULL && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) {
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
