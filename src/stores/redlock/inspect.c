/* What a majority knows. A lock is shown if most nodes have the same ticket at its key; what only
 * some have is on its way in or out, or was left behind, and holds nobody back for long. Names are
 * found by their keys (scan.c); of locks that other clients took only those asked for by name are
 * shown, since not every key of the database is a lock. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stores/redlock/inspect.h"
#include "stores/search.h"

#include "base/banned.h"

#define PAGE 200 /* names in one question: a script keeps its server from serving anybody else */

static void write_look(struct hf__redlock_ask *ask, size_t node, struct hf__redis_conn *c)
{
    const struct hf__redlock_inspection *w = (const struct hf__redlock_inspection *)ask;
    struct hf__redlock_key key;

    (void)node;
    hf__redis_add_number(c, (int64_t)(w->upto - w->from));
    for (size_t i = w->from; i < w->upto; i++) {
        hf__redlock_key(w->s, w->names.list[i].bytes, w->names.list[i].len, &key, NULL);
        hf__redis_add(c, key.bytes, key.len);
    }
    hf__redis_add_text(c, HF__REDLOCK_NOTE);
}

enum { VALUE, PTTL, NOTE, DIGEST };

/* Keeps the reply until all are there. What does not have the shape and the range that the script
 * gives is not believed: whatever answers on that port, it must not crash us. */
static int take_page(struct hf__redlock_ask *ask, size_t node, redisReply **at, hf_error *err)
{
    struct hf__redlock_inspection *w = (struct hf__redlock_inspection *)ask;
    const redisReply *reply = *at;
    size_t names = w->upto - w->from;
    bool sound = hf__redis_fits(reply, "[i([ninn])]") && reply->elements == 1 + names;

    for (size_t i = 0; sound && i <= names; i++) {
        int64_t ms =
            i == 0 ? reply->element[0]->integer : reply->element[i]->element[PTTL]->integer;
        sound = ms >= -2 && ms <= HF__REDIS_NUMBER_MAX;
    }
    if (!sound)
        return hf__fail(err, HF_CORRUPT, "a script gave an answer that was not expected");
    w->pages[node] = *at;
    *at = NULL;
    return 0;
}

static bool same_text(const redisReply *a, const redisReply *b)
{
    return a->type == b->type &&
           (a->type != REDIS_REPLY_STRING ||
            (a->len == b->len && memcmp(a->str, b->str, (size_t)a->len) == 0));
}

/* Long values are cut; their digests are not. */
static bool same(const redisReply *a, const redisReply *b)
{
    return a->element[VALUE]->type == REDIS_REPLY_STRING &&
           same_text(a->element[VALUE], b->element[VALUE]) &&
           same_text(a->element[DIGEST], b->element[DIGEST]);
}

/* How long a majority keeps what this node has, -1 for ever; 0 if none does. That is the time of
 * the one by which the majority is reached, when those that keep it longest are counted first. */
static int64_t majority_ms(const struct hf__redlock_inspection *w, size_t at,
                           const redisReply *lock)
{
    int64_t spans[HF__REDLOCK_NODES_MAX];
    size_t count = 0;

    for (size_t i = 0; i < w->s->count; i++) {
        if (w->pages[i] == NULL || !same(lock, w->pages[i]->element[at]))
            continue;
        int64_t ms = w->pages[i]->element[at]->element[PTTL]->integer;
        ms = ms == -1 ? INT64_MAX : ms == 0 ? 1 : ms; /* in its last millisecond it still holds */
        size_t k = count++;
        for (; k > 0 && spans[k - 1] < ms; k--)
            spans[k] = spans[k - 1];
        spans[k] = ms;
    }
    if (count < w->s->quorum)
        return 0;
    int64_t ms = spans[w->s->quorum - 1];
    return ms == INT64_MAX ? -1 : ms;
}

/* "seconds microseconds ttl keep round pid\0host\0user\0program\0note" */
static bool parse_note(const redisReply *note, struct hf__entry *e, struct hf__who *who)
{
    int64_t n[5] = {0}; /* seconds, microseconds, ttl, keep, round */
    const char *at = note->str;

    if (note->type != REDIS_REPLY_STRING)
        return false;
    for (size_t i = 0; i < 5; i++) {
        at = hf__redis_read_number(at, &n[i]);
        if (at == NULL || *at++ != ' ')
            return false;
    }
    if (n[0] > HF__REDIS_NUMBER_MAX / 1000000)
        return false;
    e->since_ms = n[0] * 1000 + n[1] / 1000;
    e->ttl_ms = n[2];
    hf__redis_read_who(at, note->str + note->len, who);
    return true;
}

