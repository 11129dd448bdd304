/* Ending a bid or a grant whose outcome may be unknown.
 *
 * The request is idempotent by ticket, so it is simply sent again. Two tries belong to the caller;
 * after that the keeper goes on in the background, as long as the store could still hold something
 * for this ticket, and the caller is told HF_UNKNOWN (C6). */
#include "core/client.h"
#include "util/banned.h"

struct request {
    bool release;
    int64_t deadline_ns;
    struct hf__answer answer;
};

static int send(hf_lock *lock, struct request *q, hf_error *err)
{
    hf_client *client = lock->client;
    const struct hf__store_type *type = client->store->type;
    int64_t retire_ms = lock->bidder.unanswered ? client->retire_ms : 0;

    q->answer = (struct hf__answer){.sent_ns = hf__now_ns(client->env)};
    int r =
        q->release
            ? type->release(client->store, &lock->bid, retire_ms, q->deadline_ns, &q->answer, err)
            : type->withdraw(client->store, &lock->bid, retire_ms, q->deadline_ns, &q->answer, err);
    hf__lock_client(client);
    hf__after_call(client);
    hf__unlock_client(client);
    return r;
}

bool hf__undo_again(hf_lock *lock, int64_t deadline_ns)
{
    struct request q = {.release = lock->undo_is_release, .deadline_ns = deadline_ns};

    return send(lock, &q, NULL) == 0;
}

/* How long the store could go on holding for this ticket if nothing reached it any more: a waiter
 * until its own lease ends, and then what a hand-over would have given it. A renewal that was not
 * answered may have been applied, a moment ago at the latest, and may have been the claim, after
 * which a lock without a lease stays for ever. Under the client's mutex. */
static int64_t may_hold_ms(const hf_lock *lock, bool release, int64_t now_ns)
{
    int64_t ttl_ms = lock->bid.ttl_ms, lease_ms = hf__provisional_lease_ms(ttl_ms);

    if (!release && ttl_ms == 0 && (lock->claim_unanswered || lock->bidder.claimed))
        return HF_NEVER;
    if (!release)
        return hf__own_lease_ms(ttl_ms) + (ttl_ms > lease_ms ? ttl_ms : lease_ms);
    if (lock->bidder.deadline_ns == INT64_MAX)
        return HF_NEVER;
    if (lock->trouble != NULL)
        return lock->bidder.lease_ms > ttl_ms ? lock->bidder.lease_ms : ttl_ms;
    int64_t left_ns = lock->bidder.sent_ns + lock->bidder.lease_ms * HF__NS_PER_MS - now_ns;
    return left_ns < 0 ? 0 : left_ns / HF__NS_PER_MS + 1;
}

static int go_on_in_background(hf_lock *lock, bool release, hf_error *err)
{
    hf_client *client = lock->client;
    int64_t now_ns = hf__now_ns(client->env);

    hf__lock_client(client);
    int64_t hold_ms = may_hold_ms(lock, release, now_ns);
    hf__lock_ref(lock);
    lock->duty = HF__UNDO;
    lock->undo_is_release = release;
    lock->failures = 0;
    lock->retry_ns = now_ns + hf__backoff_ns(client->env, 0, HF__PAUSE_MAX_MS);
    lock->undo_until_ns = hold_ms == HF_NEVER ? INT64_MAX : now_ns + hold_ms * HF__NS_PER_MS;
    hf__keeper_schedule(lock);
    hf__unlock_client(client);

    if (err != NULL) {
        err->code = HF_UNKNOWN;
        err->retriable = 1;
        err->may_hold_ms = hold_ms;
    }
    return HF_UNKNOWN;
}

int hf__undo(hf_lock *lock, bool release, hf_error *err)
{
    hf_client *client = lock->client;
    int64_t deadline_ns = hf__op_deadline(client);
    int64_t half_ns = client->op_timeout_ms * HF__NS_PER_MS / 2; /* leaves time to ask again */
    struct request q = {.release = release, .deadline_ns = deadline_ns - half_ns};
    int r = send(lock, &q, err);
    bool retried = r < 0;

    q.deadline_ns = deadline_ns;
    if (retried && hf__now_ns(client->env) < deadline_ns)
        r = send(lock, &q, err);
    if (r < 0)
        return go_on_in_background(lock, release, err);
    /* "Stale" to the retry of a release that was sent in time: the first one arrived (C2). */
    if (release && q.answer.verdict == HF__STALE && !retried)
        return hf__fail(err, HF_STALE, NULL);
    return 0;
}
