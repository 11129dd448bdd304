/* Watches and wake-ups.
 *
 * Bids of one session that look at the same node share one watch. The library calls on its own
 * thread; there it is only noted what a bid now knows (predecessors.c), and who is to be woken is put into
 * a list, for whoever polls the event descriptor. The library sets watches again after a
 * reconnect; if the session has expired, everybody who lived in it is called (session.c). */
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "stores/zookeeper/zk.h"

#include "base/banned.h"

void hf__zk_call_ticket(struct hf__zk *zk, const struct hf__ticket *ticket, uint64_t generation)
{
    struct hf__zk_wakeup *wake = malloc(sizeof *wake);

    if (wake == NULL)
        return; /* a lost wake-up costs time only */
    *wake = (struct hf__zk_wakeup){.ticket = *ticket, .generation = generation};
    *zk->last_wake = wake;
    zk->last_wake = &wake->next;
    if (zk->wake_fd >= 0)
        eventfd_write(zk->wake_fd, 1);
}

void hf__zk_unsubscribe(struct hf__zk_subscription *subscription)
{
    struct hf__zk_watch *w = subscription->watch;

    if (w == NULL)
        return;
    struct hf__zk_subscription **at = &w->subscriptions;
    while (*at != subscription)
        at = &(*at)->next;
    *at = subscription->next;
    subscription->watch = NULL;
}

/* Under the mutex. The watch has told, or will never tell: whoever counted on it is told. Gives
 * those that must ask who is left, each with a share. */
static struct hf__zk_bidding *drop(struct hf__zk_watch *w, int type)
{
    struct hf__zk_bidding *to_ask = NULL;
    struct hf__zk_subscription *subscription;

    hf__table_remove(&w->session->watches, &w->link);
    while ((subscription = w->subscriptions) != NULL) {
        hf__zk_unsubscribe(subscription);
        subscription->b->may_tell &= !w->foreign;
        if (!hf__zk_watch_told(subscription, type))
            continue;
        subscription->b->refs++;
        subscription->b->next_to_ask = to_ask;
        to_ask = subscription->b;
    }
    free(w);
    return to_ask;
}

static void drop_and_ask(struct hf__zk_watch *w, int type)
{
    struct hf__zk *zk = w->session->zk;

    pthread_mutex_lock(&zk->mutex);
    struct hf__zk_bidding *b = drop(w, type);
    pthread_mutex_unlock(&zk->mutex);
    while (b != NULL) {
        struct hf__zk_bidding *next = b->next_to_ask;
        hf__zk_ask_after_event(b);
        hf__zk_bidding_unref(b);
        b = next;
    }
}

/* The library keeps the watch only if the node was there. That it was not is told behind all that
 * happened before, as its deletion would have been. */
static void on_watched(int rc, const char *value, int len, const struct Stat *stat,
                       const void *data)
{
    struct hf__zk_call *call = (struct hf__zk_call *)data;
    struct hf__zk_watch *w = call->watch;

    if (rc == ZOK) {
        pthread_mutex_lock(&w->session->zk->mutex);
        struct hf__zk_details d;
        hf__zk_parse(value, len, &d);
        w->armed = true;
        w->foreign = d.ttl_ms < 0;
        pthread_mutex_unlock(&w->session->zk->mutex);
    } else {
        drop_and_ask(w, rc == ZNONODE ? ZOO_DELETED_EVENT : 0);
    }
    hf__zk_on_data(rc, value, len, stat, data);
}

/* Under the mutex. Which watch is to be asked for; NULL if there is nothing to ask, because another
 * bid of this session watches the same node. */
static struct hf__zk_watch *subscribe(struct hf__zk_bidding *b, enum hf__zk_watched kind,
                                      const char *path)
{
    struct hf__zk_subscription *subscription = &b->subscriptions[kind];
    struct hf__zk_session *s = b->session;
    size_t len = strlen(path);
    uint64_t hash = hf__hash(b->zk->seed, path, len);

    hf__zk_unsubscribe(subscription);
    if (s == NULL)
        return NULL;
    struct hf__link *link = hf__table_find(&s->watches, hash);
    while (link != NULL && strcmp(((struct hf__zk_watch *)link)->path, path) != 0)
        link = hf__table_next(link);
    struct hf__zk_watch *w = (struct hf__zk_watch *)link;
    if (w == NULL) {
        w = calloc(1, sizeof *w + len + 1);
        if (w == NULL)
            return NULL; /* it asks when it is time */
        memcpy(w->path, path, len + 1);
        w->session = s;
        hf__table_add(&s->watches, &w->link, hash);
    }
    *subscription = (struct hf__zk_subscription){.watch = w, .next = w->subscriptions, .b = b};
    w->subscriptions = subscription;
    return link == NULL ? w : NULL;
}

/* The same for a list of children. */
static void on_listed(int rc, const struct String_vector *names, const void *data)
{
    struct hf__zk_call *call = (struct hf__zk_call *)data;
    struct hf__zk_watch *w = call->watch;

    if (rc == ZOK) {
        pthread_mutex_lock(&w->session->zk->mutex);
        w->armed = true;
        pthread_mutex_unlock(&w->session->zk->mutex);
    } else {
        drop_and_ask(w, 0);
    }
    hf__zk_on_children(rc, names, data);
}

static void on_change(zhandle_t *zh, int type, int state, const char *path, void *ctx);

