/* Acquiring: one bid, from the first question to the handle.
 *
 *        .--------------------------- asleep <---.---------.
 *        v                                       |         |
 *      awake --> wanted? --> ask --> queued -----'         |
 *        |         ^          | `--> setback --------------'
 *        |         |          v
 *        `-------- | ----> granted --> settle --> kept, done
 *                  |                     |
 *                  `--- a new ticket <---'  gone meanwhile
 *
 *      Refused, or not wanted any more (time up, cancelled, closed, store away for too long): give
 *      up, which undoes what may be left in the store, and tell why.
 *
 * The rules of what an answer means are the bidder's; here is only who asks when. There is one place
 * in which a bid sleeps and one from which it goes on, and on the way from there to the next
 * question it is looked at whether the caller still wants it: so no answer of a store can keep it in
 * here. What brings the bid no nearer to its end (no answer, an answer later than its lease, a
 * ticket that was taken away) is a setback; setbacks are borne for the caller's patience, with a
 * pause after each.
 *
 * Everything is called with the mutex held, and releases it for round trips, callbacks and sleep. */
#include "core_acquire.h"

#include <string.h>

#include "base_banned.h"

#define IDLE_ASKS_MAX 5 /* of a bid that does not wait */
#define IDLE_ASKS_MS  100

static int stop_because(struct hf__acquiring *bid, int code)
{
    return hf__fail(bid->err, code, NULL);
}

/* Whether the store may keep anything for this ticket. */
static bool is_left(const hf_lock *lock)
{
    return lock->in_store || lock->claim_unanswered || lock->bidder.unanswered;
}

/* A bid that was stopped during its round trip had nobody yet who could be told. */
static int begin_waiting(struct hf__acquiring *bid)
{
    int r = hf__wait_begin(bid->lock, bid->until_ns, bid->cancel, bid->err);

    if (r == 0 && bid->stopped)
        bid->lock->waiter->news |= HF__NEWS_CANCEL;
    return r;
}

static int fall_asleep(struct hf__acquiring *bid, int over)
{
    bid->slept = true;
    bid->slept_ours = bid->lock->bidder.phase == HF__PHASE_HOLDING;
    bid->slept_over = over;
    hf__keeper_schedule(bid->lock);
    return HF__ACQUIRE_ASLEEP;
}

/* A grant that has come is taken, whatever else has happened. */
static int wake_up(struct hf__acquiring *bid)
{
    if (!bid->slept)
        return 0;
    bid->slept = false;
    unsigned news = hf__wait_take_news(bid->lock);
    if (bid->lock->bidder.phase == HF__PHASE_HOLDING && !bid->slept_ours)
        return 0;
    if (news & HF__NEWS_CLOSED)
        return stop_because(bid, HF_CLOSED);
    if (news & HF__NEWS_CANCEL)
        return stop_because(bid, HF_CANCELLED);
    if (news & HF__NEWS_TIMEOUT) /* that the store is away tells more */
        return bid->slept_over < 0 ? bid->slept_over : stop_because(bid, HF_TIMEOUT);
    return 0;
}

/* Why the caller does not want it any more; 0: it does. */
static int look_whether_wanted(struct hf__acquiring *bid)
{
    const hf_cancel *cancel = bid->cancel;

    if (bid->lock->client->closing)
        return stop_because(bid, HF_CLOSED);
    if (bid->stopped || (cancel != NULL && hf__cancel_fired(cancel)))
        return stop_because(bid, HF_CANCELLED);
    if (hf__now_ns(bid->lock->client->env) >= bid->until_ns)
        return stop_because(bid, HF_TIMEOUT);
    return 0;
}

