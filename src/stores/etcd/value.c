/* The value of a lock (C15): a key without a lease, which only the live exclusive holder writes.
 *
 *   read    if      our mark is that of our grant, and nobody has broken it
 *           then    put opened/<name>/<our lease>; get the value, and all below opened/<name>/
 *
 *   write   if      the same, and the value was last put when we think it was
 *           then    put the value, with the token and the number of this write; put our key below
 *                   opened/, and delete all others
 *
 * A reader of a shared lock and whoever reads without holding puts nothing.
 *
 * Nobody tells us that a holder's lease has run out. So a holder that has opened the value leaves a key
 * that is on no lease, and its release deletes it in the step in which it leaves (leave.c). One that
 * is still there although its holder is not inside is of somebody who vanished or was broken: the value
 * is in doubt until the next write. Such keys are of different leases, so one who only reads does not
 * take the doubt away with its own.
 *
 * A write compares the revision of the value, so one that the network delivers late finds another
 * revision and does nothing. What is read there first, the token and the number of the last write, is
 * remembered: the next write of this holder is one request. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "stores/etcd/etcd.h"

#include "base/banned.h"

#define TRIES  8  /* of a write, if other writes of this holder come between */
#define OTHERS 64 /* keys below opened/ that one write deletes; more are of as many who vanished */
#define HEADER 80

struct access {
    struct hf__etcd *e;
    const struct hf__operation *op;
    int64_t lease, deadline_ns;
    hf_mode mode;
    struct hf__etcd_opened opened;
    struct hf__etcd_key inside, broken, own, value, from, to; /* from, to: all below opened/ */
    hf_error *err;
};

/* What stands in the value's key. False: nothing that we have written. */
static bool parse(const struct hf__etcd_kv *kv, struct hf__value *ret)
{
    struct hf__etcd_record record;
    const char *line_end = kv != NULL ? memchr(kv->value.data, '\n', kv->value.len) : NULL;

    *ret = (struct hf__value){0};
    if (kv == NULL)
        return true;
    if (line_end == NULL)
        return false;
    size_t header_len = (size_t)(line_end - kv->value.data);
    bool well = hf__etcd_record_read((struct hf__slice){kv->value.data, header_len}, &record);
    ret->generation = (uint64_t)hf__etcd_record_number(&record, "generation");
    ret->order = (uint64_t)hf__etcd_record_number(&record, "order");
    hf__etcd_record_clear(&record);
    ret->len = kv->value.len - header_len - 1;
    if (!well || ret->len > sizeof ret->bytes)
        return false;
    memcpy(ret->bytes, line_end + 1, ret->len);
    return true;
}

static int corrupt(const struct access *x)
{
    return hf__fail(x->err, HF_CORRUPT, "etcd: what stands in the place of the value is none");
}

/* Which lease and mode our grant has. 1: there is no such grant any more. */
static int locate(struct access *x)
{
    const struct hf__bid *bid = x->op->bid;
    struct hf__etcd_name name = {bid->name, bid->name_len};
    struct hf__etcd_bid known;
    struct hf__etcd_life life;
    int r = 0;

    if (hf__etcd_bid_get(x->e, &bid->ticket, NULL, &known) && known.joined != 0) {
        int64_t age_ns = hf__now_ns(x->e->base.host->env) - known.proved_ns;
        bool over = known.ttl_ms != HF__NEVER && age_ns >= known.ttl_ms * HF__NS_PER_MS;
        x->lease = known.lease;
        x->mode = known.mode;
        x->opened = known.opened;
        r = known.retired || over ? 1 : 0;
    } else { /* somebody else's bid, which was taken over */
        struct hf__etcd_found *f = malloc(sizeof *f);
        if (f == NULL)
            return hf__fail(x->err, HF_NO_MEMORY, NULL);
        r = hf__etcd_find(x->e, name, &bid->ticket, x->deadline_ns, f, x->err);
        if (r == 0 && (!f->there || f->broken || f->generation != x->op->generation))
            r = 1;
        if (r == 0 && f->delay_ms > 0 && f->lease != 0) {
            r = hf__etcd_lease_life(x->e, f->lease, x->deadline_ns, &life, x->err);
            if (r == HF_NOT_FOUND || (r == 0 && hf__etcd_lingers(&life, f->ttl_ms, f->delay_ms)))
                r = 1;
        }
        x->lease = f->named;
        x->mode = f->mode;
        free(f);
    }
    hf__etcd_mark_key(x->e, HF__ETCD_KEY_INSIDE, name, x->lease, &x->inside);
    hf__etcd_mark_key(x->e, HF__ETCD_KEY_BROKEN, name, x->lease, &x->broken);
    hf__etcd_mark_key(x->e, HF__ETCD_KEY_OPENED, name, x->lease, &x->own);
    return r;
}

/* Whether one of these keys is of a holder that did not say good-bye. `marks` and `broken` NULL: all are
 * but our own, for we are the holder. */