static struct hf__zk_call *ask(struct hf__zk_watch *w, int *ret_sent)
{
    struct hf__zk_call *call = hf__zk_call_new();

    *ret_sent = ZSYSTEMERROR;
    if (call != NULL) {
        call->watch = w;
        hf__zk_call_ref(call);
        *ret_sent = zoo_awget(w->session->zh, w->path, on_change, w, on_watched, call);
    }
    if (*ret_sent != ZOK)
        drop_and_ask(w, 0);
    return call;
}

/* ZooKeeper's thread. Events of the session leave the watch where it is. A node that was written to,
 * as one that moves is, is there under the same path: it is watched again. */
static void on_change(zhandle_t *zh, int type, int state, const char *path, void *ctx)
{
    struct hf__zk_watch *w = ctx;
    struct hf__zk *zk = w->session->zk;
    int sent;

    (void)zh, (void)state, (void)path;
    if (type == ZOO_SESSION_EVENT)
        return;
    pthread_mutex_lock(&zk->mutex);
    bool again = type == ZOO_CHANGED_EVENT && w->subscriptions != NULL;
    if (again)
        w->armed = false;
    pthread_mutex_unlock(&zk->mutex);
    if (again)
        hf__zk_call_free(ask(w, &sent));
    else
        drop_and_ask(w, type == ZOO_CHANGED_EVENT ? 0 : type);
}

/* If it, or another bid of its session, is told of the next change already, a list is enough: what comes
 * after it will be told. */
int hf__zk_list_and_watch(struct hf__zk_bidding *b, int64_t deadline_ns, struct hf__zk_call *list)
{
    struct hf__zk *zk = b->zk;

    pthread_mutex_lock(&zk->mutex);
    struct hf__zk_session *s = b->session;
    struct hf__zk_watch *w = NULL;
    if (b->subscriptions[HF__ZK_WATCHED_ARRIVALS].watch == NULL)
        w = subscribe(b, HF__ZK_WATCHED_ARRIVALS, b->directory);
    if (w != NULL)
        w->children = true;
    if (s != NULL)
        hf__zk_use_locked(s);
    pthread_mutex_unlock(&zk->mutex);
    if (s == NULL)
        return ZINVALIDSTATE;
    int rc;
    if (w == NULL) {
        rc = hf__zk_children(s, b->directory, false, deadline_ns, list);
    } else {
        list->watch = w;
        hf__zk_call_ref(list);
        int sent = zoo_awget_children(s->zh, b->directory, on_change, w, on_listed, list);
        if (sent != ZOK)
            drop_and_ask(w, 0);
        rc = hf__zk_wait(zk, list, sent, deadline_ns);
    }
    hf__zk_unuse(s);
    return rc;
}

int hf__zk_watch(struct hf__zk_bidding *b, const char *const paths[HF__ZK_WATCHED_KINDS],
                 int64_t deadline_ns)
{
    struct hf__zk_call *calls[HF__ZK_WATCHED_KINDS] = {NULL};
    int sent[HF__ZK_WATCHED_KINDS] = {0}, rc = ZOK;

    for (int i = 0; i < HF__ZK_WATCHED_KINDS; i++) {
        if (paths[i] == NULL)
            continue;
        pthread_mutex_lock(&b->zk->mutex);
        struct hf__zk_watch *w = subscribe(b, (enum hf__zk_watched)i, paths[i]);
        pthread_mutex_unlock(&b->zk->mutex);
        if (w != NULL)
            calls[i] = ask(w, &sent[i]);
    }
    for (int i = 0; i < HF__ZK_WATCHED_KINDS; i++) {
        int one = ZOK;
        if (calls[i] != NULL)
            one = hf__zk_wait(b->zk, calls[i], sent[i], deadline_ns);
        else if (sent[i] != ZOK)
            one = sent[i];
        hf__zk_call_free(calls[i]);
        rc = rc == ZOK || one == ZNONODE ? one : rc;
    }
    return rc;
}

void hf__zk_free_watches(struct hf__zk_session *s)
{
    struct hf__link *link;

    while ((link = hf__table_any(&s->watches)) != NULL) {
        struct hf__zk_watch *w = (struct hf__zk_watch *)link;
        while (w->subscriptions != NULL)
            hf__zk_unsubscribe(w->subscriptions);
        hf__table_remove(&s->watches, link);
        free(w);
    }
    hf__table_clear(&s->watches);
}

int hf__zk_wake_fd(struct hf__store *store)
{
    struct hf__zk *zk = (struct hf__zk *)store;
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

    pthread_mutex_lock(&zk->mutex);
    zk->wake_fd = fd;
    if (fd >= 0 && zk->first_wake != NULL)
        eventfd_write(fd, 1); /* what came before anybody listened */
    pthread_mutex_unlock(&zk->mutex);
    return fd < 0 ? HF_SYSTEM : fd;
}

void hf__zk_wake(struct hf__store *store, hf__wake_sink *sink, void *ctx)
{
    struct hf__zk *zk = (struct hf__zk *)store;
    eventfd_t count;

    pthread_mutex_lock(&zk->mutex);
    struct hf__zk_wakeup *first = zk->first_wake;
    zk->first_wake = NULL;
    zk->last_wake = &zk->first_wake;
    eventfd_read(zk->wake_fd, &count);
    pthread_mutex_unlock(&zk->mutex);

    while (first != NULL) {
        struct hf__zk_wakeup *next = first->next;
        sink(ctx, &first->ticket, first->generation);
        free(first);
        first = next;
    }
}
