/* See session.h: what we tell libnghttp2, and what it tells us.
 *
 * A call is its stream's user data, looked up at every turn: one that nobody waits for any more is
 * taken out of it first, so that what the server still says about it finds nobody. */
#include "grpc/session.h"

#include <inttypes.h>
#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/percent.h"
#include "base/thread.h"

#include "base/banned.h"

/* Long answers come without a pause: updates of the windows cost a frame for each half of them. */
#define STREAM_WINDOW     (4 << 20)
#define CONNECTION_WINDOW (16 << 20)
#define REQUEST_MAX       (16 << 20)

static struct hf__grpc_call *call_of(nghttp2_session *http2, int32_t id)
{
    return nghttp2_session_get_stream_user_data(http2, id);
}

/* Calls. --------------------------------------------------------------------------------------- */
static void free_call(struct hf__grpc_call *call)
{
    *call->to_this = call->next;
    if (call->next != NULL)
        call->next->to_this = call->to_this;
    hf__buffer_clear(&call->in);
    hf__buffer_clear(&call->out);
    pthread_cond_destroy(&call->wake);
    free(call);
}

static void end_call(struct hf__grpc_call *call)
{
    struct hf__grpc_session *s = call->session;

    if (call->ended)
        return;
    call->ended = true;
    if (call->open)
        s->news = true;
    else
        s->waited_for--;
    if (!call->dropped)
        return;
    nghttp2_session_set_stream_user_data(s->http2, call->id, NULL);
    free_call(call);
}

static ssize_t give_body(nghttp2_session *http2, int32_t id, uint8_t *into, size_t room,
                         uint32_t *flags, nghttp2_data_source *source, void *ctx)
{
    struct hf__grpc_call *call = call_of(http2, id);

    (void)source, (void)ctx;
    if (call == NULL)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    size_t left = call->out.len - call->out_at, len = left < room ? left : room;
    if (left == 0 && call->open)
        return NGHTTP2_ERR_DEFERRED;
    memcpy(into, call->out.data + call->out_at, len);
    call->out_at += len;
    if (len < left)
        return (ssize_t)len;
    if (call->open)
        call->out.len = call->out_at = 0;
    else
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)len;
}

static nghttp2_nv header(const char *name, const char *value, uint8_t flags)
{
    return (nghttp2_nv){.name = (uint8_t *)(uintptr_t)name,
                        .value = (uint8_t *)(uintptr_t)value,
                        .namelen = strlen(name),
                        .valuelen = strlen(value),
                        .flags = flags};
}

/* Fields that are the same each time are sent once, and then as an index. */
static int32_t submit(struct hf__grpc_session *s, struct hf__grpc_call *call,
                      const struct hf__grpc_request *r)
{
    char timeout[24];
    nghttp2_nv fields[] = {
        header(":method", "POST", 0),
        header(":scheme", s->tls ? "https" : "http", 0),
        header(":path", r->path, 0),
        header(":authority", s->authority, 0),
        header("te", "trailers", 0),
        header("content-type", "application/grpc", 0),
        header("user-agent", "holdfast", 0),
        header("hasleader", "true", 0), /* a server that has lost its leader says so */
        {0},
        {0},
    };
    size_t count = 8;

    if (r->token != NULL)
        fields[count++] = header("token", r->token, 0);
    if (r->timeout_ms > 0) {
        snprintf(timeout, sizeof timeout, "%" PRId64 "m",
                 r->timeout_ms > 99999999 ? INT64_C(99999999) : r->timeout_ms);
        fields[count++] = header("grpc-timeout", timeout, NGHTTP2_NV_FLAG_NO_INDEX);
    }
    nghttp2_data_provider body = {.read_callback = give_body};
    return nghttp2_submit_request(s->http2, NULL, fields, count, &body, call);
}

