/* See server.h. One connection at a time. */
#include "grpc/server.h"

#include <arpa/inet.h>
#include <nghttp2/nghttp2.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/check.h"

struct server {
    struct server_options options;
    int listener, fd;
    char port[8];
    atomic_bool stop;
    bool ends;
    pthread_t thread;
    nghttp2_session *http2;
    struct stream *streams; /* of the present connection */
};

/* A call: its path, and what is still to be said. */
struct stream {
    char path[100];
    struct hf__buffer out;
    size_t out_at, endless;
    bool open;
    struct stream *next, **to_this;
};

static bool asks_for(const struct stream *s, const char *what)
{
    const char *last = strrchr(s->path, '/');

    return last != NULL && strcmp(last, what) == 0;
}

static ssize_t give(nghttp2_session *http2, int32_t id, uint8_t *into, size_t room, uint32_t *flags,
                    nghttp2_data_source *source, void *ctx)
{
    static const nghttp2_nv status = {(uint8_t *)(uintptr_t) "grpc-status",
                                      (uint8_t *)(uintptr_t) "0", 11, 1, 0};
    struct stream *s = source->ptr;
    size_t left = s->endless > 0 ? s->endless : s->out.len - s->out_at;
    size_t len = left < room ? left : room;

    (void)ctx;
    if (len == 0 && s->open)
        return NGHTTP2_ERR_DEFERRED;
    if (s->endless > 0) {
        memset(into, 0, len);
        s->endless -= len;
    } else if (len > 0) {
        memcpy(into, s->out.data + s->out_at, len);
        s->out_at += len;
    }
    if (len == left && !s->open) {
        *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
        nghttp2_submit_trailer(http2, id, &status, 1);
    }
    return (ssize_t)len;
}

