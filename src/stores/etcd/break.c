/* Breaking a lock by its ticket: see leave.c for what a broken lock is.
 *
 *   waits                          its place is deleted and its lease revoked: it bids anew
 *   inside, with a lease           put broken: nobody renews it any more, it opens when it is over;
 *                                  and put inside once more: a release finds that it has changed
 *   inside, never expires          as with --now
 *   --now, without a lock-delay    deleted
 *   --now, with one                put again on a lease as long as the delay, and put broken
 *   lingers, --now                 deleted
 *   a stranger's, with a lease     it knows no marks: --now deletes its key, else it stays
 *
 * Whatever it is, a mark is put: the client that is concerned watches for marks, and asks. Whoever
 * watches its slot is called by its deletion. */
#include <stdlib.h>

#include "stores/etcd/etcd.h"

#include "base/banned.h"

#define CALL_S 5 /* a mark that only calls */

struct breach {
    struct hf__etcd *e;
    struct hf__etcd_found found;
    struct hf__etcd_key inside, broken, slot;
    bool lingers, deleted;
    int64_t deadline_ns;
    hf_error *err;
};

/* Only if it is still the same place, and the same grant. */
static struct hf__etcd_txn begin(const struct breach *b)
{
    struct hf__etcd_txn t = {0};

    hf__etcd_compare(&t, &b->found.place, b->found.joined);
    if (b->found.ours && b->found.generation != 0)
        hf__etcd_compare(&t, &b->inside, b->found.generation);
    return t;
}

static int apply(struct breach *b, struct hf__etcd_txn *t, bool *ret_done)
{
    struct hf__etcd_answer answer;
    int r = hf__etcd_commit(b->e, t, b->deadline_ns, &answer, b->err);

    *ret_done = r == 0 && answer.succeeded;
    hf__etcd_answer_clear(&answer);
    return r;
}

static int new_lease(struct breach *b, int64_t seconds, int64_t *ret_lease)
{
    int64_t given_s;

    return hf__etcd_lease_new(b->e, seconds, b->deadline_ns, ret_lease, &given_s, b->err);
}

/* The mark is put for its client, which watches for it, and goes with the lease; where there is
 * none any more, on one of its own. */
static int delete_it(struct breach *b, bool *ret_done)
{
    int64_t lease = b->found.lease;
    int r = b->found.ours && lease == 0 ? new_lease(b, CALL_S, &lease) : 0;
    struct hf__etcd_txn t = begin(b);

    hf__etcd_delete(&t, &b->found.place);
    hf__etcd_delete(&t, &b->inside);
    hf__etcd_delete(&t, &b->slot);
    if (b->found.ours && r == 0)
        hf__etcd_put(&t, &b->broken, "", lease);
    b->deleted = true;
    return apply(b, &t, ret_done);
}

static int mark_it(struct breach *b, bool *ret_done)
{
    struct hf__etcd_txn t = begin(b);

    hf__etcd_put(&t, &b->broken, "", b->found.lease);
    hf__etcd_put_again(&t, &b->inside, b->found.lease);
    return apply(b, &t, ret_done);
}

/* The mark holds the delay's lease too, by which inspect and a second --now know it. */
static int close_for_delay(struct breach *b, bool *ret_done)
{
    int64_t lease = 0;
    int r = new_lease(b, (b->found.delay_ms + 999) / 1000, &lease);

    if (r < 0)
        return r;
    struct hf__etcd_txn t = begin(b);
    hf__etcd_put_again(&t, &b->found.place, lease);
    hf__etcd_put_again(&t, &b->inside, lease);
    hf__etcd_delete(&t, &b->slot);
    hf__etcd_put(&t, &b->broken, "", lease);
    return apply(b, &t, ret_done);
}

static int decide(struct breach *b, bool now, bool *ret_done)
{
    const struct hf__etcd_found *f = &b->found;

    if (f->generation == 0)
        return delete_it(b, ret_done);
    if (b->lingers || f->broken) {
        *ret_done = true;
        return now || f->lease == 0 ? delete_it(b, ret_done) : 0;
    }
    if (!f->ours && !now && f->lease != 0)
        return hf__fail(b->err, HF_UNSUPPORTED,
                        "another client holds it and cannot be asked to leave; break it now, or "
                        "wait until its lease ends");
    if (f->ours && !now && f->lease != 0 && f->ttl_ms != HF__NEVER)
        return mark_it(b, ret_done);
    return f->delay_ms > 0 ? close_for_delay(b, ret_done) : delete_it(b, ret_done);
}

static int look_up(struct breach *b, const struct hf__bid *bid)
{
    struct hf__etcd_life life;
    struct hf__etcd_name name = {bid->name, bid->name_len};
    int r = hf__etcd_find(b->e, name, &bid->ticket, b->deadline_ns, &b->found, b->err);

    if (r < 0 || !b->found.there)
        return r;
    hf__etcd_mark_key(b->e, HF__ETCD_KEY_INSIDE, name, b->found.named, &b->inside);
    hf__etcd_mark_key(b->e, HF__ETCD_KEY_BROKEN, name, b->found.named, &b->broken);
    hf__etcd_slot_key(b->e, b->found.named, &b->slot);
    if (b->found.delay_ms == 0 || b->found.lease == 0)
        return 0;
    r = hf__etcd_lease_life(b->e, b->found.lease, b->deadline_ns, &life, b->err);
    if (r == 0)
        b->lingers = hf__etcd_lingers(&life, b->found.ttl_ms, b->found.delay_ms);
    return r == HF_NOT_FOUND ? 0 : r;
}

int hf__etcd_break(struct hf__store *store, const struct hf__bid *bid, bool now,
                   int64_t deadline_ns, struct hf__answer *ret_answer, hf_error *err)
{
    struct breach *b = calloc(1, sizeof *b);
    bool done = false;

    if (b == NULL)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    b->e = (struct hf__etcd *)store;
    b->deadline_ns = deadline_ns;
    b->err = err;
    int r = look_up(b, bid);
    if (r == 0 && b->found.there)
        r = decide(b, now, &done);
    if (r == HF_NOT_FOUND) /* its lease ended meanwhile, and it with it */
        r = 0;
    /* Its lease goes with it: a late transaction of this ticket must find none. A stranger may have
     * other keys on its own. */
    if (r == 0 && done && b->deleted && b->found.ours && b->found.lease != 0)
        hf__etcd_lease_revoke(b->e, b->found.lease, deadline_ns, NULL);
    ret_answer->verdict = done ? HF__VERDICT_DONE : HF__VERDICT_STALE;
    free(b);
    return hf__etcd_full(r, err);
}
