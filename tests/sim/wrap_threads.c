/* Threads, mutexes and conditions, in place of the C library's. Each call is a place where others
 * may run. A mutex and a condition keep their state in the storage that the program gives them, so
 * what is used after it was destroyed, or freed, is noticed here. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "fiber.h"

#define DESTROYED (-77)

struct mutex {
    int owner; /* the number of a fiber; 0: free */
};

struct condition {
    int waiting;
    int state;
};

_Static_assert(sizeof(struct mutex) <= sizeof(pthread_mutex_t), "a mutex has room for ours");
_Static_assert(sizeof(struct condition) <= sizeof(pthread_cond_t), "a condition has room for ours");

static struct mutex *mutex_of(pthread_mutex_t *given)
{
    struct mutex *m = (struct mutex *)given;

    if (m->owner < 0)
        sim_fail("a mutex is used after it was destroyed or freed");
    return m;
}

static struct condition *condition_of(pthread_cond_t *given)
{
    struct condition *c = (struct condition *)given;

    if (c->state != 0 || c->waiting < 0)
        sim_fail("a condition is used after it was destroyed or freed");
    return c;
}

static void refuse_child(const char *what)
{
    if (sim.self != NULL && sim.self->process->is_child)
        sim_fail("C13: a forked child %s", what);
}

int __wrap_pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attr);
int __wrap_pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attr)
{
    (void)attr;
    memset(mutex, 0, sizeof *mutex);
    return 0;
}

int __wrap_pthread_mutex_destroy(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_destroy(pthread_mutex_t *mutex)
{
    struct mutex *m = mutex_of(mutex);

    if (m->owner != 0)
        sim_fail("a mutex is destroyed while it is held");
    m->owner = DESTROYED;
    return 0;
}

static void take(struct mutex *m)
{
    while (m->owner != 0) {
        if (m->owner == sim.self->number)
            sim_fail("a thread takes a mutex that it holds");
        sim_block(SIM_MUTEX, m, SIM_NEVER);
        mutex_of((pthread_mutex_t *)m);
    }
    m->owner = sim.self->number;
    sim.self->mutexes++;
}

static void give(struct mutex *m)
{
    if (m->owner != sim.self->number)
        sim_fail("a thread gives back a mutex that it does not hold");
    m->owner = 0;
    sim_wake_all(SIM_MUTEX, m);
}

int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex)
{
    if (sim.self == NULL)
        return 0;
    refuse_child("takes a mutex");
    sim_pause();
    take(mutex_of(mutex));
    return 0;
}

int __wrap_pthread_mutex_trylock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_trylock(pthread_mutex_t *mutex)
{
    sim_pause();
    if (mutex_of(mutex)->owner != 0)
        return EBUSY;
    take(mutex_of(mutex));
    return 0;
}

int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    if (sim.self == NULL)
        return 0;
    give(mutex_of(mutex));
    sim_pause();
    return 0;
}

int __wrap_pthread_cond_init(pthread_cond_t *cond, const pthread_condattr_t *attr);
int __wrap_pthread_cond_init(pthread_cond_t *cond, const pthread_condattr_t *attr)
{
    (void)attr;
    memset(cond, 0, sizeof *cond);
    return 0;
}

int __wrap_pthread_cond_destroy(pthread_cond_t *cond);
int __wrap_pthread_cond_destroy(pthread_cond_t *cond)
{
    struct condition *c = condition_of(cond);

    if (c->waiting > 0)
        sim_fail("a condition is destroyed while %d wait for it", c->waiting);
    c->state = DESTROYED;
    return 0;
}

