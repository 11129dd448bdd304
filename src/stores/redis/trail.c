/* Reading the trail: the newest entries of one stream, or of all that SCAN finds. What an entry says is in
 * notes.lua; one that says something else is passed over, for anybody may have written it. */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "stores/redis/redis.h"
#include "stores/search.h"

#include "base/banned.h"

#define KINDS "GRLBDVr" /* in the order of HF_TRAIL_KINDS, but for the last */

struct stream {
    char *name; /* of the lock */
    size_t len;
};

struct streams {
    struct hf__redis *s;
    const struct hf__trail_search *search;
    struct stream *all;
    size_t count, capacity;
};

/* A number and the blank behind it. */
static bool read_field(const char **at, int64_t *ret_number)
{
    const char *end = hf__redis_read_number(*at, ret_number);

    if (end == NULL || *end != ' ')
        return false;
    *at = end + 1;
    return true;
}

static bool read_ticket(const char **at, struct hf__ticket *ret_ticket)
{
    char text[HF_TICKET_SIZE] = "";

    if (strnlen(*at, HF_TICKET_SIZE) != HF_TICKET_SIZE - 1)
        return false;
    memcpy(text, *at, HF_TICKET_SIZE - 1);
    *at += HF_TICKET_SIZE;
    return hf__ticket_parse(text, ret_ticket);
}

/* "GX generation span ago ticket\0cause\0who"; a text of hiredis has a NUL behind it. */
static bool read_entry(const redisReply *id, const redisReply *text, struct hf__trail_entry *e,
                       struct hf__who *who)
{
    const char *at = text->str, *end = text->str + text->len;
    const char *kind = text->len > 3 && at[0] != '\0' ? strchr(KINDS, at[0]) : NULL;
    int64_t generation, ago_ms, id_ms;

    if (kind == NULL || (at[1] != 'X' && at[1] != 'S') || at[2] != ' ')
        return false;
    e->kind = *kind == 'r' ? HF_TRAIL_RELEASED : (hf_trail_kind)(kind - KINDS + 1);
    e->mode = at[1] == 'S' ? HF_SHARED : HF_EXCLUSIVE;
    at += 3;
    if (!read_field(&at, &generation) || !read_field(&at, &e->span_ms) ||
        !read_field(&at, &ago_ms) || !read_ticket(&at, &e->ticket) ||
        hf__redis_read_number(id->str, &id_ms) == NULL || ago_ms > id_ms)
        return false;
    e->generation = (uint64_t)generation;
    e->at_ms = id_ms - ago_ms;
    if (*kind == 'r') /* the generation is the time of the grant, in microseconds */
        e->span_ms = generation / 1000 < id_ms ? id_ms - generation / 1000 : 0;
    e->cause = hf__redis_next_word(&at, end);
    hf__redis_read_who(at, end, who);
    e->who = who;
    return true;
}

/* The reply is the newest first. */
static int tell(const struct hf__trail_search *search, const struct stream *stream,
                const redisReply *reply)
{
    int r = 0;

    for (size_t i = reply->elements; r == 0 && i > 0; i--) {
        const redisReply *entry = reply->element[i - 1];
        struct hf__who who;
        struct hf__trail_entry e = {.name = stream->name, .name_len = stream->len};
        if (hf__redis_fits(entry, "[s[ss]]") &&
            read_entry(entry->element[0], entry->element[1]->element[1], &e, &who))
            r = search->found(search->ctx, &e);
    }
    return r;
}

