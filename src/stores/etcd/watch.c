/* What is watched, and for whom.
 *
 * Each bid that waits watches the last place before its own, for its deletion, which is a hint: the
 * bid asks, and the transaction that asks is the one that grants. Or it watches the slot of the one
 * before in place of that, and its own mark, which is put when it is let in (see handover.c). A
 * hand-over touches the second and not the first: it is one event. Besides, each client watches its
 * inbox, and the marks of broken locks, which are rare, and calls its own holder.
 *
 * What is to be watched is said by the thread that wants it; what the server says is read in wake.c
 * and notice.c. That something need not be watched any longer is not urgent: it is sent with what is
 * sent next. */
#include <stdlib.h>
#include <sys/eventfd.h>

#include "stores/etcd/etcd.h"

#include "base/banned.h"

#define WATCHES_MAX (16 << 20) /* bytes, of all that is said when the call begins */
#define TOKEN_MS    10000      /* a token lives for longer than this */

static struct hf__etcd_watch *of_number(struct hf__link *link)
{
    return (struct hf__etcd_watch *)((char *)link - offsetof(struct hf__etcd_watch, by_number));
}

static uint64_t hash_of(const struct hf__etcd *e, const struct hf__ticket *ticket)
{
    return hf__hash(e->seed, ticket->bits, sizeof ticket->bits);
}

static struct hf__etcd_watch *find(struct hf__etcd *e, const struct hf__ticket *ticket)
{
    struct hf__link *link = hf__table_find(&e->watching.watches, hash_of(e, ticket));

    while (link != NULL && !hf__ticket_equal(&((struct hf__etcd_watch *)link)->ticket, ticket))
        link = hf__table_next(link);
    return (struct hf__etcd_watch *)link;
}

struct hf__etcd_watch *hf__etcd_watch_by_id(struct hf__etcd *e, int64_t id)
{
    struct hf__link *link = hf__table_find(&e->watching.numbers, (uint64_t)id / 2);

    return link != NULL ? of_number(link) : NULL;
}

/* To the server. All with the mutex held. ------------------------------------------------------ */
static void write_watch(struct hf__buffer *b, const struct hf__etcd_watch *w)
{
    static const enum hf__etcd_unwanted unwanted[] = {HF__ETCD_UNWANTED_PUTS,
                                                      HF__ETCD_UNWANTED_DELETES};
    const char *key = w->keys;

    if (w->arrivals) {
        hf__etcd_write_watch(
            b, &(struct hf__etcd_watch_request){.key = {key, w->len[0]},
                                                .end = {key + w->len[0], w->len[1]},
                                                .from = w->from,
                                                .id = 2 * w->number,
                                                .unwanted = HF__ETCD_UNWANTED_DELETES});
        return;
    }
    for (int i = HF__ETCD_WATCHED_BEFORE; i <= HF__ETCD_WATCHED_OWN_MARK; i++) {
        if (w->len[i] > 0)
            hf__etcd_write_watch(b, &(struct hf__etcd_watch_request){.key = {key, w->len[i]},
                                                                     .from = w->from,
                                                                     .id = 2 * w->number + i,
                                                                     .unwanted = unwanted[i]});
        key += w->len[i];
    }
}

static void write_client_watch(struct hf__etcd *e, struct hf__buffer *b,
                               const struct hf__etcd_key *root, int64_t id)
{
    struct hf__etcd_key *end = malloc(sizeof *end);
    uint64_t seen = e->watching.seen[id];

    if (end != NULL) {
        hf__etcd_end_of(root, end);
        hf__etcd_write_watch(
            b, &(struct hf__etcd_watch_request){.key = hf__etcd_slice(root),
                                                .end = hf__etcd_slice(end),
                                                .from = seen > 0 ? seen + 1 : 0,
                                                .id = id,
                                                .unwanted = HF__ETCD_UNWANTED_DELETES});
    }
    b->failed |= end == NULL;
    free(end);
}

static void write_client_watches(struct hf__etcd *e, struct hf__buffer *b)
{
    struct hf__etcd_key *root = malloc(sizeof *root);

    b->failed |= root == NULL;
    if (root == NULL)
        return;
    hf__etcd_root(e, HF__ETCD_KEY_BROKEN, (struct hf__etcd_name){"", 0}, false, root);
    write_client_watch(e, b, root, HF__ETCD_BROKEN_ID);
    hf__etcd_inbox_key(e, e->inbox, root);
    write_client_watch(e, b, root, HF__ETCD_INBOX_ID);
    free(root);
}