/* Not one step nearer: `code` says why, and is given back if it is not worth another try. */
static int bear_setback(struct hf__acquiring *bid, int code)
{
    hf_client *client = bid->lock->client;
    int64_t now_ns = hf__now_ns(client->env);

    if (code != HF_UNAVAILABLE && code != HF_UNKNOWN)
        return code;
    if (bid->setbacks == 0)
        bid->setback_since_ns = now_ns;
    if (now_ns - bid->setback_since_ns >= bid->patience_ns || begin_waiting(bid) < 0)
        return code;
    int64_t pause_ns = hf__backoff_ns(client->env, bid->setbacks++, HF__PAUSE_MAX_MS);
    int64_t left_ns = bid->patience_ns - (now_ns - bid->setback_since_ns);
    bid->lock->waiter->ask_ns = now_ns + (pause_ns < left_ns ? pause_ns : left_ns);
    bid->lock->waiter->sign_ns = INT64_MAX; /* the next question is one too */
    return fall_asleep(bid, code);
}

/* Queued: it is worth sleeping. The caller's own callback may take its time: the keeper looks after
 * the bid before that. */
static int wait_in_queue(struct hf__acquiring *bid, const struct hf__answer *answer)
{
    hf_client *client = bid->lock->client;
    int r = begin_waiting(bid);

    if (r < 0)
        return r;
    struct hf__waiter *w = bid->lock->waiter;
    if (client->meter != NULL)
        hf__meter_queued(client->meter, answer->position);
    bid->setbacks = 0;
    w->ask_ns = INT64_MAX;
    w->sign_ns =
        hf__lease_renew_ns(answer->sent_ns, hf__provisional_lease_ms(bid->lock->bid.ttl_ms));
    hf__keeper_schedule(bid->lock);
    if (bid->on_wait != NULL) {
        struct hf__calling calling;
        hf__calling_begin(client, &calling);
        hf__unlock_client(client);
        bid->on_wait(answer->position, bid->lock->arg);
        hf__lock_client(client);
        hf__calling_end(client, &calling);
    }
    hf__wake_reader_open(client);
    if (!bid->callable && hf__wake_reader_listens(client))
        return 0; /* ask again: it may have been let in before anybody could be called */
    w->ask_ns = hf__moment_after(hf__now_ns(client->env), answer->ask_again_ms);
    return fall_asleep(bid, 0);
}

/* Nobody answered this bid, but others had their turn meanwhile: whoever would wait for others anyway
 * waits in such a line too, and patience is for a store that serves nobody. */
static void forgive_crowd(struct hf__acquiring *bid, unsigned turns, int code)
{
    if (code == HF_UNAVAILABLE && bid->waits && bid->lock->client->store->turns != turns)
        bid->setbacks = 0;
}

/* One attempt. 0 with its answer and the bidder's advice, or an error. */
static int attempt(struct hf__acquiring *bid, struct hf__answer *ret_answer,
                   enum hf__advice *ret_advice)
{
    hf_client *client = bid->lock->client;
    hf_lock *lock = bid->lock;
    struct hf__operation op = {.kind = HF__OPERATION_ATTEMPT, .bid = &lock->bid};

    bid->callable = hf__wake_reader_listens(client);
    *ret_answer = (struct hf__answer){.sent_ns = hf__now_ns(client->env)};
    unsigned turns = client->store->turns;
    hf__unlock_client(client);
    int r = client->store->type->operate(client->store, &op, hf__op_deadline(client), ret_answer,
                                         bid->err);
    hf__lock_client(client);
    hf__after_call(client);
    if (r == HF_UNKNOWN)
        hf__bidder_unanswered(&lock->bidder);
    forgive_crowd(bid, turns, r);
    if (r < 0)
        return r;

    int64_t now_ns = hf__now_ns(client->env);
    /* A ticket that was withdrawn may have been let in unnoticed before, and linger now. */
    lock->in_store = ret_answer->verdict == HF__VERDICT_GRANTED ||
                     ret_answer->verdict == HF__VERDICT_QUEUED ||
                     ret_answer->verdict == HF__VERDICT_WITHDRAWN;
    *ret_advice = hf__bidder_answered(&lock->bidder, ret_answer, now_ns);
    /* The answer may have been overtaken by a wake-up, or the grant it spoke of be over again. */
    if (*ret_advice == HF__ADVICE_NOTHING)
        *ret_advice = hf__bidder_holds(&lock->bidder, now_ns) ? HF__ADVICE_HOLD : HF__ADVICE_REBID;
    return 0;
}

