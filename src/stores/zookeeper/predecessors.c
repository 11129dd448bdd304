/* What a waiter knows of those before it, and when that is enough.
 *
 * The recipe reads the children again after every event. Here a waiter remembers how many of them
 * keep it out, and is told of the last two and of its own node:
 *
 *      ... 4    5     6     7 = this bid          `blockers` <= 3 after the list
 *              far   near  own
 *
 * Nobody can come before it any more: numbers only rise. So when `near` goes and was the only one,
 * the bid is let in by that event alone, without another round trip. That is proof, because a server
 * tells of changes in their order: had the own node gone before, that would have been told before;
 * and because a node that only moves to another session is not told as deleted (place.c). It is no
 * proof
 *
 *      after a reconnect, since what was missed is then told in any order;
 *      as long as the server has not confirmed that it watches the own node.
 *
 * Then, and after every other event, the bid asks again and the children are read.
 *
 * When `far` goes it must be found out, in the background, whether `near` is the only one left. A
 * writer that had to wait for its turn writes its number into the lock's directory in the step in
 * which it releases: it was inside, so nobody was before it, and nobody comes there later. If that
 * number is `far` or a later one, `near` is the only one. Only if it is not (readers, other clients,
 * somebody who died while waiting) the children are read and counted, which in a long queue is a
 * long list.
 *
 * The directory may be somebody else's, with data of its own: programs note the owner there. So the
 * number is written only where nothing stands, or such a number. A waiter looks when it queues; if a
 * foreign client was before it, which may have written there since, again when it is let in. */
#include <stdlib.h>
#include <string.h>

#include "doorman/doorman.h"
#include "stores/zookeeper/zk.h"

#include "base/banned.h"

static bool is_current(const struct hf__zk_bidding *b)
{
    return b->state == HF__ZK_STATE_JOINED && b->session != NULL &&
           b->session->state == HF__ZK_SESSION_CONNECTED && b->connection == b->session->connection;
}

static bool sees_itself(const struct hf__zk_bidding *b)
{
    const struct hf__zk_watch *own = b->subscriptions[HF__ZK_WATCHED_OWN].watch;

    return own != NULL && own->armed;
}

/* The grant is told with its generation; its lease counts from the last answer QUEUED. */
static void let_in(struct hf__zk_bidding *b)
{
    struct hf__zk *zk = b->zk;
    int64_t lease_ms = hf__zk_lease_ms(b->session, hf__provisional_lease_ms(b->ttl_ms));

    b->blockers = 0;
    b->inside = true;
    b->until_ns = hf__now_ns(zk->base.host->env) + lease_ms * HF__NS_PER_MS;
    hf__zk_set_timer(b, b->until_ns);
    hf__zk_call_ticket(zk, &b->ticket, b->generation);
}

/* Under the mutex: whether the number of a writer may be written there. */
static void note_directory(struct hf__zk_bidding *b, int rc, const char *value, int len)
{
    int32_t left;

    b->may_tell = rc == ZOK && (len <= 0 || hf__zk_parse_left(value, len, &left));
}

void hf__zk_set_predecessors(struct hf__zk_bidding *b, const struct hf__zk_standing *at)
{
    b->claimed = false;
    b->near_gone = false;
    b->blockers = at->blockers;
    b->far_number = at->far != NULL ? hf__zk_child(at->far).sequence : 0;
    b->connection = b->session != NULL ? b->session->connection : 0;
}

bool hf__zk_watch_told(struct hf__zk_subscription *subscription, int type)
{
    struct hf__zk_bidding *b = subscription->b;
    enum hf__zk_watched kind = (enum hf__zk_watched)(subscription - b->subscriptions);
    bool gone = type == ZOO_DELETED_EVENT && is_current(b) && !b->inside;

    if (kind == HF__ZK_WATCHED_ARRIVALS) { /* somebody has come or gone: the renewal looks */
        hf__zk_call_ticket(b->zk, &b->ticket, 0);
        return false;
    }
    if (kind == HF__ZK_WATCHED_FAR) {
        b->blockers -= gone && b->blockers > 1;
        bool asks = gone && b->blockers > 1;
        b->left_asked |= asks;
        return asks;
    }
    if (kind == HF__ZK_WATCHED_NEAR && gone && b->blockers == 1 && sees_itself(b)) {
        let_in(b);
        return !b->may_tell;
    }
    if (kind == HF__ZK_WATCHED_NEAR && gone && b->left_asked)
        b->near_gone = true; /* what it asks for is on its way */
    else
        hf__zk_call_ticket(b->zk, &b->ticket, 0);
    return false;
}

/* Sends a question about the lock's directory in which nobody waits for the answer: if it fails, the
 * bid asks when its turn seems to have come. */
static bool ask(struct hf__zk_bidding *b,
                int (*send)(struct hf__zk_session *s, struct hf__zk_bidding *b))
{
    struct hf__zk *zk = b->zk;

    pthread_mutex_lock(&zk->mutex);
    struct hf__zk_session *s = b->session;
    if (s != NULL) {
        hf__zk_use_locked(s);
        b->refs++;
    }
    pthread_mutex_unlock(&zk->mutex);
    if (s == NULL)
        return false;
    bool sent = send(s, b) == ZOK;
    if (!sent)
        hf__zk_bidding_unref(b);
    pthread_mutex_lock(&zk->mutex);
    hf__zk_unuse_locked(s);
    pthread_mutex_unlock(&zk->mutex);
    return sent;
}

