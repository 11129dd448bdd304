/* Connecting: the addresses of a name in turn, each with its share of the time that is left. A name
 * may have an IPv6 address that goes nowhere; without shares, a first address that swallows
 * packets would use up the whole deadline and the one that works would never be tried.
 *
 * A socket is connected in non-blocking mode, because connect() itself knows no deadline. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "net/resolve.h"
#include "net/stream.h"

#include "base/banned.h"

/* A dead peer is noticed after about a minute even if nothing is sent: who only listens for
 * wake-ups would otherwise listen for ever to a server that has lost its power. */
#define KEEP_IDLE_S     30
#define KEEP_INTERVAL_S 10
#define KEEP_COUNT      3

static void tune(int fd, int family)
{
    int on = 1, idle = KEEP_IDLE_S, interval = KEEP_INTERVAL_S, count = KEEP_COUNT;

    if (family == AF_UNIX)
        return;
    /* Requests are small. One that follows another would otherwise wait in the kernel until the
     * server has acknowledged the first, which it may put off for 40 ms. */
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
}

/* 0 with the descriptor, or a positive errno. */
static int try_address(const struct sockaddr *address, socklen_t size, const struct hf_env *env,
                       int64_t deadline_ns, int *ret_fd)
{
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int error = 0;

    if (fd < 0)
        return errno;
    if (connect(fd, address, size) < 0)
        error = errno;
    if (error == EINPROGRESS || error == EINTR) { /* an interrupted connect() goes on by itself */
        socklen_t error_size = sizeof error;
        error = -hf__wait_fd(fd, POLLOUT, env, deadline_ns);
        if (error == 0 && getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &error_size) < 0)
            error = errno;
    }
    if (error == 0 && fcntl(fd, F_SETFL, 0) < 0) /* blocking from here on: see stream.c */
        error = errno;
    if (error != 0) {
        close(fd);
        return error;
    }
    tune(fd, address->sa_family);
    *ret_fd = fd;
    return 0;
}

int hf__stream_begin(struct hf__stream *s, const struct addrinfo *to, const struct hf_env *env)
{
    int fd = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return -errno;
    if (connect(fd, to->ai_addr, to->ai_addrlen) < 0 && errno != EINPROGRESS && errno != EINTR) {
        int error = errno;
        close(fd);
        return -error;
    }
    tune(fd, to->ai_family);
    hf__stream_init(s, fd, env);
    return 0;
}

static int refuse(const struct hf__address *to, int error, hf_error *err)
{
    const char *where = to->host != NULL ? to->host : to->path;
    char shown[140];

    hf__printable(where, strlen(where), shown, sizeof shown);
    hf__fail(err, HF_UNAVAILABLE, "connect to %s%s%s: %s", shown, to->host != NULL ? ":" : "",
             to->host != NULL ? to->port : "",
             error == ETIMEDOUT ? "no answer in time" : strerror(error));
    hf__set_store_code(err, error);
    return HF_UNAVAILABLE;
}

static int connect_unix(const struct hf__address *to, const struct hf_env *env, int64_t deadline_ns,
                        int *ret_fd, hf_error *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t len = strlen(to->path);

    if (len >= sizeof address.sun_path)
        return hf__fail(err, HF_INVALID, "the path of the socket is longer than %zu bytes",
                        sizeof address.sun_path - 1);
    memcpy(address.sun_path, to->path, len);
    int error = try_address((struct sockaddr *)&address, sizeof address, env, deadline_ns, ret_fd);
    return error == 0 ? 0 : refuse(to, error, err);
}

static int connect_tcp(const struct hf__address *to, const struct hf_env *env, int64_t deadline_ns,
                       int *ret_fd, hf_error *err)
{
    struct addrinfo *list = NULL;
    int left = 0, error = EADDRNOTAVAIL;
    int r = hf__resolve(to->host, to->port, env, deadline_ns, &list, err);

    if (r != 0)
        return r;
    /* What an address leaves of its share is divided among those that follow; a refusal comes at
     * once, so usually the next one has nearly all of the time. */
    for (const struct addrinfo *a = list; a != NULL; a = a->ai_next)
        left++;
    for (const struct addrinfo *a = list; a != NULL && error != 0; a = a->ai_next) {
        int64_t now_ns = hf__now_ns(env);
        int64_t share_ns = (deadline_ns - now_ns) / left--;
        error = try_address(a->ai_addr, a->ai_addrlen, env, now_ns + share_ns, ret_fd);
    }
    freeaddrinfo(list);
    return error == 0 ? 0 : refuse(to, error, err);
}

int hf__stream_connect(struct hf__stream *s, const struct hf__address *to, const struct hf_env *env,
                       int64_t deadline_ns, hf_error *err)
{
    int fd = -1;
    int r = to->host != NULL ? connect_tcp(to, env, deadline_ns, &fd, err)
                             : connect_unix(to, env, deadline_ns, &fd, err);

    if (r == 0)
        hf__stream_init(s, fd, env);
    return r;
}
