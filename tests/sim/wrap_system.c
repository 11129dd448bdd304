/* Clocks, random bits, the process and its memory that a fork empties. */
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "world.h"

#define PAGES_MAX  256
#define WALL_START INT64_C(1700000000000000000) /* what the wall shows when a world begins */

int __real_clock_gettime(clockid_t clock, struct timespec *ret_time);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ret_time);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ret_time)
{
    if (sim.self == NULL)
        return __real_clock_gettime(clock, ret_time);
    int64_t now_ns = sim_local_ns(sim.self->process);
    if (clock == CLOCK_REALTIME)
        now_ns += WALL_START - sim.self->process->base_ns;
    ret_time->tv_sec = now_ns / 1000000000;
    ret_time->tv_nsec = now_ns % 1000000000;
    return 0;
}

int __wrap_nanosleep(const struct timespec *span, struct timespec *ret_left);
int __wrap_nanosleep(const struct timespec *span, struct timespec *ret_left)
{
    (void)ret_left;
    sim_sleep((int64_t)span->tv_sec * 1000000000 + span->tv_nsec);
    return 0;
}

int __wrap_usleep(useconds_t us);
int __wrap_usleep(useconds_t us)
{
    sim_sleep((int64_t)us * SIM_US);
    return 0;
}

int __wrap_sched_yield(void);
int __wrap_sched_yield(void)
{
    sim_pause();
    return 0;
}

ssize_t __wrap_getrandom(void *buf, size_t size, unsigned flags);
ssize_t __wrap_getrandom(void *buf, size_t size, unsigned flags)
{
    (void)flags;
    random_fill(&sim.bits, buf, size);
    return (ssize_t)size;
}

pid_t __real_getpid(void);
pid_t __wrap_getpid(void);
pid_t __wrap_getpid(void)
{
    if (sim.self == NULL)
        return __real_getpid();
    return sim.self->process->pid + (sim.self->process->is_child ? 10000 : 0);
}

/* Memory that a child finds empty. ------------------------------------------------------------- */
static struct {
    struct {
        char *at;
        size_t size;
        struct process *process;
    } pages[PAGES_MAX];
    size_t count;
    char *saved[PAGES_MAX];
} wiped;

int __real_madvise(void *at, size_t size, int advice);
int __wrap_madvise(void *at, size_t size, int advice);
int __wrap_madvise(void *at, size_t size, int advice)
{
    if (advice != MADV_WIPEONFORK || sim.self == NULL)
        return __real_madvise(at, size, advice);
    if (wiped.count == PAGES_MAX)
        sim_fail("too many pages to be wiped");
    wiped.pages[wiped.count].at = at;
    wiped.pages[wiped.count].size = size;
    wiped.pages[wiped.count++].process = sim.self->process;
    return 0;
}

int __real_munmap(void *at, size_t size);
int __wrap_munmap(void *at, size_t size);
int __wrap_munmap(void *at, size_t size)
{
    for (size_t i = 0; i < wiped.count; i++) {
        if (wiped.pages[i].at == at)
            wiped.pages[i] = wiped.pages[--wiped.count];
    }
    return __real_munmap(at, size);
}

void sim_child_begin(void)
{
    struct process *p = sim.self->process;

    for (size_t i = 0; i < wiped.count; i++) {
        if (wiped.pages[i].process != p)
            continue;
        wiped.saved[i] = sim_alloc(wiped.pages[i].size);
        memcpy(wiped.saved[i], wiped.pages[i].at, wiped.pages[i].size);
        memset(wiped.pages[i].at, 0, wiped.pages[i].size);
    }
    p->is_child = true;
}

void sim_child_end(void)
{
    struct process *p = sim.self->process;

    p->is_child = false;
    for (size_t i = 0; i < wiped.count; i++) {
        if (wiped.pages[i].process == p)
            memcpy(wiped.pages[i].at, wiped.saved[i], wiped.pages[i].size);
    }
}
