/* Renewals: one multi of checks for all bids of a session.
 *
 * A check is a write as far as the ensemble is concerned: it goes through the leader, so an answer
 * proves that the session lives and that the node is there, which a read from a follower that has
 * lost its leader would not. A renewal that knows of a grant claims it: the node moves into the
 * holder's session, or becomes permanent. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doorman/doorman.h"
#include "stores/zookeeper/zk.h"

#include "base/banned.h"

/* With one session of several that is not connected: the locks in the others must not wait for it. */
#define PATIENCE_NS (200 * HF__NS_PER_MS)

struct item {
    struct hf__renewal *renewal;
    struct hf__zk_bidding *b; /* NULL: answered */
    struct hf__zk_session *s; /* in use for the check; NULL: there is no node to check */
};

struct batch {
    struct hf__zk *zk;
    struct item *items;
    size_t count;
    int64_t deadline_ns;
    size_t failed, reached; /* sessions */
    int rc;                 /* of one that failed */
    int unanswered;         /* why a ticket could not be looked for */
};

static void answer(struct item *item, enum hf__verdict verdict)
{
    struct hf__answer *a = &item->renewal->answer;

    *a = (struct hf__answer){.verdict = verdict, .sent_ns = a->sent_ns};
}

/* Who is asked for, and in which session. What is over, or has nothing in the store, is answered at
 * once. */
static void collect(struct batch *q, struct hf__renewal *renewals)
{
    int64_t now_ns = hf__now_ns(q->zk->base.host->env);

    for (size_t i = 0; i < q->count; i++) {
        struct item *item = &q->items[i];
        *item = (struct item){.renewal = &renewals[i]};
        item->b = hf__zk_find(q->zk, &renewals[i].ticket);
        if (item->b == NULL) {
            int rc = hf__zk_take_over(q->zk, item->renewal, q->deadline_ns, &item->b);
            if (rc != ZOK && rc != ZNONODE)
                q->unanswered = rc;
        }
        struct hf__zk_bidding *b = item->b;
        if (b == NULL) {
            answer(item, HF__VERDICT_GONE);
            continue;
        }
        hf__zk_renew_session(b, q->deadline_ns);
        pthread_mutex_lock(&q->zk->mutex);
        if (b->state == HF__ZK_STATE_JOINED && b->session != NULL) {
            item->s = b->session;
            hf__zk_use_locked(item->s);
        } else if (b->state == HF__ZK_STATE_JOINING && item->renewal->generation == 0) {
            answer(item, HF__VERDICT_QUEUED); /* it waits for the simple lock, without a node */
            item->renewal->answer.lease_ms = hf__provisional_lease_ms(b->ttl_ms);
            b->until_ns = now_ns + hf__own_lease_ms(b->ttl_ms) * HF__NS_PER_MS;
            hf__zk_set_timer(b, b->until_ns);
        } else {
            answer(item, HF__VERDICT_GONE);
        }
        pthread_mutex_unlock(&q->zk->mutex);
    }
}

/* Checks the nodes in one request; a missing one spoils it, and is left out of the next. */
static int check_nodes(struct batch *q, struct hf__zk_session *s, zoo_op_t *ops,
                       struct item **asked)
{
    for (;;) {
        int count = 0, rc = ZOK;
        for (size_t i = 0; i < q->count; i++) {
            if (q->items[i].s != s)
                continue;
            asked[count] = &q->items[i];
            zoo_check_op_init(&ops[count++], q->items[i].b->path, -1);
        }
        struct hf__zk_call *call = count > 0 ? hf__zk_call_new() : NULL;
        if (call == NULL)
            return count > 0 ? ZSYSTEMERROR : ZOK;
        rc = hf__zk_multi(s, ops, count, q->deadline_ns, call);
        for (int i = 0; rc == ZNONODE && i < count; i++) {
            if (call->results[i].err != ZNONODE)
                continue;
            answer(asked[i], HF__VERDICT_GONE);
            asked[i]->s = NULL;
            hf__zk_unuse(s);
        }
        hf__zk_call_free(call);
        if (rc != ZNONODE)
            return rc;
    }
}

