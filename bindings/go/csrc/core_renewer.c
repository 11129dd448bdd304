/* The renewer: the round trips that keep locks and places in the queue alive.
 *
 * The keeper says what is due; here it waits for its turn, the shortest lease first and those who
 * hold before those who wait, and goes out in batches. A call is cut off well before the first
 * lease in it ends, so that there is time for another try; a job that is still in the queue when its
 * lease is at risk gets another thread. A failure is tried again after a pause that grows; nothing
 * ends this but hf_close(). */
#include "core_client.h"

#include "base_banned.h"

#define BATCH        256
#define CALL_MIN_MS  20
#define PAUSE_MIN_MS 5

/* When what this job keeps alive will be over. */
static int64_t ends_ns(const hf_lock *lock)
{
    const struct hf__bidder *b = &lock->bidder;

    if (b->phase == HF__PHASE_HOLDING)
        return b->deadline_ns;
    return hf__moment_after(b->queued_sent_ns, hf__own_lease_ms(lock->bid.ttl_ms));
}

/* Those who wait come after all who hold: a holder that is lost is work that is lost, a waiter only
 * bids anew. */
static int64_t urgency(const hf_lock *lock)
{
    int64_t ends = ends_ns(lock) / 2;

    return lock->bidder.phase == HF__PHASE_HOLDING ? ends : INT64_MAX / 2 + ends;
}

static void note_failure(hf_lock *lock)
{
    hf_client *client = lock->client;
    int64_t now_ns = hf__now_ns(client->env);
    int64_t pause_ns = hf__backoff_ns(client->env, lock->failures++, HF__PAUSE_MAX_MS);
    int64_t left_ns = ends_ns(lock) - now_ns;

    /* Short leases do not wait for long: some tries in what is left, but ever fewer near its end. */
    if (left_ns > 0 && pause_ns > left_ns / 4)
        pause_ns = left_ns / 4;
    if (pause_ns < PAUSE_MIN_MS * HF__NS_PER_MS)
        pause_ns = PAUSE_MIN_MS * HF__NS_PER_MS;
    lock->retry_ns = now_ns + pause_ns;
    if (lock->duty == HF__DUTY_WAIT) {
        lock->waiter->sign_ns = lock->retry_ns;
        hf__wait_tell(lock, HF__NEWS_ASK); /* it asks by itself, and decides how long to bear it */
    }
}

void hf__renewer_push(hf_lock *lock)
{
    if (lock->job == HF__JOB_UNDER_WAY) {
        lock->job_again = true;
        return;
    }
    if (!hf__workers_add(&lock->client->renewer, &lock->job_turn, urgency(lock))) {
        note_failure(lock);
        return;
    }
    if (lock->job == HF__JOB_NONE)
        hf__lock_ref(lock);
    lock->job = HF__JOB_QUEUED;
}

/* After a sign of life the next one is due after a third of the waiter's lease; but however late
 * the answer was, not at once. */
static void take_answer(hf_lock *lock, const struct hf__renewal *item, int64_t now_ns)
{
    enum hf__advice advice = hf__lock_renewed(lock, item->generation, &item->answer, now_ns);
    int64_t lease_ms = hf__provisional_lease_ms(lock->bid.ttl_ms);

    if (lock->duty != HF__DUTY_WAIT)
        return;
    lock->waiter->sign_ns = hf__lease_renew_ns(lock->bidder.queued_sent_ns, lease_ms);
    if (lock->waiter->sign_ns < now_ns + lease_ms * HF__NS_PER_MS / 24)
        lock->waiter->sign_ns = now_ns + lease_ms * HF__NS_PER_MS / 24;
    if (advice == HF__ADVICE_HOLD) {
        hf__wait_tell(lock, HF__NEWS_GRANT);
    } else if (advice ==
               HF__ADVICE_ASK) { /* its place is gone: nothing to keep alive until it has asked */
        lock->waiter->sign_ns = INT64_MAX;
        hf__wait_tell(lock, HF__NEWS_ASK);
    }
}

struct batch {
    hf_lock *locks[BATCH];
    unsigned numbers[BATCH]; /* of the jobs */
    struct hf__renewal items[BATCH];
    size_t count;
    int64_t ends_ns; /* the first of what they keep alive */
};

