/* Bidding: a lease, a place in the queue, and coming inside. The transactions are in questions.c.
 *
 *      lease --> free? --yes--> inside                (two requests)
 *                  | no           ^
 *                  v              | nobody before us
 *               line up ------> queued --wake-up--> enter
 *                                 `----its time to ask----> look
 *
 * Whoever waits keeps its lease alive every third of its own lease (1 to 10 s). The lease itself is
 * as long as the ttl and the lock-delay, since a key cannot change it without being put again; so
 * the next in line asks the lease of the one before him how long ago it was renewed, and removes a
 * place that was never let in and whose owner is silent for longer than its own lease. A writer that
 * stands behind a writer of ours is let in by its release: see handover.c. */
#include <stdlib.h>

#include "stores/etcd/attempt.h"

#include "base/banned.h"

#define ROUNDS     16 /* questions in one attempt, such as to clear away places of the dead */
#define RECHECK_MS 10000

/* A lease of our own, and alive for long enough to be worth something. 0, HF_NOT_FOUND: it is over,
 * or an error. */
static int see_to_lease(struct hf__etcd_attempt *a, int64_t sent_ns)
{
    struct hf__etcd_bid *known = &a->known;
    int64_t third_ns = hf__provisional_lease_ms(known->ttl_ms) * HF__NS_PER_MS / 3;

    if (known->lease_given && sent_ns - known->proved_ns < third_ns)
        return 0;
    int64_t before_ns = hf__now_ns(a->e->base.host->env);
    int r = known->lease_given
                ? hf__etcd_lease_renew(a->e, a->lease, a->deadline_ns, a->err)
                : hf__etcd_lease_grant(a->e, a->lease,
                                       hf__etcd_lease_seconds(known->ttl_ms, known->delay_ms),
                                       a->deadline_ns, a->err);
    if (r < 0)
        return r;
    /* It may have been given to an earlier request, whose answer was lost. */
    known->proved_ns = known->lease_given ? before_ns : known->asked_ns;
    known->lease_given = true;
    hf__etcd_bid_learn(a->e, known);
    return 0;
}

static int withdrawn(struct hf__etcd_attempt *a, struct hf__answer *ret)
{
    bool lingers = a->known.generation != 0 && a->known.delay_ms > 0;

    hf__etcd_bid_retire(a->e, a->bid, a->bid->retire_ms);
    if (!lingers)
        hf__etcd_lease_revoke(a->e, a->lease, a->deadline_ns, NULL);
    ret->verdict = HF__VERDICT_WITHDRAWN;
    return 0;
}

static int granted(struct hf__etcd_attempt *a, const struct hf__etcd_seen *s,
                   struct hf__answer *ret)
{
    if (s->joined != 0)
        a->known.joined = s->joined;
    if (a->known.joined == 0)
        a->known.joined = s->revision; /* place and mark were put together */
    a->known.generation = s->generation;
    a->known.marked = s->marked;
    a->known.handed = s->handed;
    hf__etcd_bid_learn(a->e, &a->known);
    hf__etcd_unwatch(a->e, &a->bid->ticket);
    ret->verdict = HF__VERDICT_GRANTED;
    ret->generation = s->generation;
    ret->claimed = a->bid->ttl_ms != HF__NEVER && !s->handed;
    ret->lease_ms = ret->claimed ? a->bid->ttl_ms : hf__provisional_lease_ms(a->bid->ttl_ms);
    if (a->known.tells && a->known.joined == s->revision) /* in one step: nobody was there */
        hf__etcd_watch_behind(a->e, a->name, &a->known, s->revision);
    else if (a->known.tells)
        ret->wanted = hf__etcd_is_wanted(a->e, a->name, &a->known, a->deadline_ns);
    /* What keeps the place is the lease, and this is when it was last restarted. */
    if (a->known.proved_ns < ret->sent_ns)
        ret->sent_ns = a->known.proved_ns;
    return 0;
}

/* It was refused for good, and will not be asked again: its lease must not stay, which may be long. A
 * server that is full may have let it in all the same, and looked at its quota afterwards: as long as
 * the lease is not known to be revoked, nobody knows. */
static int refused(struct hf__etcd_attempt *a, int code)
{
    if (code == HF_FULL) {
        if (hf__etcd_lease_revoke(a->e, a->lease, a->deadline_ns, NULL) < 0)
            return hf__etcd_full(code, a->err);
        hf__etcd_bid_retire(a->e, a->bid, a->bid->retire_ms);
    } else if (a->known.joined == 0 && a->known.lease_given) {
        hf__etcd_bid_retire(a->e, a->bid, 0);
        hf__etcd_lease_keep(a->e, &a->known);
    }
    return code;
}

static int queued(struct hf__etcd_attempt *a, const struct hf__etcd_seen *s, struct hf__answer *ret)
{
    ret->verdict = HF__VERDICT_QUEUED;
    ret->generation = s->revision;
    if (a->known.proved_ns < ret->sent_ns) /* likewise: it may be let in without another request */
        ret->sent_ns = a->known.proved_ns;
    ret->lease_ms = hf__provisional_lease_ms(a->bid->ttl_ms);
    int64_t own_ms = hf__own_lease_ms(s->before_ours ? s->before_ttl_ms : RECHECK_MS);
    ret->ask_again_ms = a->ask_again_ms > 0 ? a->ask_again_ms : own_ms + 1000 + HF__ETCD_MARGIN_MS;
    return 0;
}