/* Now and then it returns although nobody signalled, as POSIX says it may. */
static bool wait_for(pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t until_ns)
{
    struct condition *c = condition_of(cond);
    struct mutex *m = mutex_of(mutex);
    bool early = random_below(&sim.order, 1000) < (uint64_t)sim.spurious_permille;
    int64_t early_ns = sim.now_ns + (int64_t)random_below(&sim.order, 20 * SIM_MS);

    if (early && early_ns >= until_ns)
        early = false;
    c->waiting++;
    give(m);
    bool woken = sim_block(SIM_CONDITION, cond, early ? early_ns : until_ns);
    c->waiting--;
    take(mutex_of(mutex));
    return woken || early;
}

int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex);
int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
    wait_for(cond, mutex, SIM_NEVER);
    return 0;
}

/* Whatever clock the condition has: all clocks of a process are one here. */
int __wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
                                  const struct timespec *until);
int __wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
                                  const struct timespec *until)
{
    int64_t local_ns = (int64_t)until->tv_sec * 1000000000 + until->tv_nsec;

    return wait_for(cond, mutex, sim_true_ns(sim.self->process, local_ns)) ? 0 : ETIMEDOUT;
}

int __wrap_pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock,
                                  const struct timespec *until);
int __wrap_pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock,
                                  const struct timespec *until)
{
    (void)clock;
    return __wrap_pthread_cond_timedwait(cond, mutex, until);
}

int __wrap_pthread_cond_signal(pthread_cond_t *cond);
int __wrap_pthread_cond_signal(pthread_cond_t *cond)
{
    condition_of(cond);
    sim_wake_one(SIM_CONDITION, cond);
    sim_pause();
    return 0;
}

int __wrap_pthread_cond_broadcast(pthread_cond_t *cond);
int __wrap_pthread_cond_broadcast(pthread_cond_t *cond)
{
    condition_of(cond);
    sim_wake_all(SIM_CONDITION, cond);
    sim_pause();
    return 0;
}

int __wrap_pthread_create(pthread_t *ret_thread, const pthread_attr_t *attr, void *(*run)(void *),
                          void *arg);
int __wrap_pthread_create(pthread_t *ret_thread, const pthread_attr_t *attr, void *(*run)(void *),
                          void *arg)
{
    (void)attr;
    refuse_child("starts a thread");
    struct fiber *f = sim_spawn(NULL, "lib", run, arg);
    f->of_library = true;
    *ret_thread = (pthread_t)f->number;
    sim_pause();
    return 0;
}

int __wrap_pthread_join(pthread_t thread, void **ret_value);
int __wrap_pthread_join(pthread_t thread, void **ret_value)
{
    struct fiber *f = fiber_find((int)thread);

    if (f == NULL || !f->of_library)
        sim_fail("a thread is joined twice, or was never there");
    if (f == sim.self)
        sim_fail("a thread joins itself");
    while (!f->done)
        sim_block(SIM_JOIN, f, SIM_NEVER);
    fiber_free(f);
    if (ret_value != NULL)
        *ret_value = NULL;
    return 0;
}

pthread_t __wrap_pthread_self(void);
pthread_t __wrap_pthread_self(void)
{
    return sim.self != NULL ? (pthread_t)sim.self->number : 0;
}

int __wrap_pthread_setname_np(pthread_t thread, const char *name);
int __wrap_pthread_setname_np(pthread_t thread, const char *name)
{
    struct fiber *f = fiber_find((int)thread);

    if (f != NULL)
        snprintf(f->name, sizeof f->name, "p%d.%.14s", f->process->number, name);
    return 0;
}

int __wrap_pthread_setcancelstate(int state, int *ret_before);
int __wrap_pthread_setcancelstate(int state, int *ret_before)
{
    (void)state;
    if (ret_before != NULL)
        *ret_before = PTHREAD_CANCEL_ENABLE;
    return 0;
}

int __wrap_pthread_sigmask(int how, const sigset_t *set, sigset_t *ret_before);
int __wrap_pthread_sigmask(int how, const sigset_t *set, sigset_t *ret_before)
{
    (void)how, (void)set;
    if (ret_before != NULL)
        sigemptyset(ret_before);
    return 0;
}
