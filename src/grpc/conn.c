/* The shared connection: its life, moving bytes, and signs of life. Calls are in call.c.
 *
 * One mutex guards everything. It is held while bytes are moved from and to the kernel, which never
 * waits, because TLS has one state for both directions; it is not held while somebody waits for the
 * network. What the kernel does not take at once is sent by the next who reads or sends.
 *
 * Whether a request may have arrived is counted: `sent` is how many bytes the kernel took, and one
 * whose end lies beyond that when the connection breaks cannot have been executed. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "grpc/conn_state.h"

#include "base/banned.h"

#define OUT_MAX   (32 << 20) /* bytes that wait to be sent */
#define IDLE_MS   50         /* after so long it is looked at before it is used */
#define SILENT_MS 1000       /* and after so long without a byte it is asked for a sign of life, */
#define ANSWER_MS 1500       /* for which it has so long */

/* Life. ---------------------------------------------------------------------------------------- */
/* The server's settings are the first that it sends. What ends before them was never asked. */
static int greet(struct hf__grpc_conn *c, int64_t deadline_ns, hf_error *err)
{
    pthread_mutex_lock(&c->mutex);
    hf__grpc_send(c);
    while (!c->broken && !c->session.settled) {
        short events = 0;
        if (!hf__grpc_receive(c, &events)) {
            int r = hf__grpc_wait(c, events, deadline_ns);
            if (r != 0)
                hf__grpc_break_for(c, "greet", -r);
        }
    }
    int code = c->broken ? hf__fail(err, c->why.code, "%s", c->why.text) : 0;
    pthread_mutex_unlock(&c->mutex);
    return code;
}

int hf__grpc_dial(const struct hf__grpc_route *route, int64_t deadline_ns,
                  struct hf__grpc_conn **ret_conn, hf_error *err)
{
    struct hf__grpc_conn *c = calloc(1, sizeof *c);
    bool is_ipv6 = strchr(route->address.host, ':') != NULL;
    char authority[300];

    if (c == NULL)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    pthread_mutex_init(&c->mutex, NULL);
    c->refs = 1;
    c->env = route->env;
    c->out.cap = OUT_MAX;
    c->epoll_fd = c->bell_fd = -1;
    c->probe_ns = INT64_MAX;
    snprintf(authority, sizeof authority, is_ipv6 ? "[%s]:%s" : "%s:%s", route->address.host,
             route->address.port);
    int code = 0;
    if (!hf__grpc_session_init(&c->session, authority, route->tls != NULL))
        code = hf__fail(err, HF_NO_MEMORY, NULL);
    if (code == 0)
        code = hf__stream_connect(&c->stream, &route->address, route->env, deadline_ns, err);
    if (code == 0 && route->tls != NULL)
        code = hf__tls_start(route->tls, &c->stream, route->address.host, deadline_ns, err);
    if (code == 0) {
        c->plain = route->tls == NULL;
        code = greet(c, deadline_ns, err);
    }
    if (code != 0) {
        hf__grpc_unref(c);
        return code;
    }
    *ret_conn = c;
    return 0;
}

struct hf__grpc_conn *hf__grpc_ref(struct hf__grpc_conn *c)
{
    pthread_mutex_lock(&c->mutex);
    c->refs++;
    pthread_mutex_unlock(&c->mutex);
    return c;
}

void hf__grpc_unref(struct hf__grpc_conn *c)
{
    if (c == NULL)
        return;
    pthread_mutex_lock(&c->mutex);
    bool last = --c->refs == 0;
    pthread_mutex_unlock(&c->mutex);
    if (!last)
        return;
    hf__stream_close(&c->stream);
    hf__grpc_session_clear(&c->session);
    hf__buffer_clear(&c->out);
    pthread_mutex_destroy(&c->mutex);
    free(c);
}

bool hf__grpc_is_usable(struct hf__grpc_conn *c)
{
    short events;

    pthread_mutex_lock(&c->mutex);
    if (!c->broken && !c->reading && hf__now_ns(c->env) - c->heard_ns > IDLE_MS * HF__NS_PER_MS) {
        hf__grpc_receive(c, &events);
        hf__grpc_ring(c);
    }
    bool usable = !c->broken && !c->session.going_away;
    pthread_mutex_unlock(&c->mutex);
    return usable;
}

/* From here on the mutex is held, unless said. ------------------------------------------------- */

/* For good, and for all that wait. The descriptor stays until the last reference, because somebody may
 * be waiting for it; shutting it down wakes who does. */
