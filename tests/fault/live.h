/* What tests on the real clock over fault+memory:// share. */
#ifndef TESTS_FAULT_LIVE_H
#define TESTS_FAULT_LIVE_H

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "holdfast.h"
#include "lib/check.h"

#define PATIENCE_MS 30000 /* a loaded machine; what works takes far less */

static inline int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_BOOTTIME, &t);
    return t.tv_sec * INT64_C(1000) + t.tv_nsec / 1000000;
}

static inline void pause_ms(int ms)
{
    poll(NULL, 0, ms);
}

/* Waits until it is true, or fails. */
#define AWAIT(condition)                                       \
    do {                                                       \
        int64_t until_ms = now_ms() + PATIENCE_MS;             \
        while (!(condition)) {                                 \
            if (now_ms() > until_ms)                           \
                fail_msg("waited in vain for %s", #condition); \
            pause_ms(2);                                       \
        }                                                      \
    } while (0)

/* fault+memory://NAME?RULES, or memory://NAME if there are no rules. */
static inline hf_client *open_store(const char *name, const char *rules)
{
    char url[300];
    hf_client *client = NULL;
    hf_error err = {0};

    if (rules != NULL)
        snprintf(url, sizeof url, "fault+memory://%s?%s", name, rules);
    else
        snprintf(url, sizeof url, "memory://%s", name);
    if (hf_open(url, NULL, &client, &err) != 0)
        fail_msg("%s: %s", url, err.text);
    return client;
}

static inline hf_lock *take(hf_client *client, const char *name, const hf_options *opt)
{
    hf_lock *lock = NULL;
    hf_error err = {0};

    if (hf_acquire(client, name, HF_NTS, opt, &lock, &err) != 0)
        fail_msg("%s", err.text);
    return lock;
}

/* How many hold or wait for this name; NULL: for any. */
static inline size_t in_store(hf_client *client, const char *name)
{
    hf_query query = {.size = sizeof query, .name = name, .name_len = HF_NTS};
    hf_view *view;

    assert_int_equal(hf_inspect(client, name != NULL ? &query : NULL, &view, NULL), 0);
    size_t count = hf_view_count(view);
    hf_view_free(view);
    return count;
}

/* A call on a thread of its own; `done` when it has returned. */
struct call {
    hf_client *client;
    const char *name;
    hf_options opt;
    pthread_t thread;
    hf_lock *lock;
    hf_error err;
    atomic_int done;
    int r;
};

static inline void *call_acquire(void *arg)
{
    struct call *call = arg;

    call->r = hf_acquire(call->client, call->name, HF_NTS, &call->opt, &call->lock, &call->err);
    atomic_store(&call->done, 1);
    return NULL;
}

static inline void *call_close(void *arg)
{
    struct call *call = arg;

    hf_close(call->client);
    atomic_store(&call->done, 1);
    return NULL;
}

static inline void start(struct call *call, void *(*run)(void *))
{
    assert_int_equal(pthread_create(&call->thread, NULL, run, call), 0);
}

/* A call that does not return leaves its thread behind: the test has failed. */
static inline void finish(struct call *call)
{
    AWAIT(atomic_load(&call->done));
    pthread_join(call->thread, NULL);
}

#endif