/* A call has one deadline: a long lease beside a short one would be cut off with it each time, and
 * never be renewed by a store that takes longer. */
static bool are_alike(int64_t left_ns, int64_t other_ns)
{
    return left_ns / 2 <= other_ns && other_ns / 2 <= left_ns;
}

static void take_jobs(hf_client *client, struct batch *batch)
{
    int64_t now_ns = hf__now_ns(client->env);
    struct hf__timer *turn;

    batch->count = 0;
    batch->ends_ns = INT64_MAX;
    while (batch->count < BATCH && (turn = hf__heap_first(&client->renewer.jobs)) != NULL) {
        hf_lock *lock = (hf_lock *)((char *)turn - offsetof(hf_lock, job_turn));
        if (batch->count > 0 && !are_alike(batch->ends_ns - now_ns, ends_ns(lock) - now_ns))
            break;
        size_t i = batch->count++;

        hf__heap_remove(&client->renewer.jobs, turn);
        lock->job = HF__JOB_UNDER_WAY;
        lock->job_again = false;
        batch->locks[i] = lock;
        batch->numbers[i] = lock->job_number;
        batch->items[i] = (struct hf__renewal){.name = lock->name,
                                               .name_len = lock->bid.name_len,
                                               .ticket = lock->bid.ticket,
                                               .generation = lock->bidder.generation};
        lock->renewals += lock->bidder.generation != 0;
        if (ends_ns(lock) < batch->ends_ns)
            batch->ends_ns = ends_ns(lock);
    }
}

/* Half of what the shortest lease has left: there is time to try again. */
static int64_t call_deadline(const hf_client *client, const struct batch *batch, int64_t now_ns)
{
    int64_t span_ns = client->op_timeout_ms * HF__NS_PER_MS;
    int64_t half_ns = (batch->ends_ns - now_ns) / 2;

    if (half_ns < span_ns)
        span_ns = half_ns;
    if (span_ns < CALL_MIN_MS * HF__NS_PER_MS)
        span_ns = CALL_MIN_MS * HF__NS_PER_MS;
    return now_ns + span_ns;
}

/* One lock of a batch whose call has returned. What the store says of a ticket holds whatever became
 * of the job; that the call failed matters to the job alone. */
static void finish(hf_lock *lock, const struct hf__renewal *item, unsigned number,
                   const hf_error *failed)
{
    bool same_bid = hf__ticket_equal(&lock->bid.ticket, &item->ticket);
    bool same_job = lock->job_number == number;
    bool on_duty = lock->duty == HF__DUTY_WAIT || lock->duty == HF__DUTY_KEEP;
    bool again = same_job && lock->job_again;

    lock->renewals -= item->generation != 0;
    if (same_job)
        lock->job = HF__JOB_NONE;
    if (same_bid && failed != NULL)
        hf__lock_not_renewed(lock, item->generation, failed);
    if (same_bid && on_duty && failed == NULL) {
        lock->failures = 0;
        lock->retry_ns = 0;
        take_answer(lock, item, hf__now_ns(lock->client->env));
    } else if (same_job && on_duty && failed != NULL) {
        note_failure(lock);
    }
    if (again && on_duty)
        hf__renewer_push(lock);
    hf__keeper_schedule(lock);
    hf__lock_unref(lock);
}

void hf__renewer_work(hf_client *client)
{
    struct batch batch;
    hf_error err = {0};

    take_jobs(client, &batch);
    int64_t now_ns = hf__now_ns(client->env);
    int64_t deadline_ns = call_deadline(client, &batch, now_ns);
    for (size_t i = 0; i < batch.count; i++)
        batch.items[i].answer.sent_ns = now_ns;

    hf__unlock_client(client);
    int r = client->store->type->renew(client->store, batch.items, batch.count, deadline_ns, &err);
    hf__lock_client(client);
    for (size_t i = 0; i < batch.count; i++)
        finish(batch.locks[i], &batch.items[i], batch.numbers[i], r < 0 ? &err : NULL);
    hf__after_call(client);
}
