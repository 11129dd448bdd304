/* Leaving: release, withdraw, and deleting a node with proof.
 *
 * A deletion is proved by the server's answer, or by a look after a sync that does not find the
 * node. That also settles a create whose answer was lost: a request that a cut connection has not
 * delivered when the session is used again is refused by the servers, so it cannot come later. */
#include <stdlib.h>

#include "stores/zookeeper/zk.h"

#include "base/banned.h"

/* A writer who had to wait has others behind it, maybe, who want to know that it was inside. */
static int remove_fair(struct hf__zk_bidding *b, int64_t deadline_ns)
{
    int rc = b->unsure ? hf__zk_find_node(b, deadline_ns) : ZOK;

    if (rc != ZOK)
        return rc;
    if (b->path == NULL)
        return ZNONODE;
    pthread_mutex_lock(&b->zk->mutex);
    hf__zk_unsubscribe(&b->subscriptions[HF__ZK_WATCHED_OWN]); /* that it goes is no news */
    bool tells = b->waited && b->inside && b->mode == HF_EXCLUSIVE && b->may_tell;
    bool opened = b->value.asked && b->value.closes;
    pthread_mutex_unlock(&b->zk->mutex);
    rc = tells || opened ? hf__zk_delete_with(b, tells, opened, deadline_ns) : ZNOAUTH;
    /* Others may let us make nodes in their directory, but not write to it. */
    if (rc == ZNOAUTH && tells && opened)
        return hf__zk_delete_with(b, false, true, deadline_ns);
    return rc == ZNOAUTH ? hf__zk_delete(b->session, b->path, deadline_ns) : rc;
}

int hf__zk_remove(struct hf__zk_bidding *b, int64_t deadline_ns)
{
    char path[HF__ZK_PATH_MAX];

    if (b->session == NULL)
        return ZNONODE; /* its session is over, and the node with it */
    hf__zk_renew_session(b, deadline_ns);
    pthread_mutex_lock(&b->zk->mutex);
    bool may_stay = hf__zk_may_be_permanent(b);
    pthread_mutex_unlock(&b->zk->mutex);
    if (!hf__zk_await(b->session, deadline_ns))
        return hf__zk_is_dead(b->session) && !may_stay ? ZNONODE : ZOPERATIONTIMEOUT;
    int rc = b->zk->fair ? remove_fair(b, deadline_ns) : hf__zk_simple_remove(b, deadline_ns);
    /* A request to break it would stay behind. Whether it could be deleted does not matter to the
     * lock: `gc` finds it. */
    for (int now = 0; now < 2 && b->break_requested && (rc == ZOK || rc == ZNONODE); now++) {
        hf__zk_break_request_path(b->zk, &b->ticket, now, path, sizeof path);
        hf__zk_delete(b->session, path, deadline_ns);
    }
    if (rc == ZSESSIONEXPIRED || rc == ZINVALIDSTATE)
        return may_stay ? ZOPERATIONTIMEOUT : ZNONODE;
    return rc;
}

/* Withdrawing says DONE for what was never applied, too: nothing is left of it, which is what was asked
 * for. A release says so only if the lock was held until now. */
static int leave(struct hf__zk_bidding *b, const struct hf__operation *op, int64_t deadline_ns,
                 enum hf__verdict *ret, hf_error *err)
{
    bool release = op->kind == HF__OPERATION_RELEASE;
    pthread_mutex_lock(&b->zk->mutex);
    enum hf__zk_state state = b->state;
    bool was_inside = b->inside, had_node = b->path != NULL;
    b->value.closes |= state == HF__ZK_STATE_JOINED; /* else it vanished, and leaves doubt */
    pthread_mutex_unlock(&b->zk->mutex);

    *ret = HF__VERDICT_STALE;
    if (state == HF__ZK_STATE_LINGERING && release)
        return 0; /* a late release does not cut the lock-delay short */
    int rc = state == HF__ZK_STATE_RETIRED ? ZNONODE : hf__zk_remove(b, deadline_ns);
    if (rc != ZOK && rc != ZNONODE)
        return hf__zk_fail(err, rc, "delete");
    if (rc == ZOK && (!release || (was_inside && had_node)))
        *ret = HF__VERDICT_DONE;
    if (!release && state == HF__ZK_STATE_JOINING && rc == ZNONODE)
        *ret = HF__VERDICT_DONE; /* it waited for the simple lock, or was never applied */
    pthread_mutex_lock(&b->zk->mutex);
    hf__zk_retire(b, op->retire_ms);
    pthread_mutex_unlock(&b->zk->mutex);
    return 0;
}

int hf__zk_leave(struct hf__store *store, const struct hf__operation *op, int64_t deadline_ns,
                 struct hf__answer *ret_answer, hf_error *err)
{
    struct hf__zk *zk = (struct hf__zk *)store;
    struct hf__zk_bidding *b = hf__zk_find(zk, &op->bid->ticket);
    enum hf__verdict verdict = HF__VERDICT_STALE;
    int r = 0;

    if (b != NULL) {
        if (hf__zk_begin(b, deadline_ns)) {
            r = leave(b, op, deadline_ns, &verdict, err);
            hf__zk_end(b);
        } else {
            r = hf__fail(err, HF_UNKNOWN, "another request of this ticket is under way");
        }
    } else if (op->retire_ms > 0) { /* never seen here: its attempt may still be on the way */
        b = hf__zk_bidding_make(zk, op->bid);
        if (b == NULL)
            return hf__fail(err, HF_NO_MEMORY, NULL);
        pthread_mutex_lock(&zk->mutex);
        hf__zk_retire(b, op->retire_ms);
        pthread_mutex_unlock(&zk->mutex);
    }
    if (b != NULL)
        hf__zk_bidding_unref(b);
    if (r == 0)
        *ret_answer = (struct hf__answer){.verdict = verdict, .sent_ns = ret_answer->sent_ns};
    return r;
}
