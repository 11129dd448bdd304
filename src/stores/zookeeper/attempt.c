/* A bid: where it stands in the queue, and waiting for those before it.
 *
 * The first node is made in the session of a holder, so that a free lock takes one write and one
 * read (join.c). Whoever finds somebody before it moves into the session of a waiter, or leaves at
 * once if it does not want to wait. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doorman/doorman.h"
#include "stores/zookeeper/zk.h"

#include "base/banned.h"

#define LOOKS 16 /* each time the one before it was gone when it was to be watched */

/* Its node is not there, or is the timer thread's now: the ticket is over. */
int hf__zk_answer_withdrawn(struct hf__zk_bidding *b, struct hf__answer *ret_answer)
{
    pthread_mutex_lock(&b->zk->mutex);
    if (b->state == HF__ZK_STATE_JOINING || b->state == HF__ZK_STATE_JOINED)
        hf__zk_retire(b, b->retire_ms);
    pthread_mutex_unlock(&b->zk->mutex);
    *ret_answer =
        (struct hf__answer){.verdict = HF__VERDICT_WITHDRAWN, .sent_ns = ret_answer->sent_ns};
    return 0;
}

/* Not let in, and not willing to wait. */
static int turn_away(struct hf__zk_bidding *b, enum hf__verdict verdict, int64_t deadline_ns,
                     struct hf__answer *ret_answer, hf_error *err)
{
    int rc = hf__zk_remove(b, deadline_ns);

    if (rc != ZOK && rc != ZNONODE)
        return hf__zk_fail(err, rc, "delete");
    pthread_mutex_lock(&b->zk->mutex);
    hf__zk_retire(b, 0);
    pthread_mutex_unlock(&b->zk->mutex);
    *ret_answer = (struct hf__answer){.verdict = verdict, .sent_ns = ret_answer->sent_ns};
    return 0;
}

/* From the session of a holder into that of a waiter, if they differ. */
static int become_waiter(struct hf__zk_bidding *b, int64_t deadline_ns, hf_error *err)
{
    int64_t wait_ms = hf__zk_wait_ms(b->ttl_ms, b->lock_delay_ms);
    struct hf__zk_session *s;

    if (b->session->asked_ms == wait_ms)
        return 0; /* a ttl of up to 10 s without a lock-delay needs one session only */
    int r = hf__zk_session(b->zk, wait_ms, deadline_ns, &s, err);
    if (r != 0)
        return r;
    int rc = hf__zk_move(b, s, deadline_ns);
    hf__zk_unuse(s);
    if (rc == ZNONODE)
        return 1;
    return rc == ZOK ? 0 : hf__zk_fail(err, rc, "move");
}

/* The lease counts from here if it is let in by an event: so from the last write of the session, as
 * in hf__zk_granted(). */
static void queued(struct hf__zk_bidding *b, const struct hf__zk_standing *at,
                   struct hf__answer *ret)
{
    struct hf__zk *zk = b->zk;

    pthread_mutex_lock(&zk->mutex);
    if (b->inside || b->session == NULL) { /* meanwhile */
        pthread_mutex_unlock(&zk->mutex);
        hf__zk_granted(b, ret);
        return;
    }
    int64_t own_ms = hf__own_lease_ms(b->ttl_ms), proved_ns = b->session->proved_ns;
    *ret = (struct hf__answer){.verdict = HF__VERDICT_QUEUED,
                               .lease_ms =
                                   hf__zk_lease_ms(b->session, hf__provisional_lease_ms(b->ttl_ms)),
                               .position = at->position,
                               .ask_again_ms = 5000 + 10 * (int64_t)at->position,
                               .sent_ns = proved_ns < ret->sent_ns ? proved_ns : ret->sent_ns};
    b->waited = true;
    b->until_ns = hf__now_ns(zk->base.host->env) + own_ms * HF__NS_PER_MS;
    hf__zk_set_timer(b, b->until_ns);
    pthread_mutex_unlock(&zk->mutex);
}

/* Looks at itself and at the last two that keep it out. ZNONODE: one of them is gone already. */
static int watch(struct hf__zk_bidding *b, const struct hf__zk_standing *at, int64_t deadline_ns)
{
    char near[HF__ZK_PATH_MAX], far[HF__ZK_PATH_MAX];
    const char *const paths[HF__ZK_WATCHED_KINDS] = {[HF__ZK_WATCHED_OWN] = b->path,
                                                     [HF__ZK_WATCHED_FAR] =
                                                         at->far != NULL ? far : NULL,
                                                     [HF__ZK_WATCHED_NEAR] = near};

    if (!hf__zk_child_path(b, at->near, near) ||
        (at->far != NULL && !hf__zk_child_path(b, at->far, far)))
        return ZBADARGUMENTS;
    pthread_mutex_lock(&b->zk->mutex);
    bool inside = b->inside; /* by an event, since the list was read */
    if (!inside)
        hf__zk_set_predecessors(b, at);
    pthread_mutex_unlock(&b->zk->mutex);
    if (inside)
        return ZNONODE;
    hf__zk_read_directory(b); /* in the same round trip */
    return hf__zk_watch(b, paths, deadline_ns);
}

