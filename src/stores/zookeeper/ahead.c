/* What a waiter knows of those before it, and when that is enough.
 *
 * The recipe reads the children again after every event. Here a waiter remembers how many of them
 * keep it out, and is told of the last two and of its own node:
 *
 *      ... 4    5     6     7 = this bid          `ahead` <= 3 after the list
 *              far   near  own
 *
 * Nobody can come before it any more: numbers only rise. So when `far` goes, everybody before is
 * counted anew in the background, and when `near` goes and was the only one, the bid is let in by
 * that event alone, without another round trip. That is proof, because a server tells of changes in
 * their order: had the own node gone before, that would have been told before. It is no proof
 *
 *      after a reconnect, since what was missed is then told in any order;
 *      of a node that may move to another session, since its old one is told as deleted;
 *      as long as the server has not confirmed that it watches the own node.
 *
 * Then, and after every other event, the bid asks again and the children are read. Two more watches
 * for each waiter, and two more messages for each hand-over, are what this costs the server. */
#include <stdlib.h>
#include <string.h>

#include "doorman/doorman.h"
#include "stores/zookeeper/zk.h"
#include "util/banned.h"

static bool is_current(const struct bidding *b)
{
    return b->state == HF__ZK_JOINED && b->session != NULL &&
           b->session->state == HF__ZK_CONNECTED && b->connection == b->session->connection;
}

static bool sees_itself(const struct bidding *b)
{
    const struct watch *own = b->sights[HF__ZK_OWN].watch;

    return own != NULL && own->armed;
}

/* The grant is told with its generation; its lease counts from the last answer QUEUED. */
static void let_in(struct bidding *b)
{
    struct zk *zk = b->zk;
    int64_t lease_ms = hf__zk_lease_ms(b->session, hf__provisional_lease_ms(b->ttl_ms));

    b->ahead = 0;
    b->inside = true;
    b->until_ns = hf__now_ns(zk->base.host->env) + lease_ms * HF__NS_PER_MS;
    hf__zk_set_timer(b, b->until_ns);
    hf__zk_call_ticket(zk, &b->ticket, b->generation);
}

bool hf__zk_seen(struct sight *sight, const struct watch *w, int type)
{
    struct bidding *b = sight->b;
    enum sight_kind kind = (enum sight_kind)(sight - b->sights);
    bool gone = type == ZOO_DELETED_EVENT && w->settled && is_current(b) && !b->inside;

    if (kind == HF__ZK_FAR) {
        if (gone)
            b->ahead--;
        return gone && b->ahead > 1;
    }
    if (kind == HF__ZK_NEAR && gone && b->ahead == 1 && sees_itself(b))
        let_in(b);
    else
        hf__zk_call_ticket(b->zk, &b->ticket, 0);
    return false;
}

/* ZooKeeper's thread. */
static void on_counted(int rc, const struct String_vector *names, const void *data)
{
    struct bidding *b = (struct bidding *)data;
    struct zk *zk = b->zk;

    pthread_mutex_lock(&zk->mutex);
    const struct watch *near = b->sights[HF__ZK_NEAR].watch;
    if (rc == ZOK && is_current(b) && !b->inside && near != NULL) {
        struct standing at = hf__zk_judge(b, names->data, names->count);
        if (at.near != NULL && strcmp(at.near, near->path + strlen(b->directory) + 1) == 0)
            b->ahead = at.blockers;
    }
    pthread_mutex_unlock(&zk->mutex);
    hf__zk_bidding_unref(b);
}

/* Nobody waits for it: if it fails, the bid asks when its turn seems to have come. */
void hf__zk_count_again(struct bidding *b)
{
    struct zk *zk = b->zk;

    pthread_mutex_lock(&zk->mutex);
    struct session *s = b->session;
    if (s != NULL) {
        hf__zk_use_locked(s);
        b->refs++;
    }
    pthread_mutex_unlock(&zk->mutex);
    if (s == NULL)
        return;
    if (zoo_aget_children(s->zh, b->directory, 0, on_counted, b) != ZOK)
        hf__zk_bidding_unref(b);
    pthread_mutex_lock(&zk->mutex);
    hf__zk_unuse_locked(s);
    pthread_mutex_unlock(&zk->mutex);
}
