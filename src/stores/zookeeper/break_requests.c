/* Requests to break a lock: how a client asks another one's holder to leave.
 *
 * A request is a node beside the locks, <prefix>/%break/<uuid of the ticket>, with "-now" behind it
 * if the lease is not to be counted to its end. It is never a child of the lock: other clients would
 * take it for a bid. Every client that holds or waits watches that directory, on one of its
 * sessions. When something changes there, it reads the requests and sees after all it holds: a lock
 * that was broken is lost as soon as its holder's client has heard of it, not with its next
 * renewal. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stores/zookeeper/zk.h"

#include "base/banned.h"

#define PATIENCE_NS (500 * HF__NS_PER_MS) /* a grant or a renewal does not wait for longer */

void hf__zk_break_request_path(const struct hf__zk *zk, const struct hf__ticket *ticket, bool now,
                               char *buf, size_t size)
{
    char uuid[37];

    hf__zk_uuid(ticket, uuid);
    snprintf(buf, size, "%s/%s/%s%s", zk->prefix, HF__ZK_BREAK_DIRECTORY, uuid, now ? "-now" : "");
}

int hf__zk_make_break_directory(struct hf__zk *zk, struct hf__zk_session *s, int64_t deadline_ns)
{
    char path[HF__ZK_PATH_MAX];

    snprintf(path, sizeof path, "%s/%s", zk->prefix, HF__ZK_BREAK_DIRECTORY);
    return hf__zk_make_directory(s, path, deadline_ns);
}

int hf__zk_put_break_request(struct hf__zk_session *s, const struct hf__ticket *ticket,
                             const struct hf__zk_break_request *request, int64_t deadline_ns)
{
    char path[HF__ZK_PATH_MAX];
    struct hf__zk_call *call = hf__zk_call_new();

    if (call == NULL)
        return ZSYSTEMERROR;
    hf__zk_break_request_path(s->zk, ticket, request->now, path, sizeof path);
    int rc = hf__zk_make(s, path, request->why, request->mode, deadline_ns, call);
    if (rc == ZNONODE) {
        hf__zk_call_again(call);
        rc = hf__zk_make_break_directory(s->zk, s, deadline_ns);
        if (rc == ZOK)
            rc = hf__zk_make(s, path, request->why, request->mode, deadline_ns, call);
    }
    hf__zk_call_free(call);
    return rc == ZNODEEXISTS ? ZOK : rc;
}

void hf__zk_apply_break(struct hf__zk_bidding *b, bool now)
{
    int64_t now_ns = hf__now_ns(b->zk->base.host->env);

    b->break_requested = true;
    if (b->state != HF__ZK_STATE_JOINED)
        return;
    int64_t end_ns = now || b->until_ns == INT64_MAX ? now_ns : b->until_ns;
    b->state = HF__ZK_STATE_LINGERING;
    b->until_ns = end_ns + (b->claimed ? b->lock_delay_ms : 0) * HF__NS_PER_MS;
    hf__zk_set_timer(b, b->until_ns);
    hf__zk_call_ticket(b->zk, &b->ticket, 0);
}

/* On ZooKeeper's thread nothing can be asked, so it is not known who was meant: every holder is
 * called, and the renewal that the core then sends reads the requests. */
static void see_after(struct hf__link *link, void *ctx)
{
    struct hf__zk_bidding *b = (struct hf__zk_bidding *)link;

    if (b->inside && b->state == HF__ZK_STATE_JOINED)
        hf__zk_call_ticket(ctx, &b->ticket, 0);
}

/* ZooKeeper's thread. */
static void on_requests(zhandle_t *zh, int type, int state, const char *path, void *ctx)
{
    struct hf__zk *zk = ctx;

    (void)zh, (void)state, (void)path;
    if (type == ZOO_SESSION_EVENT)
        return;
    pthread_mutex_lock(&zk->mutex);
    zk->break_session = NULL; /* the watch is used up */
    hf__table_each(&zk->biddings, see_after, zk);
    pthread_mutex_unlock(&zk->mutex);
}

static int read_requests(struct hf__zk *zk, struct hf__zk_session *s, int64_t deadline_ns,
                         struct hf__zk_call *list)
{
    char path[HF__ZK_PATH_MAX];

    snprintf(path, sizeof path, "%s/%s", zk->prefix, HF__ZK_BREAK_DIRECTORY);
    hf__zk_call_ref(list);
    return hf__zk_wait(zk, list,
                       zoo_awget_children(s->zh, path, on_requests, zk, hf__zk_on_children, list),
                       deadline_ns);
}

/* One session of the client watches for all of them. The requests that are there are applied as well:
 * one may have come before anybody watched. */
void hf__zk_watch_break_requests(struct hf__zk *zk, struct hf__zk_session *s, int64_t deadline_ns)
{
    int64_t until_ns = hf__now_ns(zk->base.host->env) + PATIENCE_NS;

    if (deadline_ns > until_ns)
        deadline_ns = until_ns;
    pthread_mutex_lock(&zk->mutex);
    bool watched =
        zk->break_session != NULL && zk->break_session->state == HF__ZK_SESSION_CONNECTED;
    bool begins = s != NULL && s->state == HF__ZK_SESSION_CONNECTED && !watched;
    if (begins)
        zk->break_session = s;
    pthread_mutex_unlock(&zk->mutex);
    struct hf__zk_call *list = begins ? hf__zk_call_new() : NULL;
    if (list == NULL)
        return;
    int rc = read_requests(zk, s, deadline_ns, list);
    if (rc == ZNONODE) {
        hf__zk_call_again(list);
        rc = hf__zk_make_break_directory(zk, s, deadline_ns);
        if (rc == ZOK)
            rc = read_requests(zk, s, deadline_ns, list);
    }
    pthread_mutex_lock(&zk->mutex);
    for (int i = 0; rc == ZOK && i < list->name_count; i++) {
        const char *name = list->names[i];
        struct hf__ticket of;
        struct hf__zk_bidding *b = hf__zk_ticket_of(name, &of) ? hf__zk_lookup(zk, &of) : NULL;
        if (b != NULL)
            hf__zk_apply_break(b, strlen(name) > 36); /* "-now" behind the uuid */
    }
    if (rc != ZOK && zk->break_session == s)
        zk->break_session = NULL; /* the next renewal tries again */
    pthread_mutex_unlock(&zk->mutex);
    hf__zk_call_free(list);
}
