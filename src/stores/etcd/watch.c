/* What is watched, and for whom.
 *
 * Each bid that waits watches one key, the last place before its own, for its deletion. A deletion
 * is a hint: the bid asks, and the transaction that asks is the one that grants. Or it watches the
 * slot of the one before, which also tells that it was let in (see handover.c). Besides, each client
 * watches its inbox, and the marks of broken locks, which are rare, and calls its own holder.
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

#define BROKEN_ID 1 /* the watch on broken locks */
#define INBOX_ID  2 /* on our inbox; those of bids come after it */

struct watch {
    struct hf__link by_ticket; /* first */
    struct hf__link by_id;
    struct hf__ticket ticket;
    int64_t id;
    uint64_t from; /* revision */
    bool confirmed, told, slot;
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
    json_t *request =
        json_pack("{s:o, s:o, s:o}", "key", hf__etcd_b64(w->key, w->key_len), "start_revision",
                  hf__etcd_int_json((int64_t)w->from), "watch_id", hf__etcd_int_json(w->id));
    if (!w->slot)
        json_object_set_new(request, "filters", json_pack("[s]", "NOPUT"));
    say(e, json_pack("{s:o}", "create_request", request));
}

/* Not urgent: it goes with the next one. */
static void say_over(struct hf__etcd *e, const struct watch *w)
{
    if (!w->confirmed && e->stream.asked > e->stream.confirmed)
        e->stream.asked--;
    say(e, json_pack("{s:{s:o}}", "cancel_request", "watch_id", hf__etcd_int_json(w->id)));
}

static void say_watch_below(struct hf__etcd *e, const struct hf__etcd_key *root, int64_t id)
{
    struct hf__etcd_key *end = malloc(sizeof *end);

    if (end == NULL)
        return; /* then it is learnt from a renewal, or by asking */
    hf__etcd_end_of(root, end);
    say(e, json_pack("{s:{s:o, s:o, s:o, s:[s]}}", "create_request", "key", hf__etcd_key_json(root),
                     "range_end", hf__etcd_key_json(end), "watch_id", hf__etcd_int_json(id),
                     "filters", "NODELETE"));
    free(end);
}

static void say_watch_for_client(struct hf__etcd *e)
{
    struct hf__etcd_key *root = malloc(sizeof *root);

    if (root == NULL)
        return;
    hf__etcd_root(e, HF__ETCD_BROKEN, (struct hf__etcd_name){"", 0}, false, root);
    say_watch_below(e, root, BROKEN_ID);
    hf__etcd_inbox_key(e, e->inbox, root);
    say_watch_below(e, root, INBOX_ID);
    free(root);
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
                          const struct hf__etcd_key *key, uint64_t from, bool slot)
{
    struct watch *w = calloc(1, sizeof *w + key->len);

    if (w == NULL)
        return NULL; /* it asks again by itself */
    w->ticket = *ticket;
    w->id = ++e->stream.last_id + INBOX_ID;
    w->from = from;
    w->slot = slot;
    w->key_len = key->len;
    memcpy(w->key, key->bytes, key->len);
    hf__table_add(&e->stream.watches, &w->by_ticket, hash_of(e, ticket));
    hf__table_add(&e->stream.ids, &w->by_id, (uint64_t)w->id);
    return w;
}

static bool is_open(const struct watch *w, const struct hf__etcd_key *key)
{
    return w != NULL && !w->told && w->key_len == key->len &&
           memcmp(w->key, key->bytes, key->len) == 0;
}

void hf__etcd_watch(struct hf__etcd *e, const struct hf__ticket *ticket,
                    const struct hf__etcd_key *key, uint64_t from, bool slot)
{
    struct watch *w = NULL;

    pthread_mutex_lock(&e->mutex);
    if (e->stream.bell_fd >= 0) {
        struct watch *before = find(e, ticket);
        if (!is_open(before, key)) {
            if (before != NULL)
                drop(e, before);
            w = note(e, ticket, key, from, slot);
        }
        if (w != NULL)
            say_watch(e, w);
    }
    pthread_mutex_unlock(&e->mutex);
    if (w != NULL)
        eventfd_write(e->stream.bell_fd, 1);
}

bool hf__etcd_watches(struct hf__etcd *e, const struct hf__ticket *ticket,
                      const struct hf__etcd_key *key)
{
    pthread_mutex_lock(&e->mutex);
    bool watches = is_open(find(e, ticket), key);
    pthread_mutex_unlock(&e->mutex);
    return watches;
}

bool hf__etcd_listens(struct hf__etcd *e)
{
    pthread_mutex_lock(&e->mutex);
    bool listens = e->stream.bell_fd >= 0;
    pthread_mutex_unlock(&e->mutex);
    return listens;
}

int64_t hf__etcd_behind(struct hf__etcd *e, const struct hf__ticket *ticket)
{
    struct hf__etcd_key key = {0};

    pthread_mutex_lock(&e->mutex);
    const struct watch *w = find(e, ticket);
    if (w != NULL && w->slot && !w->told) {
        key.len = w->key_len;
        memcpy(key.bytes, w->key, w->key_len);
    }
    pthread_mutex_unlock(&e->mutex);
    return hf__etcd_named(&key);
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
    say_watch_for_client(e);
    hf__table_each(&e->stream.watches, say_again, e);
    e->stream.urgent = true;
    pthread_mutex_unlock(&e->mutex);
}

/* Calls the bid of this watch, once. `generation` 0: it is to ask. */
static void tell(struct hf__etcd *e, int64_t id, uint64_t revision, uint64_t generation)
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
    if (calls && generation != 0)
        hf__etcd_bid_learn(
            e, &(struct hf__etcd_bid){.ticket = ticket, .generation = generation, .handed = true});
    if (calls)
        e->stream.sink(e->stream.sink_ctx, &ticket, generation);
}

/* Something was put where only a slot is watched. */
static void tell_granted(struct hf__etcd *e, int64_t id, const json_t *kv)
{
    uint64_t generation = (uint64_t)hf__etcd_int(kv, "mod_revision");
    struct hf__ticket ticket = {0};

    pthread_mutex_lock(&e->mutex);
    const struct watch *w = find_id(e, id);
    if (w != NULL)
        ticket = w->ticket;
    pthread_mutex_unlock(&e->mutex);
    if (w != NULL && hf__etcd_is_grant(kv, &ticket))
        tell(e, id, generation, generation);
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
        tell(e, id, UINT64_MAX, 0);
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
        const char *type = json_string_value(json_object_get(event, "type")); /* none: put */
        if (id == BROKEN_ID)
            tell_broken(e, kv);
        else if (id == INBOX_ID)
            hf__etcd_hear_next(e, kv);
        else if (type != NULL && strcmp(type, "DELETE") == 0)
            tell(e, id, (uint64_t)hf__etcd_int(kv, "mod_revision"), 0);
        else
            tell_granted(e, id, kv);
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