static void write_again(struct hf__link *link, void *ctx)
{
    struct hf__etcd_watch *w = (struct hf__etcd_watch *)link;

    if (!w->told)
        write_watch(ctx, w);
}

/* Without a token it would be refused: whoever logs in comes back here. */
void hf__etcd_watches_begin(struct hf__etcd *e)
{
    struct hf__etcd_watching *w = &e->watching;
    struct hf__buffer body = {.cap = WATCHES_MAX};
    struct hf__grpc_request request = {.path = "/etcdserverpb.Watch/Watch",
                                       .body = &body,
                                       .token = e->cluster.token,
                                       .open = true};

    if (w->epoll_fd < 0 || w->call != NULL || e->cluster.conn == NULL ||
        (e->set.account.user != NULL && e->cluster.token == NULL))
        return;
    write_client_watches(e, &body);
    hf__table_each(&w->watches, write_again, &body);
    w->call = hf__grpc_begin(e->cluster.conn, &request, NULL);
    if (w->call == NULL)
        return; /* whoever waits asks by itself */
    w->conn = hf__grpc_ref(e->cluster.conn);
    w->is_new = true;
    w->begun_ns = hf__now_ns(e->base.host->env);
    if (w->lost)
        e->base.moved = true; /* what happened meanwhile may have been about what is held */
    w->lost = false;
    hf__grpc_listen(w->conn, w->epoll_fd, w->bell_fd);
    hf__etcd_watches_time(e);
}

void hf__etcd_watches_lose(struct hf__etcd *e)
{
    struct hf__etcd_watching *w = &e->watching;

    if (w->call == NULL)
        return;
    hf__grpc_deafen(w->conn);
    hf__grpc_release(w->conn, w->call);
    hf__grpc_unref(w->conn);
    w->conn = NULL;
    w->call = NULL;
    w->lost = w->rung = true;
    eventfd_write(w->bell_fd, 1);
}

/* The token is that of the call's beginning. A user who may not watch is refused again, but not for
 * ever: calls that have just begun are left alone. */
void hf__etcd_watches_refused(struct hf__etcd *e)
{
    int64_t age_ns = hf__now_ns(e->base.host->env) - e->watching.begun_ns;

    if (e->set.account.user == NULL || age_ns < TOKEN_MS * HF__NS_PER_MS)
        return;
    free(e->cluster.token);
    e->cluster.token = NULL;
    hf__etcd_watches_lose(e);
}

/* For bids. ------------------------------------------------------------------------------------ */
static void drop(struct hf__etcd *e, struct hf__etcd_watch *w)
{
    struct hf__etcd_watching *all = &e->watching;
    struct hf__buffer words = {0};

    for (int i = HF__ETCD_WATCHED_BEFORE; i <= HF__ETCD_WATCHED_OWN_MARK; i++) {
        if (w->len[i] > 0 && !(w->arrivals && i == HF__ETCD_WATCHED_OWN_MARK))
            hf__etcd_write_cancel(&words, 2 * w->number + i);
    }
    if (all->call != NULL && !words.failed)
        hf__grpc_say(all->conn, all->call, words.data, words.len);
    hf__buffer_clear(&words);
    hf__table_remove(&all->watches, &w->by_ticket);
    hf__table_remove(&all->numbers, &w->by_number);
    free(w);
}

static struct hf__etcd_watch *note(struct hf__etcd *e, const struct hf__ticket *ticket,
                                   const struct hf__etcd_to_watch *wanted)
{
    size_t mark_len = wanted->mark != NULL ? wanted->mark->len : 0;
    struct hf__etcd_watch *w = calloc(1, sizeof *w + wanted->before->len + mark_len);

    if (w == NULL)
        return NULL; /* it asks again by itself */
    w->ticket = *ticket;
    w->number = e->watching.last_number++ + HF__ETCD_FIRST_BID;
    w->from = wanted->from;
    w->arrivals = wanted->arrivals;
    w->readers_enter = wanted->readers_enter;
    w->len[HF__ETCD_WATCHED_BEFORE] = wanted->before->len;
    w->len[HF__ETCD_WATCHED_OWN_MARK] = mark_len;
    memcpy(w->keys, wanted->before->bytes, wanted->before->len);
    if (mark_len > 0)
        memcpy(w->keys + wanted->before->len, wanted->mark->bytes, mark_len);
    hf__table_add(&e->watching.watches, &w->by_ticket, hash_of(e, ticket));
    hf__table_add(&e->watching.numbers, &w->by_number, (uint64_t)w->number);
    return w;
}

