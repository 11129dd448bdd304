/* Watches and wake-ups.
 *
 * A bid watches the one node before it that keeps it out. Several bids of one session that watch
 * the same node share one watch. The library calls on its own thread; there the tickets are only
 * put into a list, and the keeper is told by an event descriptor. The library sets watches again
 * after a reconnect; if the session has expired, everybody who lived in it is called (session.c).
 */
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "stores/zookeeper/zk.h"
#include "util/banned.h"

struct watch {
    struct hf__link link; /* by path, in its session */
    struct session *session;
    char path[];
};

static struct watch *find(const struct session *s, const char *path)
{
    uint64_t hash = hf__hash(s->zk->seed, path, strlen(path));
    struct hf__link *link = hf__table_find(&s->watches, hash);

    for (; link != NULL; link = hf__table_next(link)) {
        if (strcmp(((struct watch *)link)->path, path) == 0)
            return (struct watch *)link;
    }
    return NULL;
}

void hf__zk_call_ticket(struct zk *zk, const struct hf__ticket *ticket)
{
    struct wakeup *wake = zk->wake_fd >= 0 ? malloc(sizeof *wake) : NULL;

    if (wake == NULL)
        return; /* a lost wake-up costs time only */
    *wake = (struct wakeup){.ticket = *ticket};
    *zk->last_wake = wake;
    zk->last_wake = &wake->next;
    eventfd_write(zk->wake_fd, 1);
}

static void call_if_watching(struct hf__link *link, void *ctx)
{
    struct bidding *b = (struct bidding *)link;
    const struct watch *w = ctx;

    if (b->session == w->session && b->watched != NULL && strcmp(b->watched, w->path) == 0) {
        free(b->watched);
        b->watched = NULL;
        hf__zk_call_ticket(b->zk, &b->ticket);
    }
}

/* The mutex is held. Whoever counted on it asks again. */
static void drop(struct watch *w)
{
    hf__table_remove(&w->session->watches, &w->link);
    hf__table_each(&w->session->zk->biddings, call_if_watching, w);
    free(w);
}

/* ZooKeeper's thread. Events of the session leave the watch where it is. */
void hf__zk_watcher(zhandle_t *zh, int type, int state, const char *path, void *ctx)
{
    struct watch *w = ctx;
    struct zk *zk = w->session->zk;

    (void)zh, (void)state, (void)path;
    if (type == ZOO_SESSION_EVENT)
        return;
    pthread_mutex_lock(&zk->mutex);
    drop(w);
    pthread_mutex_unlock(&zk->mutex);
}

/* The mutex is held. True if there is one already. */
static bool join(struct bidding *b, const char *path)
{
    free(b->watched);
    b->watched = strdup(path);
    return b->watched != NULL && find(b->session, path) != NULL;
}

static struct watch *add(struct session *s, const char *path)
{
    size_t len = strlen(path);
    struct watch *w = calloc(1, sizeof *w + len + 1);

    if (w == NULL)
        return NULL;
    memcpy(w->path, path, len + 1);
    w->session = s;
    hf__table_add(&s->watches, &w->link, hf__hash(s->zk->seed, path, len));
    return w;
}

/* The library keeps the watch only if the node was there. */
static void on_watched(int rc, const char *value, int len, const struct Stat *stat,
                       const void *data)
{
    struct call *call = (struct call *)data;

    if (rc != ZOK) {
        struct zk *zk = call->watch->session->zk;
        pthread_mutex_lock(&zk->mutex);
        drop(call->watch);
        pthread_mutex_unlock(&zk->mutex);
    }
    hf__zk_on_data(rc, value, len, stat, data);
}

static int ask(struct watch *w, struct call *call, int64_t deadline_ns)
{
    struct zk *zk = w->session->zk;

    call->watch = w;
    hf__zk_call_ref(call);
    int sent = zoo_awget(w->session->zh, w->path, hf__zk_watcher, w, on_watched, call);
    if (sent != ZOK) {
        pthread_mutex_lock(&zk->mutex);
        drop(w);
        pthread_mutex_unlock(&zk->mutex);
    }
    return hf__zk_wait(zk, call, sent, deadline_ns);
}

int hf__zk_watch(struct bidding *b, const char *path, int64_t deadline_ns)
{
    struct zk *zk = b->zk;
    struct call *call = hf__zk_call_new();
    int rc = ZOK;

    if (call == NULL)
        return ZSYSTEMERROR;
    pthread_mutex_lock(&zk->mutex);
    struct watch *w = NULL;
    bool there = b->session == NULL || join(b, path);
    if (!there)
        w = add(b->session, path);
    pthread_mutex_unlock(&zk->mutex);
    if (!there)
        rc = w != NULL ? ask(w, call, deadline_ns) : ZSYSTEMERROR;
    hf__zk_call_free(call);
    return rc;
}

void hf__zk_free_watches(struct session *s)
{
    struct hf__link *link;

    while ((link = hf__table_any(&s->watches)) != NULL) {
        hf__table_remove(&s->watches, link);
        free(link);
    }
    hf__table_clear(&s->watches);
}

int hf__zk_wake_fd(struct hf__store *store)
{
    struct zk *zk = (struct zk *)store;
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

    pthread_mutex_lock(&zk->mutex);
    zk->wake_fd = fd;
    pthread_mutex_unlock(&zk->mutex);
    return fd;
}

void hf__zk_wake(struct hf__store *store, hf__wake_sink *sink, void *ctx)
{
    struct zk *zk = (struct zk *)store;
    eventfd_t count;

    pthread_mutex_lock(&zk->mutex);
    struct wakeup *first = zk->first_wake;
    zk->first_wake = NULL;
    zk->last_wake = &zk->first_wake;
    eventfd_read(zk->wake_fd, &count);
    pthread_mutex_unlock(&zk->mutex);

    while (first != NULL) {
        struct wakeup *next = first->next;
        sink(ctx, &first->ticket, 0);
        free(first);
        first = next;
    }
}
