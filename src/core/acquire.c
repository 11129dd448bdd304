/* Acquiring: one bid, from the first question to the handle.
 *
 *      ask ---> held ----> settle ---> kept, done
 *       ^  \--> queued --> wait --news--^  |
 *       |  \--> setback -> pause           | gone meanwhile: a new ticket
 *       +---------+----------+-------------+
 *       `-- refused, time up, cancelled, closed, store away for too long: undo, and tell why
 *
 * The rules of what an answer means are the bidder's; here is only who asks when. Whether the caller
 * still wants it is looked at before every question but the first, so that no answer of a store can
 * keep it in here. What brings the bid no nearer to its end (no answer, an answer later than its
 * lease, a ticket that was taken away) is a setback; they are borne for the caller's patience and
 * with a pause in between.
 *
 * Everything is called with the mutex held, and releases it for round trips, callbacks and sleep. */
#include "core/acquire.h"

#include <string.h>

#include "util/banned.h"

struct bid {
    hf_lock *lock;
    hf_client *client;
    const hf_options *opt;
    hf_error *err;
    int64_t until_ns;         /* the end of the wait; INT64_MAX */
    int64_t patience_ns;      /* how long setbacks are borne; INT64_MAX */
    int64_t asked_ns;         /* before the last attempt; an answer may count from earlier */
    int64_t setback_since_ns; /* of the first one; there was no place in the queue since */
    unsigned setbacks;
};

static int stop_because(struct bid *bid, int code)
{
    return hf__fail(bid->err, code, NULL);
}

/* Why the caller does not want it any more; 0: it does. */
static int look_for_end(struct bid *bid)
{
    const hf_cancel *cancel = bid->opt->cancel;

    if (bid->client->closing)
        return stop_because(bid, HF_CLOSED);
    if (cancel != NULL && hf__cancel_fired(cancel))
        return stop_because(bid, HF_CANCELLED);
    if (hf__now_ns(bid->client->env) >= bid->until_ns)
        return stop_because(bid, HF_TIMEOUT);
    return 0;
}

/* Whether the store may keep anything for this ticket. */
static bool is_left(const hf_lock *lock)
{
    return lock->in_store || lock->bidder.unanswered;
}

static int begin_waiting(struct bid *bid)
{
    return hf__wait_begin(bid->lock, bid->until_ns, bid->opt->cancel, bid->err);
}

/* One attempt. 0 with the bidder's advice, or an error. */
static int ask(struct bid *bid, struct hf__answer *ret_answer, enum hf__advice *ret_advice)
{
    hf_client *client = bid->client;
    hf_lock *lock = bid->lock;
    int r = 0;

    /* The store may call as soon as it knows the bid, before its answer is here: whoever may wait
     * in a client that listens can be called from now on, or the call would find nobody. */
    if (bid->opt->wait_ms != 0 && hf__wake_reader_listens(client))
        r = begin_waiting(bid);
    if (r < 0)
        return r;

    bid->asked_ns = hf__now_ns(client->env);
    *ret_answer = (struct hf__answer){.sent_ns = bid->asked_ns};
    hf__unlock_client(client);
    r = client->store->type->attempt(client->store, &lock->bid, hf__op_deadline(client), ret_answer,
                                     bid->err);
    hf__lock_client(client);
    hf__after_call(client);
    if (r == HF_UNKNOWN)
        hf__bidder_unanswered(&lock->bidder);
    if (r < 0)
        return r;

    int64_t now_ns = hf__now_ns(client->env);
    hf__lock_heard(lock, ret_answer->verdict);
    *ret_advice = hf__bidder_answered(&lock->bidder, ret_answer, now_ns);
    /* The answer may have been overtaken by a wake-up, or the grant it spoke of be over again. */
    if (*ret_advice == HF__NOTHING)
        *ret_advice = hf__bidder_holds(&lock->bidder, now_ns) ? HF__HOLD : HF__REBID;
    return 0;
}

/* What ended the sleep: 0 for something to ask about or to hold, or the reason to give up. A grant
 * that has come is taken, whatever else has happened. */
