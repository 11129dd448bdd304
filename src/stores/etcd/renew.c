/* Signs of life, in two steps for a whole batch:
 *
 *   one call of LeaseKeepAlive, a stream, which carries all their leases;
 *   then one transaction for up to CHECKED of them, which reads place, inside and broken of each.
 *
 * The second step is the proof: servers before 3.4.38 and 3.5.23 renew a lease that was revoked,
 * and a key can be gone while its lease lives. So n locks cost 1 + n/CHECKED requests.
 *
 * Whoever waits at the slot of another (see handover.c) also looks at that one's place: somebody may
 * have deleted it by hand.
 *
 * Two kinds of grants are claimed, by the first renewal that names their generation. The mark of one
 * that was handed over is put once more, by its own client. A lock that never expires is let in with a
 * lease like any other: place and mark are put again without one, and from then on only a
 * release or a break ends it. This is the one time a place is put again (but for break --now with a
 * lock-delay). */
#include <stdlib.h>

#include "stores/etcd/etcd.h"

#include "base/banned.h"

#define CHECKED 32 /* four reads each at most; a server takes 128 by default */

struct sign {
    struct hf__renewal *item;
    struct hf__etcd_bid known; /* of another client's ticket: what was found */
    bool mine, skip;           /* skip: the answer is known already */
    int64_t lease, behind;     /* of the one whose slot it watches; 0: none */
};

struct batch {
    struct hf__etcd *e;
    struct sign *signs;
    size_t count;
    int64_t deadline_ns;
    hf_error *err;
};

static struct hf__etcd_name name_of(const struct sign *s)
{
    return (struct hf__etcd_name){s->item->name, s->item->name_len};
}

static void answer_lost(struct sign *s)
{
    s->item->answer.verdict = HF__VERDICT_GONE;
    s->skip = true;
}

/* Somebody else's bid: what it is must be read first. */
static int look_up(struct batch *b, struct sign *s)
{
    struct hf__etcd_found *f = malloc(sizeof *f);
    struct hf__etcd_life life;

    if (f == NULL)
        return hf__fail(b->err, HF_NO_MEMORY, NULL);
    int r = hf__etcd_find(b->e, name_of(s), &s->item->ticket, b->deadline_ns, f, b->err);
    if (r == 0 && (!f->there || f->broken)) {
        answer_lost(s);
    } else if (r == 0) {
        s->known = (struct hf__etcd_bid){.ticket = s->item->ticket,
                                         .mode = f->mode,
                                         .ttl_ms = f->ttl_ms,
                                         .delay_ms = f->delay_ms,
                                         .tells = f->tells,
                                         .joined = f->joined,
                                         .generation = f->generation};
        s->known.lease = f->named;
        s->lease = f->lease;
        if (f->lease != 0 && f->delay_ms > 0 && f->generation != 0) {
            r = hf__etcd_lease_life(b->e, f->lease, b->deadline_ns, &life, b->err);
            if (r == HF_NOT_FOUND || (r == 0 && hf__etcd_lingers(&life, f->ttl_ms, f->delay_ms))) {
                answer_lost(s);
                r = 0;
            }
        }
    }
    free(f);
    return r;
}

static bool needs_lease(const struct sign *s)
{
    return !s->skip && s->lease != 0 && !s->known.lease_dropped;
}

static int keep_alive(struct batch *b)
{
    int64_t *leases = calloc(b->count, sizeof *leases);
    bool *alive = calloc(b->count, sizeof *alive);
    size_t count = 0, at = 0;
    int r = leases == NULL || alive == NULL ? hf__fail(b->err, HF_NO_MEMORY, NULL) : 0;

    for (size_t i = 0; r == 0 && i < b->count; i++) {
        if (needs_lease(&b->signs[i]))
            leases[count++] = b->signs[i].lease;
    }
    if (count > 0)
        r = hf__etcd_lease_renew_all(b->e, leases, count, b->deadline_ns, alive, b->err);
    for (size_t i = 0; r == 0 && i < b->count; i++) {
        struct sign *s = &b->signs[i];
        if (!needs_lease(s))
            continue;
        /* One that never expires may have dropped it, and the answer was lost: look at the place.
         */
        if (!alive[at++] && s->known.ttl_ms != HF__NEVER)
            answer_lost(s);
    }
    free(leases);
    free(alive);
    return r;
}

static int look_at_keys(struct batch *b, const struct sign *s, size_t count,
                        struct hf__etcd_answer *ret_answer)
{
    struct hf__etcd_key *key = malloc(sizeof *key);
    struct hf__etcd_txn t = {.incomplete = key == NULL};

