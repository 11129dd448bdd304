/* See board.h.
 *
 *     watch --readable--> job: hf_watch_next --posted--> take_view --news--> listeners
 *       ^                                                   |
 *       '---------------------------------------------------'
 *
 * The names of the rows are those of the view, which stays as long as they do. */
#include "board.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/table.h"
#include "cli/entry.h"

#include "base/banned.h"

#define LOOK_EVERY_MS 1000
#define CACHE_MS      1000 /* a list with all ages is given again for so long */

struct row {
    struct bytes name;
    struct cli_span span;
    uint64_t hash; /* of what is a change if it changes */
    uint64_t version;
};

struct gone {
    char *name;
    size_t len;
    uint64_t version;
};

struct board {
    struct loop *loop;
    struct store *store;
    hf_watch *watch; /* NULL: nobody listens */
    struct source due;
    struct job look;
    bool is_looking, is_fresh;
    int code; /* what a look gave, written by the worker */
    hf_view *found;
    hf_error err, trouble;
    hf_view *view;
    int64_t seen_ms; /* when the view was made */
    struct row *rows;
    size_t count;
    struct gone gone[BOARD_GONE_MAX]; /* a ring, the oldest is overwritten */
    size_t gone_at;
    uint64_t epoch, version, oldest; /* whoever knows less than `oldest` is told all */
    struct listener *listeners;
    struct { /* the last event for whoever listens to all */
        struct text *text;
        uint64_t from, to;
        int64_t made_ms;
    } cache;
};

/* Rows --------------------------------------------------------------------- */

static int compare(const struct bytes *a, const struct bytes *b)
{
    int order = memcmp(a->at, b->at, a->len < b->len ? a->len : b->len);

    return order != 0 ? order : (a->len > b->len) - (a->len < b->len);
}

/* Who is where, in which order; not how long. */
static uint64_t hash_span(const struct cli_span *span)
{
    uint64_t hash = span->count;

    for (size_t i = 0; i < span->count; i++) {
        const hf_entry *e = hf_view_entry(span->view, span->first + i);
        const uint64_t facts[] = {hash, (uint64_t)e->place, e->generation,
                                  hf__hash(0, e->ticket, sizeof e->ticket)};
        hash = hf__hash(0, facts, sizeof facts);
    }
    return hash;
}

static struct row *make_rows(const hf_view *view, uint64_t version, size_t *ret_count)
{
    struct row *rows = malloc((hf_view_count(view) + 1) * sizeof *rows);
    size_t count = 0;

    for (size_t i = 0; rows != NULL && i < hf_view_count(view); count++) {
        const hf_entry *e = hf_view_entry(view, i);
        struct cli_span span = cli_span_at(view, i);
        rows[count] = (struct row){.name = {e->name, e->name_len},
                                   .span = span,
                                   .hash = hash_span(&span),
                                   .version = version};
        i += span.count;
    }
    *ret_count = count;
    return rows;
}

static void note_gone(struct board *board, const struct bytes *name, uint64_t version)
{
    struct gone *gone = &board->gone[board->gone_at++ % BOARD_GONE_MAX];

    if (gone->name != NULL)
        board->oldest = gone->version;
    free(gone->name);
    gone->name = malloc(name->len + 1);
    gone->version = version;
    gone->len = name->len;
    if (gone->name == NULL) {
        board->oldest = version;
        return;
    }
    memcpy(gone->name, name->at, name->len);
    gone->name[name->len] = '\0';
}

/* Both are sorted by name. Rows that are as before keep their version. Gives whether any is not. */
static bool compare_rows(struct board *board, struct row *rows, size_t count, uint64_t version)
{
    bool changed = false;
    size_t old = 0;

    for (size_t i = 0; i < count || old < board->count;) {
        int order = i == count            ? 1
                    : old == board->count ? -1
                                          : compare(&rows[i].name, &board->rows[old].name);
        bool same = order == 0 && rows[i].hash == board->rows[old].hash;
        if (same)
            rows[i].version = board->rows[old].version;
        else
            changed = true;
        if (order > 0)
            note_gone(board, &board->rows[old].name, version);
        i += order <= 0;
        old += order >= 0;
    }
    return changed;
}

static void tell_all(struct board *board)
{
    struct listener *next;

    for (struct listener *l = board->listeners; l != NULL; l = next) {
        next = l->next;
        l->news(l);
    }
}

