/* The scripted server: one thread, poll() over a few connections. */
#include "server.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cql/segment.h"
#include "golden.h"

#define GUESTS    16
#define INPUT_MAX 65536

struct guest {
    int fd; /* -1: none */
    unsigned number;
    bool segmented;
    unsigned char input[INPUT_MAX];
    size_t len;
};

struct server {
    int listener, stop_fd, port;
    pthread_t thread;
    server_handler *handler;
    void *arg;
    struct guest guests[GUESTS];
    atomic_uint connections, ends, counts[32];
};

static struct guest *guest_of(struct server *s, int fd)
{
    for (size_t i = 0; i < GUESTS; i++) {
        if (s->guests[i].fd == fd)
            return &s->guests[i];
    }
    return NULL;
}

void server_send(const struct question *q, const void *bytes, size_t len)
{
    for (const char *at = bytes; len > 0;) {
        ssize_t n = send(q->fd, at, len, MSG_NOSIGNAL);
        if (n <= 0)
            return;
        at += n;
        len -= (size_t)n;
    }
}

void server_reply_to(const struct question *q, int16_t stream, enum hf__cql_opcode opcode,
                     const void *body, size_t len)
{
    struct guest *g = guest_of(q->server, q->fd);
    struct hf__cql_writer frame, wire;

    hf__cql_writer_init(&frame, HF__CQL_REQUEST_MAX);
    hf__cql_writer_init(&wire, HF__CQL_REQUEST_MAX);
    hf__cql_begin_frame(&frame, 0x80 | q->version, opcode);
    hf__cql_put(&frame, body, len);
    hf__cql_end_frame(&frame);
    hf__cql_set_stream(&frame, stream);
    hf__cql_wrap_frame(&wire, (struct hf__cql_bytes){frame.data, frame.len},
                       g != NULL && g->segmented);
    server_send(q, wire.data, wire.len);
    hf__cql_writer_clear(&frame);
    hf__cql_writer_clear(&wire);
}

void server_reply(const struct question *q, enum hf__cql_opcode opcode, const char *body)
{
    struct golden g = golden(body);

    server_reply_to(q, q->stream, opcode, g.bytes, g.len);
}

void server_answer(const struct question *q)
{
    switch (q->opcode) {
    case HF__CQL_OP_STARTUP:
        server_reply(q, HF__CQL_OP_READY, "");
        break;
    case HF__CQL_OP_OPTIONS:
        server_reply(q, HF__CQL_OP_SUPPORTED, "0000");
        break;
    case HF__CQL_OP_PREPARE:
        server_reply(q, HF__CQL_OP_RESULT,
                     q->version == 5 ? "00000004 0001 01 0001 02" : "00000004 0001 01");
        break;
    default:
        server_reply(q, HF__CQL_OP_RESULT, "00000001");
        break;
    }
}

void server_say(const struct question *q, void *lines)
{
    const struct server_line *line = lines;

    while (line->body != NULL && line->to != q->opcode)
        line++;
    struct golden g = golden(line->body != NULL ? line->body : "");
    if (line->body == NULL)
        server_answer(q);
    else if (line->with == SERVER_BARE)
        server_send(q, g.bytes, g.len);
    else
        server_reply_to(q, q->stream, (enum hf__cql_opcode)line->with, g.bytes, g.len);
}

/* Ours is told when the other side's system has acknowledged the end: then it is there to be
 * seen. */
static bool is_on_its_way(int fd)
{
    struct tcp_info info = {0};
    socklen_t size = sizeof info;

    return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 &&
           info.tcpi_state == TCP_FIN_WAIT1;
}

void server_hang_up(const struct question *q)
{
    shutdown(q->fd, SHUT_RDWR); /* the loop sees its end and closes it */
    for (int i = 0; i < AMPLE_MS && is_on_its_way(q->fd); i++)
        poll(NULL, 0, 1);
    atomic_fetch_add(&q->server->ends, 1);
}

/* One frame at the front of the input; gives how many bytes it took, 0: not all there yet. In
 * segments it takes for granted that there is one frame in each. */
