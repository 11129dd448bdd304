/* Wake-ups: one connection per client that has said LISTEN to a channel whose name nobody can
 * guess.
 *
 *      NOTIFY <our channel>, '<ticket> <generation>'       this ticket was let in; 0: ask
 *
 * The keeper reads from it without blocking. It never dials: if the connection is lost everybody is
 * told to ask, and whoever asks dials again, on its own time. Since the channel's name stays the
 * same, what is noted in the rows stays right. What the keeper polls is an epoll descriptor, which
 * stays while the connection in it changes.
 *
 * LISTEN belongs to a session. Behind a pooler there is none, so there is no push, and waiters ask.
 *
 * Who owns what: `conn` is put in by a thread that dials, while it is NULL, and from then on
 * belongs to the keeper, which alone takes it out. The mutex is for the fields, not for reading. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "stores/postgres/postgres.h"

#include "util/banned.h"

#define RETRY_MS 500

int hf__pg_listener_init(struct hf__pg *s, hf_error *err)
{
    struct hf__pg_listener *l = &s->listener;
    const struct hf_env *env = s->base.host->env;
    struct hf__ticket bits;
    char hex[HF_TICKET_SIZE];

    pthread_mutex_init(&l->mutex, NULL);
    l->epoll_fd = l->kick_fd = -1;
    if (env->random(env->ctx, &bits, sizeof bits) != 0)
        return hf__fail(err, HF_SYSTEM, "there is no randomness to be had");
    hf__ticket_format(&bits, hex);
    snprintf(l->channel, sizeof l->channel, "holdfast_%s", hex);
    return 0;
}

void hf__pg_listener_clear(struct hf__pg *s)
{
    struct hf__pg_listener *l = &s->listener;

    hf__pg_hang_up(l->conn);
    if (l->epoll_fd >= 0)
        close(l->epoll_fd);
    if (l->kick_fd >= 0)
        close(l->kick_fd);
    pthread_mutex_destroy(&l->mutex);
}

/* A pooler gives out a process id of its own making, since it has to find the right one to cancel.
 */
int hf__pg_find_pooler(struct hf__pg *s, struct hf__pg_conn *c, int64_t deadline_ns,
                       bool *ret_pooled, hf_error *err)
{
    struct hf__pg_query q = {.sql = "SELECT pg_backend_pid()", .reads = true};
    PGresult *result = NULL;
    int r = hf__pg_ask(s, c, &q, deadline_ns, &result, err);

    if (r == 0)
        *ret_pooled = hf__pg_cell(result, 0, 0, 0) != PQbackendPID(c->pg);
    PQclear(result);
    return r;
}

/* 0, HF_UNSUPPORTED: there is a pooler, or the error. */
static int dial(struct hf__pg *s, int64_t deadline_ns, struct hf__pg_conn **ret_conn)
{
    struct hf__pg_conn *c = NULL;
    struct epoll_event event = {.events = EPOLLIN};
    char listen[80];
    bool pooled = false;
    int r = hf__pg_dial(s, deadline_ns, &c, NULL);

    if (r == 0)
        r = hf__pg_find_pooler(s, c, deadline_ns, &pooled, NULL);
    if (r == 0 && pooled)
        r = HF_UNSUPPORTED;
    snprintf(listen, sizeof listen, "LISTEN %s", s->listener.channel);
    if (r == 0)
        r = hf__pg_run(s, c, listen, deadline_ns, NULL);
    if (r == 0 && epoll_ctl(s->listener.epoll_fd, EPOLL_CTL_ADD, PQsocket(c->pg), &event) < 0)
        r = HF_SYSTEM;
    if (r != 0) {
        hf__pg_hang_up(c);
        return r;
    }
    *ret_conn = c;
    return 0;
}