/* Takes over the view. */
static void take_view(struct board *board, hf_view *view)
{
    uint64_t version = board->version + 1;
    size_t count;
    struct row *rows = make_rows(view, version, &count);

    if (rows == NULL) { /* the next look tries again, as after an outage */
        hf_view_free(view);
        board->trouble = (hf_error){.code = HF_NO_MEMORY, .retriable = 1};
        return;
    }
    if (compare_rows(board, rows, count, version) || version == 1)
        board->version = version;
    free(board->rows);
    hf_view_free(board->view);
    board->rows = rows;
    board->count = count;
    board->view = view;
    board->seen_ms = loop_now_ms();
    board->is_fresh = true;
    board->trouble.code = HF_OK;
}

/* The watch ---------------------------------------------------------------- */

static void on_due(struct source *source, uint32_t events);

static void wait_for_due(struct board *board)
{
    board->due.ready = on_due;
    loop_add(board->loop, &board->due, hf_watch_fd(board->watch), EPOLLIN);
}

static void do_look(struct job *job)
{
    struct board *board = (struct board *)((char *)job - offsetof(struct board, look));

    board->found = NULL;
    board->code = hf_watch_next(board->watch, 0, &board->found, &board->err);
}

static void end_watch(struct board *board)
{
    loop_remove(board->loop, &board->due);
    hf_watch_free(board->watch);
    board->watch = NULL;
    board->is_fresh = false;
}

static void looked(struct posted *posted)
{
    struct board *board = (struct board *)((char *)posted - offsetof(struct board, look.posted));

    board->is_looking = false;
    if (board->code == HF_OK)
        take_view(board, board->found);
    else if (board->code != HF_TIMEOUT)
        board->trouble = board->err;
    if (board->listeners == NULL) {
        end_watch(board);
        return;
    }
    wait_for_due(board);
    if (board->code != HF_TIMEOUT)
        tell_all(board);
}

static void on_due(struct source *source, uint32_t events)
{
    struct board *board = (struct board *)((char *)source - offsetof(struct board, due));

    (void)events;
    loop_remove(board->loop, source);
    board->look = (struct job){.work = do_look, .posted.run = looked};
    board->is_looking = workers_give(&board->store->workers, &board->look);
    if (!board->is_looking) /* its workers are busy: when they are through */
        wait_for_due(board);
}

struct board *board_of(struct loop *loop, struct store *store, hf_error *err)
{
    struct timespec now;