    for (size_t i = 0; key != NULL && i < count; i++) {
        if (s[i].skip)
            continue;
        int64_t lease = s[i].known.lease;
        hf__etcd_place_key(b->e, name_of(&s[i]), s[i].known.mode, lease, key);
        hf__etcd_get(&t, key);
        hf__etcd_mark_key(b->e, HF__ETCD_KEY_INSIDE, name_of(&s[i]), lease, key);
        hf__etcd_get(&t, key);
        hf__etcd_mark_key(b->e, HF__ETCD_KEY_BROKEN, name_of(&s[i]), lease, key);
        hf__etcd_get(&t, key);
        if (s[i].behind == 0)
            continue;
        hf__etcd_place_key(b->e, name_of(&s[i]), HF_EXCLUSIVE, s[i].behind, key);
        hf__etcd_get(&t, key);
    }
    free(key);
    return hf__etcd_commit(b->e, &t, b->deadline_ns, ret_answer, b->err);
}

static void answer_granted(struct sign *s, bool claimed)
{
    struct hf__answer *a = &s->item->answer;

    a->verdict = HF__VERDICT_GRANTED;
    a->generation = s->known.generation;
    a->claimed = claimed;
    a->lease_ms = claimed ? s->known.ttl_ms : hf__provisional_lease_ms(s->known.ttl_ms);
}

/* Its bidder knows of it. */
static int claim(struct batch *b, struct sign *s)
{
    struct hf__etcd_key *keys = calloc(3, sizeof *keys);
    struct hf__etcd_txn t = {.incomplete = keys == NULL};
    struct hf__etcd_answer answer;
    int64_t lease = s->known.lease;
    char value[HF__ETCD_MARK_VALUE];

    hf__etcd_mark_value(b->e, value);
    hf__etcd_unwatch(b->e, &s->item->ticket); /* what was watched for has happened */
    if (keys != NULL) {
        hf__etcd_place_key(b->e, name_of(s), s->known.mode, lease, &keys[0]);
        hf__etcd_mark_key(b->e, HF__ETCD_KEY_INSIDE, name_of(s), lease, &keys[1]);
        hf__etcd_mark_key(b->e, HF__ETCD_KEY_BROKEN, name_of(s), lease, &keys[2]);
        hf__etcd_compare(&t, &keys[0], s->known.joined);
        hf__etcd_compare(&t, &keys[1], s->known.generation);
        hf__etcd_compare(&t, &keys[2], 0);
        if (s->known.ttl_ms == HF__NEVER)
            hf__etcd_put_again(&t, &keys[0], 0);
        if (s->known.handed) /* the first value that it gets: since when it is held */
            hf__etcd_put(&t, &keys[1], value, s->known.ttl_ms == HF__NEVER ? 0 : s->lease);
        else
            hf__etcd_put_again(&t, &keys[1], s->known.ttl_ms == HF__NEVER ? 0 : s->lease);
    }
    int r = hf__etcd_commit(b->e, &t, b->deadline_ns, &answer, b->err);
    bool done = r == 0 && answer.succeeded;
    if (done) {
        s->known.marked = answer.revision;
        answer_granted(s, true);
    } else if (r == 0) {
        answer_lost(s);
    }
    s->known.handed &= !done;
    if (done && s->known.ttl_ms == HF__NEVER) {
        s->known.lease_dropped = true;
        hf__etcd_lease_revoke(b->e, lease, b->deadline_ns, NULL); /* nothing hangs on it any more */
    }
    hf__etcd_answer_clear(&answer);
    free(keys);
    return r;
}

static int begin(struct batch *b, struct sign *s)
{
    const struct hf__etcd_bid *k = &s->known;

    s->mine = hf__etcd_bid_get(b->e, &s->item->ticket, NULL, &s->known) && k->joined != 0;
    if (!s->mine)
        return look_up(b, s);
    s->lease = k->lease;
    if (k->generation == 0)
        s->behind = hf__etcd_behind(b->e, &s->item->ticket);
    if (k->retired) {
        answer_lost(s);
        return 0;
    }
    int64_t age_ns = hf__now_ns(b->e->base.host->env) - k->proved_ns;
    if (k->generation != 0 && k->ttl_ms != HF__NEVER && age_ns >= k->ttl_ms * HF__NS_PER_MS) {
        /* By our own clock it was over before this was sent: nobody believes in it any more. Without
         * a lock-delay it need not wait for the whole seconds of its lease. */
        if (k->delay_ms == 0)
            hf__etcd_lease_revoke(b->e, s->lease, b->deadline_ns, NULL);
        answer_lost(s);
        return 0;
    }
    /* Its lease was shown to be alive a moment ago: the claim is all there is to do, and counts from
     * there. */
    if (k->handed && k->ttl_ms != HF__NEVER && s->item->generation == k->generation &&
        age_ns < hf__provisional_lease_ms(k->ttl_ms) * HF__NS_PER_MS / 3) {
        int r = claim(b, s);
        s->item->answer.sent_ns = k->proved_ns;
        s->skip = true;
        hf__etcd_bid_learn(b->e, &s->known);
        return r;
    }
    return 0;
}