/* What is answered of a node that is there. A timer thread that came first has the last word. */
static void confirm(struct item *item, int64_t now_ns)
{
    struct hf__zk_bidding *b = item->b;
    struct hf__answer *a = &item->renewal->answer;
    uint64_t named = item->renewal->generation;

    pthread_mutex_lock(&b->zk->mutex);
    if (b->state != HF__ZK_STATE_JOINED || b->session == NULL ||
        (named != 0 && named != b->generation)) {
        answer(item, HF__VERDICT_GONE);
    } else if (b->inside) {
        int64_t wanted_ms = b->claimed ? b->ttl_ms : hf__provisional_lease_ms(b->ttl_ms);
        answer(item, HF__VERDICT_GRANTED);
        a->generation = b->generation;
        a->claimed = b->claimed;
        a->wanted = b->wanted;
        a->lease_ms = b->permanent ? HF__NEVER : hf__zk_lease_ms(b->session, wanted_ms);
        b->until_ns = b->permanent ? INT64_MAX : now_ns + a->lease_ms * HF__NS_PER_MS;
        hf__zk_set_timer(b, b->until_ns);
    } else {
        answer(item, HF__VERDICT_QUEUED);
        a->lease_ms = hf__zk_lease_ms(b->session, hf__provisional_lease_ms(b->ttl_ms));
        b->until_ns = now_ns + hf__own_lease_ms(b->ttl_ms) * HF__NS_PER_MS;
        hf__zk_set_timer(b, b->until_ns);
    }
    pthread_mutex_unlock(&b->zk->mutex);
}

/* The node becomes permanent, or moves into the session of a holder if that is another one. 0, or
 * the server's code. */
static int claim(struct item *item, int64_t deadline_ns)
{
    struct hf__zk_bidding *b = item->b;
    int64_t hold_ms = hf__zk_hold_ms(b->ttl_ms, b->lock_delay_ms);
    struct hf__zk_session *s;
    int rc = ZOK;

    if (!hf__zk_begin(b, deadline_ns))
        return ZOPERATIONTIMEOUT;
    if (b->unsure) /* an earlier move was not answered: it may have happened */
        rc = hf__zk_find_node(b, deadline_ns);
    pthread_mutex_lock(&b->zk->mutex);
    bool moves = rc == ZOK && !b->claimed && b->state == HF__ZK_STATE_JOINED && b->session != NULL;
    pthread_mutex_unlock(&b->zk->mutex);
    if (moves && b->ttl_ms == HF__NEVER) {
        rc = b->permanent ? ZOK : hf__zk_move(b, NULL, deadline_ns);
    } else if (moves && b->session->asked_ms != hold_ms) {
        if (hf__zk_hold_session(b, deadline_ns, &s, NULL) == 0) {
            rc = hf__zk_move(b, s, deadline_ns);
            hf__zk_unuse(s);
        } else {
            rc = ZCONNECTIONLOSS;
        }
    }
    pthread_mutex_lock(&b->zk->mutex);
    b->claimed |= moves && rc == ZOK;
    pthread_mutex_unlock(&b->zk->mutex);
    hf__zk_end(b);
    return rc;
}

static void finish_item(struct batch *q, struct item *item, struct hf__zk_session *s)
{
    struct hf__zk_bidding *b = item->b;
    pthread_mutex_lock(&q->zk->mutex);
    bool claims = (item->renewal->generation != 0 && !b->claimed && b->inside) || b->unsure;
    pthread_mutex_unlock(&q->zk->mutex);
    int rc = claims ? claim(item, q->deadline_ns) : ZOK;

    if (rc == ZNONODE) {
        answer(item, HF__VERDICT_GONE);
    } else {
        if (rc != ZOK) {
            q->failed++;
            q->rc = rc;
        }
        confirm(item, hf__now_ns(q->zk->base.host->env)); /* not claimed: as it was */
    }
    if (b->tells && item->renewal->answer.verdict == HF__VERDICT_GRANTED)
        item->renewal->answer.wanted = hf__zk_is_wanted(b, q->deadline_ns);
    item->s = NULL;
    hf__zk_unuse(s);
}

