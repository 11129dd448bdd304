/* A lock that its client keeps, over a store and on a clock that the test owns. */
#ifndef TESTS_UNIT_KEEPER_STAGE_H
#define TESTS_UNIT_KEEPER_STAGE_H

#include <poll.h>
#include <stdatomic.h>

#include "lib/check.h"
#include "lib/fake_clock.h"
#include "lib/puppet.h"

struct stage {
    struct fake_clock clock;
    struct puppet *store;
    hf_client *client;
    char url[32];
    hf_lock *lock, *other;
    bool refused;
    atomic_int risks, losses;
    hf_cause cause;
};

static inline void on_at_risk(hf_lock *lock, hf_cause cause, void *arg)
{
    struct stage *s = arg;

    (void)lock, (void)cause;
    atomic_fetch_add(&s->risks, 1);
}

static inline void on_lost(hf_lock *lock, hf_cause cause, void *arg)
{
    struct stage *s = arg;

    (void)lock;
    s->cause = cause;
    atomic_fetch_add(&s->losses, 1);
}

static inline int set_up(void **state)
{
    static struct stage stage;
    static int number;

    stage = (struct stage){0};
    snprintf(stage.url, sizeof stage.url, "memory://keeper%d", ++number);
    fake_clock_init(&stage.clock);
    stage.store = puppet_open(stage.url, &stage.clock.env, &stage.client);
    *state = &stage;
    return stage.store == NULL;
}

static inline int tear_down(void **state)
{
    struct stage *s = *state;

    hf_lock_release(s->lock, NULL);
    puppet_close(s->client);
    return 0;
}

static inline void take(struct stage *s, int64_t ttl_ms, int64_t max_hold_ms)
{
    hf_options opt = HF_OPTIONS_INIT;

    opt.ttl_ms = ttl_ms;
    opt.max_hold_ms = max_hold_ms;
    opt.on_at_risk = on_at_risk;
    opt.on_lost = on_lost;
    opt.arg = s;
    assert_int_equal(hf_acquire(s->client, "x", HF_NTS, &opt, &s->lock, NULL), 0);
}

static inline int is_lost(void *arg)
{
    struct stage *s = arg;

    return atomic_load(&s->losses) > 0;
}

static inline int is_at_risk(void *arg)
{
    struct stage *s = arg;

    return atomic_load(&s->risks) > 0;
}

static inline int is_safe_again(void *arg)
{
    struct stage *s = arg;

    return hf_lock_state(s->lock) == HF_STATE_HELD;
}

static inline int hangs(void *arg)
{
    struct stage *s = arg;

    return atomic_load(&s->store->held[PUPPET_RENEW]) > 0;
}

static inline int never(void *arg)
{
    (void)arg;
    return 0;
}

static inline bool is_readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    return poll(&p, 1, 0) == 1;
}

#endif
