/* A clock that stands still until the test moves it. Timers fire when their moment is passed. */
#ifndef TESTS_LIB_FAKE_CLOCK_H
#define TESTS_LIB_FAKE_CLOCK_H

#include <pthread.h>
#include <stdbool.h>

#include "base/env.h"

struct fake_clock {
    struct hf_env env;
    pthread_mutex_t mutex;
    int64_t now_ns;
    struct {
        int fd;
        int64_t when_ns;
        bool fired; /* and whoever sleeps on it has not set it again yet */
    } timers[64];
    int timer_count;
};

void fake_clock_init(struct fake_clock *clock);
void fake_clock_advance(struct fake_clock *clock, int64_t ms);

/* Moves on in small steps until `done` says so; false after `limit_ms` of this clock. A step is not
 * taken before everybody whose timer fired has looked at it, and others get a little real time. */
int fake_clock_run(struct fake_clock *clock, int64_t limit_ms, int (*done)(void *), void *arg);

/* Stands still until `done` says so; false after 20 s of real time. */
int fake_clock_stand(int (*done)(void *), void *arg);

#endif
