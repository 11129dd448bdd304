/* The shared connection: its life, and moving bytes. Calls are in call.c.
 *
 * One mutex guards everything. It is held while bytes are moved from and to the kernel, which never
 * waits (the layer's functions are called in their non-blocking form, so that TLS, which has one
 * state for both directions, is safe too); it is not held while somebody waits for the network.
 *
 * Whether a request may have arrived is counted: `sent` is how many bytes the kernel took, and a
 * request whose end lies beyond that when the connection breaks cannot have been executed. */
#include "cql/conn_state.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/banned.h"

#define OUT_MAX (32 << 20) /* bytes that wait to be sent */
#define CHUNK   16384

/* Life --------------------------------------------------------------------- */
static int connect_route(struct hf__cql_conn *c, const struct hf__cql_route *route,
                         int64_t deadline_ns, hf_error *err)
{
    int code = hf__stream_connect(&c->stream, &route->address, route->env, deadline_ns, err);

    if (code == 0 && route->tls != NULL)
        code = hf__tls_start(route->tls, &c->stream, route->address.host, deadline_ns, err);
    return code != 0 ? code : hf__cql_login(c, route, deadline_ns, err);
}

int hf__cql_conn_open(const struct hf__cql_route *route, int version, int64_t deadline_ns,
                      struct hf__cql_conn **ret_conn, hf_error *err)
{
    struct hf__cql_conn *c = calloc(1, sizeof *c);

    if (c == NULL)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    pthread_mutex_init(&c->mutex, NULL);
    c->refs = 1;
    c->env = route->env;
    c->version = version;
    hf__cql_writer_init(&c->out, OUT_MAX);
    int code = connect_route(c, route, deadline_ns, err);
    if (code != 0) {
        hf__cql_conn_unref(c);
        return code;
    }
    *ret_conn = c;
    return 0;
}

struct hf__cql_conn *hf__cql_conn_ref(struct hf__cql_conn *c)
{
    pthread_mutex_lock(&c->mutex);
    c->refs++;
    pthread_mutex_unlock(&c->mutex);
    return c;
}

void hf__cql_conn_unref(struct hf__cql_conn *c)
{
    if (c == NULL)
        return;
    pthread_mutex_lock(&c->mutex);
    bool last = --c->refs == 0;
    pthread_mutex_unlock(&c->mutex);
    if (!last)
        return;
    hf__stream_close(&c->stream);
    hf__cql_writer_clear(&c->out);
    hf__cql_decoder_clear(&c->decoder);
    pthread_mutex_destroy(&c->mutex);
    free(c);
}

int hf__cql_conn_version(const struct hf__cql_conn *c)
{
    return c->version; /* never changes */
}

void hf__cql_conn_use_segments(struct hf__cql_conn *c)
{
    pthread_mutex_lock(&c->mutex);
    c->segmented = c->decoder.segmented = true;
    pthread_mutex_unlock(&c->mutex);
}

bool hf__cql_conn_is_broken(struct hf__cql_conn *c)
{
    pthread_mutex_lock(&c->mutex);
    bool broken = c->broken;
    pthread_mutex_unlock(&c->mutex);
    return broken;
}

int64_t hf__cql_conn_heard_ns(struct hf__cql_conn *c)
{
    pthread_mutex_lock(&c->mutex);
    int64_t heard_ns = c->heard_ns;
    pthread_mutex_unlock(&c->mutex);
    return heard_ns;
}

/* From here on the mutex is held, unless said ------------------------------ */

/* `c->why` is filled in. The descriptor stays until the last reference, because somebody may be
 * waiting for it; shutting it down wakes who does. */
static void break_off(struct hf__cql_conn *c)
{
    if (c->broken)
        return;
    c->broken = true;
    shutdown(c->stream.fd, SHUT_RDWR);
    for (struct hf__cql_call *w = c->waiters; w != NULL; w = w->next_waiter)
        pthread_cond_signal(&w->wake);
}

void hf__cql_conn_break_for(struct hf__cql_conn *c, const char *doing, int error)
{
    char buf[160];

    if (!c->broken)
        hf__fail(&c->why, HF_UNAVAILABLE, "%s: %s", doing,
                 error == 0 ? "the server closed the connection"
                            : c->stream.layer->why(&c->stream, error, buf, sizeof buf));
    break_off(c);
}