/* Who does not wait for others does not wait for a store either that has not even been reached; but
 * once is no proof, a connection may just have been cut. */
static bool is_worth_another_try(const struct hf__acquiring *bid, int code)
{
    return code != HF_UNAVAILABLE || bid->waits || bid->patient || bid->setbacks == 0 ||
           is_left(bid->lock);
}

/* Whoever has it may not be using it, and was called: it is asked again for a tenth of a second, after
 * pauses that grow from 2 ms to 32 ms. */
static int ask_for_cached(struct hf__acquiring *bid)
{
    int64_t now_ns = hf__now_ns(bid->lock->client->env);
    int64_t pause_ns = (INT64_C(2) << bid->idle_asks) * HF__NS_PER_MS;

    if (bid->idle_asks == 0)
        bid->setback_since_ns = now_ns;
    if (bid->idle_asks == IDLE_ASKS_MAX ||
        now_ns - bid->setback_since_ns >= IDLE_ASKS_MS * HF__NS_PER_MS || begin_waiting(bid) < 0)
        return stop_because(bid, HF_BUSY);
    bid->idle_asks++;
    bid->lock->waiter->ask_ns = now_ns + pause_ns;
    bid->lock->waiter->sign_ns = INT64_MAX;
    return fall_asleep(bid, 0);
}

static int ask(struct hf__acquiring *bid)
{
    struct hf__answer answer;
    enum hf__advice advice;
    int r = 0;

    /* The store may call as soon as it knows the bid, before its answer is here: whoever may wait
     * in a client that listens can be called from now on, or the call would find nobody. So can who
     * wants to hear that somebody waits; the store is told with the bid where to call. */
    if (bid->lock->bid.tell)
        hf__wake_reader_open(bid->lock->client);
    if ((bid->waits || bid->lock->bid.tell) && hf__wake_reader_listens(bid->lock->client))
        r = begin_waiting(bid);
    if (r < 0)
        return r;
    r = attempt(bid, &answer, &advice);
    if (r < 0)
        return is_worth_another_try(bid, r) ? bear_setback(bid, r) : r;

    switch (advice) {
    case HF__ADVICE_WAIT:
        return wait_in_queue(bid, &answer);
    case HF__ADVICE_ASK:
        hf__fail(bid->err, HF_UNAVAILABLE,
                 "the store answers later than the lease lasts: ask for a longer ttl");
        return bear_setback(bid, HF_UNAVAILABLE);
    case HF__ADVICE_REFUSED:
        return answer.wanted ? ask_for_cached(bid) : stop_because(bid, HF_BUSY);
    case HF__ADVICE_NO_ROOM:
        return hf__fail(bid->err, HF_FULL, "the queue is full (%d)", HF__QUEUE_MAX);
    case HF__ADVICE_REBID:
        bid->spent = true;
        return 0;
    default: /* HOLD: the bidder knows */
        return 0;
    }
}

/* Whether the caller may only have it when the store knows that it knows (doorman's rule 5). */
static bool needs_claim(const struct hf__acquiring *bid)
{
    const hf_lock *lock = bid->lock;

    if (lock->bidder.claimed)
        return false;
    if (lock->bid.ttl_ms == HF__NEVER || lock->bid.lock_delay_ms > 0 || bid->confirmed)
        return true;
    return bid->max_hold_ms > 0 && hf__moment_after(hf__now_ns(bid->lock->client->env),
                                                    bid->max_hold_ms) > lock->bidder.deadline_ns;
}

/* Ours by the bidder's account. 0: it slipped away. */
static int settle(struct hf__acquiring *bid)
{
    hf_client *client = bid->lock->client;
    hf_lock *lock = bid->lock;

    if (needs_claim(bid)) {
        int r = look_whether_wanted(bid);
        if (r < 0)
            return r;
        r = hf__lock_renew_once(lock, bid->err);
        if (r == HF_LOST)
            return 0;
        if (r < 0)
            return bear_setback(bid, r);
    }
    /* A holder that the store calls must be heard of: or it would not hear of an early end. */
    if (client->store->calls_holders || !(client->capabilities & HF_CAN_LEASE))
        hf__wake_reader_open(client);
    if (!hf__bidder_holds(&lock->bidder, hf__now_ns(client->env)))
        return 0;
    hf__lock_keep(lock, bid->max_hold_ms);
    return HF__ACQUIRE_KEPT;
}