/* Under the mutex. Whoever waits for an answer that does not help reads the children itself. */
static void give_up(struct hf__zk_bidding *b)
{
    b->left_asked = false;
    if (b->near_gone)
        hf__zk_call_ticket(b->zk, &b->ticket, 0);
    b->near_gone = false;
}

/* ZooKeeper's thread. */
static void on_counted(int rc, const struct String_vector *names, const void *data)
{
    struct hf__zk_bidding *b = (struct hf__zk_bidding *)data;
    struct hf__zk *zk = b->zk;

    pthread_mutex_lock(&zk->mutex);
    const struct hf__zk_watch *near = b->subscriptions[HF__ZK_WATCHED_NEAR].watch;
    if (rc == ZOK && is_current(b) && !b->inside && near != NULL) {
        struct hf__zk_standing at = hf__zk_find_standing(b, names->data, names->count);
        if (at.near != NULL && strcmp(at.near, near->path + strlen(b->directory) + 1) == 0)
            b->blockers = at.blockers;
    }
    give_up(b);
    pthread_mutex_unlock(&zk->mutex);
    hf__zk_bidding_unref(b);
}

static int send_list(struct hf__zk_session *s, struct hf__zk_bidding *b)
{
    return zoo_aget_children(s->zh, b->directory, 0, on_counted, b);
}

/* ZooKeeper's thread. Either the number says that nobody but `near` is before it, or the children
 * have to be counted, unless `near` has gone meanwhile: then the bid does that itself. */
static void on_left(int rc, const char *value, int len, const struct Stat *stat, const void *data)
{
    struct hf__zk_bidding *b = (struct hf__zk_bidding *)data;
    struct hf__zk *zk = b->zk;
    int32_t left;
    bool list = false;

    (void)stat;
    pthread_mutex_lock(&zk->mutex);
    note_directory(b, rc, value, len);
    if (rc != ZOK || !is_current(b) || b->inside) {
        give_up(b);
    } else if (hf__zk_parse_left(value, len, &left) && !hf__zk_before(left, b->far_number)) {
        b->left_asked = false;
        b->blockers = 1;
        if (b->near_gone && sees_itself(b))
            let_in(b);
        else
            give_up(b);
    } else if (b->near_gone) {
        give_up(b);
    } else {
        list = true;
    }
    pthread_mutex_unlock(&zk->mutex);
    if (list && !ask(b, send_list)) {
        pthread_mutex_lock(&zk->mutex);
        give_up(b);
        pthread_mutex_unlock(&zk->mutex);
    }
    hf__zk_bidding_unref(b);
}

static int send_left(struct hf__zk_session *s, struct hf__zk_bidding *b)
{
    return zoo_aget(s->zh, b->directory, 0, on_left, b);
}

/* ZooKeeper's thread. */
static void on_directory(int rc, const char *value, int len, const struct Stat *stat,
                         const void *data)
{
    struct hf__zk_bidding *b = (struct hf__zk_bidding *)data;

    (void)stat;
    pthread_mutex_lock(&b->zk->mutex);
    note_directory(b, rc, value, len);
    pthread_mutex_unlock(&b->zk->mutex);
    hf__zk_bidding_unref(b);
}

static int send_directory(struct hf__zk_session *s, struct hf__zk_bidding *b)
{
    return zoo_aget(s->zh, b->directory, 0, on_directory, b);
}

void hf__zk_read_directory(struct hf__zk_bidding *b)
{
    ask(b, send_directory);
}

void hf__zk_ask_after_event(struct hf__zk_bidding *b)
{
    pthread_mutex_lock(&b->zk->mutex);
    bool inside = b->inside;
    pthread_mutex_unlock(&b->zk->mutex);
    if (inside) {
        hf__zk_read_directory(b);
    } else if (!ask(b, send_left)) {
        pthread_mutex_lock(&b->zk->mutex);
        give_up(b);
        pthread_mutex_unlock(&b->zk->mutex);
    }
}

int hf__zk_delete_with(struct hf__zk_bidding *b, bool tells, bool opened, int64_t deadline_ns)
{
    char text[HF__ZK_LEFT_MAX], path[HF__ZK_PATH_MAX];
    zoo_op_t ops[3];
    int count = 0;
    struct hf__zk_call *call = hf__zk_call_new();

    if (call == NULL)
        return ZSYSTEMERROR;
    zoo_delete_op_init(&ops[count++], b->path, -1);
    hf__zk_opened_path(b, path, sizeof path);
    if (opened)
        zoo_delete_op_init(&ops[count++], path, -1);
    hf__zk_format_left(hf__zk_child(b->path + strlen(b->directory) + 1).sequence, text);
    if (tells)
        zoo_set_op_init(&ops[count++], b->directory, text, (int)strlen(text), -1, NULL);
    int rc = hf__zk_multi(b->session, ops, count, deadline_ns, call);
    /* It was never made, or a write of the next holder has deleted it: after a lost answer. */
    bool was_not_opened = rc == ZNONODE && opened && call->results[1].err == ZNONODE;
    hf__zk_call_free(call);
    if (!was_not_opened)
        return rc;
    return tells ? hf__zk_delete_with(b, true, false, deadline_ns)
                 : hf__zk_delete(b->session, b->path, deadline_ns);
}