void hf__grpc_break_for(struct hf__grpc_conn *c, const char *doing, int error)
{
    char buf[160];
    const char *why = error == 0           ? "the server closed the connection"
                      : error == ETIMEDOUT ? "no answer in time"
                      : error == EBADMSG   ? "the server does not speak HTTP/2"
                                         : c->stream.layer->why(&c->stream, error, buf, sizeof buf);

    if (c->broken)
        return;
    hf__fail(&c->why, HF_UNAVAILABLE, "%s: %s", doing, why);
    c->broken = true;
    shutdown(c->stream.fd, SHUT_RDWR);
    hf__grpc_session_abort(&c->session);
    for (struct hf__grpc_call *w = c->waiters; w != NULL; w = w->next_waiter)
        pthread_cond_signal(&w->wake);
    if (c->epoll_fd >= 0)
        epoll_ctl(c->epoll_fd, EPOLL_CTL_DEL, c->stream.fd, NULL);
    c->session.news = true;
    hf__grpc_ring(c);
}

int hf__grpc_wait(struct hf__grpc_conn *c, short events, int64_t deadline_ns)
{
    if (c->out_at < c->out.len)
        events |= POLLOUT;
    pthread_mutex_unlock(&c->mutex);
    int r = hf__wait_fd(c->stream.fd, events, c->env, deadline_ns);
    pthread_mutex_lock(&c->mutex);
    if (r == 0 && c->out_at < c->out.len)
        hf__grpc_send(c);
    return r;
}

/* Moving bytes. -------------------------------------------------------------------------------- */
void hf__grpc_take_in(struct hf__grpc_conn *c, ssize_t n)
{
    if (n == -EAGAIN || n == -EINTR || c->broken)
        return;
    if (n <= 0) {
        hf__grpc_break_for(c, "receive", (int)-n);
        return;
    }
    c->heard_ns = hf__now_ns(c->env);
    c->probe_ns = INT64_MAX;
    if (!hf__grpc_session_feed(&c->session, c->chunk, (size_t)n))
        hf__grpc_break_for(c, "receive", EBADMSG);
    else
        hf__grpc_send(c); /* what HTTP/2 has to say to that */
    for (struct hf__grpc_call *w = c->waiters; w != NULL; w = w->next_waiter) {
        if (w->ended)
            pthread_cond_signal(&w->wake);
    }
}

bool hf__grpc_receive(struct hf__grpc_conn *c, short *ret_events)
{
    ssize_t n = c->stream.layer->read(&c->stream, c->chunk, sizeof c->chunk, ret_events);

    hf__grpc_take_in(c, n);
    return n != -EAGAIN;
}

void hf__grpc_send(struct hf__grpc_conn *c)
{
    if (c->broken)
        return;
    if (!hf__grpc_session_pull(&c->session, &c->out)) {
        hf__grpc_break_for(c, "send", ENOMEM);
        return;
    }
    while (!c->broken && c->out_at < c->out.len) {
        short events;
        ssize_t n = c->stream.layer->write(&c->stream, c->out.data + c->out_at,
                                           c->out.len - c->out_at, &events);
        if (n > 0) {
            c->out_at += (size_t)n;
            c->sent += (uint64_t)n;
        } else if (n == -EAGAIN) {
            break; /* whoever reads next waits for room as well */
        } else if (n != -EINTR) {
            hf__grpc_break_for(c, "send", n == 0 ? EPIPE : (int)-n);
        }
    }
    if (c->out_at == c->out.len) {
        c->out.len = c->out_at = 0;
    } else if (c->out_at > (1 << 16)) {
        hf__buffer_drop(&c->out, c->out_at);
        c->out_at = 0;
    }
}

/* For who listens. ----------------------------------------------------------------------------- */
void hf__grpc_ring(struct hf__grpc_conn *c)
{
    if (c->bell_fd >= 0 && c->session.news && !c->rung) {
        c->rung = true;
        eventfd_write(c->bell_fd, 1);
    }
}

void hf__grpc_arm(struct hf__grpc_conn *c)
{
    struct epoll_event event = {.data.fd = c->stream.fd};

    if (c->epoll_fd < 0 || c->broken)
        return;
    if (!c->reading && c->coming == 0)
        event.events = EPOLLIN | (c->out_at < c->out.len ? EPOLLOUT : 0u);
    if (event.events == c->armed)
        return;
    c->armed = event.events;
    epoll_ctl(c->epoll_fd, EPOLL_CTL_MOD, c->stream.fd, &event);
}

