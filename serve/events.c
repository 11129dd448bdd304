/* GET .../events: what changes in a store, as server-sent events. All streams of a store share its board. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "board.h"
#include "routes.h"
#include "server.h"

#include "base/banned.h"

struct events {
    struct stream stream;
    struct listener listener;
    struct board_filter filter;
    uint64_t told;     /* up to this version */
    bool told_trouble; /* that the store does not answer */
};

static struct text *tell_trouble(struct events *events, const hf_error *err)
{
    struct event event;

    events->told_trouble = err != NULL;
    if (!event_begin(&event, err != NULL ? "away" : "back", NULL))
        return NULL;
    if (err != NULL)
        reply_json_error(&event.json, "error", err);
    return event_end(&event);
}

static struct text *next(struct stream *stream)
{
    struct events *events = (struct events *)stream;
    struct board *board = events->listener.board;
    const hf_error *trouble = board_trouble(board);

    if (trouble != NULL && !events->told_trouble)
        return tell_trouble(events, trouble);
    if (!board_is_fresh(board) || trouble != NULL)
        return NULL;
    if (events->told_trouble)
        return tell_trouble(events, NULL);
    if (events->told == board_version(board))
        return NULL;
    struct text *text = board_tell(board, events->told, &events->filter);
    events->told = board_version(board);
    return text;
}

static void over(struct stream *stream)
{
    struct events *events = (struct events *)stream;

    board_leave(&events->listener);
    free(events);
}

static void news(struct listener *listener)
{
    struct events *events = (struct events *)((char *)listener - offsetof(struct events, listener));
    const struct board *board = listener->board;

    if (board_trouble(board) != NULL || events->told_trouble ||
        board_has_news(board, events->told, &events->filter))
        stream_wake(&events->stream);
    else
        events->told = board_version(board);
}

/* "EPOCH-VERSION", as `id` said; 0: not of this server, or not ours. */
static uint64_t resume_from(const struct board *board, const char *last_id)
{
    char *end;

    if (last_id == NULL || strtoull(last_id, &end, 16) != board_epoch(board) || *end != '-')
        return 0;
    uint64_t version = strtoull(end + 1, &end, 10);
    return *end == '\0' && version <= board_version(board) ? version : 0;
}

static bool read_filter(const struct request *request, struct board_filter *filter)
{
    const struct bytes *name = target_argument(&request->target, "name"),
                       *prefix = target_argument(&request->target, "prefix");

    *filter = (struct board_filter){.name = {"", 0}};
    if (name != NULL)
        *filter = (struct board_filter){.name = *name, .exact = true};
    else if (prefix != NULL)
        filter->name = *prefix;
    return (name == NULL || prefix == NULL) && filter->name.len <= HF_NAME_MAX &&
           (name == NULL || name->len > 0);
}

static bool listen_to_board(struct request *request, struct events *events, hf_error *err)
{
    struct board *board = board_of(&request->server->loop, request->store, err);

    events->listener.news = news;
    return board != NULL && board_join(board, &events->listener, err) == HF_OK;
}

void events_start(struct request *request)
{
    static const struct stream_type type = {.next = next, .over = over};
    struct events *events = calloc(1, sizeof *events);
    hf_error err = {.code = HF_NO_MEMORY};

    if (events != NULL && !read_filter(request, &events->filter)) {
        reply_refuse(&request->reply, 400, HF_INVALID,
                     "say name, of 1 to 512 bytes, or prefix, or neither");
    } else if (events == NULL || !listen_to_board(request, events, &err)) {
        reply_error(&request->reply, &err);
    } else if (!stream_start(&events->stream, &type, request)) {
        board_leave(&events->listener);
    } else {
        events->told =
            resume_from(events->listener.board, request_header(request, "Last-Event-ID"));
        return;
    }
    free(events);
}
