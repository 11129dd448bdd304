/* What is watched, and for whom.
 *
 * Each bid that waits watches one key, the last place before its own, for its deletion. A deletion
 * is a hint: the bid asks, and the transaction that asks is the one that grants. Besides, each
 * client watches the marks of broken locks, which are rare, and calls its own holder.
 *
 * The messages to the server are written here, by whichever thread begins or ends to watch, and
 * sent by stream.c, on the keeper's thread. Numbers are ours and never used twice, so that what
 * the server still says about a watch that is over finds nobody. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>

#include "stores/etcd/etcd.h"

#include "util/banned.h"

#define BROKEN_ID 1 /* the watch on broken locks; those of bids come after it */

struct watch {
    struct hf__link by_ticket; /* first */
    struct hf__link by_id;
    struct hf__ticket ticket;
    int64_t id;
    uint64_t from; /* revision */
    bool confirmed, told;
    size_t key_len;
    char key[];
};

static struct watch *of_id(struct hf__link *link)
{
    return (struct watch *)((char *)link - offsetof(struct watch, by_id));
}

static uint64_t hash_of(const struct hf__etcd *e, const struct hf__ticket *ticket)
{
    return hf__hash(e->seed, ticket->bits, sizeof ticket->bits);
}

static struct watch *find(struct hf__etcd *e, const struct hf__ticket *ticket)
{
    struct hf__link *link = hf__table_find(&e->stream.watches, hash_of(e, ticket));

    while (link != NULL && !hf__ticket_equal(&((struct watch *)link)->ticket, ticket))
        link = hf__table_next(link);
    return (struct watch *)link;
}

static struct watch *find_id(struct hf__etcd *e, int64_t id)
{
    struct hf__link *link = hf__table_find(&e->stream.ids, (uint64_t)id);

    return link != NULL ? of_id(link) : NULL;
}

/* To the server. All with the mutex held. ------------------------------------------------------ */
static void say(struct hf__etcd *e, json_t *message)
{
    char *text = json_dumps(message, JSON_COMPACT);

    json_decref(message);
    /* One that finds no memory is one that the server does not confirm. */
    if (text != NULL && hf__etcd_bytes_add(&e->stream.out, text, strlen(text)))
        hf__etcd_bytes_add(&e->stream.out, "\n", 1);
    free(text);
}

static void say_watch(struct hf__etcd *e, struct watch *w)
{
    w->confirmed = false;
    e->stream.asked++;
    e->stream.urgent = true;
    say(e, json_pack("{s:{s:o, s:o, s:o, s:[s]}}", "create_request", "key",
                     hf__etcd_b64(w->key, w->key_len), "start_revision",
                     hf__etcd_int_json((int64_t)w->from), "watch_id", hf__etcd_int_json(w->id),
                     "filters", "NOPUT"));
}

/* Not urgent: it goes with the next one. */
static void say_over(struct hf__etcd *e, const struct watch *w)
{
    if (!w->confirmed && e->stream.asked > e->stream.confirmed)
        e->stream.asked--;
    say(e, json_pack("{s:{s:o}}", "cancel_request", "watch_id", hf__etcd_int_json(w->id)));
}

static void say_watch_broken(struct hf__etcd *e)
{
    struct hf__etcd_key *keys = calloc(2, sizeof *keys);

    if (keys == NULL)
        return; /* then its holder learns it from a renewal */
    hf__etcd_root(e, HF__ETCD_BROKEN, (struct hf__etcd_name){"", 0}, false, &keys[0]);
    hf__etcd_end_of(&keys[0], &keys[1]);
    say(e, json_pack("{s:{s:o, s:o, s:o, s:[s]}}", "create_request", "key",
                     hf__etcd_key_json(&keys[0]), "range_end", hf__etcd_key_json(&keys[1]),
                     "watch_id", hf__etcd_int_json(BROKEN_ID), "filters", "NODELETE"));
    free(keys);
}

/* For bids. ------------------------------------------------------------------------------------ */
static void drop(struct hf__etcd *e, struct watch *w)
{
    if (!w->told)
        say_over(e, w);
    hf__table_remove(&e->stream.watches, &w->by_ticket);
    hf__table_remove(&e->stream.ids, &w->by_id);
    free(w);
}

static struct watch *note(struct hf__etcd *e, const struct hf__ticket *ticket,
                          const struct hf__etcd_key *key, uint64_t from)
{
    struct watch *w = calloc(1, sizeof *w + key->len);

    if (w == NULL)
        return NULL; /* it asks again by itself */
    w->ticket = *ticket;
    w->id = ++e->stream.last_id + BROKEN_ID;
    w->from = from;
    w->key_len = key->len;
    memcpy(w->key, key->bytes, key->len);
    hf__table_add(&e->stream.watches, &w->by_ticket, hash_of(e, ticket));
    hf__table_add(&e->stream.ids, &w->by_id, (uint64_t)w->id);
    return w;
}

