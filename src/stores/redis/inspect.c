/* Showing who holds and who waits: the notes of one name in one round trip, or of all by SCAN, a
 * page at a time. What is over but was not swept is left out, as is a holder that the key does not
 * vouch for; a stranger who holds the key is shown in its place. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stores/look.h"
#include "stores/redis/redis.h"
#include "util/bytes.h"

#include "util/banned.h"

enum { VALUE, NOTED, PTTL, ENTRIES }; /* of one lock in the answer of inspect.lua */

/* What is known of one lock, as the server gave it. */
struct room {
    const char *name;
    size_t name_len;
    const redisReply *found;
    int64_t now_ms;
    const struct hf__look *look;
};

static bool parse_line(const char *line, struct hf__entry *e)
{
    char place, mode, claimed;
    unsigned limit = 0;
    int n = sscanf(
        line, "%c%c%c %" SCNd64 " %" SCNd64 " %" SCNu64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %u",
        &place, &mode, &claimed, &e->since_ms, &e->until_ms, &e->generation, &e->ttl_ms,
        &e->lock_delay_ms, &e->retire_ms, &limit);

    if (n < 9)
        return false;
    e->place = place == 'I'   ? HF__INSIDE
               : place == 'L' ? HF__LINGERING
               : place == 'W' ? HF__WAITING
                              : HF__RETIRED;
    e->mode = mode == 'S' ? HF_SHARED : HF_EXCLUSIVE;
    e->claimed = claimed == 'Y';
    e->limit = limit;
    if (e->until_ms >= INT64_C(9007199254740991))
        e->until_ms = HF__NEVER;
    e->lease_ms = e->until_ms == HF__NEVER ? HF__NEVER : INT64_MAX - 1; /* never cut here */
    return true;
}

static int show(const struct room *room, struct hf__entry *e, struct hf__who *who)
{
    const struct hf__look *look = room->look;

    if (!hf__look_is_old_enough(look, e))
        return 0;
    e->who = who;
    e->marks = 0;
    return look->found(look->ctx, room->name, room->name_len, e);
}

static bool is_text(const redisReply *reply)
{
    return reply->type == REDIS_REPLY_STRING;
}

static bool same(const redisReply *a, const redisReply *b)
{
    return is_text(a) && is_text(b) && a->len == b->len && memcmp(a->str, b->str, a->len) == 0;
}

static int show_entry(const struct room *room, size_t i, bool vouched)
{
    redisReply *const *at = &room->found->element[i];
    struct hf__entry e = {0};
    struct hf__who who;

    if (!is_text(at[0]) || !is_text(at[1]) || !is_text(at[2]) ||
        !hf__ticket_parse(at[0]->str, &e.ticket) || !parse_line(at[1]->str, &e) ||
        !hf__look_settle(&e, room->now_ms) || (e.place != HF__WAITING && !vouched))
        return 0;
    e.since_ms = room->now_ms - e.since_ms;
    if (e.until_ms != HF__NEVER)
        e.until_ms -= room->now_ms;
    const char *end = at[2]->str + at[2]->len, *words = at[2]->str;
    hf__redis_next_word(&words, end); /* the channel */
    hf__redis_read_who(words, end, &who);
    return show(room, &e, &who);
}

/* A stranger tells nothing but what it wrote into the key, and for how long. */
static int show_stranger(const struct room *room)
{
    const redisReply *value = room->found->element[VALUE];
    int64_t pttl_ms = room->found->element[PTTL]->integer;
    char note[80];
    struct hf__who who = {.host = "", .user = "", .program = "(another client)", .note = note};
    struct hf__entry e = {.place = HF__INSIDE,
                          .claimed = true,
                          .ttl_ms = pttl_ms < 0 ? 0 : pttl_ms,
                          .until_ms = pttl_ms < 0 ? HF__NEVER : pttl_ms};

    hf__printable(value->str, value->len, note, sizeof note);
    hf__ticket_parse(value->str, &e.ticket); /* many write 32 hex digits: then it can be broken */
    return show(room, &e, &who);
}

static int by_generation(const void *a, const void *b)
{
    const redisReply *const *x = a, *const *y = b;
    struct hf__entry p = {0}, q = {0};

    parse_line(x[1]->str, &p);
    parse_line(y[1]->str, &q);
    bool p_waits = p.place == HF__WAITING, q_waits = q.place == HF__WAITING;
    if (p_waits != q_waits)
        return p_waits - q_waits;
    if (p_waits)
        return 0;
    return (p.generation > q.generation) - (p.generation < q.generation);
}

static int show_room(const struct room *room)
{
    const redisReply *f = room->found;
    int r = 0;

    if (f->type != REDIS_REPLY_ARRAY || f->elements < ENTRIES)
        return 0;
    bool vouched = same(f->element[VALUE], f->element[NOTED]);
    size_t holders = ENTRIES;
    while (holders + 2 < f->elements && f->element[holders + 1]->str[0] != 'W')
        holders += 3;
    qsort(&f->element[ENTRIES], (holders - ENTRIES) / 3, 3 * sizeof f->element[0], by_generation);
    if (!vouched && is_text(f->element[VALUE]))
        r = show_stranger(room);
    for (size_t i = ENTRIES; r == 0 && i + 2 < f->elements; i += 3)
        r = show_entry(room, i, vouched);
    return r;
}

