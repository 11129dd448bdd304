/* What inspect.lua tells of one lock, read and shown. What is over but was not swept is left out, as
 * is a holder that the key does not vouch for; a stranger who holds the key is shown in its place. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stores/redis/room.h"
#include "stores/search.h"

#include "base/banned.h"

/* Of one lock; three parts for each entry follow. */
enum { VALUE, NOTED, PTTL, STRANGER, ENTRIES };
#define SHAPE "[i([nnin(sss)])]"

static bool is_moment(int64_t ms)
{
    return ms >= 0 && ms <= HF__REDIS_NUMBER_MAX;
}

bool hf__redis_rooms_are_good(const redisReply *reply, size_t most)
{
    if (!hf__redis_fits(reply, SHAPE) || reply->elements > most + 1 || reply->elements < 2 ||
        !is_moment(reply->element[0]->integer))
        return false;
    for (size_t i = 1; i < reply->elements; i++) {
        int64_t pttl_ms = reply->element[i]->element[PTTL]->integer;
        if (pttl_ms < -2 || pttl_ms > HF__REDIS_NUMBER_MAX)
            return false;
    }
    return true;
}

bool hf__redis_room_is_empty(const redisReply *found)
{
    return found->elements == ENTRIES && found->element[VALUE]->type == REDIS_REPLY_NIL;
}

/* "IXY since till generation ttl delay retire [limit]", see notes.lua. */
static bool parse_line(const char *line, struct hf__entry *e)
{
    int64_t numbers[7] = {0};
    const char *at = line + 3;
    size_t count = 0;

    if (strnlen(line, 3) < 3)
        return false;
    for (; *at == ' ' && count < 7; count++) {
        at = hf__redis_read_number(at + 1, &numbers[count]);
        if (at == NULL || !is_moment(numbers[count]))
            return false;
    }
    if (count < 6 || strchr("ILWR", line[0]) == NULL || numbers[6] > UINT32_MAX)
        return false;
    e->place = line[0] == 'I'   ? HF__PLACE_INSIDE
               : line[0] == 'L' ? HF__PLACE_LINGERING
               : line[0] == 'W' ? HF__PLACE_WAITING
                                : HF__PLACE_RETIRED;
    e->mode = line[1] == 'S' ? HF_SHARED : HF_EXCLUSIVE;
    e->claimed = line[2] == 'Y';
    e->since_ms = numbers[0];
    e->until_ms = numbers[1] == HF__REDIS_NUMBER_MAX ? HF__NEVER : numbers[1];
    e->generation = (uint64_t)numbers[2];
    e->ttl_ms = hf__ttl_of_stored(numbers[3]);
    e->lock_delay_ms = numbers[4];
    e->retire_ms = numbers[5];
    e->limit = (uint32_t)numbers[6];
    /* Nothing is cut short here, whatever the clock did: what is shown is what is noted. */
    e->lease_ms = e->until_ms == HF__NEVER ? HF__NEVER : INT64_MAX - 1;
    return true;
}

static int show(const struct hf__redis_room *room, struct hf__entry *e, struct hf__who *who)
{
    const struct hf__search *search = room->search;

    if (!hf__search_is_old_enough(search, e))
        return 0;
    e->who = who;
    e->effects = 0;
    return search->found(search->ctx, room->name, room->name_len, e);
}

/* A line that cannot be read is left out: a client of another version, or somebody else, wrote it. */
static int show_entry(const struct hf__redis_room *room, redisReply *const *at, bool vouched)
{
    struct hf__entry e = {0};
    struct hf__who who;

    if (!hf__ticket_parse(at[0]->str, &e.ticket) || !parse_line(at[1]->str, &e) ||
        !hf__search_settle(&e, room->now_ms) || (e.place != HF__PLACE_WAITING && !vouched))
        return 0;
    e.since_ms = room->now_ms - e.since_ms;
    if (e.until_ms != HF__NEVER)
        e.until_ms -= room->now_ms;
    const char *end = at[2]->str + at[2]->len, *words = at[2]->str;
    e.cached =
        strchr(hf__redis_next_word(&words, end), 'k') != NULL; /* a flag behind the channel */
    hf__redis_read_who(words, end, &who);
    return show(room, &e, &who);
}

/* A stranger tells nothing but what it wrote into the key, and for how long. */
static int show_stranger(const struct hf__redis_room *room)
{
    redisReply *const *at = room->found->element;
    int64_t pttl_ms = at[PTTL]->integer;
    char note[80];
    struct hf__who who = {.host = "", .user = "", .program = "(another client)", .note = note};
    struct hf__entry e = {.place = HF__PLACE_INSIDE,
                          .claimed = true,
                          .ttl_ms = pttl_ms < 0 ? HF__NEVER : pttl_ms,
                          .until_ms = pttl_ms < 0 ? HF__NEVER : pttl_ms};

    hf__printable(at[VALUE]->str, (size_t)at[VALUE]->len, note, sizeof note);
    if (at[STRANGER]->type == REDIS_REPLY_STRING)
        hf__ticket_parse(at[STRANGER]->str, &e.ticket);
    return show(room, &e, &who);
}

/* Holders by their generation; the queue stays behind them, in its order. */
static int by_generation(const void *a, const void *b)
{
    const redisReply *const *x = a, *const *y = b;
    struct hf__entry p = {0}, q = {0};

    parse_line(x[1]->str, &p);
    parse_line(y[1]->str, &q);
    return (p.generation > q.generation) - (p.generation < q.generation);
}

int hf__redis_show_room(const struct hf__redis_room *room)
{
    const redisReply *f = room->found;
    const redisReply *value = f->element[VALUE], *noted = f->element[NOTED];
    bool vouched = value->type == REDIS_REPLY_STRING && noted->type == REDIS_REPLY_STRING &&
                   value->len == noted->len &&
                   memcmp(value->str, noted->str, (size_t)value->len) == 0;
    size_t holders = ENTRIES;
    int r = 0;

    while (holders < f->elements && f->element[holders + 1]->str[0] != 'W')
        holders += 3;
    qsort(&f->element[ENTRIES], (holders - ENTRIES) / 3, 3 * sizeof f->element[0], by_generation);
    if (!vouched && value->type == REDIS_REPLY_STRING)
        r = show_stranger(room);
    for (size_t i = ENTRIES; r == 0 && i < f->elements; i += 3)
        r = show_entry(room, &f->element[i], vouched);
    return r;
}