static int sleep_until_news(struct bid *bid)
{
    bool was_ours = bid->lock->bidder.phase == HF__HOLDING; /* only its claim is missing */
    unsigned news = hf__wait_for_news(bid->lock);
    bool ours = bid->lock->bidder.phase == HF__HOLDING;

    if (ours && !was_ours)
        return 0;
    if (news & HF__NEWS_CLOSED)
        return stop_because(bid, HF_CLOSED);
    if (news & HF__NEWS_CANCEL)
        return stop_because(bid, HF_CANCELLED);
    if (news & HF__NEWS_TIMEOUT)
        return stop_because(bid, HF_TIMEOUT);
    return 0;
}

/* Queued: sleeps until it is worth asking again. The caller's own callback may take its time: it is
 * in the keeper's care before that. */
static int wait_in_queue(struct bid *bid, const struct hf__answer *answer)
{
    hf_client *client = bid->client;
    int r = begin_waiting(bid);

    if (r < 0)
        return r;
    struct hf__waiter *w = bid->lock->waiter;
    bid->setbacks = 0;
    w->ask_ns = INT64_MAX;
    w->sign_ns =
        hf__lease_renew_ns(answer->sent_ns, hf__provisional_lease_ms(bid->lock->bid.ttl_ms));
    hf__keeper_schedule(bid->lock);
    if (bid->opt->on_wait != NULL) {
        struct hf__calling calling;
        hf__calling_begin(client, &calling);
        hf__unlock_client(client);
        bid->opt->on_wait(answer->position, bid->opt->arg);
        hf__lock_client(client);
        hf__calling_end(client, &calling);
    }
    if (hf__wake_reader_open(client, bid->asked_ns))
        return 0; /* now that somebody listens, tell the store where to call */
    w->ask_ns = hf__moment_after(hf__now_ns(client->env), answer->ask_again_ms);
    return sleep_until_news(bid);
}

/* Not one step nearer: `code` says why, and is given back if it is not worth another try. 0: now it
 * is, after a pause. */
static int bear_setback(struct bid *bid, int code)
{
    hf_client *client = bid->client;
    int64_t now_ns = hf__now_ns(client->env);

    if (code != HF_UNAVAILABLE && code != HF_UNKNOWN)
        return code;
    if (bid->setbacks == 0)
        bid->setback_since_ns = now_ns;
    if (now_ns - bid->setback_since_ns >= bid->patience_ns)
        return code;
    if (begin_waiting(bid) < 0)
        return code;
    bid->lock->waiter->ask_ns =
        now_ns + hf__backoff_ns(client->env, bid->setbacks++, HF__PAUSE_MAX_MS);
    bid->lock->waiter->sign_ns = INT64_MAX; /* the next question is one too */

    hf_error why = {.code = code};
    if (bid->err != NULL)
        why = *bid->err;
    int r = sleep_until_news(bid);
    if (r != HF_TIMEOUT)
        return r;
    if (bid->err != NULL) /* that the store is away tells more */
        *bid->err = why;
    return code;
}

/* Whether the caller may only have it when the store knows that it knows (doorman's rule 5). */
static bool needs_claim(const struct bid *bid)
{
    const hf_lock *lock = bid->lock;

    if (lock->bidder.claimed)
        return false;
    if (lock->bid.ttl_ms == 0 || lock->bid.lock_delay_ms > 0 || bid->opt->confirmed)
        return true;
    return bid->opt->max_hold_ms > 0 &&
           hf__moment_after(hf__now_ns(bid->client->env), bid->opt->max_hold_ms) >
               lock->bidder.deadline_ns;
}

/* Ours by the bidder's account. 1: it is kept; 0: it slipped away; negative: give up. */
static int settle(struct bid *bid)
{
    hf_client *client = bid->client;
    hf_lock *lock = bid->lock;

    while (lock->bidder.phase == HF__HOLDING && needs_claim(bid)) {
        int r = hf__lock_renew_once(lock, bid->err);
        if (r == HF_LOST)
            return 0;
        if (r < 0)
            r = bear_setback(bid, r);
        if (r < 0)
            return r;
    }
    /* A holder that the store calls must be heard of: or it would not hear of an early end. */
    if (client->store->calls_holders || !(client->capabilities & HF_CAN_LEASE))
        hf__wake_reader_open(client, INT64_MAX);
    if (!hf__bidder_holds(&lock->bidder, hf__now_ns(client->env)))
        return 0;
    hf__lock_keep(lock, bid->opt);
    return 1;
}

/* Leaves nothing behind, and says so truly: an undo that is not answered turns any reason into
 * HF_UNKNOWN. */
