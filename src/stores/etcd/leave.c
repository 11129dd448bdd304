/* Leaving: release and withdraw.
 *
 * A release of what this client took itself is
 *
 *   if      our mark is as we know it
 *   then    delete place, inside, slot      DONE, or STALE if there was no place
 *
 * or a direct hand-over (see handover.c, also for why the mark is enough), which puts a key and so is
 * refused by a server that is full: then the other is sent. And any other, or if that was not so:
 *
 *   if      the place is the one we made, we are inside, nobody has broken it
 *   then    delete place, inside            DONE
 *   else    if not broken: delete place     STALE
 *
 * A withdraw does not mind that it is broken, nor that only the lock-delay is left: nobody has worked
 * under what is given up before its user knew of it.
 *
 * and then the lease is revoked: whatever a late request of this ticket would still put has no
 * lease to hang on and is refused by the server. If an attempt is unanswered a tombstone is put
 * first: a late lease/grant could otherwise open the way for a late transaction.
 *
 * A lock that was broken stays closed until its lease is over (that is the ttl and the lock-delay):
 * the mark beside it keeps its holder from renewing. --now deletes it; with a lock-delay it is put
 * once more, on a lease as long as the delay. */
#include <stdlib.h>

#include "stores/etcd/etcd.h"

#include "base/banned.h"

struct leaving {
    struct hf__etcd *e;
    const struct hf__bid *bid;
    struct hf__etcd_name name;
    int64_t lease; /* 0: not known. What the ticket asked for may be another ticket's by now */
    int64_t deadline_ns, retire_ms;
    struct hf__etcd_found found; /* where it is; `joined` 0: nothing of it is known to be there */
    struct hf__etcd_key inside, broken, slot, opened;
    int64_t at_least_ms; /* after it was let in the lock opens no earlier */
    bool withdraw;
    struct hf__etcd_bid known; /* if this client took it; inside it most likely still is */
    hf_error *err;
};

static int put_tombstone(struct leaving *x)
{
    struct hf__etcd_key *key = malloc(sizeof *key);
    struct hf__ticket other = x->bid->ticket;
    struct hf__etcd_answer answer;

    if (key == NULL)
        return hf__fail(x->err, HF_NO_MEMORY, NULL);
    /* A lease of its own, with a number that repeats if this is repeated. */
    for (size_t i = 0; i < 8; i++)
        other.bits[i] = (unsigned char)~other.bits[i + 8];
    int64_t lease = hf__etcd_lease_of(&other);
    int r = hf__etcd_lease_grant(x->e, lease, (x->retire_ms + 999) / 1000, x->deadline_ns, x->err);
    if (r == 0) {
        struct hf__etcd_txn t = {0};
        hf__etcd_tombstone_key(x->e, &x->bid->ticket, key);
        hf__etcd_put(&t, key, "", lease);
        r = hf__etcd_commit(x->e, &t, x->deadline_ns, &answer, x->err);
        hf__etcd_answer_clear(&answer);
    }
    free(key);
    return r;
}

/* Somebody else's bid: how far its lease is tells whether only the delay keeps it closed. */
static int lingers(struct leaving *x)
{
    struct hf__etcd_life life;

    if (x->found.delay_ms == 0 || x->found.lease == 0 || x->found.generation == 0)
        return 0;
    int r = hf__etcd_lease_life(x->e, x->found.lease, x->deadline_ns, &life, x->err);
    if (r == HF_NOT_FOUND)
        return 0;
    return r < 0 ? r : hf__etcd_lingers(&life, x->found.ttl_ms, x->found.delay_ms);
}

static void set_marks(struct leaving *x)
{
    hf__etcd_mark_key(x->e, HF__ETCD_KEY_INSIDE, x->name, x->lease, &x->inside);
    hf__etcd_mark_key(x->e, HF__ETCD_KEY_BROKEN, x->name, x->lease, &x->broken);
    hf__etcd_slot_key(x->e, x->lease, &x->slot);
    hf__etcd_mark_key(x->e, HF__ETCD_KEY_OPENED, x->name, x->lease, &x->opened);
}

/* What it has left open of the value, if it has, or if it cannot be known: see value.c. */
static void close_value(const struct leaving *x, struct hf__etcd_txn *t)
{
    if (x->known.joined == 0 || x->known.opened.asked)
        hf__etcd_delete(t, &x->opened);
}

static void delete_all(const struct leaving *x, struct hf__etcd_txn *t)
{
    hf__etcd_delete(t, &x->found.place);
    hf__etcd_delete(t, &x->inside);
    hf__etcd_delete(t, &x->slot);
    close_value(x, t);
}

