/* See live.h. */
#include "lib/live.h"

#include <poll.h>
#include <time.h>

hf_client *open_url(const char *url)
{
    hf_client *client = NULL;
    hf_error err;

    if (hf_open(url, NULL, &client, &err) != HF_OK)
        fail_msg("open: %s", err.text);
    return client;
}

static int acquire_now(hf_client *client, const char *name, int64_t ttl_ms, hf_lock **ret_lock,
                       hf_error *err)
{
    hf_options opt = HF_OPTIONS_INIT;

    opt.ttl_ms = ttl_ms;
    opt.wait_ms = 0;
    return hf_acquire(client, name, HF_NTS, &opt, ret_lock, err);
}

int try_lock(hf_client *client, const char *name, int64_t ttl_ms, hf_lock **ret_lock)
{
    return acquire_now(client, name, ttl_ms, ret_lock, NULL);
}

hf_lock *take_free(hf_client *client, const char *name, int64_t ttl_ms)
{
    hf_lock *lock = NULL;
    hf_error err;

    if (acquire_now(client, name, ttl_ms, &lock, &err) != HF_OK)
        fail_msg("%s: %s", name, err.text);
    return lock;
}

static void note_queued(size_t position, void *arg)
{
    struct waiter *w = arg;

    (void)position;
    w->queued = true;
}

static void *acquire(void *arg)
{
    struct waiter *w = arg;

    w->result = hf_acquire(w->client, w->name, HF_NTS, &w->opt, &w->lock, &w->err);
    w->got_ms = now_ms();
    if (w->result == HF_OK)
        hf_lock_generation(w->lock, &w->generation);
    if (w->result == HF_OK && w->releases)
        w->result = hf_lock_release(w->lock, &w->err);
    w->done = true;
    return NULL;
}

void wait_in_thread(struct waiter *w, hf_client *client, const char *name)
{
    w->client = client;
    w->name = name;
    if (w->opt.size == 0)
        w->opt = (hf_options)HF_OPTIONS_INIT;
    if (w->opt.wait_ms == HF_FOREVER)
        w->opt.wait_ms = LONGEST_WAIT_MS;
    if (w->opt.owner == 0)
        w->opt.owner = (uint64_t)(uintptr_t)w;
    w->opt.on_wait = note_queued;
    w->opt.arg = w;
    w->joined = false;
    assert_int_equal(pthread_create(&w->thread, NULL, acquire, w), 0);
}

int join_waiter(struct waiter *w)
{
    if (!w->joined)
        assert_int_equal(pthread_join(w->thread, NULL), 0);
    w->joined = true;
    return w->result;
}

int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_BOOTTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void sleep_ms(int64_t ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

void await(const char *what, int (*is_true)(void *), void *ctx)
{
    int64_t until_ms = now_ms() + AWAIT_MS;

    while (!is_true(ctx)) {
        if (now_ms() > until_ms)
            fail_msg("waited in vain for %s", what);
        sleep_ms(2);
    }
}

static long count(hf_client *client, const char *name, bool waiting_only)
{
    hf_query query = {.size = sizeof query, .name = name, .name_len = HF_NTS};
    hf_view *view = NULL;
    long found = 0;

    if (hf_inspect(client, &query, &view, NULL) != HF_OK)
        return -1;
    for (size_t i = 0; i < hf_view_count(view); i++)
        found += !waiting_only || hf_view_entry(view, i)->place == HF_PLACE_WAITING;
    hf_view_free(view);
    return found;
}

long count_entries(hf_client *client, const char *name)
{
    return count(client, name, false);
}

struct shown {
    hf_client *client;
    const char *name;
    bool waiting_only;
    long count;
};

static int is_shown(void *ctx)
{
    const struct shown *s = ctx;

    return count(s->client, s->name, s->waiting_only) == s->count;
}

void await_waiting(hf_client *client, const char *name, long count)
{
    await("the queue", is_shown, &(struct shown){client, name, true, count});
}

void await_free(hf_client *client, const char *name)
{
    await("the lock to be free", is_shown, &(struct shown){client, name, false, 0});
}

static int is_queued(void *w)
{
    return ((struct waiter *)w)->queued;
}

void await_queued(struct waiter *w)
{
    await("the waiter to be told that it waits", is_queued, w);
}

void await_lost(hf_lock *lock)
{
    struct pollfd told = {.fd = hf_lock_fd(lock), .events = POLLIN};

    check_number("told", poll(&told, 1, AWAIT_MS), 1);
    check_number("state", hf_lock_state(lock), HF_STATE_LOST);
}
