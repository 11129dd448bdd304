/* Ending a bid or a grant whose outcome may be unknown.
 *
 * The request is idempotent by ticket, so it is simply sent again. Two tries belong to the caller;
 * after that the withdrawer goes on in the background until the store has answered, and the caller
 * is told HF_UNKNOWN (C6). The withdrawer is apart from the renewer: what hangs here keeps no lock
 * from being renewed. */
#include "core/cache.h"
#include "core/log.h"

#include "base/banned.h"

/* A store that stays away for long must not fill the memory: beyond so many, those for which it
 * cannot hold anything any more, by our account, are given up. By its own account it may: servers
 * restart leases, so up to that number we go on. */
#define UNDO_MAX 1000

int hf__undo_once(hf_lock *lock, bool release, int64_t deadline_ns, struct hf__answer *ret_answer,
                  hf_error *err)
{
    hf_client *client = lock->client;
    struct hf__operation op = {.kind = release ? HF__OPERATION_RELEASE : HF__OPERATION_WITHDRAW,
                               .bid = &lock->bid,
                               .retire_ms = lock->bidder.unanswered ? client->retire_ms : 0,
                               .at_least_ms = release ? lock->at_least_ms : 0,
                               .generation = release ? hf__cache_used(lock) : 0};

    *ret_answer = (struct hf__answer){.sent_ns = hf__now_ns(client->env)};
    hf__unlock_client(client);
    int r = client->store->type->operate(client->store, &op, deadline_ns, ret_answer, err);
    hf__lock_client(client);
    hf__after_call(client);
    return r;
}

/* How long the store could go on holding for this ticket if nothing reached it any more: a waiter
 * until its own lease ends, and then what a hand-over would have given it. A renewal that was not
 * answered may have been applied, a moment ago at the latest, and may have been the claim, after
 * which a lock without a lease stays for ever; one that is under way may be applied within its
 * op_timeout. What ends by itself is followed by its lock-delay. */
static int64_t may_hold_ms(const hf_lock *lock, bool release, int64_t now_ns)
{
    const struct hf__bidder *b = &lock->bidder;
    int64_t ttl_ms = lock->bid.ttl_ms, lease_ms = hf__provisional_lease_ms(ttl_ms);
    int64_t delay_ms = lock->bid.lock_delay_ms;
    bool for_ever = ttl_ms == HF__NEVER;

    if (!release && for_ever && (lock->claim_unanswered || b->claimed))
        return HF_NEVER;
    if (!release)
        return hf__own_lease_ms(ttl_ms) + (for_ever ? lease_ms : ttl_ms) + delay_ms;
    if (b->deadline_ns == INT64_MAX)
        return HF_NEVER;
    if (lock->trouble != NULL || lock->renewals > 0)
        return (for_ever || b->lease_ms > ttl_ms ? b->lease_ms : ttl_ms) + delay_ms +
               (lock->renewals > 0 ? lock->client->op_timeout_ms : 0);
    int64_t left_ns = b->sent_ns + b->lease_ms * HF__NS_PER_MS - now_ns;
    return (left_ns < 0 ? 0 : left_ns / HF__NS_PER_MS + 1) + delay_ms;
}

static int64_t begin_undoing(hf_lock *lock, bool release)
{
    int64_t now_ns = hf__now_ns(lock->client->env);
    int64_t hold_ms = may_hold_ms(lock, release, now_ns);

    hf__duty_begin(lock, HF__DUTY_UNDO);
    lock->undo_is_release = release;
    lock->undo_until_ns = hold_ms == HF_NEVER ? INT64_MAX : hf__moment_after(now_ns, hold_ms);
    lock->retry_ns = now_ns;
    return hold_ms;
}

void hf__undo_later(hf_lock *lock, bool release)
{
    begin_undoing(lock, release);
    hf__withdrawer_push(lock);
    hf__keeper_schedule(lock);
}

static int go_on_in_background(hf_lock *lock, bool release, hf_error *err)
{
    hf_client *client = lock->client;
    int64_t hold_ms = begin_undoing(lock, release);

    lock->retry_ns += hf__backoff_ns(client->env, 0, HF__PAUSE_MAX_MS);
    hf__keeper_schedule(lock);

    if (client->meter != NULL)
        hf__raise(&client->meter->seen.unknown);
    hf__log_lock(lock, HF_LOG_UNKNOWN, HF_UNKNOWN,
                 release ? "the release was not answered: the store may still hold it; tried again"
                         : "the bid was not withdrawn: the store may still hold it; tried again");
    if (err != NULL) {
        err->code = HF_UNKNOWN;
        err->retriable = 1;
        err->may_hold_ms = hold_ms;
    }
    return HF_UNKNOWN;
}

struct closing {
    const hf_lock *lock;
    bool closed;
};