static int read_stream(struct hf__redis *s, struct hf__redis_conn *c, const struct stream *stream,
                       const struct hf__trail_search *search, int64_t deadline_ns, hf_error *err)
{
    struct hf__redis_names names;
    redisReply *reply = NULL;
    uint64_t limit =
        search->limit > 0 && search->limit < HF__HISTORY_MAX ? search->limit : HF__HISTORY_MAX;
    int r = hf__redis_name(s, stream->name, stream->len, &names, err);

    if (r != 0)
        return r;
    names.book[sizeof HF__REDIS_OWN_WORD - 1] = 'h';
    hf__redis_begin(c, 6);
    hf__redis_add_text(c, "XREVRANGE");
    hf__redis_add(c, names.book, names.book_len);
    hf__redis_add_text(c, "+");
    hf__redis_add_number(c, (uint64_t)search->since_ms);
    hf__redis_add_text(c, "COUNT");
    hf__redis_add_number(c, limit);
    r = hf__redis_ask(c, deadline_ns, &reply, err);
    if (r == 0 && !hf__redis_fits(reply, "[(a)]"))
        r = hf__fail(err, HF_CORRUPT, "history: the server gave an answer that was not expected");
    if (r == 0)
        r = tell(search, stream, reply);
    freeReplyObject(reply);
    return r;
}

static int gather(void *ctx, struct hf__redis_conn *c, redisReply **keys, size_t count,
                  int64_t deadline_ns, hf_error *err)
{
    struct streams *g = ctx;
    struct hf__search names_of = {.prefix = g->search->prefix, .prefix_len = g->search->prefix_len};

    (void)c, (void)deadline_ns;
    for (size_t i = 0; i < count; i++) {
        struct hf__redis_names names;
        const char *name;
        size_t len;
        if (!hf__redis_unname(g->s, keys[i]->str, (size_t)keys[i]->len, &names, &name, &len) ||
            !hf__search_wants(&names_of, name, len))
            continue;
        if (g->count == g->capacity) {
            size_t capacity = g->capacity == 0 ? 64 : 2 * g->capacity;
            struct stream *all = realloc(g->all, capacity * sizeof *all);
            if (all == NULL)
                return hf__fail(err, HF_NO_MEMORY, NULL);
            g->all = all;
            g->capacity = capacity;
        }
        char *own = malloc(len + 1);
        if (own == NULL)
            return hf__fail(err, HF_NO_MEMORY, NULL);
        memcpy(own, name, len);
        g->all[g->count++] = (struct stream){own, len};
    }
    return 0;
}

static int by_name(const void *a, const void *b)
{
    const struct stream *x = a, *y = b;

    return hf__bytes_order(x->name, x->len, y->name, y->len);
}

/* Each stream has its own time, as each page of SCAN. */
static int read_all(struct hf__redis *s, const struct hf__trail_search *search, hf_error *err)
{
    const struct hf__host *host = s->base.host;
    struct streams g = {.s = s, .search = search};
    struct hf__redis_conn *c = NULL;
    int r = hf__redis_scan(s, "h", gather, &g, err);

    if (g.count > 0)
        qsort(g.all, g.count, sizeof *g.all, by_name);
    for (size_t i = 0; r == 0 && i < g.count; i++) {
        int64_t deadline_ns = hf__now_ns(host->env) + host->op_timeout_ms * HF__NS_PER_MS;
        bool again = i > 0 && by_name(&g.all[i - 1], &g.all[i]) == 0; /* SCAN may repeat */
        if (c == NULL)
            r = hf__redis_take(s, deadline_ns, &c, err);
        if (r == 0 && !again)
            r = read_stream(s, c, &g.all[i], search, deadline_ns, err);
    }
    if (c != NULL)
        hf__redis_give(s, c);
    for (size_t i = 0; i < g.count; i++)
        free(g.all[i].name);
    free(g.all);
    return r;
}

int hf__redis_trail(struct hf__store *store, const struct hf__trail_search *search,
                    int64_t deadline_ns, hf_error *err)
{
    struct hf__redis *s = (struct hf__redis *)store;
    struct stream one = {(char *)search->name, search->name_len};
    struct hf__redis_conn *c = NULL;

    if (search->name == NULL)
        return read_all(s, search, err);
    int r = hf__redis_take(s, deadline_ns, &c, err);
    if (r != 0)
        return r;
    r = read_stream(s, c, &one, search, deadline_ns, err);
    hf__redis_give(s, c);
    return r;
}