static bool is_open(const struct hf__etcd_watch *w, const struct hf__etcd_key *before)
{
    return w != NULL && !w->told && w->len[HF__ETCD_WATCHED_BEFORE] == before->len &&
           memcmp(w->keys, before->bytes, before->len) == 0;
}

void hf__etcd_watch(struct hf__etcd *e, const struct hf__ticket *ticket,
                    const struct hf__etcd_to_watch *wanted)
{
    struct hf__etcd_watching *all = &e->watching;
    struct hf__grpc_conn *conn = NULL;
    struct hf__buffer words = {0};

    pthread_mutex_lock(&e->mutex);
    struct hf__etcd_watch *w = NULL, *former = find(e, ticket);
    if (all->epoll_fd >= 0 && !is_open(former, wanted->before)) {
        if (former != NULL)
            drop(e, former);
        w = note(e, ticket, wanted);
    }
    if (w != NULL && all->call != NULL) {
        write_watch(&words, w);
        if (!words.failed)
            hf__grpc_say(all->conn, all->call, words.data, words.len);
        conn = hf__grpc_ref(all->conn);
    }
    hf__etcd_watches_time(e);
    pthread_mutex_unlock(&e->mutex);
    hf__buffer_clear(&words);
    if (conn != NULL)
        hf__grpc_flush(conn);
    hf__grpc_unref(conn);
}

bool hf__etcd_watches(struct hf__etcd *e, const struct hf__ticket *ticket,
                      const struct hf__etcd_key *before)
{
    pthread_mutex_lock(&e->mutex);
    bool watches = is_open(find(e, ticket), before);
    pthread_mutex_unlock(&e->mutex);
    return watches;
}

bool hf__etcd_listens(struct hf__etcd *e)
{
    pthread_mutex_lock(&e->mutex);
    bool listens = e->watching.epoll_fd >= 0;
    pthread_mutex_unlock(&e->mutex);
    return listens;
}

int64_t hf__etcd_behind(struct hf__etcd *e, const struct hf__ticket *ticket)
{
    int64_t lease = 0;

    pthread_mutex_lock(&e->mutex);
    const struct hf__etcd_watch *w = find(e, ticket);
    if (w != NULL && w->len[HF__ETCD_WATCHED_OWN_MARK] > 0 && !w->told && !w->arrivals)
        lease = hf__etcd_lease_in((struct hf__slice){w->keys, w->len[HF__ETCD_WATCHED_BEFORE]});
    pthread_mutex_unlock(&e->mutex);
    return lease;
}

/* A place that is made, not one that is put again; nor a reader's, if readers are inside. */
bool hf__etcd_has_arrived(const struct hf__etcd_watch *w, const struct hf__etcd_kv *kv)
{
    size_t root_len = w->len[HF__ETCD_WATCHED_BEFORE];
    bool reads = kv->key.len > root_len + 5 && memcmp(kv->key.data + root_len, "read/", 5) == 0;

    return kv->created == kv->put && !(reads && w->readers_enter);
}

bool hf__etcd_was_told(struct hf__etcd *e, const struct hf__ticket *ticket)
{
    pthread_mutex_lock(&e->mutex);
    const struct hf__etcd_watch *w = find(e, ticket);
    bool told = w != NULL && w->told;
    pthread_mutex_unlock(&e->mutex);
    return told;
}

void hf__etcd_missed(struct hf__etcd *e, const struct hf__ticket *ticket)
{
    pthread_mutex_lock(&e->mutex);
    const struct hf__etcd_watch *w = find(e, ticket);
    if (w != NULL && !w->told) {
        hf__etcd_watches_lose(e);
        hf__etcd_watches_begin(e);
    }
    pthread_mutex_unlock(&e->mutex);
}

void hf__etcd_unwatch(struct hf__etcd *e, const struct hf__ticket *ticket)
{
    pthread_mutex_lock(&e->mutex);
    struct hf__etcd_watch *w = find(e, ticket);
    if (w != NULL)
        drop(e, w);
    pthread_mutex_unlock(&e->mutex);
}

void hf__etcd_watches_clear(struct hf__etcd *e)
{
    struct hf__link *link;

    while ((link = hf__table_any(&e->watching.watches)) != NULL) {
        hf__table_remove(&e->watching.watches, link);
        free(link);
    }
    hf__table_clear(&e->watching.watches);
    hf__table_clear(&e->watching.numbers);
}