static int ask_for(struct hf__redis_conn *c, const struct hf__redis_names *names, size_t count,
                   int64_t deadline_ns, redisReply **ret_reply, hf_error *err)
{
    hf__redis_script(c, HF__REDIS_INSPECT, 2 * count, 0);
    for (size_t i = 0; i < count; i++)
        hf__redis_add_names(c, &names[i]);
    int r = hf__redis_run(c, HF__REDIS_INSPECT, deadline_ns, ret_reply, err);
    if (r == 0 &&
        ((*ret_reply)->type != REDIS_REPLY_ARRAY || (*ret_reply)->elements != count + 1)) {
        freeReplyObject(*ret_reply);
        r = hf__fail(err, HF_CORRUPT, "inspect: the server gave another number of answers");
    }
    return r;
}

static int look_at_one(struct hf__redis *s, const struct hf__look *look, int64_t deadline_ns,
                       hf_error *err)
{
    struct hf__redis_names names;
    struct hf__redis_conn *c = NULL;
    redisReply *reply = NULL;
    int r = hf__redis_name(s, look->name, look->name_len, &names, err);

    if (r == 0)
        r = hf__redis_take(s, deadline_ns, &c, err);
    if (r != 0)
        return r;
    r = ask_for(c, &names, 1, deadline_ns, &reply, err);
    hf__redis_give(s, c);
    if (r != 0)
        return r;
    struct room room = {.name = look->name,
                        .name_len = look->name_len,
                        .found = reply->element[1],
                        .now_ms = reply->element[0]->integer,
                        .look = look};
    r = show_room(&room);
    freeReplyObject(reply);
    return r;
}

/* Looking at all: what every page brought is kept until it can be sorted by name. */
struct gathered {
    struct hf__redis *s;
    const struct hf__look *look;
    struct room *rooms;
    size_t count, capacity;
    redisReply **replies;
    size_t reply_count;
};

static bool make_room(struct gathered *g, size_t more)
{
    size_t capacity = 2 * g->capacity + more;
    redisReply **replies = realloc(g->replies, (g->reply_count + 1) * sizeof *replies);

    if (replies == NULL)
        return false;
    g->replies = replies;
    if (g->capacity - g->count >= more)
        return true;
    struct room *rooms = realloc(g->rooms, capacity * sizeof *rooms);
    if (rooms == NULL)
        return false;
    g->rooms = rooms;
    g->capacity = capacity;
    return true;
}

/* The matching locks of a page: their keys, and their names as rooms that have not been looked
 * into. */
static size_t select_names(struct gathered *g, redisReply **books, size_t count,
                           struct hf__redis_names *names)
{
    size_t kept = 0;

    for (size_t i = 0; i < count; i++) {
        struct room *room = &g->rooms[g->count + kept];
        const char *name;
        size_t len;
        if (!hf__redis_unname(g->s, books[i]->str, books[i]->len, &names[kept], &name, &len) ||
            !hf__look_wants(g->look, name, len))
            continue;
        char *own = malloc(len + 1);
        if (own == NULL)
            continue;
        memcpy(own, name, len);
        *room = (struct room){.name = own, .name_len = len, .look = g->look};
        kept++;
    }
    return kept;
}

static int gather(void *ctx, struct hf__redis_conn *c, redisReply **books, size_t count,
                  int64_t deadline_ns, hf_error *err)
{
    struct gathered *g = ctx;
    struct hf__redis_names *names = calloc(count + 1, sizeof *names);
    redisReply *reply = NULL;
    int r = 0;

    if (names == NULL || !make_room(g, count)) {
        free(names);
        return hf__fail(err, HF_NO_MEMORY, NULL);
    }
    size_t kept = select_names(g, books, count, names);
    if (kept > 0)
        r = ask_for(c, names, kept, deadline_ns, &reply, err);
    for (size_t i = 0; i < kept; i++) {
        struct room *room = &g->rooms[g->count + i];
        room->found = r == 0 ? reply->element[i + 1] : NULL;
        room->now_ms = r == 0 ? reply->element[0]->integer : 0;
    }
    g->count += kept;
    if (r == 0 && reply != NULL)
        g->replies[g->reply_count++] = reply;
    free(names);
    return r;
}

static int by_name(const void *a, const void *b)
{
    const struct room *x = a, *y = b;

    return hf__bytes_order(x->name, x->name_len, y->name, y->name_len);
}

static int look_at_all(struct hf__redis *s, const struct hf__look *look, int64_t deadline_ns,
                       hf_error *err)
{
    struct gathered g = {.s = s, .look = look};
    int r = hf__redis_scan(s, deadline_ns, gather, &g, err);

    if (g.count > 0)
        qsort(g.rooms, g.count, sizeof *g.rooms, by_name);
    for (size_t i = 0; r == 0 && i < g.count; i++) {
        bool again = i > 0 && by_name(&g.rooms[i - 1], &g.rooms[i]) == 0; /* SCAN may repeat */
        if (!again)
            r = show_room(&g.rooms[i]);
    }
    for (size_t i = 0; i < g.count; i++)
        free((char *)g.rooms[i].name);
    for (size_t i = 0; i < g.reply_count; i++)
        freeReplyObject(g.replies[i]);
    free(g.replies);
    free(g.rooms);
    return r;
}

int hf__redis_inspect(struct hf__store *store, const struct hf__look *look, int64_t deadline_ns,
                      hf_error *err)
{
    struct hf__redis *s = (struct hf__redis *)store;

    return look->name != NULL ? look_at_one(s, look, deadline_ns, err)
                              : look_at_all(s, look, deadline_ns, err);
}