void hf__etcd_watch(struct hf__etcd *e, const struct hf__ticket *ticket,
                    const struct hf__etcd_key *key, uint64_t from)
{
    struct watch *w = NULL;

    pthread_mutex_lock(&e->mutex);
    if (e->stream.bell_fd >= 0) {
        struct watch *before = find(e, ticket);
        bool same = before != NULL && !before->told && before->key_len == key->len &&
                    memcmp(before->key, key->bytes, key->len) == 0;
        if (!same) {
            if (before != NULL)
                drop(e, before);
            w = note(e, ticket, key, from);
        }
        if (w != NULL)
            say_watch(e, w);
    }
    pthread_mutex_unlock(&e->mutex);
    if (w != NULL)
        eventfd_write(e->stream.bell_fd, 1);
}

bool hf__etcd_was_told(struct hf__etcd *e, const struct hf__ticket *ticket)
{
    pthread_mutex_lock(&e->mutex);
    const struct watch *w = find(e, ticket);
    bool told = w != NULL && w->told;
    pthread_mutex_unlock(&e->mutex);
    return told;
}

void hf__etcd_missed(struct hf__etcd *e, const struct hf__ticket *ticket)
{
    pthread_mutex_lock(&e->mutex);
    const struct watch *w = find(e, ticket);
    bool missed = w != NULL && !w->told;
    e->stream.doubted |= missed;
    pthread_mutex_unlock(&e->mutex);
    if (missed)
        eventfd_write(e->stream.bell_fd, 1);
}

void hf__etcd_unwatch(struct hf__etcd *e, const struct hf__ticket *ticket)
{
    pthread_mutex_lock(&e->mutex);
    struct watch *w = find(e, ticket);
    if (w != NULL)
        drop(e, w);
    pthread_mutex_unlock(&e->mutex);
}

/* For the stream. ------------------------------------------------------------------------------ */
static void say_again(struct hf__link *link, void *ctx)
{
    struct watch *w = (struct watch *)link;

    if (!w->told)
        say_watch(ctx, w);
}

void hf__etcd_watches_renew(struct hf__etcd *e)
{
    pthread_mutex_lock(&e->mutex);
    e->stream.out.len = 0;
    e->stream.asked = e->stream.confirmed = 0;
    say_watch_broken(e);
    hf__table_each(&e->stream.watches, say_again, e);
    e->stream.urgent = true;
    pthread_mutex_unlock(&e->mutex);
}

/* Calls the bid of this watch, once. */
static void tell(struct hf__etcd *e, int64_t id, uint64_t revision)
{
    struct hf__ticket ticket;

    pthread_mutex_lock(&e->mutex);
    struct watch *w = find_id(e, id);
    bool calls = w != NULL && !w->told && w->from <= revision;
    if (calls) {
        say_over(e, w);
        w->told = true;
        ticket = w->ticket;
    }
    pthread_mutex_unlock(&e->mutex);
    if (calls)
        e->stream.sink(e->stream.sink_ctx, &ticket, 0);
}

static void confirm(struct hf__etcd *e, int64_t id)
{
    pthread_mutex_lock(&e->mutex);
    struct watch *w = find_id(e, id);
    if (w != NULL && !w->confirmed) {
        w->confirmed = true;
        e->stream.confirmed++;
    }
    pthread_mutex_unlock(&e->mutex);
}

static void tell_broken(struct hf__etcd *e, const json_t *kv)
{
    struct hf__etcd_key *key = malloc(sizeof *key);
    struct hf__ticket ticket;

    if (key != NULL && hf__etcd_unb64(json_object_get(kv, "key"), key) &&
        hf__etcd_bid_of_mark(e, key, &ticket))
        e->stream.sink(e->stream.sink_ctx, &ticket, 0);
    free(key);
}

/* The revisions it was to begin from may be gone: whoever waits asks, and watches anew. One that is
 * refused from the start is not asked for again: its bid asks when it is time. */
static void hear_cancel(struct hf__etcd *e, const json_t *result, int64_t id)
{
    bool refused = json_is_true(json_object_get(result, "created"));

    if (!refused || hf__etcd_int(result, "compact_revision") > 0)
        tell(e, id, UINT64_MAX);
}

void hf__etcd_watches_hear(struct hf__etcd *e, const json_t *message)
{
    const json_t *result = json_object_get(message, "result"), *event;
    int64_t id = hf__etcd_int(result, "watch_id");
    size_t i;

    if (result == NULL)
        return;
    if (json_is_true(json_object_get(result, "created")))
        confirm(e, id);
    if (json_is_true(json_object_get(result, "canceled")))
        hear_cancel(e, result, id);
    json_array_foreach(json_object_get(result, "events"), i, event)
    {
        const json_t *kv = json_object_get(event, "kv");
        if (id == BROKEN_ID)
            tell_broken(e, kv);
        else
            tell(e, id, (uint64_t)hf__etcd_int(kv, "mod_revision"));
    }
}

void hf__etcd_watches_clear(struct hf__etcd *e)
{
    struct hf__link *link;

    while ((link = hf__table_any(&e->stream.watches)) != NULL) {
        hf__table_remove(&e->stream.watches, link);
        free(link);
    }
    hf__table_clear(&e->stream.watches);
    hf__table_clear(&e->stream.ids);
}