static bool in_doubt(const struct access *x, struct hf__etcd_result opened,
                     const struct hf__etcd_result *marks, const struct hf__etcd_result *broken)
{
    for (size_t i = 0; i < opened.count; i++) {
        int64_t lease = hf__etcd_lease_in(opened.kvs[i].key);
        bool inside = marks == NULL && lease == x->lease;
        for (size_t k = 0; marks != NULL && k < marks->count; k++)
            inside |= hf__etcd_lease_in(marks->kvs[k].key) == lease;
        for (size_t k = 0; broken != NULL && k < broken->count; k++)
            inside &= hf__etcd_lease_in(broken->kvs[k].key) != lease;
        if (!inside)
            return true;
    }
    return false;
}

static int read_as_holder(struct access *x, struct hf__answer *ret)
{
    bool opens = x->mode == HF_EXCLUSIVE && !x->opened.done;
    struct hf__etcd_txn t = {0};
    struct hf__etcd_answer answer;

    hf__etcd_compare(&t, &x->inside, x->op->generation);
    hf__etcd_compare(&t, &x->broken, 0);
    if (opens) { /* known before it is sent: the release must delete it, if it may be there */
        hf__etcd_put(&t, &x->own, "", 0);
        x->opened.asked = true;
        hf__etcd_bid_set_opened(x->e, &x->op->bid->ticket, &x->opened);
    }
    hf__etcd_get(&t, &x->value);
    hf__etcd_range(&t, &(struct hf__etcd_range){.from = &x->from, .to = &x->to});
    int r = hf__etcd_full(hf__etcd_commit(x->e, &t, x->deadline_ns, &answer, x->err), x->err);
    if (r == 0 && answer.succeeded) {
        const struct hf__etcd_kv *kv = hf__etcd_first(&answer, opens);
        if (!parse(kv, x->op->value))
            r = corrupt(x);
        x->op->value->doubt = in_doubt(x, hf__etcd_nth(&answer, opens + 1u), NULL, NULL);
        x->opened.done |= opens;
        x->opened.known = r == 0 && !x->op->value->doubt;
        x->opened.put = kv != NULL ? kv->put : 0;
        x->opened.order = x->op->value->generation == x->op->generation ? x->op->value->order : 0;
        hf__etcd_bid_set_opened(x->e, &x->op->bid->ticket, &x->opened);
    }
    if (r == 0)
        ret->verdict = answer.succeeded ? HF__VERDICT_DONE : HF__VERDICT_GONE;
    hf__etcd_answer_clear(&answer);
    return r;
}

static int read_as_anybody(struct access *x, struct hf__answer *ret)
{
    struct hf__etcd_name name = {x->op->bid->name, x->op->bid->name_len};
    struct hf__etcd_txn t = {0};
    struct hf__etcd_answer answer;

    hf__etcd_get(&t, &x->value);
    hf__etcd_range(&t, &(struct hf__etcd_range){.from = &x->from, .to = &x->to});
    for (int kind = HF__ETCD_KEY_INSIDE; kind <= HF__ETCD_KEY_BROKEN; kind++) {
        hf__etcd_root(x->e, (enum hf__etcd_key_kind)kind, name, true, &x->inside);
        hf__etcd_end_of(&x->inside, &x->broken);
        hf__etcd_range(&t, &(struct hf__etcd_range){.from = &x->inside, .to = &x->broken});
    }
    int r = hf__etcd_commit(x->e, &t, x->deadline_ns, &answer, x->err);
    if (r == 0 && !parse(hf__etcd_first(&answer, 0), x->op->value))
        r = corrupt(x);
    if (r == 0) {
        struct hf__etcd_result marks = hf__etcd_nth(&answer, 2), broken = hf__etcd_nth(&answer, 3);
        x->op->value->doubt = in_doubt(x, hf__etcd_nth(&answer, 1), &marks, &broken);
        ret->verdict = HF__VERDICT_DONE;
    }
    hf__etcd_answer_clear(&answer);
    return r;
}