/* This session does not answer: its bids keep the lease they have. */
static void keep_as_it_was(struct batch *q, struct hf__zk_session *s)
{
    for (size_t i = 0; i < q->count; i++) {
        struct item *item = &q->items[i];
        if (item->s != s)
            continue;
        int64_t sent_ns = item->renewal->answer.sent_ns;
        pthread_mutex_lock(&q->zk->mutex);
        int64_t until_ns = item->b->until_ns, proved_ns = s->proved_ns;
        pthread_mutex_unlock(&q->zk->mutex);
        item->renewal->answer.sent_ns = proved_ns < sent_ns ? proved_ns : sent_ns;
        confirm(item, hf__now_ns(q->zk->base.host->env));
        pthread_mutex_lock(&q->zk->mutex);
        if (item->b->state == HF__ZK_STATE_JOINED) {
            item->b->until_ns = until_ns;
            hf__zk_set_timer(item->b, until_ns);
        }
        pthread_mutex_unlock(&q->zk->mutex);
        item->s = NULL;
        hf__zk_unuse(s);
    }
}

static void renew_session(struct batch *q, struct hf__zk_session *s, zoo_op_t *ops,
                          struct item **asked)
{
    int64_t now_ns = hf__now_ns(q->zk->base.host->env);
    int64_t until_ns =
        now_ns + PATIENCE_NS < q->deadline_ns ? now_ns + PATIENCE_NS : q->deadline_ns;
    int rc = hf__zk_await(s, until_ns) ? check_nodes(q, s, ops, asked) : ZCONNECTIONLOSS;

    if (rc != ZOK) {
        q->failed++;
        q->rc = rc;
        keep_as_it_was(q, s);
        return;
    }
    q->reached++;
    for (size_t i = 0; i < q->count; i++) {
        if (q->items[i].s == s)
            finish_item(q, &q->items[i], s);
    }
}

static struct hf__zk_session *next_session(const struct batch *q, bool connected)
{
    struct hf__zk_session *found = NULL;

    pthread_mutex_lock(&q->zk->mutex);
    for (size_t i = 0; found == NULL && i < q->count; i++) {
        struct hf__zk_session *s = q->items[i].s;
        if (s != NULL && (s->state == HF__ZK_SESSION_CONNECTED || !connected))
            found = s;
    }
    pthread_mutex_unlock(&q->zk->mutex);
    return found;
}

int hf__zk_renew(struct hf__store *store, struct hf__renewal *items, size_t count,
                 int64_t deadline_ns, hf_error *err)
{
    struct batch q = {.zk = (struct hf__zk *)store, .count = count, .deadline_ns = deadline_ns};
    zoo_op_t *ops = calloc(count + 1, sizeof *ops);
    struct item **asked = calloc(count + 1, sizeof *asked);
    struct hf__zk_session *s;
    int r = 0;

    q.items = calloc(count + 1, sizeof *q.items);
    if (ops == NULL || asked == NULL || q.items == NULL) {
        r = hf__fail(err, HF_NO_MEMORY, NULL);
    } else {
        collect(&q, items);
        s = next_session(&q, true);
        hf__zk_watch_break_requests(q.zk, s, deadline_ns);
        while ((s = next_session(&q, true)) != NULL || (s = next_session(&q, false)) != NULL)
            renew_session(&q, s, ops, asked);
        if (q.unanswered != ZOK)
            r = hf__zk_fail(err, q.unanswered, "look for the ticket");
        else if (q.failed > 0 && q.reached == 0)
            r = hf__zk_fail(err, q.rc, "renew");
        for (size_t i = 0; i < count; i++) {
            if (q.items[i].b != NULL)
                hf__zk_bidding_unref(q.items[i].b);
        }
    }
    free(ops);
    free(asked);
    free(q.items);
    return r;
}
