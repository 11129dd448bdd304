/* What is watched, and for whom.
 *
 * Each bid that waits watches the last place before its own, for its deletion, which is a hint: the
 * bid asks, and the transaction that asks is the one that grants. Or it watches the slot of the one
 * before in place of that, and its own mark, which is put when it is let in (see handover.c). A
 * hand-over touches the second and not the first: it is one event. Besides, each client watches its
 * inbox, and the marks of broken locks, which are rare, and calls its own holder.
 *
 * The messages to the server are written here, by whichever thread begins or ends to watch, and
 * sent by stream.c, in wake(). What it says is read in hear.c. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>

#include "stores/etcd/watch.h"

#include "util/banned.h"

static struct hf__etcd_watch *of_number(struct hf__link *link)
{
    return (struct hf__etcd_watch *)((char *)link - offsetof(struct hf__etcd_watch, by_number));
}

static uint64_t hash_of(const struct hf__etcd *e, const struct hf__ticket *ticket)
{
    return hf__hash(e->seed, ticket->bits, sizeof ticket->bits);
}

struct hf__etcd_watch *hf__etcd_watch_of(struct hf__etcd *e, const struct hf__ticket *ticket)
{
    struct hf__link *link = hf__table_find(&e->stream.watches, hash_of(e, ticket));

    while (link != NULL && !hf__ticket_equal(&((struct hf__etcd_watch *)link)->ticket, ticket))
        link = hf__table_next(link);
    return (struct hf__etcd_watch *)link;
}

struct hf__etcd_watch *hf__etcd_watch_by_id(struct hf__etcd *e, int64_t id)
{
    struct hf__link *link = hf__table_find(&e->stream.numbers, (uint64_t)id / 2);

    return link != NULL ? of_number(link) : NULL;
}

/* To the server. All with the mutex held. ------------------------------------------------------ */
static void say(struct hf__etcd *e, char *line)
{
    /* One that finds no memory is one that the server does not confirm. */
    if (line != NULL)
        hf__etcd_bytes_add(&e->stream.out, line, strlen(line));
    free(line);
}

static void say_watch(struct hf__etcd *e, struct hf__etcd_watch *w)
{
    static const char *const unwanted[] = {"NOPUT", "NODELETE"};
    char key[HF__ETCD_BASE64(HF__ETCD_KEY_MAX)];
    const char *from = w->keys;

    for (int i = HF__ETCD_BEFORE; i <= HF__ETCD_OWN_MARK; i++) {
        w->confirmed[i] = false;
        if (w->len[i] == 0)
            continue;
        hf__etcd_to_base64(from, w->len[i], key);
        say(e, hf__etcd_format("{\"create_request\":{\"key\":\"%s\",\"start_revision\":\"%" PRIu64
                               "\",\"watch_id\":\"%" PRId64 "\",\"filters\":[\"%s\"]}}\n",
                               key, w->from, 2 * w->number + i, unwanted[i]));
        e->stream.asked++;
        from += w->len[i];
    }
    e->stream.urgent = true;
}

/* The server need not watch for it any longer: that is not urgent. */
static void say_over(struct hf__etcd *e, const struct hf__etcd_watch *w)
{
    for (int i = HF__ETCD_BEFORE; i <= HF__ETCD_OWN_MARK; i++) {
        if (w->len[i] == 0)
            continue;
        if (!w->confirmed[i] && e->stream.asked > e->stream.confirmed)
            e->stream.asked--;
        say(e, hf__etcd_format("{\"cancel_request\":{\"watch_id\":\"%" PRId64 "\"}}\n",
                               2 * w->number + i));
    }
}

/* One that finds no memory is missed: what it tells is learnt from a renewal, or by asking. */
static void say_watch_below(struct hf__etcd *e, const struct hf__etcd_key *root, int64_t id)
{
    char from[HF__ETCD_BASE64(HF__ETCD_KEY_MAX)], to[HF__ETCD_BASE64(HF__ETCD_KEY_MAX)];
    struct hf__etcd_key *end = malloc(sizeof *end);

    if (end == NULL)
        return;
    hf__etcd_end_of(root, end);
    hf__etcd_to_base64(root->bytes, root->len, from);
    hf__etcd_to_base64(end->bytes, end->len, to);
    say(e, hf__etcd_format("{\"create_request\":{\"key\":\"%s\",\"range_end\":\"%s\","
                           "\"watch_id\":\"%" PRId64 "\",\"filters\":[\"NODELETE\"]}}\n",
                           from, to, id));
    free(end);
}

static void say_watch_for_client(struct hf__etcd *e)
{
    struct hf__etcd_key *root = malloc(sizeof *root);

    if (root == NULL)
        return;
    hf__etcd_root(e, HF__ETCD_BROKEN, (struct hf__etcd_name){"", 0}, false, root);
    say_watch_below(e, root, HF__ETCD_BROKEN_ID);
    hf__etcd_inbox_key(e, e->inbox, root);
    say_watch_below(e, root, HF__ETCD_INBOX_ID);
    free(root);
}

