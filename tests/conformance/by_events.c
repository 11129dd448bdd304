/* The same cases by events: hf_acquire() and hf_lock_release() of every case are these functions,
 * which with --events start what they were asked for and return when its event has come.
 *
 * One thread for each client takes events at a time, whosever they are; the others look at what it
 * has found. What cannot be started is called as ever: whoever wants to be told while it waits, a
 * reentrant acquire, a cached lock, a release in a callback. */
#include "harness.h"

#undef hf_acquire
#undef hf_lock_release
#undef hf_lock_release_after
#undef hf_lock_detach

#define LOCKS_MAX 4096

bool by_events;

struct pending {
    hf_client *client;
    uint64_t tag;
    bool done;
    hf_event event;
    struct pending *next;
};

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    uint64_t last_tag;
    struct pending *first;
    hf_client *takers[32]; /* whose events are being taken now */
    struct {
        hf_lock *lock;
        hf_client *client;
    } started[LOCKS_MAX]; /* and not given back */
} state = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static hf_client **taker_of(hf_client *client)
{
    for (size_t i = 0; i < sizeof state.takers / sizeof state.takers[0]; i++) {
        if (state.takers[i] == client)
            return &state.takers[i];
    }
    return NULL;
}

/* Losses and risks are seen by the cases in other ways. */
static void lay_down(hf_client *client, int code, const hf_event *event)
{
    for (struct pending *p = state.first; p != NULL; p = p->next) {
        if (p->client != client || (code == HF_OK && p->tag != event->tag))
            continue;
        if (code == HF_OK && (event->kind == HF_EVENT_AT_RISK || event->kind == HF_EVENT_LOST))
            continue;
        p->done = true;
        p->event = *event;
    }
}

/* Mutex held, released meanwhile. */
static void take_one(hf_client *client, hf_client **taker)
{
    hf_event event = {.size = sizeof event};

    *taker = client;
    pthread_mutex_unlock(&state.mutex);
    int r = hf_event_next(client, HF_FOREVER, &event);
    pthread_mutex_lock(&state.mutex);
    if (r != HF_OK) { /* closed, for all */
        event.err = (hf_error){.code = r};
        snprintf(event.err.text, sizeof event.err.text, "%s", hf_code_text(r));
    }
    lay_down(client, r, &event);
    *taker = NULL;
    pthread_cond_broadcast(&state.changed);
}

/* Mutex held, released meanwhile. */
static hf_event await_event_of(struct pending *me)
{
    struct pending **at = &state.first;

    while (!me->done) {
        hf_client **free_place = taker_of(NULL);
        if (taker_of(me->client) == NULL && free_place != NULL)
            take_one(me->client, free_place);
        else
            pthread_cond_wait(&state.changed, &state.mutex);
    }
    while (*at != me)
        at = &(*at)->next;
    *at = me->next;
    return me->event;
}

/* Mutex held. */
static void begin(struct pending *me, hf_client *client)
{
    *me = (struct pending){.client = client, .tag = ++state.last_tag, .next = state.first};
    state.first = me;
}

static void forget(struct pending *me)
{
    struct pending **at = &state.first;

    while (*at != me)
        at = &(*at)->next;
    *at = me->next;
}

static void note_started(hf_lock *lock, hf_client *client)
{
    for (size_t i = 0; i < LOCKS_MAX; i++) {
        if (state.started[i].lock == NULL) {
            state.started[i].lock = lock;
            state.started[i].client = client;
            return;
        }
    }
}

/* NULL: it was not started, or its client does more than that. */
static hf_client *take_started(const hf_lock *lock)
{
    for (size_t i = 0; i < LOCKS_MAX; i++) {
        if (state.started[i].lock == lock) {
            state.started[i].lock = NULL;
            return state.started[i].client;
        }
    }
    return NULL;
}

int acquire_either_way(hf_client *client, const char *name, size_t name_len, const hf_options *opt,
                       hf_lock **ret_lock, hf_error *err)
{
    struct pending me;

    if (!by_events || opt == NULL || ret_lock == NULL || opt->size != sizeof *opt ||
        opt->reentrant || opt->cached || opt->owner == 0 || opt->on_wait != NULL)
        return hf_acquire(client, name, name_len, opt, ret_lock, err);
    pthread_mutex_lock(&state.mutex);
    begin(&me, client);
    pthread_mutex_unlock(&state.mutex);
    int r = hf_acquire_start(client, name, name_len, opt, me.tag, err);
    pthread_mutex_lock(&state.mutex);
    if (r == HF_OK) {
        hf_event event = await_event_of(&me);
        r = event.err.code;
        if (r != HF_OK && err != NULL)
            *err = event.err;
        if (r == HF_OK) {
            *ret_lock = event.lock;
            if (opt->on_lost == NULL && opt->on_at_risk == NULL)
                note_started(event.lock, client);
        }
    } else {
        forget(&me);
    }
    pthread_mutex_unlock(&state.mutex);
    return r;
}

int release_either_way(hf_lock *lock, hf_error *err)
{
    struct pending me;
    hf_client *client;

    if (!by_events || lock == NULL)
        return hf_lock_release(lock, err);
    pthread_mutex_lock(&state.mutex);
    client = take_started(lock);
    if (client != NULL)
        begin(&me, client);
    pthread_mutex_unlock(&state.mutex);
    if (client == NULL)
        return hf_lock_release(lock, err);
    int r = hf_release_start(lock, me.tag, err);
    pthread_mutex_lock(&state.mutex);
    if (r == HF_OK) {
        hf_event event = await_event_of(&me);
        r = event.err.code;
        if (r != HF_OK && err != NULL)
            *err = event.err;
    } else {
        forget(&me);
    }
    pthread_mutex_unlock(&state.mutex);
    return r;
}

/* What ends a handle in another way. The next one may stand at the same address: whose it was is forgotten
 * before, and noted again if the handle has stayed. */
static hf_client *forget_started(const hf_lock *lock)
{
    pthread_mutex_lock(&state.mutex);
    hf_client *client = take_started(lock);
    pthread_mutex_unlock(&state.mutex);
    return client;
}

static void note_again(hf_lock *lock, hf_client *client)
{
    if (client == NULL)
        return;
    pthread_mutex_lock(&state.mutex);
    note_started(lock, client);
    pthread_mutex_unlock(&state.mutex);
}

int release_after_and_forget(hf_lock *lock, int64_t at_least_ms, hf_error *err)
{
    hf_client *client = forget_started(lock);
    int r = hf_lock_release_after(lock, at_least_ms, err);

    if (r == HF_INVALID || r == HF_UNSUPPORTED || r == HF_DEADLOCK)
        note_again(lock, client);
    return r;
}

int detach_and_forget(hf_lock *lock, hf_error *err)
{
    hf_client *client = forget_started(lock);
    int r = hf_lock_detach(lock, err);

    if (r != HF_OK)
        note_again(lock, client);
    return r;
}