/* What was read may be old news; a write within the last third of the lease is proof enough. */
static int prove(struct hf__zk_bidding *b, int64_t deadline_ns)
{
    struct hf__zk_session *s = b->session;
    zoo_op_t op;

    pthread_mutex_lock(&b->zk->mutex);
    int64_t age_ns = hf__now_ns(b->zk->base.host->env) - s->proved_ns;
    pthread_mutex_unlock(&b->zk->mutex);
    if (b->permanent ||
        age_ns < hf__zk_lease_ms(s, hf__provisional_lease_ms(b->ttl_ms)) * HF__NS_PER_MS / 3)
        return ZOK;
    struct hf__zk_call *call = hf__zk_call_new();
    if (call == NULL)
        return ZSYSTEMERROR;
    zoo_check_op_init(&op, b->path, -1);
    int rc = hf__zk_multi(s, &op, 1, deadline_ns, call);
    hf__zk_call_free(call);
    return rc;
}

/* By the list of those who are there: in, into the queue, or away. Whoever was let in is inside for
 * as long as its node is there, whatever the list says. 1: look again. */
static int decide(struct hf__zk_bidding *b, const struct hf__bid *bid,
                  const struct hf__zk_call *list, int64_t deadline_ns,
                  struct hf__answer *ret_answer, hf_error *err)
{
    struct hf__zk_standing at = hf__zk_find_standing(b, list->names, list->name_count);
    int rc;

    if (!at.present)
        return hf__zk_answer_withdrawn(b, ret_answer);
    pthread_mutex_lock(&b->zk->mutex);
    bool inside = b->inside;
    pthread_mutex_unlock(&b->zk->mutex);
    if (at.near == NULL || inside) {
        rc = prove(b, deadline_ns);
        if (rc == ZNONODE)
            return hf__zk_answer_withdrawn(b, ret_answer);
        if (rc != ZOK)
            return hf__zk_fail(err, rc, "check");
        hf__zk_granted(b, ret_answer);
        return 0;
    }
    if (!bid->queue || at.crowd > HF__QUEUE_MAX)
        return turn_away(b, bid->queue ? HF__VERDICT_FULL : HF__VERDICT_BUSY, deadline_ns,
                         ret_answer, err);
    int r = become_waiter(b, deadline_ns, err);
    if (r != 0)
        return r == 1 ? hf__zk_answer_withdrawn(b, ret_answer) : r;
    rc = watch(b, &at, deadline_ns);
    if (rc == ZNONODE)
        return 1;
    if (rc != ZOK)
        return hf__zk_fail(err, rc, "watch");
    queued(b, &at, ret_answer);
    return 0;
}

static int join_and_decide(struct hf__zk_bidding *b, const struct hf__bid *bid, int64_t deadline_ns,
                           struct hf__answer *ret_answer, hf_error *err)
{
    struct hf__zk_call *list = NULL;
    int r = hf__zk_is_over(b) ? 1 : hf__zk_join(b, bid->queue, deadline_ns, &list, err);

    if (r == 1)
        return hf__zk_answer_withdrawn(b, ret_answer);
    if (r != 0)
        return r;
    r = 1;
    for (int i = 0; r == 1 && i < LOOKS; i++) {
        int rc = ZOK;
        if (list == NULL) { /* it was in the store before, or has to look again */
            list = hf__zk_call_new();
            if (list == NULL)
                return hf__fail(err, HF_NO_MEMORY, NULL);
            rc = hf__zk_children(b->session, b->directory, false, deadline_ns, list);
        }
        if (rc == ZOK || rc == ZNONODE) /* no directory: an empty list */
            r = decide(b, bid, list, deadline_ns, ret_answer, err);
        else
            r = hf__zk_fail(err, rc, "children");
        hf__zk_call_free(list);
        list = NULL;
    }
    if (r == 1)
        return hf__fail(err, HF_UNKNOWN, "those before it change too fast");
    return r != 0 && hf__zk_is_over(b) ? hf__zk_answer_withdrawn(b, ret_answer) : r;
}

int hf__zk_attempt(struct hf__store *store, const struct hf__bid *bid, int64_t deadline_ns,
                   struct hf__answer *ret_answer, hf_error *err)
{
    struct hf__zk *zk = (struct hf__zk *)store;

    if (bid->ttl_ms == HF__NEVER && bid->lock_delay_ms > 0)
        return hf__fail(err, HF_UNSUPPORTED,
                        "a lock that never expires cannot have a lock-delay here");
    int r = hf__zk_start_timer_thread(zk, err);
    if (r != 0)
        return r;
    struct hf__zk_bidding *b = hf__zk_bidding_make(zk, bid);
    if (b == NULL)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    if (hf__zk_begin(b, deadline_ns)) {
        r = zk->fair ? join_and_decide(b, bid, deadline_ns, ret_answer, err)
                     : hf__zk_simple_ask(b, bid, deadline_ns, ret_answer, err);
        pthread_mutex_lock(&zk->mutex); /* a bid that has left nothing behind is not remembered */
        if (r != 0 && r != HF_UNKNOWN && b->state == HF__ZK_STATE_JOINING && !b->unsure &&
            b->path == NULL)
            hf__zk_retire(b, 0);
        pthread_mutex_unlock(&zk->mutex);
        if (r == 0 && b->tells && ret_answer->verdict == HF__VERDICT_GRANTED)
            ret_answer->wanted = hf__zk_is_wanted(b, deadline_ns);
        if (r == 0 && (ret_answer->verdict == HF__VERDICT_GRANTED ||
                       ret_answer->verdict == HF__VERDICT_QUEUED))
            hf__zk_watch_break_requests(zk, b->session, deadline_ns);
        hf__zk_end(b);
    } else {
        r = hf__fail(err, HF_UNKNOWN, "another request of this ticket is under way");
    }
    hf__zk_bidding_unref(b);
    return r;
}
