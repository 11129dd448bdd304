/* An answer that goes on: server-sent events. While there is nothing to send its connection is suspended, and costs
 * neither a thread nor a turn of the loop; whether the client is still there the kernel tells, and otherwise the
 * heartbeat. */
#ifndef SERVE_STREAM_H
#define SERVE_STREAM_H

#include "request.h"

#define STREAM_BEAT_MS 15000

/* What is sent, perhaps to many. */
struct text {
    size_t refs, len;
    char bytes[];
};

struct stream;

struct stream_type {
    /* What to send next, with a reference for the stream; NULL: there is nothing, now. */
    struct text *(*next)(struct stream *stream);
    /* It is over, whoever ended it; called once, and nothing after it. */
    void (*over)(struct stream *stream);
};

/* Lives inside of its owner. */
struct stream {
    struct stream *prev, *next; /* of the server */
    struct request *request;
    const struct stream_type *type;
    struct source hangup;
    struct text *text; /* being sent */
    size_t at;
    int64_t sent_ms; /* when something was sent last */
    bool asleep, beat, ended, gone;
};

/* Makes it the answer of the request, which the loop gives when this has returned. False: out of memory, and the
 * reply says so. */
bool stream_start(struct stream *stream, const struct stream_type *type, struct request *request);

/* There may be something to send. */
void stream_wake(struct stream *stream);

/* Nothing more is to come after what `next` still gives. */
void stream_end(struct stream *stream);

/* Ends them all. */
void stream_end_all(struct server *server);

/* Called now and then: heartbeats. */
void stream_beat(struct server *server);

/* Copies; NULL: out of memory. */
struct text *text_new(const char *bytes, size_t len);
struct text *text_ref(struct text *text);
void text_unref(struct text *text); /* NULL is fine */

/* Writes one event by hand: begin, put the fields of its object, end. */
struct event {
    struct cli_json json;
    char *bytes;
    size_t len;
};
bool event_begin(struct event *event, const char *name, const char *id); /* `id` NULL: none */
struct text *event_end(struct event *event);

/* Watches the socket of a suspended request: `source->ready` is called when its client has gone. */
void hangup_watch(struct request *request, struct source *source);

#endif