static size_t take_question(struct server *s, struct guest *g)
{
    size_t before = g->segmented ? HF__CQL_SEGMENT_HEAD : 0;
    size_t after = g->segmented ? HF__CQL_SEGMENT_TAIL : 0;

    if (g->len < before + HF__CQL_HEADER)
        return 0;
    struct hf__cql_reader r = {.at = g->input + before, .left = HF__CQL_HEADER};
    struct question q = {.server = s, .fd = g->fd, .connection = g->number};
    q.version = hf__cql_take_byte(&r);
    hf__cql_take_byte(&r);
    q.stream = (int16_t)hf__cql_take_short(&r);
    q.opcode = hf__cql_take_byte(&r);
    q.len = (size_t)hf__cql_take_int(&r);
    size_t all = before + HF__CQL_HEADER + q.len + after;
    if (g->len < all)
        return 0;
    q.body = g->input + before + HF__CQL_HEADER;
    atomic_fetch_add(&s->counts[q.opcode], 1);
    if (s->handler != NULL)
        s->handler(&q, s->arg);
    else
        server_answer(&q);
    if (q.version == 5 && q.opcode == HF__CQL_OP_STARTUP)
        g->segmented = true;
    return all;
}

static void serve(struct server *s, struct guest *g)
{
    ssize_t n = recv(g->fd, g->input + g->len, sizeof g->input - g->len, 0);
    size_t used;

    if (n <= 0) {
        close(g->fd);
        g->fd = -1;
        return;
    }
    g->len += (size_t)n;
    while ((used = take_question(s, g)) > 0) {
        g->len -= used;
        memmove(g->input, g->input + used, g->len);
    }
}

static void welcome(struct server *s)
{
    struct guest *g = guest_of(s, -1);

    assert_non_null(g);
    g->fd = accept(s->listener, NULL, NULL);
    g->len = 0;
    g->segmented = false;
    g->number = atomic_fetch_add(&s->connections, 1) + 1;
}

static void *run(void *arg)
{
    struct server *s = arg;

    for (;;) {
        struct pollfd fds[GUESTS + 2] = {{.fd = s->stop_fd, .events = POLLIN},
                                         {.fd = s->listener, .events = POLLIN}};
        for (size_t i = 0; i < GUESTS; i++)
            fds[i + 2] = (struct pollfd){.fd = s->guests[i].fd, .events = POLLIN};
        poll(fds, GUESTS + 2, -1);
        if (fds[0].revents != 0)
            return NULL;
        if (fds[1].revents != 0)
            welcome(s);
        for (size_t i = 0; i < GUESTS; i++) {
            if (fds[i + 2].fd >= 0 && fds[i + 2].revents != 0)
                serve(s, &s->guests[i]);
        }
    }
}

struct server *server_start(server_handler *handler, void *arg)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    struct server *s = calloc(1, sizeof *s);

    assert_non_null(s);
    s->handler = handler;
    s->arg = arg;
    for (size_t i = 0; i < GUESTS; i++)
        s->guests[i].fd = -1;
    s->stop_fd = eventfd(0, EFD_CLOEXEC);
    s->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(s->listener, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(s->listener, 64), 0);
    assert_int_equal(getsockname(s->listener, (struct sockaddr *)&address, &size), 0);
    s->port = ntohs(address.sin_port);
    assert_int_equal(pthread_create(&s->thread, NULL, run, s), 0);
    return s;
}

int server_port(const struct server *s)
{
    return s->port;
}

void server_stop(struct server *s)
{
    uint64_t one = 1;

    assert_int_equal(write(s->stop_fd, &one, sizeof one), sizeof one);
    pthread_join(s->thread, NULL);
    for (size_t i = 0; i < GUESTS; i++) {
        if (s->guests[i].fd >= 0)
            close(s->guests[i].fd);
    }
    close(s->stop_fd);
    close(s->listener);
    free(s);
}

unsigned server_count(struct server *s, enum hf__cql_opcode opcode)
{
    return atomic_load(&s->counts[opcode]);
}

unsigned server_connections(struct server *s)
{
    return atomic_load(&s->connections);
}

void server_await_end(struct server *s, unsigned count)
{
    for (int i = 0; i < AMPLE_MS && atomic_load(&s->ends) < count; i++)
        poll(NULL, 0, 1);
    assert_int_equal(atomic_load(&s->ends), count);
}
