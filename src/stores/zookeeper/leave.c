/* Leaving: release, withdraw, and deleting a node with proof.
 *
 * A deletion is proved by the server's answer, or by a look after a sync that does not find the
 * node. That also settles a create whose answer was lost: a request that a cut connection has not
 * delivered when the session is used again is refused by the servers, so it cannot come later. */
#include <stdlib.h>

#include "stores/zookeeper/zk.h"

#include "base/banned.h"

static int remove_break_request(struct bidding *b, int64_t deadline_ns)
{
    char path[HF__ZK_PATH_MAX];

    for (int now = 0; now < 2; now++) {
        hf__zk_break_request_path(b->zk, &b->ticket, now, path, sizeof path);
        hf__zk_delete(b->session, path, deadline_ns);
    }
    return ZOK;
}

/* A writer who had to wait has others behind it, maybe, who want to know that it was inside. */
static int delete_node(struct bidding *b, int64_t deadline_ns)
{
    pthread_mutex_lock(&b->zk->mutex);
    hf__zk_look_away(&b->sights[HF__ZK_OWN]); /* that it goes is no news */
    bool tells = b->waited && b->inside && b->mode == HF_EXCLUSIVE && b->may_tell;
    pthread_mutex_unlock(&b->zk->mutex);
    if (tells) {
        int rc = hf__zk_delete_and_tell(b, deadline_ns);
        if (rc != ZNOAUTH)
            return rc;
        /* Others may let us make nodes in their directory, but not write to it. */
    }
    return hf__zk_delete(b->session, b->path, deadline_ns);
}

static int remove_fair(struct bidding *b, int64_t deadline_ns)
{
    int rc = b->unsure ? hf__zk_find_node(b, deadline_ns) : ZOK;

    if (rc == ZOK && b->path == NULL)
        rc = ZNONODE;
    return rc == ZOK ? delete_node(b, deadline_ns) : rc;
}

int hf__zk_remove(struct bidding *b, int64_t deadline_ns)
{
    if (b->session == NULL)
        return ZNONODE; /* its session is over, and the node with it */
    hf__zk_renew_session(b, deadline_ns);
    pthread_mutex_lock(&b->zk->mutex);
    bool may_stay = hf__zk_may_be_permanent(b);
    pthread_mutex_unlock(&b->zk->mutex);
    if (!hf__zk_await(b->session, deadline_ns))
        return hf__zk_is_dead(b->session) && !may_stay ? ZNONODE : ZOPERATIONTIMEOUT;
    int rc = b->zk->fair ? remove_fair(b, deadline_ns) : hf__zk_simple_remove(b, deadline_ns);
    if (b->break_requested && (rc == ZOK || rc == ZNONODE))
        remove_break_request(b, deadline_ns);
    if (rc == ZSESSIONEXPIRED || rc == ZINVALIDSTATE)
        return may_stay ? ZOPERATIONTIMEOUT : ZNONODE;
    return rc;
}

/* A ticket that was never seen here: its attempt may still be on the way. */
static int remember(struct zk *zk, const struct hf__bid *bid, int64_t retire_ms, hf_error *err)
{
    struct bidding *b = retire_ms > 0 ? hf__zk_bidding_make(zk, bid) : NULL;

    if (retire_ms > 0 && b == NULL)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    if (b == NULL)
        return 0;
    pthread_mutex_lock(&zk->mutex);
    hf__zk_spend(b, retire_ms);
    pthread_mutex_unlock(&zk->mutex);
    hf__zk_bidding_unref(b);
    return 0;
}

struct leaving {
    bool release;
    int64_t retire_ms, deadline_ns;
};

static int leave(struct bidding *b, const struct leaving *how, enum hf__verdict *ret, hf_error *err)
{
    pthread_mutex_lock(&b->zk->mutex);
    enum bid_state state = b->state;
    bool was_inside = b->inside, had_node = b->path != NULL;
    pthread_mutex_unlock(&b->zk->mutex);

    *ret = HF__VERDICT_STALE;
    if (state == HF__ZK_LINGERING && how->release)
        return 0; /* a late release does not cut the lock-delay short */
    int rc = state == HF__ZK_SPENT ? ZNONODE : hf__zk_remove(b, how->deadline_ns);
    if (rc != ZOK && rc != ZNONODE)
        return hf__zk_fail(err, rc, "delete");
    if (rc == ZOK && (!how->release || (was_inside && had_node)))
        *ret = HF__VERDICT_DONE;
    if (!how->release && state == HF__ZK_JOINING && rc == ZNONODE)
        *ret = HF__VERDICT_DONE; /* it waited for the simple lock, or was never applied */
    pthread_mutex_lock(&b->zk->mutex);
    hf__zk_spend(b, how->retire_ms);
    pthread_mutex_unlock(&b->zk->mutex);
    return 0;
}

static int end(struct hf__store *store, const struct hf__bid *bid, const struct leaving *how,
               struct hf__answer *ret_answer, hf_error *err)
{
    struct zk *zk = (struct zk *)store;
    struct bidding *b = hf__zk_find(zk, &bid->ticket);
    enum hf__verdict verdict = HF__VERDICT_STALE;
    int r;

    if (b == NULL) {
        r = remember(zk, bid, how->retire_ms, err);
    } else {
        if (hf__zk_begin(b, how->deadline_ns)) {
            r = leave(b, how, &verdict, err);
            hf__zk_end(b);
        } else {
            r = hf__fail(err, HF_UNKNOWN, "another request of this ticket is under way");
        }
        hf__zk_bidding_unref(b);
    }
    if (r == 0)
        *ret_answer = (struct hf__answer){.verdict = verdict, .sent_ns = ret_answer->sent_ns};
    return r;
}

int hf__zk_leave(struct hf__store *store, const struct hf__operation *op, int64_t deadline_ns,
                 struct hf__answer *ret_answer, hf_error *err)
{
    struct leaving how = {.release = op->kind == HF__OPERATION_RELEASE,
                          .retire_ms = op->retire_ms,
                          .deadline_ns = deadline_ns};

    return end(store, op->bid, &how, ret_answer, err);
}
