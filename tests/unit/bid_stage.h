/* Bids over a store that can lose answers, on a clock that the test owns. */
#ifndef TESTS_UNIT_BID_STAGE_H
#define TESTS_UNIT_BID_STAGE_H

#include <pthread.h>

#include "lib/check.h"
#include "lib/fake_clock.h"
#include "lib/puppet.h"

struct stage {
    struct fake_clock clock;
    struct puppet *store;
    char url[32];
    hf_client *client, *other; /* the other one speaks to the store directly */
};

static inline int set_up(void **state)
{
    static struct stage stage;
    static int number;

    stage = (struct stage){0};
    snprintf(stage.url, sizeof stage.url, "memory://bid%d", ++number);
    fake_clock_init(&stage.clock);
    stage.store = puppet_open(stage.url, &stage.clock.env, &stage.client);
    *state = &stage;
    return stage.store == NULL ||
           hf__open(stage.url, NULL, &stage.clock.env, &stage.other, NULL) < 0;
}

static inline int tear_down(void **state)
{
    struct stage *s = *state;

    puppet_close(s->client);
    hf_close(s->other);
    return 0;
}

/* Who holds or waits for "x", by the store's account. */
static inline size_t in_store(struct stage *s)
{
    hf_view *view;

    assert_int_equal(hf_inspect(s->other, NULL, &view, NULL), 0);
    size_t count = hf_view_count(view);
    hf_view_free(view);
    return count;
}

static inline hf_lock *take(hf_client *client)
{
    hf_lock *lock;

    assert_int_equal(hf_acquire(client, "x", HF_NTS, NULL, &lock, NULL), 0);
    return lock;
}

/* An acquire on a thread of its own. */
struct asker {
    hf_client *client;
    const char *name; /* NULL: "x" */
    hf_options opt;
    pthread_t thread;
    hf_lock *lock;
    hf_error err;
    atomic_int ended;
    int r;
};

static inline void *ask(void *arg)
{
    struct asker *a = arg;

    a->r =
        hf_acquire(a->client, a->name != NULL ? a->name : "x", HF_NTS, &a->opt, &a->lock, &a->err);
    atomic_store(&a->ended, 1);
    return NULL;
}

static inline void start(struct asker *a, hf_client *client, int64_t wait_ms)
{
    *a = (struct asker){.client = client, .opt = HF_OPTIONS_INIT};
    a->opt.wait_ms = wait_ms;
    assert_int_equal(pthread_create(&a->thread, NULL, ask, a), 0);
}

static inline int has_ended(void *arg)
{
    return atomic_load(&((struct asker *)arg)->ended);
}

static inline void finish(struct stage *s, struct asker *a)
{
    assert_true(fake_clock_run(&s->clock, 60000, has_ended, a));
    pthread_join(a->thread, NULL);
}

#endif