/* What an answer that was not a grant leads to. */
enum step { OVER, INSIDE, GO_ON, WAIT };

static enum step next_step(struct hf__etcd_attempt *a, const struct hf__etcd_seen *s,
                           enum hf__etcd_question *question)
{
    uint64_t joined = a->known.joined;

    if (*question != HF__ETCD_QUESTION_LOOK && *question != HF__ETCD_QUESTION_LINE_UP) {
        *question = joined == 0 ? HF__ETCD_QUESTION_LINE_UP : HF__ETCD_QUESTION_LOOK;
        return GO_ON;
    }
    if (s->tombstone || s->broken || (s->joined == 0 && (a->bid->queue || joined != 0)))
        return OVER;
    if (s->generation != 0)
        return INSIDE;
    if (s->joined != 0 && !s->has_before) {
        if (*question == HF__ETCD_QUESTION_LOOK)
            hf__etcd_missed(a->e, &a->bid->ticket);
        /* Whoever finds its place, of an earlier try, was shown the newest two: both may be behind
         * it. */
        bool sure = *question == HF__ETCD_QUESTION_LOOK || s->joined == s->revision;
        *question = sure ? HF__ETCD_QUESTION_ENTER_FIRST : HF__ETCD_QUESTION_LOOK;
        a->known.joined = s->joined;
        return GO_ON;
    }
    a->known.joined = s->joined;
    return WAIT;
}

/* What to ask first: a ticket that has no place yet may find the door open; one that was called is
 * most likely the first. */
static int ask_until_known(struct hf__etcd_attempt *a, struct hf__answer *ret)
{
    bool again = a->known.joined != 0;
    enum hf__etcd_question question = !again ? HF__ETCD_QUESTION_ENTER_FREE
                                      : hf__etcd_was_told(a->e, &a->bid->ticket)
                                          ? HF__ETCD_QUESTION_ENTER
                                          : HF__ETCD_QUESTION_LOOK;
    struct hf__etcd_seen s;

    for (int round = 0; round < ROUNDS; round++) {
        int r = hf__etcd_ask(a, question, a->known.joined, &s);
        if (r < 0)
            return r;
        enum step step = s.granted ? INSIDE : next_step(a, &s, &question);
        if (step == OVER)
            return withdrawn(a, ret);
        if (step == INSIDE)
            return granted(a, &s, ret);
        if (step == GO_ON)
            continue;
        /* On joining, whoever is before us is most likely alive: look when it is time to ask again.
         */
        r = again || !a->bid->queue ? hf__etcd_clear_dead(a, &s) : 0;
        if (r == 0 && a->bid->queue) {
            hf__etcd_bid_learn(a->e, &a->known);
            r = hf__etcd_stand_behind(a, &s);
        }
        if (r < 0)
            return r;
        if (r == 0)
            break;
        question = a->known.joined != 0 ? HF__ETCD_QUESTION_LOOK : HF__ETCD_QUESTION_ENTER_FREE;
    }
    if (a->bid->queue)
        return queued(a, &s, ret);
    /* A client with an earlier attempt unanswered withdraws as well, and that is what is remembered. */
    hf__etcd_bid_retire(a->e, a->bid, 0);
    hf__etcd_lease_keep(a->e, &a->known);
    ret->verdict = HF__VERDICT_BUSY;
    return 0;
}

int hf__etcd_attempt(struct hf__store *store, const struct hf__bid *bid, int64_t deadline_ns,
                     struct hf__answer *ret_answer, hf_error *err)
{
    struct hf__etcd_attempt *a = calloc(1, sizeof *a);
    int r;

    if (a == NULL)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    *a = (struct hf__etcd_attempt){.e = (struct hf__etcd *)store,
                                   .bid = bid,
                                   .name = {bid->name, bid->name_len},
                                   .deadline_ns = deadline_ns,
                                   .err = err};
    const struct hf__etcd_bid *k = &a->known;
    bool is_known = hf__etcd_bid_get(a->e, &bid->ticket, bid, &a->known);
    a->lease = k->lease;
    if (!is_known) {
        r = hf__fail(err, HF_NO_MEMORY, NULL);
    } else if (k->retired) {
        ret_answer->verdict = HF__VERDICT_WITHDRAWN;
        r = 0;
    } else if (k->generation != 0 && k->ttl_ms != HF__NEVER &&
               hf__now_ns(a->e->base.host->env) - k->proved_ns >= k->ttl_ms * HF__NS_PER_MS) {
        /* It was let in, and its ttl has passed by our own clock, which is the earlier one. A ticket
         * is let in once. */
        r = withdrawn(a, ret_answer);
    } else {
        hf__etcd_prepare_attempt(a);
        r = see_to_lease(a, ret_answer->sent_ns);
        if (r == 0)
            r = ask_until_known(a, ret_answer);
        if (r == HF_NOT_FOUND) /* the lease is over, and with it the ticket */
            r = withdrawn(a, ret_answer);
        else if (r == HF_DENIED || r == HF_FULL || r == HF_CORRUPT)
            r = refused(a, r);
    }
    free(a);
    return r;
}
