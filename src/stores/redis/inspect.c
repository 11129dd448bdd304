/* Showing who holds and who waits: the notes of one name in one round trip, or of all by SCAN, a
 * page at a time. What a lock's notes say is read in room.c. */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "stores/redis/redis.h"
#include "stores/redis/room.h"
#include "stores/search.h"

#include "base/banned.h"

static int ask_for(struct hf__redis_conn *c, const struct hf__redis_names *names, size_t count,
                   int64_t deadline_ns, redisReply **ret_reply, hf_error *err)
{
    redisReply *reply = NULL;

    hf__redis_script(c, HF__REDIS_SCRIPT_INSPECT, 2 * count, 0);
    for (size_t i = 0; i < count; i++)
        hf__redis_add_names(c, &names[i]);
    int r = hf__redis_run(c, HF__REDIS_SCRIPT_INSPECT, deadline_ns, &reply, err);
    if (r == 0 && !hf__redis_rooms_are_good(reply, count)) {
        freeReplyObject(reply);
        return hf__fail(err, HF_CORRUPT,
                        "inspect: the server gave an answer that was not expected");
    }
    if (r == 0)
        *ret_reply = reply;
    return r;
}

static int look_at_one(struct hf__redis *s, const struct hf__search *search, int64_t deadline_ns,
                       hf_error *err)
{
    struct hf__redis_names names;
    struct hf__redis_conn *c = NULL;
    redisReply *reply = NULL;
    int r = hf__redis_name(s, search->name, search->name_len, &names, err);

    if (r == 0)
        r = hf__redis_take(s, deadline_ns, &c, err);
    if (r != 0)
        return r;
    r = ask_for(c, &names, 1, deadline_ns, &reply, err);
    hf__redis_give(s, c);
    if (r != 0)
        return r;
    struct hf__redis_room room = {.name = search->name,
                                  .name_len = search->name_len,
                                  .found = reply->element[1],
                                  .now_ms = reply->element[0]->integer,
                                  .search = search};
    r = hf__redis_show_room(&room);
    freeReplyObject(reply);
    return r;
}

/* Looking at all: what there is to be shown is kept until it can be sorted by name. */
struct gathered {
    struct hf__redis *s;
    const struct hf__search *search;
    struct hf__redis_room *rooms;
    size_t count, capacity;
    redisReply **replies;
    size_t reply_count;
};

/* Of an answer about some locks, those in which somebody is; the rest of it is not kept. */
static int keep_rooms(struct gathered *g, const struct hf__redis_names *names, redisReply *reply,
                      hf_error *err)
{
    size_t before = g->count, capacity = g->count + reply->elements;
    struct hf__redis_room *rooms = g->rooms;
    redisReply **replies = realloc(g->replies, (g->reply_count + 1) * sizeof *replies);
    bool failed = replies == NULL;

    g->replies = failed ? g->replies : replies;
    if (!failed && capacity > g->capacity) {
        rooms = realloc(g->rooms, 2 * capacity * sizeof *rooms);
        failed = rooms == NULL;
        if (!failed) {
            g->rooms = rooms;
            g->capacity = 2 * capacity;
        }
    }
    for (size_t i = 1; !failed && i < reply->elements; i++) {
        struct hf__redis_names again;
        const char *name;
        size_t len;
        if (hf__redis_room_is_empty(reply->element[i]))
            continue;
        hf__redis_unname(g->s, names[i - 1].book, names[i - 1].book_len, &again, &name, &len);
        char *own = malloc(len + 1); /* what it says is borrowed from `again` */
        failed = own == NULL;
        if (failed)
            break;
        memcpy(own, name, len);
        rooms[g->count++] = (struct hf__redis_room){.name = own,
                                                    .name_len = len,
                                                    .found = reply->element[i],
                                                    .now_ms = reply->element[0]->integer,
                                                    .search = g->search};
    }
    while (failed && g->count > before)
        free((char *)g->rooms[--g->count].name);
    if (g->count > before)
        g->replies[g->reply_count++] = reply;
    else
        freeReplyObject(reply);
    return failed ? hf__fail(err, HF_NO_MEMORY, NULL) : 0;
}

/* A page of books: those that are looked for, and what is in them. */
static int gather(void *ctx, struct hf__redis_conn *c, redisReply **books, size_t count,
                  int64_t deadline_ns, hf_error *err)
{
    struct gathered *g = ctx;
    struct hf__redis_names *names = calloc(count, sizeof *names);
    size_t wanted = 0, seen = 0, len;
    const char *name;
    int r = 0;

    if (names == NULL)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    for (size_t i = 0; i < count; i++) {
        if (hf__redis_unname(g->s, books[i]->str, (size_t)books[i]->len, &names[wanted], &name,
                             &len) &&
            hf__search_wants(g->search, name, len))
            wanted++;
    }
    while (r == 0 && seen < wanted) { /* a long answer is not about all of them */
        redisReply *reply = NULL;
        r = ask_for(c, &names[seen], wanted - seen, deadline_ns, &reply, err);
        if (r != 0)
            break;
        size_t told = reply->elements - 1;
        r = keep_rooms(g, &names[seen], reply, err);
        seen += told;
    }
    free(names);
    return r;
}

static int by_name(const void *a, const void *b)
{
    const struct hf__redis_room *x = a, *y = b;

    return hf__bytes_order(x->name, x->name_len, y->name, y->name_len);
}

static int look_at_all(struct hf__redis *s, const struct hf__search *search, hf_error *err)
{
    struct gathered g = {.s = s, .search = search};
    int r = hf__redis_scan(s, "b", gather, &g, err);

    if (g.count > 0)
        qsort(g.rooms, g.count, sizeof *g.rooms, by_name);
    for (size_t i = 0; r == 0 && i < g.count; i++) {
        bool again = i > 0 && by_name(&g.rooms[i - 1], &g.rooms[i]) == 0; /* SCAN may repeat */
        if (!again)
            r = hf__redis_show_room(&g.rooms[i]);
    }
    for (size_t i = 0; i < g.count; i++)
        free((char *)g.rooms[i].name);
    for (size_t i = 0; i < g.reply_count; i++)
        freeReplyObject(g.replies[i]);
    free(g.replies);
    free(g.rooms);
    return r;
}

int hf__redis_inspect(struct hf__store *store, const struct hf__search *search, int64_t deadline_ns,
                      hf_error *err)
{
    struct hf__redis *s = (struct hf__redis *)store;

    return search->name != NULL ? look_at_one(s, search, deadline_ns, err)
                                : look_at_all(s, search, err);
}
