/* The tickets of this client: what each has in the store, and since when it is over.
 *
 *      JOINING ---create---> JOINED ---lease over, claimed, lock-delay---> LINGERING
 *                              |                                              |
 *                              `--- lease over, broken, session expired --> LEAVING --> RETIRED
 *
 * A ticket that is over is remembered for as long as an attempt of it may still arrive: it is never
 * let in again. The memory is this client's, which is enough: an attempt travels in a session of
 * this client, and what a cut connection has not delivered by the time the session is used again is
 * refused by the servers. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "stores/zookeeper/zk.h"

#include "base/banned.h"

struct hf__zk_bidding *hf__zk_lookup(struct hf__zk *zk, const struct hf__ticket *ticket)
{
    uint64_t hash = hf__hash(zk->seed, ticket->bits, sizeof ticket->bits);
    struct hf__link *link = hf__table_find(&zk->biddings, hash);

    for (; link != NULL; link = hf__table_next(link)) {
        struct hf__zk_bidding *b = (struct hf__zk_bidding *)link;
        if (hf__ticket_equal(&b->ticket, ticket))
            return b;
    }
    return NULL;
}

struct hf__zk_bidding *hf__zk_find(struct hf__zk *zk, const struct hf__ticket *ticket)
{
    pthread_mutex_lock(&zk->mutex);
    struct hf__zk_bidding *b = hf__zk_lookup(zk, ticket);
    if (b != NULL)
        b->refs++;
    pthread_mutex_unlock(&zk->mutex);
    return b;
}

static void unref_locked(struct hf__zk_bidding *b)
{
    if (--b->refs > 0)
        return;
    for (int i = 0; i < HF__ZK_WATCHED_KINDS; i++)
        hf__zk_unsubscribe(&b->subscriptions[i]);
    hf__zk_leave_session(b);
    free(b->directory);
    free(b->path);
    free(b->data);
    free(b);
}

void hf__zk_bidding_unref(struct hf__zk_bidding *b)
{
    struct hf__zk *zk = b->zk;

    pthread_mutex_lock(&zk->mutex);
    unref_locked(b);
    pthread_mutex_unlock(&zk->mutex);
}

static struct hf__zk_bidding *new_bidding(struct hf__zk *zk, const struct hf__bid *bid)
{
    char directory[HF__ZK_PATH_MAX];
    struct hf__zk_bidding *b = calloc(1, sizeof *b);

    if (b == NULL)
        return NULL;
    b->zk = zk;
    b->refs = 1;
    b->ticket = bid->ticket;
    b->mode = bid->mode;
    b->ttl_ms = bid->ttl_ms;
    b->lock_delay_ms = bid->lock_delay_ms;
    b->retire_ms = bid->retire_ms;
    b->tells = bid->tell;
    if (hf__zk_directory(zk, bid->name, bid->name_len, directory, sizeof directory))
        b->directory = strdup(directory);
    if (bid->who != NULL)
        b->data = hf__zk_describe(bid, zk->base.host->self);
    if (b->directory == NULL || (bid->who != NULL && b->data == NULL)) {
        unref_locked(b);
        return NULL;
    }
    return b;
}

struct hf__zk_bidding *hf__zk_bidding_make(struct hf__zk *zk, const struct hf__bid *bid)
{
    pthread_mutex_lock(&zk->mutex);
    struct hf__zk_bidding *b = hf__zk_lookup(zk, &bid->ticket);
    if (b == NULL && hf__heap_reserve(&zk->timers, zk->biddings.count + 1))
        b = new_bidding(zk, bid);
    if (b != NULL) {
        if (!b->listed) {
            b->listed = true; /* this share is the table's */
            hf__table_add(&zk->biddings, &b->link,
                          hf__hash(zk->seed, b->ticket.bits, sizeof b->ticket.bits));
        }
        b->refs++;
    }
    pthread_mutex_unlock(&zk->mutex);
    return b;
}

bool hf__zk_begin(struct hf__zk_bidding *b, int64_t deadline_ns)
{
    struct hf__zk *zk = b->zk;
    int r = 0;

    pthread_mutex_lock(&zk->mutex);
    zk->waiting_for_busy++;
    while (b->busy && r == 0) {
        struct timespec at = hf__zk_moment(zk, deadline_ns);
        r = pthread_cond_clockwait(&zk->changed, &zk->mutex, CLOCK_MONOTONIC, &at);
    }
    zk->waiting_for_busy--;
    bool mine = !b->busy;
    b->busy = true;
    pthread_mutex_unlock(&zk->mutex);
    return mine;
}

void hf__zk_end(struct hf__zk_bidding *b)
{
    pthread_mutex_lock(&b->zk->mutex);
    b->busy = false;
    if (b->zk->waiting_for_busy > 0)
        pthread_cond_broadcast(&b->zk->changed);
    pthread_mutex_unlock(&b->zk->mutex);
}

void hf__zk_set_timer(struct hf__zk_bidding *b, int64_t when_ns)
{
    struct hf__zk *zk = b->zk;

    if (!b->listed)
        return;
    if (when_ns == INT64_MAX)
        hf__heap_remove(&zk->timers, &b->timer);
    else
        hf__heap_set(&zk->timers, &b->timer, when_ns);
    if (when_ns < zk->armed_ns) {
        zk->armed_ns = when_ns;
        pthread_cond_signal(&zk->due);
    }
}

void hf__zk_leave_session(struct hf__zk_bidding *b)
{
    if (b->session != NULL)
        hf__zk_unuse_locked(b->session);
    b->session = NULL;
}

void hf__zk_retire(struct hf__zk_bidding *b, int64_t retire_ms)
{
    struct hf__zk *zk = b->zk;

    for (int i = 0; i < HF__ZK_WATCHED_KINDS; i++)
        hf__zk_unsubscribe(&b->subscriptions[i]);
    hf__zk_leave_session(b);
    b->state = HF__ZK_STATE_RETIRED;
    b->inside = false;
    if (retire_ms > 0) {
        b->until_ns = hf__now_ns(zk->base.host->env) + retire_ms * HF__NS_PER_MS;
        hf__zk_set_timer(b, b->until_ns);
        return;
    }
    hf__heap_remove(&zk->timers, &b->timer);
    if (!b->listed)
        return;
    b->listed = false;
    hf__table_remove(&zk->biddings, &b->link);
    unref_locked(b); /* the table's share; whoever works on it has one of its own */
}