/* Mutex held, released meanwhile. */
static void connect_again(struct hf__pg *s, int64_t deadline_ns)
{
    struct hf__pg_listener *l = &s->listener;
    struct hf__pg_conn *c = NULL;

    l->dialling = true;
    pthread_mutex_unlock(&l->mutex);
    int r = dial(s, deadline_ns, &c);
    pthread_mutex_lock(&l->mutex);
    l->dialling = false;
    if (r != 0) {
        l->wanted = r != HF_UNSUPPORTED;
        l->retry_ns = hf__now_ns(s->base.host->env) + RETRY_MS * HF__NS_PER_MS;
        return;
    }
    l->conn = c;
    l->missed = true; /* what was said meanwhile */
    eventfd_write(l->kick_fd, 1);
}

int hf__pg_wake_fd(struct hf__store *store)
{
    struct hf__pg *s = (struct hf__pg *)store;
    struct hf__pg_listener *l = &s->listener;
    struct epoll_event event = {.events = EPOLLIN};
    int64_t now_ns = hf__now_ns(s->base.host->env);

    if (!s->set.push)
        return -1;
    pthread_mutex_lock(&l->mutex);
    l->kick_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    l->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (l->kick_fd >= 0 && l->epoll_fd >= 0 &&
        epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, l->kick_fd, &event) == 0) {
        l->wanted = true;
        connect_again(s, now_ns + s->base.host->op_timeout_ms * HF__NS_PER_MS);
        l->missed = false; /* nobody could have been called before */
    }
    int fd = l->wanted ? l->epoll_fd : -1;
    pthread_mutex_unlock(&l->mutex);
    return fd;
}

const char *hf__pg_channel(struct hf__pg *s, int64_t deadline_ns)
{
    struct hf__pg_listener *l = &s->listener;
    int64_t now_ns = hf__now_ns(s->base.host->env);

    pthread_mutex_lock(&l->mutex);
    if (l->wanted && l->conn == NULL && !l->dialling && now_ns >= l->retry_ns)
        connect_again(s, now_ns + (deadline_ns - now_ns) / 2);
    const char *channel = l->conn != NULL ? l->channel : NULL;
    pthread_mutex_unlock(&l->mutex);
    return channel;
}

static void hear(const char *payload, hf__wake_sink *sink, void *ctx)
{
    struct hf__ticket ticket;
    char hex[HF_TICKET_SIZE];
    char *end;

    if (strlen(payload) < HF_TICKET_SIZE + 1)
        return;
    memcpy(hex, payload, HF_TICKET_SIZE - 1);
    hex[HF_TICKET_SIZE - 1] = '\0';
    uint64_t generation = strtoumax(payload + HF_TICKET_SIZE, &end, 10);
    if (hf__ticket_parse(hex, &ticket) && *end == '\0')
        sink(ctx, &ticket, generation);
}

/* False: the connection is lost. */
static bool read_calls(struct hf__pg_conn *c, hf__wake_sink *sink, void *ctx)
{
    bool whole = PQconsumeInput(c->pg) && PQstatus(c->pg) == CONNECTION_OK;
    PGnotify *call;

    while ((call = PQnotifies(c->pg)) != NULL) {
        hear(call->extra, sink, ctx);
        PQfreemem(call);
    }
    return whole;
}

void hf__pg_wake(struct hf__store *store, hf__wake_sink *sink, void *ctx)
{
    struct hf__pg_listener *l = &((struct hf__pg *)store)->listener;
    eventfd_t kicks;

    pthread_mutex_lock(&l->mutex);
    eventfd_read(l->kick_fd, &kicks);
    struct hf__pg_conn *c = l->conn;
    bool missed = l->missed;
    l->missed = false;
    pthread_mutex_unlock(&l->mutex);

    if (c != NULL && !read_calls(c, sink, ctx)) {
        pthread_mutex_lock(&l->mutex);
        l->conn = NULL;
        pthread_mutex_unlock(&l->mutex);
        hf__pg_hang_up(c);
        missed = true;
    }
    if (missed)
        sink(ctx, NULL, 0);
}