struct hf__grpc_call *hf__grpc_session_call(struct hf__grpc_session *s,
                                            const struct hf__grpc_request *request)
{
    struct hf__grpc_call *call = NULL;

    if (!request->body->failed && !s->going_away &&
        nghttp2_session_check_request_allowed(s->http2) &&
        (call = calloc(1, sizeof *call)) != NULL) {
        hf__cond_init(&call->wake);
        call->session = s;
        call->status = HF__GRPC_STATUS_NONE;
        call->open = request->open;
        call->in.cap = HF__GRPC_ANSWER_MAX;
        call->out = *request->body;
        call->out.cap = REQUEST_MAX;
        *request->body = (struct hf__buffer){0};
        call->next = s->calls;
        call->to_this = &s->calls;
        if (s->calls != NULL)
            s->calls->to_this = &call->next;
        s->calls = call;
        call->id = submit(s, call, request);
        if (call->id < 0) {
            free_call(call);
            return NULL;
        }
        s->waited_for += !call->open;
    }
    hf__buffer_clear(request->body);
    return call;
}

bool hf__grpc_session_say(struct hf__grpc_call *call, const void *data, size_t len)
{
    if (call->ended)
        return true; /* its end is the news */
    hf__buffer_add(&call->out, data, len);
    nghttp2_session_resume_data(call->session->http2, call->id);
    return !call->out.failed;
}

void hf__grpc_session_release(struct hf__grpc_call *call, bool when_ended)
{
    struct hf__grpc_session *s = call->session;

    if (when_ended && !call->ended) {
        call->dropped = true;
        return;
    }
    if (!call->ended) {
        s->waited_for -= !call->open;
        nghttp2_submit_rst_stream(s->http2, NGHTTP2_FLAG_NONE, call->id, NGHTTP2_CANCEL);
    }
    nghttp2_session_set_stream_user_data(s->http2, call->id, NULL);
    free_call(call);
}

void hf__grpc_session_abort(struct hf__grpc_session *s)
{
    struct hf__grpc_call *next;

    s->going_away = true;
    for (struct hf__grpc_call *call = s->calls; call != NULL; call = next) {
        next = call->next;
        end_call(call);
    }
}

/* What libnghttp2 tells. ----------------------------------------------------------------------- */
static bool is(const uint8_t *name, size_t len, const char *text)
{
    return len == strlen(text) && memcmp(name, text, len) == 0;
}

static int read_number(const uint8_t *text, size_t len)
{
    int number = 0;

    if (len == 0 || len > 5)
        return -1;
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9')
            return -1;
        number = number * 10 + (text[i] - '0');
    }
    return number;
}

/* Bytes that are not plain in a header are written as %XX. */
static void read_message(const char *text, size_t len, char *ret_text)
{
    size_t have = 0;

    for (size_t i = 0; i < len && have < HF__GRPC_MESSAGE_MAX - 1; i++) {
        int byte = text[i] == '%' ? hf__percent_get(text + i, len - i) : -1;
        ret_text[have++] = byte > 0 ? (char)byte : text[i];
        i += byte > 0 ? 2 : 0;
    }
    ret_text[have] = '\0';
}

static int on_header(nghttp2_session *http2, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_len, const uint8_t *value, size_t len, uint8_t flags, void *ctx)
{
    struct hf__grpc_call *call = call_of(http2, frame->hd.stream_id);

    (void)flags, (void)ctx;
    if (call == NULL || call->ended)
        return 0;
    if (is(name, name_len, ":status"))
        call->http_status = read_number(value, len);
    else if (is(name, name_len, "content-type"))
        call->is_grpc = len >= 16 && memcmp(value, "application/grpc", 16) == 0;
    else if (is(name, name_len, "grpc-status"))
        call->status = read_number(value, len);
    else if (is(name, name_len, "grpc-message"))
        read_message((const char *)value, len, call->message);
    return 0;
}

static int on_data(nghttp2_session *http2, uint8_t flags, int32_t id, const uint8_t *data,
                   size_t len, void *ctx)
{
    struct hf__grpc_session *s = ctx;
    struct hf__grpc_call *call = call_of(http2, id);

    (void)flags;
    if (call == NULL || call->ended || call->dropped)
        return 0;
    hf__buffer_add(&call->in, data, len);
    s->news |= call->open;
    if (call->in.failed) { /* more than we take: it ends without a status */
        nghttp2_submit_rst_stream(http2, NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL);
        end_call(call);
    }
    return 0;
}