/* Shows the value that this page has for a lock, if most others have it too. `*ret_shown`: that was
 * so; no other value can have a majority. */
static int show(struct hf__redlock_inspection *w, const redisReply *page, size_t at,
                bool *ret_shown)
{
    const redisReply *lock = page->element[at], *value = lock->element[VALUE];
    const struct hf__redlock_name *name = &w->names.list[w->from + at - 1];
    int64_t left_ms = value->type == REDIS_REPLY_STRING ? majority_ms(w, at, lock) : 0;
    char words[80];
    struct hf__who who = {.host = "", .user = "", .program = "(another client)", .note = words};
    struct hf__entry e = {.place = HF__PLACE_INSIDE, .claimed = true};

    if (left_ms == 0)
        return 0;
    *ret_shown = true;
    e.until_ms = left_ms < 0 ? HF__NEVER : left_ms;
    hf__printable(value->str, (size_t)value->len, words, sizeof words);
    bool ours = parse_note(lock->element[NOTE], &e, &who);
    if (!ours && w->search->name == NULL)
        return 0;
    if (ours) {
        e.since_ms = page->element[0]->integer - e.since_ms;
        e.since_ms = e.since_ms < 0 ? 0 : e.since_ms;
    } else {
        e.ttl_ms = e.until_ms;
    }
    bool digested = lock->element[DIGEST]->type == REDIS_REPLY_STRING;
    hf__ticket_parse(digested ? lock->element[DIGEST]->str : value->str, &e.ticket);
    e.lease_ms = e.ttl_ms;
    e.who = &who;
    if (!hf__search_is_old_enough(w->search, &e))
        return 0;
    return w->search->found(w->search->ctx, name->bytes, name->len, &e);
}

/* Each name is tried with the value of every node in turn: the first may be one that the others do
 * not share. */
static int inspect_page(struct hf__redlock_inspection *w, hf_error *err)
{
    w->ask = (struct hf__redlock_ask){.script = HF__REDLOCK_SCRIPT_LOOK,
                                      .write = write_look,
                                      .argc = 2 + (w->upto - w->from),
                                      .reply = take_page,
                                      .to = hf__redlock_all(w->s)};
    int r = hf__redlock_ask_nodes(w, err);

    for (size_t at = 1; r == 0 && at <= w->upto - w->from; at++) {
        bool shown = false;
        for (size_t i = 0; r == 0 && !shown && i < w->s->count; i++) {
            if (w->pages[i] != NULL)
                r = show(w, w->pages[i], at, &shown);
        }
    }
    for (size_t i = 0; i < w->s->count; i++) {
        freeReplyObject(w->pages[i]);
        w->pages[i] = NULL;
    }
    return r;
}

int hf__redlock_inspect(struct hf__store *store, const struct hf__search *search,
                        int64_t deadline_ns, hf_error *err)
{
    struct hf__redlock *s = (struct hf__redlock *)store;
    struct hf__redlock_inspection w = {.s = s, .search = search, .deadline_ns = deadline_ns};
    struct hf__redlock_key key;
    int r = hf__redlock_take(s, deadline_ns, &w.set, err);

    if (r != 0)
        return r;
    if (search->name != NULL)
        r = hf__redlock_key(s, search->name, search->name_len, &key, err);
    if (r == 0)
        r = search->name != NULL
                ? hf__redlock_add_name(&w.names, search->name, search->name_len, err)
                : hf__redlock_find_names(&w, err);
    for (w.from = 0; r == 0 && w.from < w.names.count; w.from = w.upto) {
        w.upto = w.from + PAGE < w.names.count ? w.from + PAGE : w.names.count;
        r = inspect_page(&w, err);
    }
    hf__redlock_give(s, w.set);
    for (size_t i = 0; i < w.names.count; i++)
        free(w.names.list[i].bytes);
    free(w.names.list);
    return r;
}
