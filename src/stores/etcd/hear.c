/* What the server says on the stream, and whom that concerns. In wake().
 *
 * A message is about one watch: it is confirmed, it is over, or things have happened. The server is
 * told that it need not watch any longer when the bid is, not while somebody waits to be called. */
#include <stdlib.h>

#include "stores/etcd/watch.h"

#include "util/banned.h"

static void confirm(struct hf__etcd *e, int64_t id)
{
    pthread_mutex_lock(&e->mutex);
    struct hf__etcd_watch *w = hf__etcd_watch_by_id(e, id);
    if (w != NULL && !w->confirmed[id % 2]) {
        w->confirmed[id % 2] = true;
        e->stream.confirmed++;
    }
    pthread_mutex_unlock(&e->mutex);
}

/* Calls the bid of this watch, once. `generation` 0: it is to ask. */
static void tell(struct hf__etcd *e, int64_t id, uint64_t revision, uint64_t generation)
{
    struct hf__ticket ticket;

    pthread_mutex_lock(&e->mutex);
    struct hf__etcd_watch *w = hf__etcd_watch_by_id(e, id);
    bool calls = w != NULL && !w->told && w->from <= revision;
    if (calls) {
        w->told = true;
        ticket = w->ticket;
    }
    pthread_mutex_unlock(&e->mutex);
    if (!calls)
        return;
    if (generation != 0)
        hf__etcd_bid_learn(e, &(struct hf__etcd_bid){.ticket = ticket,
                                                     .generation = generation,
                                                     .marked = generation,
                                                     .handed = true});
    e->stream.sink(e->stream.sink_ctx, &ticket, generation);
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

/* Deletions are all that is heard of what is before a bid, and puts of its own mark: by itself as
 * well, which says nothing new. */
static void hear_event(struct hf__etcd *e, int64_t id, const json_t *kv)
{
    uint64_t revision = (uint64_t)hf__etcd_int(kv, "mod_revision");

    if (id == HF__ETCD_BROKEN_ID)
        tell_broken(e, kv);
    else if (id == HF__ETCD_INBOX_ID)
        hf__etcd_hear_next(e, kv);
    else if (id % 2 == HF__ETCD_BEFORE)
        tell(e, id, revision, 0);
    else if (hf__etcd_is_handed(kv, 0))
        tell(e, id, revision, revision);
}

static bool hear_message(struct hf__etcd *e, const json_t *message)
{
    const json_t *result = json_object_get(message, "result"), *event;
    int64_t id = hf__etcd_int(result, "watch_id");
    size_t i;

    if (result == NULL)
        return false;
    if (json_is_true(json_object_get(result, "created")))
        confirm(e, id);
    if (json_is_true(json_object_get(result, "canceled")))
        hear_cancel(e, result, id);
    json_array_foreach(json_object_get(result, "events"), i, event)
        hear_event(e, id, json_object_get(event, "kv"));
    return true;
}

/* What follows the first of these words; NULL: it is not there. */
static const char *after(const char *line, size_t len, const char *word)
{
    const char *at = memmem(line, len, word, strlen(word));

    return at != NULL ? at + strlen(word) : NULL;
}

static int64_t number_after(const char *line, size_t len, const char *word)
{
    const char *at = after(line, len, word);

    return at != NULL ? strtoll(at, NULL, 10) : 0;
}

/* The one message that somebody waits for, one hand-over, is not taken apart first: no value in it
 * could be mistaken for a field, since all are numbers and base64. Anything else is not for here. */
static bool hear_grant(struct hf__etcd *e, const char *line, size_t len)
{
    int64_t id = number_after(line, len, "\"watch_id\":\"");
    int64_t created = number_after(line, len, "\"create_revision\":\"");
    const char *event = after(line, len, "\"kv\":{");

    if (id < 2 * HF__ETCD_FIRST_BID || id % 2 != HF__ETCD_OWN_MARK || event == NULL ||
        after(event, len - (size_t)(event - line), "\"kv\":{") != NULL || created == 0 ||
        created != number_after(line, len, "\"mod_revision\":\"") ||
        after(line, len, "\"value\":") != NULL || after(line, len, "\"canceled\":") != NULL)
        return false;
    tell(e, id, (uint64_t)created, (uint64_t)created);
    return true;
}

bool hf__etcd_watches_hear(struct hf__etcd *e, const char *line, size_t len)
{
    if (hear_grant(e, line, len))
        return true;
    json_t *message = json_loadb(line, len, 0, NULL);
    bool heard = hear_message(e, message);
    json_decref(message);
    return heard;
}
