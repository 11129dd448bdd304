/* See stream.h. */
#include "stream.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "server.h"

#include "base/banned.h"

#define BLOCK 128 /* libmicrohttpd keeps so much for each stream, and does not use it */

struct text *text_new(const char *bytes, size_t len)
{
    struct text *text = malloc(sizeof *text + len);

    if (text == NULL)
        return NULL;
    text->refs = 1;
    text->len = len;
    memcpy(text->bytes, bytes, len);
    return text;
}

struct text *text_ref(struct text *text)
{
    text->refs++;
    return text;
}

void text_unref(struct text *text)
{
    if (text != NULL && --text->refs == 0)
        free(text);
}

bool event_begin(struct event *event, const char *name, const char *id)
{
    *event = (struct event){.json.out = open_memstream(&event->bytes, &event->len)};
    if (event->json.out == NULL)
        return false;
    fprintf(event->json.out, "event: %s\n", name);
    if (id != NULL)
        fprintf(event->json.out, "id: %s\n", id);
    fputs("data: ", event->json.out);
    cli_json_open(&event->json, NULL, '{');
    return true;
}

/* The writer of JSON puts no line break into an object. */
struct text *event_end(struct event *event)
{
    cli_json_close(&event->json, '}');
    fputs("\n\n", event->json.out);
    struct text *text = fclose(event->json.out) == 0 ? text_new(event->bytes, event->len) : NULL;
    free(event->bytes);
    return text;
}

void hangup_watch(struct request *request, struct source *source)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(request->connection, MHD_CONNECTION_INFO_CONNECTION_FD);

    if (info != NULL)
        loop_add(&request->server->loop, source, info->connect_fd, EPOLLRDHUP);
}

static bool has_text(struct stream *stream)
{
    static const char beat[] = ":\n\n";

    if (stream->text != NULL)
        return true;
    stream->at = 0;
    stream->text = stream->type->next(stream);
    if (stream->text == NULL && stream->beat)
        stream->text = text_new(beat, sizeof beat - 1);
    stream->beat = false;
    return stream->text != NULL;
}

static ssize_t read_stream(void *cls, uint64_t pos, char *buf, size_t max)
{
    struct stream *stream = cls;

    (void)pos;
    if (stream->gone)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    if (!has_text(stream)) {
        if (stream->ended)
            return MHD_CONTENT_READER_END_OF_STREAM;
        stream->asleep = true;
        MHD_suspend_connection(stream->request->connection);
        return 0;
    }
    size_t left = stream->text->len - stream->at, len = left < max ? left : max;
    memcpy(buf, stream->text->bytes + stream->at, len);
    stream->at += len;
    stream->sent_ms = loop_now_ms();
    if (len == left) {
        text_unref(stream->text);
        stream->text = NULL;
    }
    return (ssize_t)len;
}

static void on_hangup(struct source *source, uint32_t events)
{
    struct stream *stream = (struct stream *)((char *)source - offsetof(struct stream, hangup));

    (void)events;
    loop_remove(&stream->request->server->loop, source);
    stream->gone = true;
    stream_wake(stream);
}

static void request_is_over(struct request *request, bool sent)
{
    struct stream *stream = request->owner;
    struct server *server = request->server;

    (void)sent;
    loop_remove(&server->loop, &stream->hangup);
    if (stream->prev != NULL)
        stream->prev->next = stream->next;
    else
        server->streams = stream->next;
    if (stream->next != NULL)
        stream->next->prev = stream->prev;
    text_unref(stream->text);
    server->counters.streams--;
    stream->type->over(stream);
}

bool stream_start(struct stream *stream, const struct stream_type *type, struct request *request)
{
    struct server *server = request->server;

    *stream = (struct stream){.request = request,
                              .type = type,
                              .hangup.ready = on_hangup,
                              .sent_ms = loop_now_ms(),
                              .ended = server->ending};
    request->response =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK, read_stream, stream, NULL);
    if (request->response == NULL) {
        reply_refuse(&request->reply, 500, HF_NO_MEMORY, hf_code_text(HF_NO_MEMORY));
        return false;
    }
    request->reply.status = 200;
    request->reply.type = "text/event-stream";
    request->owner = stream;
    request->over = request_is_over;
    stream->next = server->streams;
    if (stream->next != NULL)
        stream->next->prev = stream;
    server->streams = stream;
    server->counters.streams++;
    hangup_watch(request, &stream->hangup);
    return true;
}

void stream_wake(struct stream *stream)
{
    if (!stream->asleep)
        return;
    stream->asleep = false;
    MHD_resume_connection(stream->request->connection);
}

void stream_end(struct stream *stream)
{
    stream->ended = true;
    stream_wake(stream);
}

void stream_end_all(struct server *server)
{
    for (struct stream *stream = server->streams; stream != NULL; stream = stream->next)
        stream_end(stream);
}

void stream_beat(struct server *server)
{
    int64_t now_ms = loop_now_ms();

    for (struct stream *stream = server->streams; stream != NULL; stream = stream->next) {
        if (now_ms - stream->sent_ms < STREAM_BEAT_MS)
            continue;
        stream->beat = true;
        stream_wake(stream);
    }
}