/* Age and rest together are how long it is closed in all; stores round both. */
static int look_whether_closed(void *ctx, const char *name, size_t name_len,
                               const struct hf__entry *e)
{
    struct closing *closing = ctx;

    (void)name, (void)name_len;
    if (e->place == HF__PLACE_LINGERING && hf__ticket_equal(&e->ticket, &closing->lock->bid.ticket))
        closing->closed = e->since_ms + e->until_ms >= closing->lock->at_least_ms - 10;
    return 0;
}

/* A release that came too late is answered as one that came twice: its lease had run out, and nothing
 * keeps the lock closed. 0: it is closed, or need not be; HF_STALE; or the store does not answer.
 * Released meanwhile. */
static int check_closed(hf_lock *lock, int64_t deadline_ns, hf_error *err)
{
    hf_client *client = lock->client;
    struct closing closing = {.lock = lock};
    struct hf__search search = {.name = lock->name,
                                .name_len = lock->bid.name_len,
                                .found = look_whether_closed,
                                .ctx = &closing};

    hf__unlock_client(client);
    int r = client->store->type->inspect(client->store, &search, deadline_ns, err);
    hf__lock_client(client);
    hf__after_call(client);
    return r < 0 || closing.closed ? r : hf__fail(err, HF_STALE, NULL);
}

/* The time for which it was to stay closed is over, and so nothing in the store tells any more whether it
 * did: it may have come too late. Unless the lease kept it closed for so long anyway. */
static int when_time_is_over(const hf_lock *lock, int64_t over_ns, hf_error *err)
{
    const struct hf__bidder *b = &lock->bidder;

    if (hf__moment_after(b->sent_ns, b->lease_ms) >= over_ns)
        return 0;
    return hf__fail(err, HF_UNKNOWN, "it may have opened before its time");
}

int hf__undo(hf_lock *lock, bool release, hf_error *err)
{
    hf_client *client = lock->client;
    int64_t deadline_ns = hf__op_deadline(client);
    int64_t half_ns = client->op_timeout_ms * HF__NS_PER_MS / 2; /* leaves time to ask again */
    struct hf__answer answer;
    int r = hf__undo_once(lock, release, deadline_ns - half_ns, &answer, err);
    bool may_have_arrived = r == HF_UNKNOWN;

    if (r < 0 && hf__now_ns(client->env) < deadline_ns)
        r = hf__undo_once(lock, release, deadline_ns, &answer, err);
    if (r < 0)
        return go_on_in_background(lock, release, err);
    /* "Stale" to the retry of a release that was sent in time: the first one arrived (C2). */
    bool stale = release && answer.verdict == HF__VERDICT_STALE;
    if (stale && !may_have_arrived)
        return hf__fail(err, HF_STALE, NULL);
    if (!stale || lock->at_least_ms == 0)
        return 0;
    int64_t over_ns = hf__moment_after(lock->bidder.known_ns, lock->at_least_ms);
    if (hf__now_ns(client->env) >= over_ns)
        return when_time_is_over(lock, over_ns, err);
    r = check_closed(lock, deadline_ns, err);
    return r < 0 && r != HF_STALE ? go_on_in_background(lock, release, err) : r;
}

/* The withdrawer. ------------------------------------------------------------------------------ */
static void put_off(hf_lock *lock)
{
    int64_t pause_ns = hf__backoff_ns(lock->client->env, lock->failures++, HF__PAUSE_MAX_MS);

    lock->retry_ns = hf__now_ns(lock->client->env) + pause_ns;
}

void hf__withdrawer_push(hf_lock *lock)
{
    if (lock->job != HF__JOB_NONE)
        return;
    if (!hf__workers_add(&lock->client->withdrawer, &lock->job_turn, lock->retry_ns)) {
        put_off(lock);
        return;
    }
    lock->job = HF__JOB_QUEUED;
    hf__lock_ref(lock);
}

void hf__withdrawer_work(hf_client *client)
{
    struct hf__timer *turn = hf__heap_first(&client->withdrawer.jobs);
    hf_lock *lock = (hf_lock *)((char *)turn - offsetof(hf_lock, job_turn));
    unsigned number = lock->job_number;
    struct hf__answer answer;

    hf__heap_remove(&client->withdrawer.jobs, turn);
    lock->job = HF__JOB_UNDER_WAY;
    bool answered =
        hf__undo_once(lock, lock->undo_is_release, hf__op_deadline(client), &answer, NULL) == 0;
    if (lock->job_number == number) { /* else the client is being closed, and does it itself */
        bool over = hf__now_ns(client->env) >= lock->undo_until_ns &&
                    client->in_duty[HF__DUTY_UNDO] > UNDO_MAX;
        lock->job = HF__JOB_NONE;
        put_off(lock);
        if (answered || over) {
            hf__log_lock(lock, HF_LOG_SETTLED, HF_OK,
                         answered ? "the store answered: nothing of it is left there"
                                  : "it has ended by itself: the store is not asked any more");
            hf__duty_end(lock);
        } else {
            hf__keeper_schedule(lock);
        }
    }
    hf__lock_unref(lock);
}