    if (store->board != NULL)
        return store->board;
    struct board *board = calloc(1, sizeof *board);
    if (board == NULL) {
        *err = (hf_error){.code = HF_NO_MEMORY};
        return NULL;
    }
    clock_gettime(CLOCK_REALTIME, &now);
    board->loop = loop;
    board->store = store;
    board->epoch = (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
    store->board = board;
    return board;
}

int board_join(struct board *board, struct listener *listener, hf_error *err)
{
    if (board->watch == NULL) {
        int code = hf_watch_new(board->store->client, NULL, LOOK_EVERY_MS, &board->watch, err);
        if (code != HF_OK)
            return code;
        wait_for_due(board);
    }
    listener->board = board;
    listener->prev = NULL;
    listener->next = board->listeners;
    if (listener->next != NULL)
        listener->next->prev = listener;
    board->listeners = listener;
    return HF_OK;
}

void board_leave(struct listener *listener)
{
    struct board *board = listener->board;

    if (listener->prev != NULL)
        listener->prev->next = listener->next;
    else
        board->listeners = listener->next;
    if (listener->next != NULL)
        listener->next->prev = listener->prev;
    if (board->listeners == NULL && !board->is_looking)
        end_watch(board);
}

void board_free(struct board *board)
{
    if (board == NULL)
        return;
    if (board->watch != NULL)
        end_watch(board);
    for (size_t i = 0; i < BOARD_GONE_MAX; i++)
        free(board->gone[i].name);
    text_unref(board->cache.text);
    hf_view_free(board->view);
    free(board->rows);
    free(board);
}

bool board_is_fresh(const struct board *board)
{
    return board->is_fresh;
}

uint64_t board_epoch(const struct board *board)
{
    return board->epoch;
}

uint64_t board_version(const struct board *board)
{
    return board->version;
}

const hf_error *board_trouble(const struct board *board)
{
    return board->trouble.code != HF_OK ? &board->trouble : NULL;
}

/* Telling ------------------------------------------------------------------ */

static bool is_wanted(const struct board_filter *filter, const char *name, size_t len)
{
    size_t least = filter->name.len;

    return len >= least && (!filter->exact || len == least) &&
           memcmp(name, filter->name.at, least) == 0;
}

/* The first row that does not come before the filter's name. */
static size_t first_row(const struct board *board, const struct board_filter *filter)
{
    size_t low = 0, high = board->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare(&board->rows[middle].name, &filter->name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The next row from `i` on that is wanted and newer than `version`; `count` if there is none. */
static size_t next_row(const struct board *board, size_t i, uint64_t version,
                       const struct board_filter *filter)
{
    for (; i < board->count; i++) {
        const struct row *row = &board->rows[i];
        if (!is_wanted(filter, row->name.at, row->name.len))
            return board->count;
        if (row->version > version)
            return i;
    }
    return board->count;
}

static bool is_there(const struct board *board, const struct gone *gone)
{
    const struct board_filter filter = {.name = {gone->name, gone->len}, .exact = true};
    size_t i = first_row(board, &filter);

    return i < board->count && is_wanted(&filter, board->rows[i].name.at, board->rows[i].name.len);
}

/* The next lock that became free and is, from the `i`-th newest on; BOARD_GONE_MAX if there is none. */
static size_t next_gone(const struct board *board, size_t i, uint64_t version,
                        const struct board_filter *filter, const struct gone **ret_gone)
{
    for (; i < BOARD_GONE_MAX && i < board->gone_at; i++) {
        const struct gone *gone = &board->gone[(board->gone_at - 1 - i) % BOARD_GONE_MAX];
        if (gone->version <= version)
            break;
        *ret_gone = gone;
        if (gone->name != NULL && is_wanted(filter, gone->name, gone->len) &&
            !is_there(board, gone))
            return i;
    }
    return BOARD_GONE_MAX;
}

static bool is_behind_all(const struct board *board, uint64_t version)
{
    return version == 0 || version < board->oldest;
}

bool board_has_news(const struct board *board, uint64_t version, const struct board_filter *filter)
{
    const struct gone *gone;

    return is_behind_all(board, version) ||
           next_row(board, first_row(board, filter), version, filter) < board->count ||
           next_gone(board, 0, version, filter, &gone) < BOARD_GONE_MAX;
}

/* A lock that became free is a lock without anybody. */
static void write_locks(const struct board *board, struct cli_json *json, uint64_t version,
                        const struct board_filter *filter, bool with_gone)
{
    const struct cli_span nobody = {0};
    const struct gone *gone;

    for (size_t i = first_row(board, filter);
         (i = next_row(board, i, version, filter)) < board->count; i++) {
        const struct row *row = &board->rows[i];
        cli_json_lock_object(json, row->name.at, row->name.len, &row->span, true);
    }
    for (size_t i = 0;
         with_gone && (i = next_gone(board, i, version, filter, &gone)) < BOARD_GONE_MAX; i++)
        cli_json_lock_object(json, gone->name, gone->len, &nobody, true);
}

static struct text *write_event(const struct board *board, uint64_t version,
                                const struct board_filter *filter)
{
    bool full = is_behind_all(board, version);
    struct event event;
    char id[64];

    snprintf(id, sizeof id, "%" PRIx64 "-%" PRIu64, board->epoch, board->version);
    if (!board_has_news(board, version, filter) || !event_begin(&event, "locks", id))
        return NULL;
    cli_json_bool(&event.json, "full", full);
    cli_json_number(&event.json, "as_of_ms", loop_now_ms() - board->seen_ms);
    cli_json_open(&event.json, "locks", '[');
    write_locks(board, &event.json, full ? 0 : version, filter, !full);
    cli_json_close(&event.json, ']');
    return event_end(&event);
}

struct text *board_tell(struct board *board, uint64_t version, const struct board_filter *filter)
{
    int64_t now_ms = loop_now_ms();

    if (filter->name.len > 0)
        return write_event(board, version, filter);
    if (board->cache.text == NULL || board->cache.from != version ||
        board->cache.to != board->version || now_ms - board->cache.made_ms > CACHE_MS) {
        text_unref(board->cache.text);
        board->cache.text = write_event(board, version, filter);
        board->cache.from = version;
        board->cache.to = board->version;
        board->cache.made_ms = now_ms;
    }
    return board->cache.text != NULL ? text_ref(board->cache.text) : NULL;
}
