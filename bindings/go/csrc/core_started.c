/* See started.h. */
#include "core_started.h"

#include <stdlib.h>

#include "base_banned.h"

void hf__started_free(struct hf__started *s)
{
    if (s == NULL)
        return;
    free(s->err);
    free(s);
}

/* Running. ------------------------------------------------------------------------------------- */
static uint64_t hash_of(const hf_client *client, uint64_t tag)
{
    return hf__hash(client->seed, &tag, sizeof tag);
}

/* Counts as a call that is under way until it is over: hf_close() waits for it. */
static int start(struct hf__started *s)
{
    hf_client *client = s->client;

    if (!hf__heap_reserve(&client->runner.jobs, client->started_count + 1))
        return HF_NO_MEMORY;
    hf__lock_ref(s->lock);
    if (!hf__workers_add(&client->runner, &s->turn, hf__now_ns(client->env))) {
        hf__lock_unref(s->lock);
        return HF_SYSTEM;
    }
    hf__workers_spread(&client->runner);
    client->started_count++;
    client->users++;
    return 0;
}

void hf__started_ready(struct hf__started *s)
{
    if (s->runs || s->turn.slot != 0)
        return; /* whoever runs it looks for news before it leaves it */
    hf__lock_ref(s->lock);
    hf__workers_add(&s->client->runner, &s->turn, hf__now_ns(s->client->env));
    hf__workers_spread(&s->client->runner);
}

static void keep_error(struct hf__started *s, const hf_error *err)
{
    if (s->err == NULL)
        s->err = malloc(sizeof *s->err);
    if (s->err != NULL)
        *s->err = *err;
}

static void finish(struct hf__started *s, int code, const hf_error *err)
{
    hf_client *client = s->client;
    hf_lock *lock = s->lock;

    s->code = code;
    if (code < 0)
        keep_error(s, err);
    if (s->is_release)
        s->lock = NULL;
    else
        hf__table_remove(&client->by_tag, &s->by_tag);
    hf__event_push(s, HF__TELL_OUTCOME);
    if (code < 0 && !s->is_release) { /* nobody gets it */
        hf__reentry_remove(lock);
        hf__lock_unref(lock);
    }
    client->started_count--;
    if (--client->users == 0 && client->closing)
        pthread_cond_broadcast(&client->changed);
}

/* To its end, or to where nothing is left to do but to wait. */
static int advance(struct hf__started *s, hf_error *err)
{
    int r;

    if (s->err != NULL)
        *err = *s->err;
    s->bid.err = err;
    do
        r = hf__acquire_advance(&s->bid);
    while (r == HF__ACQUIRE_ASLEEP && s->lock->waiter->news != 0);
    s->bid.err = NULL;
    if (r == HF__ACQUIRE_ASLEEP && s->bid.slept_over < 0)
        keep_error(s, err);
    return r;
}

static void run_bid(struct hf__started *s)
{
    hf_lock *lock = s->lock;
    hf_error err = {0};
    char shown[80];
    int r = advance(s, &err);

    if (r == HF__ACQUIRE_ASLEEP)
        return;
    if (r < 0)
        hf__wrap(&err, r, "acquire '%s'",
                 hf__printable(lock->name, lock->bid.name_len, shown, sizeof shown));
    finish(s, r == HF__ACQUIRE_KEPT ? 0 : r, &err);
}

void hf__runner_work(hf_client *client)
{
    struct hf__timer *turn = hf__heap_first(&client->runner.jobs);
    struct hf__started *s =
        (struct hf__started *)((char *)turn - offsetof(struct hf__started, turn));
    hf_lock *lock = s->lock;
    hf_error err = {0};

    hf__heap_remove(&client->runner.jobs, turn);
    s->runs = true;
    if (s->is_release)
        finish(s, hf__lock_give_back(lock, &err), &err);
    else
        run_bid(s);
    s->runs = false;
    hf__lock_unref(lock);
}

/* The program's. ------------------------------------------------------------------------------- */
static struct hf__started *new_started(hf_lock *lock, uint64_t tag)
{
    struct hf__started *s = calloc(1, sizeof *s);

    if (s != NULL) {
        s->client = lock->client;
        s->lock = lock;
        s->tag = tag;
    }
    return s;
}