static void write_leave(const struct leaving *x, struct hf__etcd_txn *t)
{
    hf__etcd_compare(t, &x->found.place, x->found.joined);
    hf__etcd_compare_above(t, &x->inside, NULL, 0);
    if (!x->withdraw)
        hf__etcd_compare(t, &x->broken, 0);
    delete_all(x, t);
    hf__etcd_otherwise(t);
    hf__etcd_nest(t);
    if (!x->withdraw)
        hf__etcd_compare(t, &x->broken, 0);
    hf__etcd_compare_above(t, &x->found.place, NULL, 0);
    delete_all(x, t);
    hf__etcd_unnest(t);
    hf__etcd_get(t, &x->broken);
}

/* Where its place is. 1: it lingers and is not ours to touch. */
static int locate(struct leaving *x)
{
    if (hf__etcd_bid_get(x->e, &x->bid->ticket, NULL, &x->known))
        x->lease = x->known.lease;
    if (x->known.joined != 0) {
        x->found.there = true;
        x->found.mode = x->known.mode;
        x->found.joined = x->known.joined;
        hf__etcd_place_key(x->e, x->name, x->known.mode, x->lease, &x->found.place);
        set_marks(x);
        return 0;
    }
    int r = hf__etcd_find(x->e, x->name, &x->bid->ticket, x->deadline_ns, &x->found, x->err);
    if (r == 0 && x->found.there)
        x->lease = x->found.named;
    set_marks(x);
    return r < 0 || !x->found.there || x->withdraw ? r : lingers(x);
}

/* Lets in the next one, if `hand_over`. Whoever watches the slot and is not let in is called by its
 * deletion. */
static int release_known(struct leaving *x, bool hand_over, bool *ret_done, bool *ret_had_place)
{
    const struct hf__etcd_next *next = &x->known.next;
    struct hf__etcd_key *key = malloc(sizeof *key);
    struct hf__etcd_txn t = {.incomplete = key == NULL, .once = true};
    struct hf__etcd_answer answer;

    hf__etcd_compare_put(&t, &x->inside, x->known.marked);
    if (hand_over && key != NULL) {
        hf__etcd_place_key(x->e, x->name, HF_EXCLUSIVE, next->lease, key);
        hf__etcd_compare(&t, key, next->joined);
    }
    hf__etcd_delete(&t, &x->found.place);
    hf__etcd_delete(&t, &x->inside);
    if (hand_over && key != NULL) {
        hf__etcd_mark_key(x->e, HF__ETCD_KEY_INSIDE, x->name, next->lease, key);
        hf__etcd_put(&t, key, "", next->lease);
    } else if (x->known.mode == HF_EXCLUSIVE) {
        hf__etcd_delete(&t, &x->slot);
    }
    close_value(x, &t);
    free(key);
    int r = hf__etcd_commit(x->e, &t, x->deadline_ns, &answer, x->err);
    *ret_done = r == 0 && answer.succeeded;
    *ret_had_place = hf__etcd_nth(&answer, 0).deleted > 0;
    hf__etcd_answer_clear(&answer);
    /* The next one is there and has no lease: it is inside, for ever. */
    return hand_over && r == HF_NOT_FOUND ? 0 : r;
}

/* What is usual, in few words: see questions.c. Its lease holds nothing any more: it is kept for the
 * next bid, or its end is not awaited. 1: it has a verdict. A hand-over that was refused because the
 * server is full may have been applied: then the release finds nothing, and whoever asks again learns
 * that it is over. */
static int leave_quickly(struct leaving *x, struct hf__answer *ret)
{
    bool done = false, had_place = false;
    int r = 0;

    if (hf__etcd_can_hand_over(&x->known))
        r = release_known(x, true, &done, &had_place);
    bool full = r == HF_FULL;
    if (full || (r == 0 && !done))
        r = release_known(x, false, &done, &had_place);
    if (r == 0 && !done && full)
        return hf__fail(x->err, HF_UNKNOWN,
                        "etcd: the store is full, and was it before: not known");
    if (r < 0 || !done)
        return r;
    hf__etcd_bid_retire(x->e, x->bid, 0);
    hf__etcd_lease_keep(x->e, &x->known);
    ret->verdict = had_place ? HF__VERDICT_DONE : HF__VERDICT_STALE;
    return 1;
}

/* The lock is to stay closed for some time more: place and mark are put on a lease of that length,
 * beside a mark that it is broken, so that nobody renews it. So it looks like a lock-delay, and ends
 * like one: by itself, or by a break --now. The time counts from when we knew that we were let in, which
 * was later than it happened; who took the lock over counts all of it. */