static int conclude(struct batch *b, struct sign *s, const struct hf__etcd_answer *answer,
                    size_t at)
{
    const struct hf__etcd_kv *place = hf__etcd_first(answer, at);
    const struct hf__etcd_kv *mark = hf__etcd_first(answer, at + 1);
    bool broken = hf__etcd_first(answer, at + 2) != NULL;
    bool before = s->behind != 0 && hf__etcd_first(answer, at + 3) != NULL;
    struct hf__renewal *item = s->item;
    uint64_t joined = place != NULL ? place->created : 0;
    uint64_t generation = mark != NULL ? mark->created : 0;
    bool dropped = place != NULL && place->lease == 0;
    bool handed = hf__etcd_is_handed(mark, joined);
    bool claimed = s->known.ttl_ms == HF__NEVER ? dropped : !handed;
    bool alone = generation == 0 && s->behind != 0 && !before; /* it asks */

    if (joined == 0 || joined != s->known.joined || broken || alone ||
        (item->generation != 0 && item->generation != generation)) {
        answer_lost(s);
        return 0;
    }
    s->known.generation = generation;
    s->known.marked = mark != NULL ? mark->put : 0;
    s->known.handed = handed;
    s->known.lease_given = true;
    s->known.lease_dropped = dropped;
    s->known.proved_ns = item->answer.sent_ns;
    int r = 0;
    if (generation == 0) {
        item->answer.verdict = HF__VERDICT_QUEUED;
        item->answer.generation = answer->revision;
        item->answer.lease_ms = hf__provisional_lease_ms(s->known.ttl_ms);
        item->answer.ask_again_ms = hf__own_lease_ms(s->known.ttl_ms);
    } else if (!claimed && item->generation != 0) {
        r = claim(b, s);
    } else {
        answer_granted(s, claimed);
    }
    if (s->mine)
        hf__etcd_bid_learn(b->e, &s->known);
    return r;
}

static int check(struct batch *b, struct sign *s, size_t count)
{
    struct hf__etcd_answer answer;
    size_t at = 0, left = 0;

    for (size_t i = 0; i < count; i++)
        left += !s[i].skip;
    if (left == 0)
        return 0;
    int r = look_at_keys(b, s, count, &answer);
    for (size_t i = 0; r == 0 && i < count; i++) {
        if (s[i].skip)
            continue;
        r = conclude(b, &s[i], &answer, at);
        at += s[i].behind != 0 ? 4 : 3;
    }
    hf__etcd_answer_clear(&answer);
    return r;
}

int hf__etcd_renew(struct hf__store *store, struct hf__renewal *items, size_t count,
                   int64_t deadline_ns, hf_error *err)
{
    struct batch b = {.e = (struct hf__etcd *)store,
                      .signs = calloc(count, sizeof *b.signs),
                      .count = count,
                      .deadline_ns = deadline_ns,
                      .err = err};
    int r = b.signs == NULL ? hf__fail(err, HF_NO_MEMORY, NULL) : 0;

    for (size_t i = 0; r == 0 && i < count; i++) {
        b.signs[i].item = &items[i];
        r = begin(&b, &b.signs[i]);
    }
    if (r == 0)
        r = keep_alive(&b);
    for (size_t i = 0; r == 0 && i < count; i += CHECKED)
        r = check(&b, b.signs + i, count - i < CHECKED ? count - i : CHECKED);
    for (size_t i = 0; r == 0 && i < count; i++) {
        struct sign *s = &b.signs[i];
        if (s->known.tells && items[i].answer.verdict == HF__VERDICT_GRANTED)
            items[i].answer.wanted = hf__etcd_is_wanted(b.e, name_of(s), &s->known, deadline_ns);
    }
    free(b.signs);
    return hf__etcd_full(r, err);
}