static struct hf__started *new_bid(hf_lock *lock, const hf_options *opt, uint64_t tag)
{
    struct hf__started *s = new_started(lock, tag);

    if (s == NULL)
        return NULL;
    hf__acquire_begin(&s->bid, lock, opt);
    s->bid.on_wait = NULL;
    lock->started = s; /* which frees it */
    return s;
}

int hf__start_bid(hf_lock *lock, const hf_options *opt, uint64_t tag, hf_error *err)
{
    struct hf__started *s = new_bid(lock, opt, tag);
    int r = s == NULL ? HF_NO_MEMORY : start(s);

    if (r < 0)
        return hf__fail(err, r, r == HF_SYSTEM ? "a runner's thread cannot be started" : NULL);
    hf__table_add(&lock->client->by_tag, &s->by_tag, hash_of(lock->client, tag));
    return 0;
}

/* It was left where it sleeps: there has to be a thread that takes it up again. */
static int hand_over(struct hf__started *s, hf_error *err)
{
    struct hf__workers *runner = &s->client->runner;

    if (runner->started == 0)
        hf__workers_help(runner);
    if (runner->started > 0)
        return HF__ACQUIRE_ASLEEP;
    s->bid.stopped = true;
    int r = advance(s, err);
    return r < 0 ? hf__fail(err, HF_SYSTEM, "a runner's thread cannot be started") : r;
}

int hf__bid_or_start(hf_lock *lock, const hf_options *opt, uint64_t tag, hf_error *err)
{
    hf_client *client = lock->client;
    struct hf__started *s = new_bid(lock, opt, tag);
    hf_error why = {0};

    if (s == NULL || !hf__heap_reserve(&client->runner.jobs, client->started_count + 1))
        return hf__fail(err, HF_NO_MEMORY, NULL);
    client->started_count++;
    hf__table_add(&client->by_tag, &s->by_tag, hash_of(client, tag));
    s->runs = true;
    int r = advance(s, &why);
    if (r == HF__ACQUIRE_ASLEEP)
        r = hand_over(s, &why);
    s->runs = false;
    if (r == HF__ACQUIRE_ASLEEP) {
        client->users++; /* as a call that is under way, until finish() */
        return r;
    }
    hf__table_remove(&client->by_tag, &s->by_tag);
    client->started_count--;
    if (r < 0 && err != NULL)
        *err = why;
    return r < 0 ? r : 0;
}

static int start_release(hf_lock *lock, uint64_t tag, hf_error *err)
{
    struct hf__started *s = new_started(lock, tag);

    if (s == NULL)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    s->is_release = true;
    int r = start(s);
    if (r < 0) {
        hf__started_free(s);
        return hf__fail(err, r, r == HF_SYSTEM ? "a runner's thread cannot be started" : NULL);
    }
    if (lock->count == 1) { /* kept until its turn comes, but its owner is through with it */
        hf__reentry_remove(lock);
        lock->on_at_risk = lock->on_lost = lock->on_wanted = NULL;
        hf__forget_events(lock);
        if (lock->started != NULL)
            lock->started->silent = true;
    }
    return 0;
}

int hf_release_start(hf_lock *lock, uint64_t tag, hf_error *err)
{
    if (lock == NULL)
        return hf__fail(err, HF_INVALID, "there is no lock");
    hf_client *client = lock->client;
    struct hf__visit visit;
    int r = hf__enter_locked(client, &visit, err);

    if (r == HF_CLOSED)
        return hf_lock_release(lock, err); /* which only frees it */
    if (r < 0)
        return r;
    r = start_release(lock, tag, err);
    hf__leave_unlock(client, &visit);
    return r;
}

int hf_acquire_stop(hf_client *client, uint64_t tag)
{
    struct hf__visit visit;
    int r = hf__enter_locked(client, &visit, NULL);

    if (r < 0)
        return r;
    r = HF_NOT_FOUND;
    struct hf__link *link = hf__table_find(&client->by_tag, hash_of(client, tag));
    for (; link != NULL; link = hf__table_next(link)) {
        struct hf__started *s =
            (struct hf__started *)((char *)link - offsetof(struct hf__started, by_tag));
        if (s->tag != tag)
            continue;
        s->bid.stopped = true;
        hf__wait_tell(s->lock, HF__NEWS_CANCEL);
        r = 0;
    }
    hf__leave_unlock(client, &visit);
    return r;
}
