/* Reading and writing with deadlines; the plain layer.
 *
 * The descriptor of a plain stream is in blocking mode with a receive timeout of PATIENCE_MS: the
 * usual reply then costs one system call (recv) instead of three (recv, poll, recv). What takes
 * longer, or has less time left, goes through poll() with the exact time.
 *
 * Not so a unix socket: whoever sleeps in recv() there is also woken when the other side takes what
 * was sent, only to sleep again. poll() is not, and two system calls cost less than two changes of
 * task. */
#include "net/stream.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/banned.h"

#define PATIENCE_MS 20

static ssize_t plain_read(struct hf__stream *s, void *buf, size_t size, short *ret_events)
{
    ssize_t n = recv(s->fd, buf, size, s->patient ? 0 : MSG_DONTWAIT);

    *ret_events = POLLIN;
    return n < 0 ? -errno : n;
}

/* Without MSG_NOSIGNAL a server that hangs up would end the program by SIGPIPE, and a library may
 * not change what a program does on signals. */
static ssize_t plain_write(struct hf__stream *s, const void *buf, size_t size, short *ret_events)
{
    ssize_t n = send(s->fd, buf, size, MSG_NOSIGNAL | MSG_DONTWAIT);

    *ret_events = POLLOUT;
    return n < 0 ? -errno : n;
}

static void plain_close(struct hf__stream *s)
{
    (void)s;
}

static const char *plain_why(struct hf__stream *s, int error, char *buf, size_t size)
{
    (void)s;
    return hf__errno_text(error, buf, size);
}

static const struct hf__layer plain = {
    .read = plain_read, .write = plain_write, .close = plain_close, .why = plain_why};

void hf__stream_init(struct hf__stream *s, int fd, const struct hf_env *env)
{
    struct timeval patience = {.tv_usec = PATIENCE_MS * 1000};
    int domain = AF_UNSPEC;
    socklen_t size = sizeof domain;

    getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size);
    *s = (struct hf__stream){.layer = &plain, .env = env, .fd = fd, .local = domain == AF_UNIX};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
}

/* The time is taken again after every return, as signals and the hour's limit end poll() early. It
 * is rounded up: with less than a millisecond left a poll() of 0 would spin until the deadline. */
int hf__wait_fd(int fd, short events, const struct hf_env *env, int64_t deadline_ns)
{
    struct pollfd p = {.fd = fd, .events = events};

    for (;;) {
        int64_t left_ns = deadline_ns - hf__now_ns(env);
        if (left_ns <= 0)
            return -ETIMEDOUT;
        int64_t left_ms = left_ns / HF__NS_PER_MS + 1;
        int n = poll(&p, 1, left_ms > 3600000 ? 3600000 : (int)left_ms);
        if (n > 0)
            return 0;
        if (n < 0 && errno != EINTR)
            return -errno;
    }
}

static int fail(struct hf__stream *s, int error, const char *doing, hf_error *err)
{
    char buf[160];

    if (error == ETIMEDOUT)
        hf__fail(err, HF_UNAVAILABLE, "%s: no answer in time", doing);
    else
        hf__fail(err, HF_UNAVAILABLE, "%s: %s", doing, s->layer->why(s, error, buf, sizeof buf));
    hf__set_store_code(err, error);
    return HF_UNAVAILABLE;
}

int hf__stream_write(struct hf__stream *s, const void *data, size_t size, int64_t deadline_ns,
                     size_t *ret_sent, hf_error *err)
{
    const char *at = data;
    size_t left = size;
    int error = 0;

    while (left > 0 && error == 0) {
        short events = 0;
        ssize_t n = s->layer->write(s, at, left, &events);
        if (n > 0) {
            at += n;
            left -= (size_t)n;
        } else if (n == -EAGAIN) {
            error = -hf__wait_fd(s->fd, events, s->env, deadline_ns);
        } else if (n != -EINTR) {
            error = n == 0 ? EPIPE : (int)-n;
        }
    }
    if (ret_sent != NULL)
        *ret_sent = size - left;
    return error == 0 ? 0 : fail(s, error, "send", err);
}

int hf__stream_read(struct hf__stream *s, void *buf, size_t size, int64_t deadline_ns,
                    size_t *ret_count, hf_error *err)
{
    for (;;) {
        short events = 0;
        /* Nothing is made of a time-out here: what has arrived is read even if the deadline has
         * passed. */
        if (s->local && s->layer == &plain)
            hf__wait_fd(s->fd, POLLIN, s->env, deadline_ns);
        else
            s->patient = deadline_ns - hf__now_ns(s->env) > PATIENCE_MS * HF__NS_PER_MS;
        ssize_t n = s->layer->read(s, buf, size, &events);
        s->patient = false;
        if (n > 0) {
            *ret_count = (size_t)n;
            return 0;
        }
        if (n == 0)
            return hf__fail(err, HF_UNAVAILABLE, "receive: the server closed the connection");
        int error = n == -EAGAIN  ? -hf__wait_fd(s->fd, events, s->env, deadline_ns)
                    : n == -EINTR ? 0
                                  : (int)-n;
        if (error != 0)
            return fail(s, error, "receive", err);
    }
}

int hf__stream_poll(struct hf__stream *s, void *buf, size_t size, size_t *ret_count, hf_error *err)
{
    short events = 0;
    ssize_t n;

    do {
        n = s->layer->read(s, buf, size, &events);
    } while (n == -EINTR);
    if (n == 0)
        return hf__fail(err, HF_UNAVAILABLE, "receive: the server closed the connection");
    if (n < 0 && n != -EAGAIN)
        return fail(s, (int)-n, "receive", err);
    *ret_count = n > 0 ? (size_t)n : 0;
    return 0;
}

/* An idle connection on which there is something to read is of no use: that is the server's end or
 * its last words, and we would take them for the answer to what we ask next. */
bool hf__stream_is_quiet(struct hf__stream *s)
{
    char byte;
    ssize_t n = recv(s->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

    return n < 0 && (errno == EAGAIN || errno == EINTR);
}

void hf__stream_close(struct hf__stream *s)
{
    if (s->layer == NULL)
        return;
    s->layer->close(s);
    close(s->fd);
    s->layer = NULL;
}
