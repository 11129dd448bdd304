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

void hf__zk_call_ticket(struct zk *zk, const struct hf__ticket *ticket, uint64_t generation)
{
    struct wakeup *wake = malloc(sizeof *wake);

    if (wake == NULL)
        return; /* a lost wake-up costs time only */
    *wake = (struct wakeup){.ticket = *ticket, .generation = generation};
    *zk->last_wake = wake;
    zk->last_wake = &wake->next;
    if (zk->wake_fd >= 0)
        eventfd_write(zk->wake_fd, 1);
}

void hf__zk_look_away(struct sight *sight)
{
    struct watch *w = sight->watch;

    if (w == NULL)
        return;
    struct sight **at = &w->sights;
    while (*at != sight)
        at = &(*at)->next;
    *at = sight->next;
    sight->watch = NULL;
}

/* Under the mutex. The watch has told, or will never tell: whoever counted on it is told. Gives
 * those that must ask who is left, each with a share. */
static struct bidding *drop(struct watch *w, int type)
{
    struct bidding *to_ask = NULL;
    struct sight *sight;

    hf__table_remove(&w->session->watches, &w->link);
    while ((sight = w->sights) != NULL) {
        hf__zk_look_away(sight);
        sight->b->may_tell &= !w->foreign;
        if (!hf__zk_watch_told(sight, type))
            continue;
        sight->b->refs++;
        sight->b->next_to_ask = to_ask;
        to_ask = sight->b;
    }
    free(w);
    return to_ask;
}

static void drop_and_ask(struct watch *w, int type)
{
    struct zk *zk = w->session->zk;

    pthread_mutex_lock(&zk->mutex);
    struct bidding *b = drop(w, type);
    pthread_mutex_unlock(&zk->mutex);
    while (b != NULL) {
        struct bidding *next = b->next_to_ask;
        hf__zk_ask_after_event(b);
        hf__zk_bidding_unref(b);
        b = next;
    }
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

/* The library keeps the watch only if the node was there. That it was not is told behind all that
 * happened before, as its deletion would have been. */
static void on_watched(int rc, const char *value, int len, const struct Stat *stat,
                       const void *data)
{
    struct call *call = (struct call *)data;
    struct watch *w = call->watch;

    if (rc == ZOK) {
        pthread_mutex_lock(&w->session->zk->mutex);
        struct details d;
        hf__zk_parse(value, len, &d);
        w->armed = true;
        w->foreign = d.ttl_ms < 0;
        pthread_mutex_unlock(&w->session->zk->mutex);
    } else {
        drop_and_ask(w, rc == ZNONODE ? ZOO_DELETED_EVENT : 0);
    }
    hf__zk_on_data(rc, value, len, stat, data);
}

/* Under the mutex. The watch to ask for, or NULL if there is nothing to ask. */
static struct watch *aim(struct bidding *b, enum sight_kind kind, const char *path)
{
    struct sight *sight = &b->sights[kind];

    hf__zk_look_away(sight);
    if (b->session == NULL)
        return NULL;
    struct watch *there = find(b->session, path);
    struct watch *w = there != NULL ? there : add(b->session, path);
    if (w == NULL)
        return NULL;
    *sight = (struct sight){.watch = w, .next = w->sights, .b = b};
    w->sights = sight;
    return there == NULL ? w : NULL;
}

static void on_change(zhandle_t *zh, int type, int state, const char *path, void *ctx);

static struct call *ask(struct watch *w, int *ret_sent)
{
    struct call *call = hf__zk_call_new();

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

/* The node was written to, as one that moves is: it is there, under the same path. */
static void watch_again(struct watch *w)
{
    struct zk *zk = w->session->zk;
    int sent;

    pthread_mutex_lock(&zk->mutex);
    w->armed = false;
    bool wanted = w->sights != NULL;
    pthread_mutex_unlock(&zk->mutex);
    if (wanted)
        hf__zk_call_free(ask(w, &sent));
    else
        drop_and_ask(w, 0);
}

/* ZooKeeper's thread. Events of the session leave the watch where it is. */
static void on_change(zhandle_t *zh, int type, int state, const char *path, void *ctx)
{
    (void)zh, (void)state, (void)path;
    if (type == ZOO_CHANGED_EVENT)
        watch_again(ctx);
    else if (type != ZOO_SESSION_EVENT)
        drop_and_ask(ctx, type);
}

int hf__zk_watch(struct bidding *b, const char *const paths[HF__ZK_SIGHTS], int64_t deadline_ns)
{
    struct call *calls[HF__ZK_SIGHTS] = {NULL};
    int sent[HF__ZK_SIGHTS] = {0}, rc = ZOK;

    for (int i = 0; i < HF__ZK_SIGHTS; i++) {
        if (paths[i] == NULL)
            continue;
        pthread_mutex_lock(&b->zk->mutex);
        struct watch *w = aim(b, (enum sight_kind)i, paths[i]);
        pthread_mutex_unlock(&b->zk->mutex);
        if (w != NULL)
            calls[i] = ask(w, &sent[i]);
    }
    for (int i = 0; i < HF__ZK_SIGHTS; i++) {
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

void hf__zk_free_watches(struct session *s)
{
    struct hf__link *link;

    while ((link = hf__table_any(&s->watches)) != NULL) {
        struct watch *w = (struct watch *)link;
        while (w->sights != NULL)
            hf__zk_look_away(w->sights);
        hf__table_remove(&s->watches, link);
        free(w);
    }
    hf__table_clear(&s->watches);
}

int hf__zk_wake_fd(struct hf__store *store)
{
    struct zk *zk = (struct zk *)store;
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
        sink(ctx, &first->ticket, first->generation);
        free(first);
        first = next;
    }
}
