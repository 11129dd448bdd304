/* See bids.h. A ticket's lease is asked for until it is given, and never after: when it is gone, so is every
 * chance to be let in. That is the tombstone for requests which the network still carries; the
 * table is the one for those which this process still carries. */
#include <stdlib.h>

#include "stores/etcd/etcd.h"

#include "base/banned.h"

#define REMEMBER_MS 60000

static uint64_t hash_of(const struct hf__etcd *e, const struct hf__ticket *ticket)
{
    return hf__hash(e->seed, ticket->bits, sizeof ticket->bits);
}

static struct hf__etcd_bid *find(struct hf__etcd *e, const struct hf__ticket *ticket)
{
    struct hf__link *link = hf__table_find(&e->bids, hash_of(e, ticket));

    for (; link != NULL; link = hf__table_next(link)) {
        struct hf__etcd_bid *b = (struct hf__etcd_bid *)link;
        if (hf__ticket_equal(&b->ticket, ticket))
            return b;
    }
    return NULL;
}

#define BATCH 256

struct old {
    int64_t now_ns;
    size_t count;
    struct hf__etcd_bid *found[BATCH];
};

static void find_old(struct hf__link *link, void *ctx)
{
    struct old *old = ctx;
    struct hf__etcd_bid *b = (struct hf__etcd_bid *)link;
    int64_t lease_ms = 1000 * hf__etcd_lease_seconds(b->ttl_ms, b->delay_ms);
    int64_t useless_ns = b->proved_ns + (2 * lease_ms + REMEMBER_MS) * HF__NS_PER_MS;

    /* The core says nothing more of a lock that is lost: its entry ends by its age. */
    bool aged = b->ttl_ms != HF__NEVER && b->proved_ns > 0 && useless_ns <= old->now_ns;
    if ((aged || b->forget_ns <= old->now_ns) && old->count < BATCH)
        old->found[old->count++] = b;
}

/* Looks again only when there are twice as many as the last look left. */
static void forget_old(struct hf__etcd *e)
{
    struct old old = {.now_ns = hf__now_ns(e->base.host->env)};

    if (e->bids.count < e->sweep_at)
        return;
    hf__table_each(&e->bids, find_old, &old);
    for (size_t i = 0; i < old.count; i++) {
        hf__table_remove(&e->bids, &old.found[i]->link);
        free(old.found[i]);
    }
    e->sweep_at = 2 * e->bids.count + 64;
}

static struct hf__etcd_bid *note(struct hf__etcd *e, const struct hf__bid *bid, bool bids)
{
    struct hf__etcd_bid *b = calloc(1, sizeof *b);

    if (b == NULL)
        return NULL;
    b->ticket = bid->ticket;
    b->mode = bid->mode;
    b->ttl_ms = bid->ttl_ms;
    b->delay_ms = bid->lock_delay_ms;
    b->tells = bid->tell;
    b->forget_ns = INT64_MAX;
    b->asked_ns = hf__now_ns(e->base.host->env);
    b->lease = hf__etcd_lease_of(&b->ticket);
    if (bids)
        hf__etcd_lease_take(e, b);
    hf__table_add(&e->bids, &b->link, hash_of(e, &b->ticket));
    hf__etcd_watches_time(e);
    return b;
}

bool hf__etcd_bid_get(struct hf__etcd *e, const struct hf__ticket *ticket,
                      const struct hf__bid *bid, struct hf__etcd_bid *ret_copy)
{
    pthread_mutex_lock(&e->mutex);
    struct hf__etcd_bid *b = find(e, ticket);
    if (b == NULL && bid != NULL) {
        forget_old(e);
        b = note(e, bid, true);
    }
    if (b != NULL)
        *ret_copy = *b;
    pthread_mutex_unlock(&e->mutex);
    return b != NULL;
}

