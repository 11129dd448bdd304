/* Acquiring: one bid, from the first question to the handle.
 *
 *      ask ---> hold ------> confirm ---> the keeper's care, done
 *       ^  \--> wait --news--^    |
 *       |         |               | gone meanwhile: a new ticket
 *       +---------+---------------+
 *       `-- refused, time up, cancelled, closed, store away: undo, and tell why
 *
 * The rules of what an answer means are the bidder's; here is only who asks when. */
#include <string.h>

#include "core/acquire.h"
#include "util/banned.h"

struct bid {
    hf_lock *lock;
    hf_client *client;
    const hf_options *opt;
    hf_error *err;
    int64_t until_ns;         /* the end of the wait; INT64_MAX */
    int64_t asked_ns;         /* before the last attempt; an answer may count from earlier */
    int64_t failing_since_ns; /* the store does not answer; 0: it does */
    unsigned failures;
};

/* One attempt. 0 with the bidder's advice, or the store's error. */
static int ask(struct bid *bid, struct hf__answer *ret_answer, enum hf__advice *ret_advice)
{
    hf_client *client = bid->client;
    struct hf__bidder *b = &bid->lock->bidder;

    bid->asked_ns = hf__now_ns(client->env);
    *ret_answer = (struct hf__answer){.sent_ns = bid->asked_ns};
    int r = client->store->type->attempt(client->store, &bid->lock->bid, hf__op_deadline(client),
                                         ret_answer, bid->err);
    hf__lock_client(client);
    hf__after_call(client);
    if (r == 0)
        *ret_advice = hf__bidder_answered(b, ret_answer, hf__now_ns(client->env));
    else if (r == HF_UNKNOWN)
        hf__bidder_unanswered(b);
    /* The answer may have been overtaken by a wake-up, or the grant it spoke of be over again. */
    if (r == 0 && *ret_advice == HF__NOTHING)
        *ret_advice = hf__bidder_holds(b, hf__now_ns(client->env)) ? HF__HOLD : HF__REBID;
    hf__unlock_client(client);
    return r;
}

static int begin_waiting(struct bid *bid)
{
    if (bid->lock->waiter != NULL)
        return 0;
    return hf__wait_begin(bid->lock, bid->until_ns, bid->opt->cancel, bid->err);
}

/* The store may call as soon as it knows the bid, before its answer is here: whoever may wait in a
 * client that listens is known to the keeper before it asks, or the call would find nobody. */
static int expect_call(struct bid *bid)
{
    hf_client *client = bid->client;
    int r = 0;

    if (bid->opt->wait_ms == 0)
        return 0;
    hf__lock_client(client);
    if (client->listening == HF__ASKED && client->listening_since_ns != INT64_MIN)
        r = begin_waiting(bid);
    hf__unlock_client(client);
    return r;
}

/* What ended the sleep, or 0 for "ask", 1 for "it is ours". Mutex held. */
static int sleep_until_news(struct bid *bid)
{
    bool was_ours = bid->lock->bidder.phase == HF__HOLDING; /* only its claim is missing */
    unsigned news = hf__wait_for_news(bid->lock);
    bool ours = bid->lock->bidder.phase == HF__HOLDING;

    if (ours && !was_ours)
        return 1;
    if (news & HF__NEWS_CLOSED)
        return HF_CLOSED;
    if (news & HF__NEWS_CANCEL)
        return HF_CANCELLED;
    if (news & HF__NEWS_TIMEOUT)
        return HF_TIMEOUT;
    return ours ? 1 : 0;
}

/* Queued: sleeps until it is worth asking again. 0 ask, 1 ours, negative the reason to give up. */
static int wait_in_queue(struct bid *bid, const struct hf__answer *answer)
{
    hf_client *client = bid->client;

    if (bid->opt->on_wait != NULL) {
        struct hf__calling calling;
        hf__calling_begin(client, &calling);
        bid->opt->on_wait(answer->position, bid->opt->arg);
        hf__calling_end(client, &calling);
    }
    hf__lock_client(client);
    int r = begin_waiting(bid);
    if (r == 0 && hf__ear_open(client, bid->asked_ns)) {
        hf__unlock_client(client);
        return 0; /* now that somebody listens, tell the store where to call */
    }
    if (r == 0) {
        struct hf__waiter *w = bid->lock->waiter;
        w->ask_ns = hf__moment_after(hf__now_ns(client->env), answer->ask_again_ms);
        w->sign_ns =
            hf__lease_renew_ns(answer->sent_ns, hf__provisional_lease_ms(bid->lock->bid.ttl_ms));
        r = sleep_until_news(bid);
        if (r < 0)
            hf__fail(bid->err, r, NULL);
    }
    hf__unlock_client(client);
    return r;
}

/* The store did not answer: a pause, then once more, for as long as one operation may take. */
static int wait_for_store(struct bid *bid, int code)
{
    hf_client *client = bid->client;
    int64_t now_ns = hf__now_ns(client->env);

    if (code != HF_UNAVAILABLE && code != HF_UNKNOWN)
        return code;
    if (bid->failing_since_ns == 0)
        bid->failing_since_ns = now_ns;
    if (now_ns - bid->failing_since_ns >= client->op_timeout_ms * HF__NS_PER_MS)
        return code;

    hf__lock_client(client);
    int r = begin_waiting(bid);
    if (r == 0) {
        bid->lock->waiter->ask_ns =
            now_ns + hf__backoff_ns(client->env, bid->failures++, HF__PAUSE_MAX_MS);
        bid->lock->waiter->sign_ns = INT64_MAX;
        r = sleep_until_news(bid);
        if (r == HF_TIMEOUT) /* that the store is away tells more */
            r = code;
        else if (r < 0)
            hf__fail(bid->err, r, NULL);
    }
    hf__unlock_client(client);
    return r;
}

