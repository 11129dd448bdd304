/* What the server says about what is watched, and whom that concerns. In wake().
 *
 * A message is about one watch: it is there, it is over, or things have happened. The server is told
 * that it need not watch any longer when the bid is over, not while somebody waits to be called. */
#include <stdlib.h>

#include "stores/etcd/etcd.h"

#include "base/banned.h"

/* Calls the bid of this watch, once. `generation` 0: it is to ask. */
static void tell(struct hf__etcd *e, int64_t id, uint64_t revision, uint64_t generation)
{
    struct hf__ticket ticket;

    pthread_mutex_lock(&e->mutex);
    struct hf__etcd_watch *w = hf__etcd_watch_by_id(e, id);
    bool calls = w != NULL && !w->told && w->from <= revision;
    if (calls) {
        w->told = true;
        ticket = w->ticket;
    }
    pthread_mutex_unlock(&e->mutex);
    if (!calls)
        return;
    if (generation != 0)
        hf__etcd_bid_learn(e, &(struct hf__etcd_bid){.ticket = ticket,
                                                     .generation = generation,
                                                     .marked = generation,
                                                     .handed = true});
    e->watching.sink(e->watching.sink_ctx, &ticket, generation);
}

static bool is_of_client(int64_t id)
{
    return id == HF__ETCD_BROKEN_ID || id == HF__ETCD_INBOX_ID;
}

/* So a call that begins anew misses nothing. */
static void note_seen(struct hf__etcd *e, int64_t id, uint64_t revision)
{
    pthread_mutex_lock(&e->mutex);
    if (revision > e->watching.seen[id])
        e->watching.seen[id] = revision;
    pthread_mutex_unlock(&e->mutex);
}

/* The revisions it was to begin from may be gone: whoever waits asks, and watches anew. One that is
 * refused from the start is not asked for again: its bid asks when it is time. */
static void take_cancel(struct hf__etcd *e, const struct hf__etcd_notice *n)
{
    if (n->created && n->compacted == 0) {
        pthread_mutex_lock(&e->mutex);
        hf__etcd_watches_refused(e);
        pthread_mutex_unlock(&e->mutex);
    } else if (is_of_client(n->id)) {
        pthread_mutex_lock(&e->mutex);
        e->watching.seen[n->id] = 0; /* from the present on, and what is held is looked at */
        hf__etcd_watches_lose(e);
        hf__etcd_watches_begin(e);
        pthread_mutex_unlock(&e->mutex);
    } else {
        tell(e, n->id, UINT64_MAX, 0);
    }
}

/* Deletions are all that is heard of what is before a bid, and puts of its own mark: by itself as
 * well, which says nothing new. */
static void take_event(struct hf__etcd *e, int64_t id, const struct hf__etcd_kv *kv)
{
    struct hf__ticket ticket;

    if (is_of_client(id))
        note_seen(e, id, kv->put);
    if (id == HF__ETCD_BROKEN_ID) {
        if (hf__etcd_bid_of_mark(e, kv->key, &ticket))
            e->watching.sink(e->watching.sink_ctx, &ticket, 0);
    } else if (id == HF__ETCD_INBOX_ID) {
        hf__etcd_note_next(e, kv);
    } else if (id % 2 == HF__ETCD_WATCHED_BEFORE) {
        pthread_mutex_lock(&e->mutex);
        const struct hf__etcd_watch *w = hf__etcd_watch_by_id(e, id);
        bool calls = w != NULL && (!w->arrivals || hf__etcd_has_arrived(w, kv));
        pthread_mutex_unlock(&e->mutex);
        if (calls)
            tell(e, id, kv->put, 0);
    } else if (hf__etcd_is_handed(kv, 0)) {
        tell(e, id, kv->put, kv->put);
    }
}

static bool take_message(struct hf__etcd *e, struct hf__slice message)
{
    struct hf__etcd_notice notice;
    struct hf__etcd_kv kv;

    if (!hf__etcd_notice_read(message, &notice))
        return false;
    if (notice.created && !notice.canceled && is_of_client(notice.id))
        note_seen(e, notice.id, notice.revision);
    while (hf__etcd_next_event(&notice, &kv))
        take_event(e, notice.id, &kv);
    if (notice.canceled)
        take_cancel(e, &notice);
    return true;
}

bool hf__etcd_take_notices(struct hf__etcd *e)
{
    struct hf__buffer *in = &e->watching.in;
    struct hf__slice rest = {in->data, in->len}, message;
    int r;

    if (in->failed)
        return false;
    while ((r = hf__grpc_take(&rest, &message)) > 0) {
        if (!take_message(e, message))
            return false;
    }
    hf__buffer_drop(in, in->len - rest.len);
    return r == 0;
}