void hf__etcd_bid_learn(struct hf__etcd *e, const struct hf__etcd_bid *copy)
{
    pthread_mutex_lock(&e->mutex);
    struct hf__etcd_bid *b = find(e, &copy->ticket);
    if (b != NULL) {
        b->lease_given |= copy->lease_given;
        b->doubted |= copy->doubted;
        b->lease_dropped |= copy->lease_dropped;
        if (copy->joined > b->joined)
            b->joined = copy->joined;
        if (copy->generation > b->generation) {
            b->inside_ns = hf__now_ns(e->base.host->env);
            b->generation = copy->generation;
            b->handed = copy->handed;
        } else if (copy->generation == b->generation) {
            b->handed &= copy->handed;
        }
        if (copy->marked > b->marked)
            b->marked = copy->marked;
        if (copy->proved_ns > b->proved_ns)
            b->proved_ns = copy->proved_ns;
    }
    pthread_mutex_unlock(&e->mutex);
}

void hf__etcd_bid_retire(struct hf__etcd *e, const struct hf__bid *bid, int64_t remember_ms)
{
    pthread_mutex_lock(&e->mutex);
    struct hf__etcd_bid *b = find(e, &bid->ticket);
    if (b == NULL && remember_ms > 0)
        b = note(e, bid, false);
    if (b != NULL && remember_ms > 0) {
        b->retired = true;
        b->forget_ns = hf__now_ns(e->base.host->env) + remember_ms * HF__NS_PER_MS;
    } else if (b != NULL) {
        hf__table_remove(&e->bids, &b->link);
        free(b);
    }
    pthread_mutex_unlock(&e->mutex);
    hf__etcd_unwatch(e, &bid->ticket);
}

void hf__etcd_bid_set_wanted(struct hf__etcd *e, const struct hf__ticket *ticket, bool wanted)
{
    pthread_mutex_lock(&e->mutex);
    struct hf__etcd_bid *b = find(e, ticket);
    if (b != NULL)
        b->wanted = wanted;
    pthread_mutex_unlock(&e->mutex);
}

void hf__etcd_bid_set_opened(struct hf__etcd *e, const struct hf__ticket *ticket,
                             const struct hf__etcd_opened *opened)
{
    pthread_mutex_lock(&e->mutex);
    struct hf__etcd_bid *b = find(e, ticket);
    if (b != NULL) {
        bool asked = b->opened.asked || opened->asked;
        b->opened = *opened;
        b->opened.asked = asked;
    }
    pthread_mutex_unlock(&e->mutex);
}

void hf__etcd_bid_set_next(struct hf__etcd *e, const struct hf__ticket *ticket,
                           const struct hf__etcd_next *next)
{
    pthread_mutex_lock(&e->mutex);
    struct hf__etcd_bid *b = find(e, ticket);
    if (b != NULL)
        b->next = *next;
    pthread_mutex_unlock(&e->mutex);
}

struct search {
    int64_t lease;
    const struct hf__etcd_bid *found;
};

static void match_lease(struct hf__link *link, void *ctx)
{
    struct search *search = ctx;
    const struct hf__etcd_bid *b = (struct hf__etcd_bid *)link;

    if (b->lease == search->lease)
        search->found = b;
}

/* All are looked through: locks are rarely broken. */
bool hf__etcd_bid_of_mark(struct hf__etcd *e, struct hf__slice key, struct hf__ticket *ret_ticket)
{
    struct search search = {.lease = hf__etcd_lease_in(key)};

    pthread_mutex_lock(&e->mutex);
    hf__table_each(&e->bids, match_lease, &search);
    if (search.found != NULL)
        *ret_ticket = search.found->ticket;
    pthread_mutex_unlock(&e->mutex);
    return search.found != NULL;
}

void hf__etcd_bids_clear(struct hf__etcd *e)
{
    struct hf__link *link;

    while ((link = hf__table_any(&e->bids)) != NULL) {
        hf__table_remove(&e->bids, link);
        free(link);
    }
    hf__table_clear(&e->bids);
}
