/* Conditions wait on CLOCK_MONOTONIC, as none waits on CLOCK_BOOTTIME: it stands still while the
 * machine is suspended. So no wait is trusted to end in time; the deadline is looked at on our own
 * clock, again after each wait, and none is longer than LOOK_MS. */
#include "base_thread.h"

#include <signal.h>
#include <time.h>

#include "holdfast.h"

#include "base_banned.h"

#define LOOK_MS 1000

int hf__thread_start(pthread_t *ret_thread, const char *name, size_t stack, void *(*run)(void *),
                     void *arg)
{
    sigset_t all, before;
    pthread_attr_t attr;

    if (pthread_attr_init(&attr) != 0)
        return HF_NO_MEMORY;
    if (stack != 0)
        pthread_attr_setstacksize(&attr, stack);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(ret_thread, &attr, run, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    if (!failed)
        pthread_setname_np(*ret_thread, name); /* for people who look; it may fail */
    return failed ? HF_SYSTEM : 0;
}

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
