/* Conditions wait on CLOCK_MONOTONIC, as none waits on CLOCK_BOOTTIME: it stands still while the
 * machine is suspended. So no wait is trusted to end in time; the deadline is looked at on our own
 * clock, again after each wait, and none is longer than LOOK_MS. */
#include "util/patience.h"

#include <time.h>

#include "util/banned.h"

#define LOOK_MS       1000
#define PAUSE_MIN_MS  25
#define DOUBLINGS_MAX 20

void hf__cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t attr;

    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &attr);
    pthread_condattr_destroy(&attr);
}

bool hf__cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex, const struct hf_env *env,
                   int64_t deadline_ns)
{
    int64_t left_ns = deadline_ns - hf__now_ns(env);
    struct timespec until;

    if (left_ns <= 0)
        return false;
    if (left_ns > LOOK_MS * HF__NS_PER_MS)
        left_ns = LOOK_MS * HF__NS_PER_MS;
    clock_gettime(CLOCK_MONOTONIC, &until);
    left_ns += until.tv_nsec;
    until.tv_sec += left_ns / 1000000000;
    until.tv_nsec = left_ns % 1000000000;
    pthread_cond_timedwait(cond, mutex, &until);
    return true;
}

int64_t hf__backoff_ns(const struct hf_env *env, unsigned failures, int64_t most_ms)
{
    int64_t ms = (int64_t)PAUSE_MIN_MS << (failures < DOUBLINGS_MAX ? failures : DOUBLINGS_MAX);
    uint32_t jitter = 0;

    if (ms > most_ms)
        ms = most_ms;
    env->random(env->ctx, &jitter, sizeof jitter);
    return (ms / 2 + jitter % ms) * HF__NS_PER_MS;
}