void hf__cql_conn_break(struct hf__cql_conn *c, const char *why)
{
    pthread_mutex_lock(&c->mutex);
    if (!c->broken)
        hf__fail(&c->why, HF_UNAVAILABLE, "%s", why);
    break_off(c);
    pthread_mutex_unlock(&c->mutex);
}

int hf__cql_conn_wait(struct hf__cql_conn *c, short events, int64_t deadline_ns)
{
    pthread_mutex_unlock(&c->mutex);
    int r = hf__wait_fd(c->stream.fd, events, c->env, deadline_ns);
    pthread_mutex_lock(&c->mutex);
    return r;
}

/* Receiving ---------------------------------------------------------------- */
static void hand_out(struct hf__cql_conn *c, struct hf__cql_frame *frame)
{
    int16_t stream = frame->header.stream;
    struct hf__cql_call *call = stream >= 0 && stream < HF__CQL_STREAMS ? c->calls[stream] : NULL;

    if (call == NULL || call == &c->abandoned) {
        free(frame->body);
        if (call == NULL && stream >= 0) { /* below 0 are events, which nobody ordered */
            hf__fail(&c->why, HF_CORRUPT, "the server answered what nobody had asked");
            break_off(c);
        }
    } else {
        call->answer = *frame;
        call->done = true;
        pthread_cond_signal(&call->wake);
    }
    if (call != NULL) {
        c->left_behind -= call == &c->abandoned;
        c->calls[stream] = NULL;
        c->in_flight--;
    }
}

static void take_in(struct hf__cql_conn *c, struct hf__cql_bytes data)
{
    struct hf__cql_frame frame;
    int r;

    c->heard_ns = hf__now_ns(c->env);
    while (!c->broken && (r = hf__cql_decode(&c->decoder, &data, &frame, &c->why)) != 0) {
        if (r < 0)
            break_off(c);
        else
            hand_out(c, &frame);
    }
}

bool hf__cql_conn_receive(struct hf__cql_conn *c, short *ret_events)
{
    unsigned char chunk[CHUNK];
    ssize_t n = c->stream.layer->read(&c->stream, chunk, sizeof chunk, ret_events);

    if (n > 0)
        take_in(c, (struct hf__cql_bytes){chunk, (size_t)n});
    else if (n != -EAGAIN && n != -EINTR)
        hf__cql_conn_break_for(c, "receive", (int)-n);
    return n != -EAGAIN;
}

/* Sending ------------------------------------------------------------------ */

/* Pushes out what is queued. If somebody else is at it already, that one takes ours along. Whoever
 * cannot get rid of it in time breaks the connection: half a frame cannot be taken back. */
void hf__cql_conn_send(struct hf__cql_conn *c, int64_t deadline_ns)
{
    if (c->sending)
        return;
    c->sending = true;
    while (!c->broken && c->out_at < c->out.len) {
        short events = 0;
        ssize_t n = c->stream.layer->write(&c->stream, c->out.data + c->out_at,
                                           c->out.len - c->out_at, &events);
        if (n > 0) {
            c->out_at += (size_t)n;
            c->sent += (uint64_t)n;
        } else if (n == -EAGAIN) {
            int r = hf__cql_conn_wait(c, events, deadline_ns);
            if (r != 0)
                hf__cql_conn_break_for(c, "send", -r);
        } else if (n != -EINTR) {
            hf__cql_conn_break_for(c, "send", n == 0 ? EPIPE : (int)-n);
        }
    }
    c->sending = false;
    if (c->out_at == c->out.len)
        c->out.len = c->out_at = 0;
}

int hf__cql_conn_queue(struct hf__cql_conn *c, const struct hf__cql_writer *request, hf_error *err)
{
    size_t before = c->out.len;

    hf__cql_wrap_frame(&c->out, (struct hf__cql_bytes){request->data, request->len}, c->segmented);
    if (c->out.failed) {
        c->out.failed = false;
        c->out.len = before;
        return hf__fail(err, HF_NO_MEMORY, NULL);
    }
    c->queued += c->out.len - before;
    return 0;
}

/* Without the mutex. */
bool hf__cql_conn_look(struct hf__cql_conn *c)
{
    short events;

    pthread_mutex_lock(&c->mutex);
    if (!c->broken && !c->reading)
        hf__cql_conn_receive(c, &events);
    bool well = !c->broken;
    pthread_mutex_unlock(&c->mutex);
    return well;
}