/* Writes if nothing has changed since `x->opened` was learnt. 1: something has. */
static int try_write(struct access *x, const struct hf__etcd_result *others, struct hf__answer *ret)
{
    const struct hf__value *value = x->op->value;
    struct hf__etcd_key *other = malloc(sizeof *other);
    struct hf__etcd_txn t = {.incomplete = other == NULL};
    struct hf__etcd_answer answer;
    struct hf__buffer bytes = {0};
    char header[HEADER];

    snprintf(header, sizeof header, "{\"generation\":\"%" PRIu64 "\",\"order\":\"%" PRIu64 "\"}\n",
             x->op->generation, value->order);
    hf__buffer_add(&bytes, header, strlen(header));
    hf__buffer_add(&bytes, value->bytes, value->len);
    t.incomplete |= bytes.failed;
    hf__etcd_compare(&t, &x->inside, x->op->generation);
    hf__etcd_compare(&t, &x->broken, 0);
    hf__etcd_compare_put(&t, &x->value, x->opened.put);
    hf__etcd_put_bytes(&t, &x->value, (struct hf__slice){bytes.data, bytes.len}, 0);
    if (!x->opened.done) {
        hf__etcd_put(&t, &x->own, "", 0);
        x->opened.asked = true;
        hf__etcd_bid_set_opened(x->e, &x->op->bid->ticket, &x->opened);
    }
    for (size_t i = 0; others != NULL && other != NULL && i < others->count && i < OTHERS; i++) {
        if (others->kvs[i].key.len > sizeof other->bytes ||
            hf__etcd_is_key(others->kvs[i].key, &x->own))
            continue;
        other->len = others->kvs[i].key.len;
        memcpy(other->bytes, others->kvs[i].key.data, other->len);
        hf__etcd_delete(&t, other);
    }
    hf__etcd_otherwise(&t);
    hf__etcd_get(&t, &x->inside);
    hf__etcd_get(&t, &x->broken);
    free(other);
    int r = hf__etcd_full(hf__etcd_commit(x->e, &t, x->deadline_ns, &answer, x->err), x->err);
    hf__buffer_clear(&bytes);
    if (r == 0 && answer.succeeded) {
        x->opened.done = x->opened.known = true;
        x->opened.put = answer.revision;
        x->opened.order = value->order;
        ret->verdict = HF__VERDICT_DONE;
    } else if (r == 0) {
        const struct hf__etcd_kv *mark = hf__etcd_first(&answer, 0);
        bool holds = mark != NULL && mark->created == x->op->generation &&
                     hf__etcd_first(&answer, 1) == NULL;
        x->opened.known = false;
        ret->verdict = HF__VERDICT_GONE;
        r = holds;
    }
    hf__etcd_bid_set_opened(x->e, &x->op->bid->ticket, &x->opened);
    hf__etcd_answer_clear(&answer);
    return r;
}

static int write_as_holder(struct access *x, struct hf__answer *ret)
{
    int r = 1;

    for (int i = 0; r == 1 && i < TRIES; i++) {
        struct hf__etcd_result others = {0};
        struct hf__etcd_answer answer = {0};
        if (!x->opened.known) {
            struct hf__etcd_txn t = {0};
            struct hf__value *there = malloc(sizeof *there);
            if (there == NULL)
                return hf__fail(x->err, HF_NO_MEMORY, NULL);
            hf__etcd_get(&t, &x->value);
            hf__etcd_range(&t, &(struct hf__etcd_range){.from = &x->from, .to = &x->to});
            r = hf__etcd_commit(x->e, &t, x->deadline_ns, &answer, x->err);
            const struct hf__etcd_kv *kv = r == 0 ? hf__etcd_first(&answer, 0) : NULL;
            if (r == 0 && !parse(kv, there))
                r = corrupt(x);
            if (r == 0) {
                others = hf__etcd_nth(&answer, 1);
                x->opened.put = kv != NULL ? kv->put : 0;
                x->opened.order = there->generation == x->op->generation  ? there->order
                                  : there->generation > x->op->generation ? UINT64_MAX
                                                                          : 0;
            }
            free(there);
        } else {
            r = 0;
        }
        if (r == 0 && x->opened.order > x->op->value->order) {
            ret->verdict = HF__VERDICT_STALE;
        } else if (r == 0) {
            r = try_write(x, &others, ret);
        }
        hf__etcd_answer_clear(&answer);
    }
    return r == 1 ? hf__fail(x->err, HF_UNAVAILABLE, "etcd: it is written to too often") : r;
}

int hf__etcd_value(struct hf__store *store, const struct hf__operation *op, int64_t deadline_ns,
                   struct hf__answer *ret_answer, hf_error *err)
{
    struct hf__etcd_name name = {op->bid->name, op->bid->name_len};
    struct access *x = calloc(1, sizeof *x);
    int r = 0;

    if (x == NULL)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    x->e = (struct hf__etcd *)store;
    x->op = op;
    x->deadline_ns = deadline_ns;
    x->err = err;
    hf__etcd_root(x->e, HF__ETCD_KEY_VALUE, name, true, &x->value);
    hf__etcd_root(x->e, HF__ETCD_KEY_OPENED, name, true, &x->from);
    hf__etcd_end_of(&x->from, &x->to);
    ret_answer->verdict = HF__VERDICT_GONE;
    if (op->generation != 0)
        r = locate(x);
    if (r == 0 && op->kind == HF__OPERATION_READ)
        r = op->generation != 0 ? read_as_holder(x, ret_answer) : read_as_anybody(x, ret_answer);
    else if (r == 0 && op->generation != 0 && x->mode == HF_EXCLUSIVE)
        r = write_as_holder(x, ret_answer);
    free(x);
    return r == 1 ? 0 : r;
}