static int give_up(struct bid *bid, int code)
{
    hf_lock *lock = bid->lock;
    hf_error undo_error;

    if (lock->duty == HF__DUTY_UNDO)
        return code; /* a ticket before this one is being undone: see start_afresh() */
    hf__duty_end(lock);
    if (is_left(lock) && hf__undo(lock, false, &undo_error) < 0) {
        if (bid->err != NULL)
            *bid->err = undo_error;
        return HF_UNKNOWN;
    }
    if (code == HF_UNKNOWN) /* withdrawn: we know again, and the answer is no */
        code = hf__wrap(bid->err, HF_UNAVAILABLE, "withdrawn");
    return code;
}

/* The ticket is spent: another one, after undoing what may be left of this one. At once the first
 * time, then with a pause. */
static int start_afresh(struct bid *bid)
{
    hf_lock *lock = bid->lock;
    bool again = bid->setbacks > 0;

    hf__duty_end(lock);
    if (is_left(lock) && hf__undo(lock, false, bid->err) < 0)
        return HF_UNKNOWN;
    int r = hf__lock_new_ticket(lock, bid->err);
    if (r < 0)
        return r;
    if (!again) {
        bid->setbacks = 1;
        bid->setback_since_ns = hf__now_ns(bid->client->env);
        return 0;
    }
    return bear_setback(bid, hf__fail(bid->err, HF_UNAVAILABLE,
                                      "what the store grants is over before it can be used: ask "
                                      "for a longer ttl"));
}

/* Who does not wait for others does not wait for a store either that has not even been reached. */
static bool wants_no_other_try(const struct bid *bid, int code)
{
    return code == HF_UNAVAILABLE && bid->opt->wait_ms == 0 && bid->opt->patience_ms == 0 &&
           !is_left(bid->lock);
}

/* What an answer asks for, up to the next question. 1: it is kept; 0: ask again; negative: give
 * up. */
static int follow(struct bid *bid, enum hf__advice advice, const struct hf__answer *answer)
{
    struct hf__bidder *b = &bid->lock->bidder;
    int r = 0;

    switch (advice) {
    case HF__REFUSED:
        return stop_because(bid, HF_BUSY);
    case HF__NO_ROOM:
        return hf__fail(bid->err, HF_FULL, "the queue is full (%d)", HF__QUEUE_MAX);
    case HF__ASK:
        r = bear_setback(bid, hf__fail(bid->err, HF_UNAVAILABLE,
                                       "the store answers later than the lease lasts: ask for a "
                                       "longer ttl"));
        break;
    case HF__WAIT:
        r = wait_in_queue(bid, answer);
        break;
    default:
        break;
    }
    if (r == 0 && b->phase == HF__HOLDING)
        r = settle(bid);
    if (r == 0 && (advice == HF__REBID || b->phase == HF__LOST_IT))
        r = start_afresh(bid);
    return r;
}

static int run(struct bid *bid)
{
    for (;;) {
        struct hf__answer answer;
        enum hf__advice advice = HF__NOTHING;
        int r = ask(bid, &answer, &advice);

        if (r < 0 && !wants_no_other_try(bid, r))
            r = bear_setback(bid, r);
        if (r == 0)
            r = follow(bid, advice, &answer);
        if (r == 0)
            r = look_for_end(bid);
        if (r > 0)
            return 0;
        if (r < 0)
            return give_up(bid, r);
    }
}

int hf__bid(hf_lock *lock, const hf_options *opt, hf_error *err)
{
    hf_client *client = lock->client;
    int64_t now_ns = hf__now_ns(client->env);
    struct bid bid = {.lock = lock,
                      .client = client,
                      .opt = opt,
                      .err = err,
                      .until_ns =
                          opt->wait_ms > 0 ? hf__moment_after(now_ns, opt->wait_ms) : INT64_MAX,
                      .patience_ns = client->op_timeout_ms * HF__NS_PER_MS};

    if (opt->patience_ms == HF_FOREVER)
        bid.patience_ns = INT64_MAX;
    else if (opt->patience_ms > 0)
        bid.patience_ns = hf__moment_after(0, opt->patience_ms);
    if (opt->cancel != NULL && hf__cancel_fired(opt->cancel))
        return hf__fail(err, HF_CANCELLED, NULL);
    return run(&bid);
}
