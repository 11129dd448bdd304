/* Waking: the one watch call of the client, and whether its server is alive.
 *
 *      no call --somebody dials--> under way --ended, silent, moved on, missed something--> no call
 *
 * Nothing is dialled here, for that may take long. When the call is lost, the core is told to look at
 * what is held, and one of those who wait is told to ask: whoever comes first dials, and the call
 * begins anew, with all that was watched, from the same revisions. The timer looks for signs of life
 * while there is anything to lose, and says the same again if nobody could dial yet. */
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "stores/etcd/etcd.h"

#include "base/banned.h"

#define CHECK_MS    1000
#define NS_PER_S    (1000 * HF__NS_PER_MS)
#define MESSAGE_MAX (16 << 20) /* bytes of messages that were not heard yet */

static void set_timer(struct hf__etcd_watching *w, int64_t after_ns)
{
    struct itimerspec when = {.it_value = {after_ns / NS_PER_S, after_ns % NS_PER_S + 1}};

    w->timed = true;
    timerfd_settime(w->timer_fd, 0, &when, NULL);
}

static bool has_something_to_lose(const struct hf__etcd *e)
{
    return e->bids.count > 0 || e->watching.watches.count > 0;
}

void hf__etcd_watches_time(struct hf__etcd *e)
{
    if (e->watching.timer_fd >= 0 && !e->watching.timed && has_something_to_lose(e))
        set_timer(&e->watching, CHECK_MS * HF__NS_PER_MS);
}

/* Somebody must dial. */
static void prompt(struct hf__etcd *e)
{
    struct hf__etcd_watching *w = &e->watching;

    e->base.moved = true;
    pthread_mutex_lock(&e->mutex);
    struct hf__link *any = hf__table_any(&w->watches);
    struct hf__ticket ticket = {{0}};
    if (any != NULL)
        ticket = ((struct hf__etcd_watch *)any)->ticket;
    pthread_mutex_unlock(&e->mutex);
    if (any != NULL)
        w->sink(w->sink_ctx, &ticket, 0);
}

/* Takes what has come. False: the call is over, and its connection is of no use. */
static bool take(struct hf__etcd *e, struct hf__grpc_conn **ret_conn)
{
    struct hf__etcd_watching *w = &e->watching;
    bool well = true;

    pthread_mutex_lock(&e->mutex);
    if (w->call != NULL) {
        if (w->is_new)
            w->in.len = 0; /* of the former */
        w->is_new = false;
        well = hf__grpc_hear(w->conn, w->call, &w->in);
        if (!well && w->call->status == HF__GRPC_STATUS_UNAUTHENTICATED) {
            free(e->cluster.token);
            e->cluster.token = NULL;
        }
        *ret_conn = hf__grpc_ref(w->conn);
    }
    pthread_mutex_unlock(&e->mutex);
    return well;
}

static void tick(struct hf__etcd *e, struct hf__grpc_conn *conn)
{
    struct hf__etcd_watching *w = &e->watching;
    int64_t after_ns = CHECK_MS * HF__NS_PER_MS;
    uint64_t count;

    if (read(w->timer_fd, &count, sizeof count) < 0)
        return;
    pthread_mutex_lock(&e->mutex);
    bool lost = w->call == NULL;
    w->timed = has_something_to_lose(e);
    bool wanted = w->timed;
    pthread_mutex_unlock(&e->mutex);
    if (!wanted)
        return;
    if (lost)
        prompt(e);
    else if (conn != NULL)
        after_ns = hf__grpc_check(conn) - hf__now_ns(e->base.host->env);
    pthread_mutex_lock(&e->mutex);
    set_timer(w, after_ns > 0 ? after_ns : 0);
    pthread_mutex_unlock(&e->mutex);
}

/* Rung by whoever gave the call up. Before anything is taken: who rings later rings again. */
static void answer_bell(struct hf__etcd *e)
{
    struct hf__etcd_watching *w = &e->watching;
    eventfd_t count;

    pthread_mutex_lock(&e->mutex);
    bool lost = w->rung && w->call == NULL;
    if (w->rung)
        eventfd_read(w->bell_fd, &count);
    w->rung = false;
    pthread_mutex_unlock(&e->mutex);
    if (lost)
        prompt(e);
}

void hf__etcd_wake(struct hf__store *store, hf__wake_sink *sink, void *ctx)
{
    struct hf__etcd *e = (struct hf__etcd *)store;
    struct hf__etcd_watching *w = &e->watching;
    struct hf__grpc_conn *conn = NULL;

    w->sink = sink;
    w->sink_ctx = ctx;
    answer_bell(e);
    bool well = take(e, &conn);
    well &= hf__etcd_take_notices(e);
    if (!well) {
        w->in.len = 0;
        w->in.failed = false;
        hf__etcd_move_on(e, conn);
    }
    tick(e, conn);
    hf__grpc_unref(conn);
}

static bool add(int epoll_fd, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

    return fd >= 0 && epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

int hf__etcd_wake_fd(struct hf__store *store)
{
    struct hf__etcd *e = (struct hf__etcd *)store;
    struct hf__etcd_watching *w = &e->watching;
    int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    int bell_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);

    if (epoll_fd < 0 || !add(epoll_fd, bell_fd) || !add(epoll_fd, timer_fd)) {
        int fds[] = {epoll_fd, bell_fd, timer_fd};
        for (size_t i = 0; i < 3; i++) {
            if (fds[i] >= 0)
                close(fds[i]);
        }
        return HF_SYSTEM;
    }
    pthread_mutex_lock(&e->mutex);
    w->in.cap = MESSAGE_MAX;
    w->bell_fd = bell_fd;
    w->timer_fd = timer_fd;
    w->epoll_fd = epoll_fd;
    hf__etcd_watches_begin(e);
    hf__etcd_watches_time(e);
    pthread_mutex_unlock(&e->mutex);
    return epoll_fd;
}