/* Whether the caller may only have it when the store knows that it knows (doorman's rule 5). */
static bool needs_claim(const struct bid *bid)
{
    const hf_lock *lock = bid->lock;

    hf__lock_client(bid->client);
    bool claimed = lock->bidder.claimed;
    int64_t deadline_ns = lock->bidder.deadline_ns;
    hf__unlock_client(bid->client);
    if (claimed)
        return false;
    if (lock->bid.ttl_ms == 0 || lock->bid.lock_delay_ms > 0 || bid->opt->confirmed)
        return true;
    return bid->opt->max_hold_ms > 0 &&
           hf__moment_after(hf__now_ns(bid->client->env), bid->opt->max_hold_ms) > deadline_ns;
}

/* Ours by the bidder's account. 0: it is settled; 1: it slipped away, bid anew; negative: give
 * up. */
static int confirm(struct bid *bid)
{
    hf_client *client = bid->client;
    hf_lock *lock = bid->lock;

    while (needs_claim(bid)) {
        int r = hf__lock_renew_once(lock, bid->err);
        if (r == HF_LOST)
            return 1;
        if (r < 0 && (r = wait_for_store(bid, r)) < 0)
            return r;
    }
    hf__lock_client(client);
    if (client->store->calls_holders || !(client->store->capabilities & HF_CAN_LEASE))
        hf__ear_open(client, INT64_MAX); /* or it would not hear of an early end */
    hf__wait_end(lock);
    bool held = hf__bidder_holds(&lock->bidder, hf__now_ns(client->env));
    if (held) {
        lock->held_ns = hf__now_ns(client->env);
        if (bid->opt->max_hold_ms > 0)
            lock->max_hold_ns = hf__moment_after(lock->held_ns, bid->opt->max_hold_ms);
        lock->duty = HF__KEEP;
        hf__keeper_schedule(lock);
    }
    hf__unlock_client(client);
    return held ? 0 : 1;
}

/* The ticket is spent. Another one, after undoing what may be left of this one. */
static int start_afresh(struct bid *bid)
{
    hf_lock *lock = bid->lock;
    const struct hf__bidder *b = &lock->bidder;

    hf__lock_client(bid->client);
    hf__wait_end(lock);
    bool left = b->unanswered || (b->phase == HF__LOST_IT && !b->claimed);
    hf__unlock_client(bid->client);
    if (left && hf__undo(lock, false, bid->err) < 0)
        return HF_UNKNOWN;
    return hf__lock_new_ticket(lock, bid->err);
}

/* Leaves nothing behind, and says so truly: an undo that is not answered turns any reason into
 * HF_UNKNOWN. */
static int give_up(struct bid *bid, int code)
{
    hf_lock *lock = bid->lock;
    const struct hf__bidder *b = &lock->bidder;
    hf_error undo_error;

    hf__lock_client(bid->client);
    hf__wait_end(lock);
    bool left = b->unanswered || b->phase == HF__QUEUEING || b->phase == HF__HOLDING;
    hf__unlock_client(bid->client);

    if (left && hf__undo(lock, false, &undo_error) < 0) {
        if (bid->err != NULL)
            *bid->err = undo_error;
        return HF_UNKNOWN;
    }
    if (code == HF_UNKNOWN) /* withdrawn: we know again, and the answer is no */
        code = hf__wrap(bid->err, HF_UNAVAILABLE, "withdrawn");
    return code;
}

static int run(struct bid *bid)
{
    for (;;) {
        struct hf__answer answer;
        enum hf__advice advice = HF__ASK;
        int r = expect_call(bid);
        if (r < 0)
            return give_up(bid, r);
        r = ask(bid, &answer, &advice);
        if (r < 0) {
            r = wait_for_store(bid, r);
            if (r < 0)
                return give_up(bid, r);
            advice = r == 1 ? HF__HOLD : HF__ASK;
        } else {
            bid->failing_since_ns = 0;
            bid->failures = 0;
        }
        if (advice == HF__WAIT) {
            r = wait_in_queue(bid, &answer);
            if (r < 0)
                return give_up(bid, r);
            advice = r == 1 ? HF__HOLD : HF__ASK;
        }
        if (advice == HF__HOLD) {
            r = confirm(bid);
            if (r <= 0)
                return r < 0 ? give_up(bid, r) : 0;
            advice = HF__REBID;
        }
        if (advice == HF__REFUSED)
            return give_up(bid, hf__fail(bid->err, HF_BUSY, NULL));
        if (advice == HF__NO_ROOM)
            return give_up(bid,
                           hf__fail(bid->err, HF_FULL, "the queue is full (%d)", HF__QUEUE_MAX));
        if (advice == HF__REBID && (r = start_afresh(bid)) < 0)
            return r;
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
                          opt->wait_ms > 0 ? hf__moment_after(now_ns, opt->wait_ms) : INT64_MAX};

    if (opt->cancel != NULL && hf__cancel_fired(opt->cancel))
        return hf__fail(err, HF_CANCELLED, NULL);
    return run(&bid);
}