/* For bids. ------------------------------------------------------------------------------------ */
static void drop(struct hf__etcd *e, struct hf__etcd_watch *w)
{
    say_over(e, w);
    hf__table_remove(&e->stream.watches, &w->by_ticket);
    hf__table_remove(&e->stream.numbers, &w->by_number);
    free(w);
}

static struct hf__etcd_watch *note(struct hf__etcd *e, const struct hf__ticket *ticket,
                                   const struct hf__etcd_wanted *wanted)
{
    size_t mark_len = wanted->mark != NULL ? wanted->mark->len : 0;
    struct hf__etcd_watch *w = calloc(1, sizeof *w + wanted->before->len + mark_len);

    if (w == NULL)
        return NULL; /* it asks again by itself */
    w->ticket = *ticket;
    w->number = e->stream.last_number++ + HF__ETCD_FIRST_BID;
    w->from = wanted->from;
    w->len[HF__ETCD_BEFORE] = wanted->before->len;
    w->len[HF__ETCD_OWN_MARK] = mark_len;
    memcpy(w->keys, wanted->before->bytes, wanted->before->len);
    if (mark_len > 0)
        memcpy(w->keys + wanted->before->len, wanted->mark->bytes, mark_len);
    hf__table_add(&e->stream.watches, &w->by_ticket, hash_of(e, ticket));
    hf__table_add(&e->stream.numbers, &w->by_number, (uint64_t)w->number);
    return w;
}

static bool is_open(const struct hf__etcd_watch *w, const struct hf__etcd_key *before)
{
    return w != NULL && !w->told && w->len[HF__ETCD_BEFORE] == before->len &&
           memcmp(w->keys, before->bytes, before->len) == 0;
}

void hf__etcd_watch(struct hf__etcd *e, const struct hf__ticket *ticket,
                    const struct hf__etcd_wanted *wanted)
{
    struct hf__etcd_watch *w = NULL;

    pthread_mutex_lock(&e->mutex);
    if (e->stream.bell_fd >= 0) {
        struct hf__etcd_watch *former = hf__etcd_watch_of(e, ticket);
        if (!is_open(former, wanted->before)) {
            if (former != NULL)
                drop(e, former);
            w = note(e, ticket, wanted);
        }
        if (w != NULL)
            say_watch(e, w);
    }
    pthread_mutex_unlock(&e->mutex);
    if (w != NULL)
        eventfd_write(e->stream.bell_fd, 1);
}

bool hf__etcd_watches(struct hf__etcd *e, const struct hf__ticket *ticket,
                      const struct hf__etcd_key *before)
{
    pthread_mutex_lock(&e->mutex);
    bool watches = is_open(hf__etcd_watch_of(e, ticket), before);
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
    const struct hf__etcd_watch *w = hf__etcd_watch_of(e, ticket);
    if (w != NULL && w->len[HF__ETCD_OWN_MARK] > 0 && !w->told) {
        key.len = w->len[HF__ETCD_BEFORE];
        memcpy(key.bytes, w->keys, key.len);
    }
    pthread_mutex_unlock(&e->mutex);
    return hf__etcd_named(&key);
}

bool hf__etcd_was_told(struct hf__etcd *e, const struct hf__ticket *ticket)
{
    pthread_mutex_lock(&e->mutex);
    const struct hf__etcd_watch *w = hf__etcd_watch_of(e, ticket);
    bool told = w != NULL && w->told;
    pthread_mutex_unlock(&e->mutex);
    return told;
}

void hf__etcd_missed(struct hf__etcd *e, const struct hf__ticket *ticket)
{
    pthread_mutex_lock(&e->mutex);
    const struct hf__etcd_watch *w = hf__etcd_watch_of(e, ticket);
    bool missed = w != NULL && !w->told;
    e->stream.doubted |= missed;
    pthread_mutex_unlock(&e->mutex);
    if (missed)
        eventfd_write(e->stream.bell_fd, 1);
}

void hf__etcd_unwatch(struct hf__etcd *e, const struct hf__ticket *ticket)
{
    pthread_mutex_lock(&e->mutex);
    struct hf__etcd_watch *w = hf__etcd_watch_of(e, ticket);
    if (w != NULL)
        drop(e, w);
    pthread_mutex_unlock(&e->mutex);
}

/* For the stream. ------------------------------------------------------------------------------ */
static void say_again(struct hf__link *link, void *ctx)
{
    struct hf__etcd_watch *w = (struct hf__etcd_watch *)link;

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

void hf__etcd_watches_clear(struct hf__etcd *e)
{
    struct hf__link *link;

    while ((link = hf__table_any(&e->stream.watches)) != NULL) {
        hf__table_remove(&e->stream.watches, link);
        free(link);
    }
    hf__table_clear(&e->stream.watches);
    hf__table_clear(&e->stream.numbers);
}