static int stay_closed(struct leaving *x, bool *ret_closed)
{
    struct hf__etcd_answer answer;
    int64_t now_ns = hf__now_ns(x->e->base.host->env), lease = 0, given_s;
    int64_t since_ns = x->known.inside_ns != 0 ? x->known.inside_ns : now_ns;
    int64_t rest_ms = x->at_least_ms - (now_ns - since_ns) / HF__NS_PER_MS;

    if (rest_ms <= 0)
        return 0;
    int r =
        hf__etcd_lease_new(x->e, (rest_ms + 999) / 1000, x->deadline_ns, &lease, &given_s, x->err);
    if (r < 0)
        return r;
    struct hf__etcd_txn t = {.once = true};
    hf__etcd_compare(&t, &x->found.place, x->found.joined);
    hf__etcd_compare_above(&t, &x->inside, NULL, 0);
    hf__etcd_compare(&t, &x->broken, 0);
    hf__etcd_put_again(&t, &x->found.place, lease);
    hf__etcd_put_again(&t, &x->inside, lease);
    hf__etcd_put(&t, &x->broken, "", lease);
    hf__etcd_delete(&t, &x->slot);
    close_value(x, &t);
    r = hf__etcd_commit(x->e, &t, x->deadline_ns, &answer, x->err);
    *ret_closed = r == 0 && answer.succeeded;
    hf__etcd_answer_clear(&answer);
    if (r == 0 && !*ret_closed) /* it was lost before: nothing hangs on it */
        hf__etcd_lease_revoke(x->e, lease, x->deadline_ns, NULL);
    return r;
}

static int leave(struct leaving *x, struct hf__answer *ret)
{
    ret->verdict = HF__VERDICT_STALE;
    int r = locate(x);
    if (r != 0)
        return r < 0 ? r : 0;
    if (x->known.generation != 0 && x->retire_ms == 0 && x->at_least_ms == 0 && !x->withdraw &&
        (r = leave_quickly(x, ret)) != 0)
        return r < 0 ? r : 0;
    if (x->retire_ms > 0 && (r = put_tombstone(x)) < 0)
        return r;
    bool closed = false;
    if (x->at_least_ms > 0 && x->found.there && (r = stay_closed(x, &closed)) < 0)
        return r;
    if (closed) {
        ret->verdict = HF__VERDICT_DONE;
        hf__etcd_bid_retire(x->e, x->bid, x->retire_ms);
        /* Its number is in the names of keys that stay: it must not serve another bid. */
        hf__etcd_lease_revoke(x->e, x->lease, x->deadline_ns, NULL);
        return 0;
    }
    bool stays = false;
    if (x->found.there) {
        struct hf__etcd_txn t = {.once = !x->withdraw};
        struct hf__etcd_answer answer;
        write_leave(x, &t);
        r = hf__etcd_commit(x->e, &t, x->deadline_ns, &answer, x->err);
        if (r < 0)
            return r;
        bool waited = !answer.succeeded && hf__etcd_nth(&answer, 0).succeeded;
        stays = !answer.succeeded && !x->withdraw && hf__etcd_first(&answer, 1) != NULL;
        if (answer.succeeded || (waited && x->withdraw))
            ret->verdict = HF__VERDICT_DONE;
        hf__etcd_answer_clear(&answer);
    }
    hf__etcd_bid_retire(x->e, x->bid, x->retire_ms);
    /* The places are gone, and that is what was asked for: a lease that stays runs out by itself.
     */
    if (!stays && x->lease != 0)
        hf__etcd_lease_revoke(x->e, x->lease, x->deadline_ns, NULL);
    return 0;
}

int hf__etcd_leave(struct hf__store *store, const struct hf__operation *op, int64_t deadline_ns,
                   struct hf__answer *ret_answer, hf_error *err)
{
    struct leaving *x = calloc(1, sizeof *x);

    if (x == NULL)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    *x = (struct leaving){.e = (struct hf__etcd *)store,
                          .bid = op->bid,
                          .name = {op->bid->name, op->bid->name_len},
                          .deadline_ns = deadline_ns,
                          .retire_ms = op->retire_ms,
                          .at_least_ms = op->kind == HF__OPERATION_RELEASE ? op->at_least_ms : 0,
                          .withdraw = op->kind == HF__OPERATION_WITHDRAW,
                          .err = err};
    int r = hf__etcd_full(leave(x, ret_answer), err);
    free(x);
    return r;
}