static nghttp2_nv field(const char *name, const char *value)
{
    return (nghttp2_nv){(uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value, strlen(name),
                        strlen(value), 0};
}

static void answer(struct server *server, int32_t id, struct stream *s)
{
    nghttp2_session *http2 = server->http2;
    nghttp2_data_provider body = {.source.ptr = s, .read_callback = give};
    nghttp2_nv fields[] = {field(":status", "200"), field("content-type", "application/grpc"),
                           field("grpc-status", "12"), field("grpc-message", "unknown")};

    if (server->options.frozen || asks_for(s, "/silent")) {
        return;
    } else if (asks_for(s, "/ok") || asks_for(s, "/echo") || asks_for(s, "/long")) {
        s->endless = asks_for(s, "/long") ? HF__GRPC_ANSWER_MAX + 100000 : 0;
        nghttp2_submit_response(http2, id, fields, 2, &body);
    } else if (asks_for(s, "/reset") || asks_for(s, "/refuse")) {
        nghttp2_submit_rst_stream(http2, NGHTTP2_FLAG_NONE, id,
                                  asks_for(s, "/reset") ? NGHTTP2_CANCEL : NGHTTP2_REFUSED_STREAM);
    } else if (asks_for(s, "/goaway")) {
        nghttp2_submit_goaway(http2, NGHTTP2_FLAG_NONE, id - 2, NGHTTP2_NO_ERROR, NULL, 0);
    } else if (asks_for(s, "/end")) {
        server->ends = true;
    } else if (asks_for(s, "/web")) {
        fields[0] = field(":status", "503");
        fields[1] = field("content-type", "text/html");
        nghttp2_submit_response(http2, id, fields, 2, NULL);
    } else {
        if (asks_for(s, "/status")) {
            fields[2] = field("grpc-status", "14");
            fields[3] = field("grpc-message", "a%20b");
        }
        nghttp2_submit_response(http2, id, fields, 4, NULL);
    }
}

static int on_headers(nghttp2_session *http2, const nghttp2_frame *frame, void *ctx)
{
    struct server *server = ctx;
    struct stream *s = calloc(1, sizeof *s);

    assert_non_null(s);
    s->out.cap = 1 << 20;
    s->to_this = &server->streams;
    s->next = server->streams;
    if (s->next != NULL)
        s->next->to_this = &s->next;
    server->streams = s;
    return nghttp2_session_set_stream_user_data(http2, frame->hd.stream_id, s);
}

static int on_header(nghttp2_session *http2, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_len, const uint8_t *value, size_t len, uint8_t flags, void *ctx)
{
    struct stream *s = nghttp2_session_get_stream_user_data(http2, frame->hd.stream_id);

    (void)flags, (void)ctx;
    if (s != NULL && name_len == 5 && memcmp(name, ":path", 5) == 0)
        snprintf(s->path, sizeof s->path, "%.*s", (int)len, (const char *)value);
    return 0;
}

static int on_data(nghttp2_session *http2, uint8_t flags, int32_t id, const uint8_t *data,
                   size_t len, void *ctx)
{
    struct stream *s = nghttp2_session_get_stream_user_data(http2, id);

    (void)flags, (void)ctx;
    hf__buffer_add(&s->out, data, len);
    nghttp2_session_resume_data(http2, id);
    return 0;
}

static int on_frame(nghttp2_session *http2, const nghttp2_frame *frame, void *ctx)
{
    struct stream *s = nghttp2_session_get_stream_user_data(http2, frame->hd.stream_id);

    if (s == NULL)
        return 0;
    if (frame->hd.type == NGHTTP2_HEADERS && asks_for(s, "/echo")) {
        s->open = true;
        answer(ctx, frame->hd.stream_id, s);
    } else if (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) {
        answer(ctx, frame->hd.stream_id, s);
    }
    return 0;
}

static void free_stream(struct stream *s)
{
    *s->to_this = s->next;
    if (s->next != NULL)
        s->next->to_this = s->to_this;
    hf__buffer_clear(&s->out);
    free(s);
}

static int on_close(nghttp2_session *http2, int32_t id, uint32_t error, void *ctx)
{
    struct stream *s = nghttp2_session_get_stream_user_data(http2, id);

    (void)error, (void)ctx;
    if (s != NULL)
        free_stream(s);
    return 0;
}

static nghttp2_session *new_session(struct server *server)
{
    nghttp2_session_callbacks *told;
    nghttp2_session *http2;
    nghttp2_settings_entry window = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 0};

    assert_int_equal(nghttp2_session_callbacks_new(&told), 0);
    nghttp2_session_callbacks_set_on_begin_headers_callback(told, on_headers);
    nghttp2_session_callbacks_set_on_header_callback(told, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(told, on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(told, on_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(told, on_close);
    assert_int_equal(nghttp2_session_server_new(&http2, told, server), 0);
    nghttp2_session_callbacks_del(told);
    nghttp2_submit_settings(http2, NGHTTP2_FLAG_NONE, &window, server->options.no_window ? 1 : 0);
    return http2;
}

/* What there is to say. False: the client does not take it. */
static bool say(struct server *server)
{
    const uint8_t *data;
    ssize_t len;

    while ((len = nghttp2_session_mem_send(server->http2, &data)) > 0) {
        for (ssize_t n; len > 0; data += n, len -= n) {
            n = send(server->fd, data, (size_t)len, MSG_NOSIGNAL);
            if (n <= 0)
                return false;
        }
    }
    return true;
}

static void serve(struct server *server)
{
    char chunk[16384];
    ssize_t n = 1;

    server->ends = false;
    server->http2 = new_session(server);
    while (n > 0 && !server->ends && !server->stop && say(server)) {
        struct pollfd p = {.fd = server->fd, .events = POLLIN};
        if (poll(&p, 1, 50) <= 0)
            continue;
        n = recv(server->fd, chunk, sizeof chunk, 0);
        if (n > 0 && nghttp2_session_mem_recv(server->http2, (uint8_t *)chunk, (size_t)n) < 0)
            break;
    }
    nghttp2_session_del(server->http2);
    while (server->streams != NULL)
        free_stream(server->streams);
    close(server->fd);
}

static void *run(void *arg)
{
    struct server *server = arg;

    while (!server->stop) {
        struct pollfd p = {.fd = server->listener, .events = POLLIN};
        if (poll(&p, 1, 50) > 0 && (server->fd = accept(server->listener, NULL, NULL)) >= 0)
            serve(server);
    }
    return NULL;
}

struct server *server_start(const struct server_options *options)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    struct server *server = calloc(1, sizeof *server);

    assert_non_null(server);
    server->options = *options;
    server->listener = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(server->listener, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(server->listener, 8), 0);
    assert_int_equal(getsockname(server->listener, (struct sockaddr *)&address, &size), 0);
    snprintf(server->port, sizeof server->port, "%d", ntohs(address.sin_port));
    assert_int_equal(pthread_create(&server->thread, NULL, run, server), 0);
    return server;
}

const char *server_port(const struct server *server)
{
    return server->port;
}

void server_stop(struct server *server)
{
    server->stop = true;
    pthread_join(server->thread, NULL);
    close(server->listener);
    free(server);
}