/* Another ticket, after undoing what may be left of this one. At once the first time, then after a
 * pause. */
static int start_afresh(struct hf__acquiring *bid)
{
    hf_lock *lock = bid->lock;
    int r = 0;

    hf__duty_end(lock);
    if (is_left(lock))
        r = hf__undo(lock, false, bid->err);
    if (r == 0)
        r = hf__lock_new_ticket(lock, bid->err);
    if (r < 0)
        return r;
    bid->spent = false;
    if (bid->setbacks == 0) {
        bid->setbacks = 1;
        bid->setback_since_ns = hf__now_ns(bid->lock->client->env);
        return 0;
    }
    hf__fail(bid->err, HF_UNAVAILABLE,
             "what the store grants is over before it can be used: ask for a longer ttl");
    return bear_setback(bid, HF_UNAVAILABLE);
}

/* Leaves nothing behind, and says so truly: an undo that is not answered turns any reason into
 * HF_UNKNOWN. */
static int give_up(struct hf__acquiring *bid, int code)
{
    hf_lock *lock = bid->lock;
    hf_error undo_error;

    if (lock->duty == HF__DUTY_UNDO)
        return code; /* a ticket that was spent is being undone already */
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

static void count_end(const struct hf__acquiring *bid, int r)
{
    if (r < 0)
        hf__raise_code(bid->lock->client->meter->seen.failed, r);
    else if (r == HF__ACQUIRE_KEPT)
        hf__meter_granted(bid->lock, bid->began_ns);
}

int hf__acquire_advance(struct hf__acquiring *bid)
{
    const struct hf__bidder *b = &bid->lock->bidder;
    int r = wake_up(bid);

    while (r == 0) {
        if (b->phase == HF__PHASE_HOLDING)
            r = settle(bid);
        if (r == 0 && (bid->spent || b->phase == HF__PHASE_LOST))
            r = start_afresh(bid);
        if (r == 0)
            r = look_whether_wanted(bid);
        if (r == 0)
            r = ask(bid);
    }
    if (r < 0)
        r = give_up(bid, r);
    if (bid->lock->client->meter != NULL)
        count_end(bid, r);
    return r;
}

/* Who has said how long to wait has also said how long to bear a store that is away. */
static int64_t patience_ns(const hf_client *client, const hf_options *opt)
{
    if (opt->patience_ms == HF_FOREVER)
        return INT64_MAX;
    int64_t ms = opt->patience_ms > 0                   ? opt->patience_ms
                 : opt->wait_ms > client->op_timeout_ms ? opt->wait_ms
                                                        : client->op_timeout_ms;
    return hf__moment_after(0, ms);
}

void hf__acquire_begin(struct hf__acquiring *bid, hf_lock *lock, const hf_options *opt)
{
    hf_client *client = lock->client;

    *bid = (struct hf__acquiring){
        .lock = lock,
        .cancel = opt->cancel,
        .on_wait = opt->on_wait,
        .max_hold_ms = opt->max_hold_ms,
        .waits = opt->wait_ms != 0,
        .patient = opt->patience_ms != 0,
        .confirmed = opt->confirmed != 0,
        .until_ns =
            opt->wait_ms > 0 ? hf__moment_after(hf__now_ns(client->env), opt->wait_ms) : INT64_MAX,
        .began_ns = client->meter != NULL ? hf__now_ns(client->env) : 0,
        .patience_ns = patience_ns(client, opt)};
}

int hf__bid(hf_lock *lock, const hf_options *opt, hf_error *err)
{
    struct hf__acquiring bid;
    int r;

    hf__acquire_begin(&bid, lock, opt);
    bid.err = err;
    while ((r = hf__acquire_advance(&bid)) == HF__ACQUIRE_ASLEEP)
        hf__wait_for_news(lock);
    return r == HF__ACQUIRE_KEPT ? 0 : r;
}
