/* See fake_clock.h. A timer is an eventfd that the clock writes to. */
#include "lib/fake_clock.h"

#include <poll.h>
#include <sys/eventfd.h>

static int64_t now_ns(void *ctx)
{
    struct fake_clock *clock = ctx;

    pthread_mutex_lock(&clock->mutex);
    int64_t now = clock->now_ns;
    pthread_mutex_unlock(&clock->mutex);
    return now;
}

static uint64_t wall_us(void *ctx)
{
    return (uint64_t)now_ns(ctx) / 1000;
}

static int fill_random(void *ctx, void *buf, size_t size)
{
    (void)ctx;
    return hf__system_env.random(NULL, buf, size);
}

static int timer_open(void *ctx)
{
    struct fake_clock *clock = ctx;
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

    pthread_mutex_lock(&clock->mutex);
    clock->timers[clock->timer_count].fd = fd;
    clock->timers[clock->timer_count++].when_ns = INT64_MAX;
    pthread_mutex_unlock(&clock->mutex);
    return fd;
}

static void fire_due(struct fake_clock *clock)
{
    for (int i = 0; i < clock->timer_count; i++) {
        if (clock->timers[i].when_ns > clock->now_ns)
            continue;
        clock->timers[i].when_ns = INT64_MAX;
        clock->timers[i].fired = eventfd_write(clock->timers[i].fd, 1) == 0;
    }
}

static void timer_set(void *ctx, int fd, int64_t when_ns)
{
    struct fake_clock *clock = ctx;

    pthread_mutex_lock(&clock->mutex);
    for (int i = 0; i < clock->timer_count; i++) {
        if (clock->timers[i].fd == fd) {
            clock->timers[i].when_ns = when_ns;
            clock->timers[i].fired = false;
        }
    }
    fire_due(clock);
    pthread_mutex_unlock(&clock->mutex);
}

void fake_clock_init(struct fake_clock *clock)
{
    *clock = (struct fake_clock){.env = {.ctx = clock,
                                         .now_ns = now_ns,
                                         .wall_us = wall_us,
                                         .random = fill_random,
                                         .timer_open = timer_open,
                                         .timer_set = timer_set},
                                 .now_ns = INT64_C(1000000) * HF__NS_PER_MS};
    pthread_mutex_init(&clock->mutex, NULL);
}

void fake_clock_advance(struct fake_clock *clock, int64_t ms)
{
    pthread_mutex_lock(&clock->mutex);
    clock->now_ns += ms * HF__NS_PER_MS;
    fire_due(clock);
    pthread_mutex_unlock(&clock->mutex);
}

static bool is_looked_at(struct fake_clock *clock)
{
    bool fired = false;

    pthread_mutex_lock(&clock->mutex);
    for (int i = 0; i < clock->timer_count; i++)
        fired |= clock->timers[i].fired;
    pthread_mutex_unlock(&clock->mutex);
    return !fired;
}

/* Whoever closes does not look any more. */
static void let_look(struct fake_clock *clock)
{
    for (int patience = 0; patience < 1000 && !is_looked_at(clock); patience++)
        poll(NULL, 0, 1);
}

int fake_clock_run(struct fake_clock *clock, int64_t limit_ms, int (*done)(void *), void *arg)
{
    for (int64_t passed = 0; passed < limit_ms; passed += 25) {
        for (int patience = 0; patience < 2; patience++) {
            if (done(arg))
                return 1;
            poll(NULL, 0, 1);
        }
        fake_clock_advance(clock, 25);
        let_look(clock);
    }
    return done(arg);
}

int fake_clock_stand(int (*done)(void *), void *arg)
{
    for (int patience = 0; patience < 20000; patience++) {
        if (done(arg))
            return 1;
        poll(NULL, 0, 1);
    }
    return 0;
}