/* Without the mutex, as all that follow. */
void hf__grpc_listen(struct hf__grpc_conn *c, int epoll_fd, int bell_fd)
{
    struct epoll_event event = {.data.fd = c->stream.fd};

    pthread_mutex_lock(&c->mutex);
    c->epoll_fd = epoll_fd;
    c->bell_fd = bell_fd;
    c->armed = 0;
    if (c->broken)
        c->session.news = true;
    else
        epoll_ctl(epoll_fd, EPOLL_CTL_ADD, c->stream.fd, &event);
    hf__grpc_arm(c);
    hf__grpc_ring(c);
    pthread_mutex_unlock(&c->mutex);
}

void hf__grpc_deafen(struct hf__grpc_conn *c)
{
    pthread_mutex_lock(&c->mutex);
    if (c->epoll_fd >= 0 && !c->broken)
        epoll_ctl(c->epoll_fd, EPOLL_CTL_DEL, c->stream.fd, NULL);
    c->epoll_fd = c->bell_fd = -1;
    pthread_mutex_unlock(&c->mutex);
}

bool hf__grpc_hear(struct hf__grpc_conn *c, struct hf__grpc_call *call, struct hf__buffer *into)
{
    eventfd_t count;
    short events;

    pthread_mutex_lock(&c->mutex);
    if (c->rung)
        eventfd_read(c->bell_fd, &count);
    c->rung = true; /* nobody need ring for what is heard now */
    if (!c->reading && !c->broken) {
        hf__grpc_send(c);
        while (!c->broken && hf__grpc_receive(c, &events) && !c->plain)
            ; /* TLS may have more of what has come than the socket shows */
        hf__grpc_arm(c);
    }
    c->rung = c->session.news = false;
    hf__buffer_add(into, call->in.data, call->in.len);
    call->in.len = 0;
    bool goes_on = !call->ended && !c->session.going_away;
    pthread_mutex_unlock(&c->mutex);
    return goes_on;
}

void hf__grpc_say(struct hf__grpc_conn *c, struct hf__grpc_call *call, const void *data, size_t len)
{
    pthread_mutex_lock(&c->mutex);
    if (!hf__grpc_session_say(call, data, len))
        hf__grpc_break_for(c, "send", ENOMEM);
    pthread_mutex_unlock(&c->mutex);
}

void hf__grpc_flush(struct hf__grpc_conn *c)
{
    pthread_mutex_lock(&c->mutex);
    hf__grpc_send(c);
    hf__grpc_arm(c);
    pthread_mutex_unlock(&c->mutex);
}

/* Signs of life. ------------------------------------------------------------------------------- */

/* Something has come that nobody has read yet: it is we who are slow. */
bool hf__grpc_is_readable(const struct hf__grpc_conn *c)
{
    struct pollfd p = {.fd = c->stream.fd, .events = POLLIN};

    return poll(&p, 1, 0) > 0;
}

int64_t hf__grpc_next_check(const struct hf__grpc_conn *c)
{
    int64_t since_ns = c->heard_ns > c->asked_ns ? c->heard_ns : c->asked_ns;

    return c->probe_ns == INT64_MAX ? since_ns + SILENT_MS * HF__NS_PER_MS
                                    : c->probe_ns + ANSWER_MS * HF__NS_PER_MS;
}

void hf__grpc_check_life(struct hf__grpc_conn *c)
{
    int64_t now_ns = hf__now_ns(c->env);
    struct hf__buffer body = {0};
    struct hf__grpc_request request = {
        .path = "/grpc.health.v1.Health/Check", .body = &body, .timeout_ms = ANSWER_MS};

    if (c->broken || now_ns < hf__grpc_next_check(c))
        return;
    if (c->probe_ns != INT64_MAX) {
        if (!hf__grpc_is_readable(c))
            hf__grpc_break_for(c, "receive", ETIMEDOUT);
        return;
    }
    c->probe_ns = now_ns;
    hf__grpc_end_message(&body, hf__grpc_begin_message(&body));
    struct hf__grpc_call *probe = hf__grpc_session_call(&c->session, &request);
    if (probe != NULL)
        hf__grpc_session_release(probe, true);
    hf__grpc_send(c);
    hf__grpc_arm(c);
}

int64_t hf__grpc_check(struct hf__grpc_conn *c)
{
    pthread_mutex_lock(&c->mutex);
    hf__grpc_check_life(c);
    int64_t next_ns = hf__grpc_next_check(c);
    pthread_mutex_unlock(&c->mutex);
    return next_ns;
}