/* A server that has said all ends the call, whatever we had to say. */
static int on_frame(nghttp2_session *http2, const nghttp2_frame *frame, void *ctx)
{
    struct hf__grpc_session *s = ctx;

    if (frame->hd.type == NGHTTP2_SETTINGS) {
        s->settled = true;
    } else if (frame->hd.type == NGHTTP2_GOAWAY) {
        s->going_away = s->news = true;
    } else if ((frame->hd.type == NGHTTP2_DATA || frame->hd.type == NGHTTP2_HEADERS) &&
               (frame->hd.flags & NGHTTP2_FLAG_END_STREAM)) {
        struct hf__grpc_call *call = call_of(http2, frame->hd.stream_id);
        if (call == NULL)
            return 0;
        if (call->open || call->end == 0)
            nghttp2_submit_rst_stream(http2, NGHTTP2_FLAG_NONE, frame->hd.stream_id,
                                      NGHTTP2_NO_ERROR);
        end_call(call);
    }
    return 0;
}

static int on_close(nghttp2_session *http2, int32_t id, uint32_t error, void *ctx)
{
    struct hf__grpc_call *call = call_of(http2, id);

    (void)ctx;
    if (call == NULL || call->ended)
        return 0;
    call->refused = error == NGHTTP2_REFUSED_STREAM;
    end_call(call);
    return 0;
}

static int on_sent(nghttp2_session *http2, const nghttp2_frame *frame, void *ctx)
{
    struct hf__grpc_session *s = ctx;
    struct hf__grpc_call *call;

    if (frame->hd.type == NGHTTP2_DATA && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) &&
        (call = call_of(http2, frame->hd.stream_id)) != NULL)
        call->end = s->made;
    return 0;
}

/* A request that waited for others to end, and then the server wanted no more. */
static int on_not_sent(nghttp2_session *http2, const nghttp2_frame *frame, int why, void *ctx)
{
    struct hf__grpc_session *s = ctx;

    (void)http2, (void)why;
    if (frame->hd.type != NGHTTP2_HEADERS)
        return 0;
    for (struct hf__grpc_call *call = s->calls; call != NULL; call = call->next) {
        if (call->id != frame->hd.stream_id || call->ended)
            continue;
        call->refused = true;
        end_call(call);
        break;
    }
    return 0;
}

/* The session. --------------------------------------------------------------------------------- */
bool hf__grpc_session_init(struct hf__grpc_session *s, const char *authority, bool tls)
{
    nghttp2_session_callbacks *told = NULL;
    nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW},
    };

    *s = (struct hf__grpc_session){.tls = tls};
    snprintf(s->authority, sizeof s->authority, "%s", authority);
    if (nghttp2_session_callbacks_new(&told) != 0)
        return false;
    nghttp2_session_callbacks_set_on_header_callback(told, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(told, on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(told, on_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(told, on_close);
    nghttp2_session_callbacks_set_on_frame_send_callback(told, on_sent);
    nghttp2_session_callbacks_set_on_frame_not_send_callback(told, on_not_sent);
    int r = nghttp2_session_client_new(&s->http2, told, s);
    nghttp2_session_callbacks_del(told);
    return r == 0 && nghttp2_submit_settings(s->http2, NGHTTP2_FLAG_NONE, settings, 2) == 0 &&
           nghttp2_session_set_local_window_size(s->http2, NGHTTP2_FLAG_NONE, 0,
                                                 CONNECTION_WINDOW) == 0;
}

void hf__grpc_session_clear(struct hf__grpc_session *s)
{
    nghttp2_session_del(s->http2);
    s->http2 = NULL;
    while (s->calls != NULL)
        free_call(s->calls);
}

bool hf__grpc_session_feed(struct hf__grpc_session *s, const void *data, size_t len)
{
    return nghttp2_session_mem_recv(s->http2, data, len) == (ssize_t)len;
}

bool hf__grpc_session_pull(struct hf__grpc_session *s, struct hf__buffer *into)
{
    const uint8_t *data;
    ssize_t len;

    while ((len = nghttp2_session_mem_send(s->http2, &data)) > 0) {
        hf__buffer_add(into, data, (size_t)len);
        s->made += (uint64_t)len;
    }
    return len == 0 && !into->failed;
}
