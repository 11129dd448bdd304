/* The hand: does the round trips that nobody waits for.
 *
 * The keeper puts locks into its queue; it takes as many as fit into one call. A call that hangs is
 * cut off well before the first of our leases ends, so that there is time for another try. A
 * failure is tried again after a pause that grows; nothing ends this thread but hf_close(). */
#include "core/client.h"
#include "util/banned.h"

#define BATCH 256

/* It stays in the queue, or under way; whoever comes to it finds that nobody wants it any more. */
void hf__hand_forget(hf_lock *lock)
{
    lock->job_wanted = false;
}

static hf_lock *pop(hf_client *client)
{
    hf_lock *lock = client->first_job;

    client->first_job = lock->next_job;
    if (client->first_job == NULL)
        client->last_job = NULL;
    lock->next_job = NULL;
    lock->job_queued = false;
    return lock;
}

static void note_failure(hf_lock *lock)
{
    hf_client *client = lock->client;
    int64_t now_ns = hf__now_ns(client->env);
    int64_t pause_ns = hf__backoff_ns(client->env, lock->failures++, HF__PAUSE_MAX_MS);
    int64_t left_ns = lock->bidder.deadline_ns - now_ns;

    /* Short leases do not wait for long: at least four tries in what is left. */
    if (lock->duty == HF__KEEP && left_ns > 0 && pause_ns > left_ns / 4)
        pause_ns = left_ns / 4 + 1;
    lock->retry_ns = now_ns + pause_ns;
    if (lock->duty == HF__HELP_WAITING) {
        lock->waiter->sign_ns = lock->retry_ns;
        hf__wait_tell(lock, HF__NEWS_ASK); /* it asks by itself, and decides how long to bear it */
    }
}

/* A third of the own lease or of the ttl, whichever is shorter. */
static int64_t next_sign(const hf_lock *lock)
{
    return hf__lease_renew_ns(lock->bidder.queued_sent_ns,
                              hf__provisional_lease_ms(lock->bid.ttl_ms));
}

static void take_answer(hf_lock *lock, const struct hf__renewal *item, int64_t now_ns)
{
    enum hf__advice advice =
        hf__bidder_renewed(&lock->bidder, item->generation, &item->answer, now_ns);

    lock->failures = 0;
    lock->retry_ns = 0;
    hf__lock_note_renewal(lock, NULL);
    if (lock->duty == HF__HELP_WAITING) {
        lock->waiter->sign_ns = next_sign(lock);
        if (advice == HF__HOLD)
            hf__wait_tell(lock, HF__NEWS_GRANT);
        else if (advice == HF__ASK)
            hf__wait_tell(lock, HF__NEWS_ASK);
        return;
    }
    if (!hf__bidder_holds(&lock->bidder, now_ns))
        hf__lock_tell_lost(lock);
    else if (now_ns < hf__lease_at_risk_ns(lock->bidder.sent_ns, lock->bidder.lease_ms))
        lock->risk_told = false; /* back on firm ground: the next time is told again */
}

/* Whether it is this thread that keeps it from being lost. */
static bool needs_hand(const hf_lock *lock)
{
    const struct hf__bidder *b = &lock->bidder;

    return (lock->duty == HF__KEEP || lock->duty == HF__HELP_WAITING) && b->phase == HF__HOLDING &&
           !(lock->by_hand && b->claimed);
}

void hf__hand_heed(hf_lock *lock)
{
    if (needs_hand(lock) && lock->bidder.deadline_ns < lock->client->pressing_ns)
        lock->client->pressing_ns = lock->bidder.deadline_ns;
}

/* How long one call may take: half of what the most pressing lease has left, of all that this thread
 * renews, in this call or after it. Which that is was found out when it had a quarter more left at
 * most, so that not all locks are looked at for each call. */
static int64_t call_deadline(hf_client *client)
{
    int64_t now_ns = hf__now_ns(client->env);
    int64_t span_ns = client->op_timeout_ms * HF__NS_PER_MS;
    int64_t old_ns = now_ns - client->looked_ns;

    if ((client->pressing_ns - now_ns) / 2 < span_ns &&
        old_ns > (client->pressing_ns - client->looked_ns) / 4) {
        client->looked_ns = now_ns;
        client->pressing_ns = INT64_MAX;
        for (hf_lock *lock = client->locks; lock != NULL; lock = lock->next)
            hf__hand_heed(lock);
    }
    int64_t half_ns = (client->pressing_ns - now_ns) / 2;
    if (half_ns < span_ns)
        span_ns = half_ns;
    return now_ns + (span_ns < 20 * HF__NS_PER_MS ? 20 * HF__NS_PER_MS : span_ns);
}

static void renew(hf_client *client, hf_lock **locks, size_t count)
{
    struct hf__renewal items[BATCH];
    hf_error err = {0};
    int64_t deadline_ns = call_deadline(client);
    int64_t sent_ns = hf__now_ns(client->env);

    for (size_t i = 0; i < count; i++) {
        items[i] = (struct hf__renewal){.name = locks[i]->name,
                                        .name_len = locks[i]->bid.name_len,
                                        .ticket = locks[i]->bid.ticket,
                                        .generation = locks[i]->bidder.generation,
                                        .answer.sent_ns = sent_ns};
    }
    hf__unlock_client(client);
    int r = client->store->type->renew(client->store, items, count, deadline_ns, &err);
    hf__lock_client(client);

    int64_t now_ns = hf__now_ns(client->env);
    for (size_t i = 0; i < count; i++) {
        hf_lock *lock = locks[i];
        bool same_bid = hf__ticket_equal(&lock->bid.ticket, &items[i].ticket);
        bool in_our_care = lock->duty == HF__HELP_WAITING || lock->duty == HF__KEEP;
        if (same_bid && in_our_care) {
            lock->job_wanted = lock->job_queued; /* it may have been asked for again */
            lock->claim_unanswered |= r == HF_UNKNOWN && items[i].generation != 0;
            if (r < 0 && lock->duty == HF__KEEP)
                hf__lock_note_renewal(lock, &err);
            if (r < 0)
                note_failure(lock);
            else
                take_answer(lock, &items[i], now_ns);
            hf__keeper_schedule(lock);
        }
        hf__lock_unref(lock);
    }
    hf__after_call(client);
}

static void undo(hf_client *client, hf_lock *lock)
{
    int64_t deadline_ns = call_deadline(client);

    hf__unlock_client(client);
    bool over = hf__undo_again(lock, deadline_ns);
    hf__lock_client(client);
    lock->job_wanted = false;
    if (!over && hf__now_ns(client->env) < lock->undo_until_ns) {
        note_failure(lock);
        hf__keeper_schedule(lock);
    } else {
        hf__keeper_forget(lock);
        hf__lock_unref(lock); /* the one that UNDO held */
    }
    hf__lock_unref(lock);
    hf__after_call(client);
}

static void work(hf_client *client)
{
    hf_lock *locks[BATCH];
    size_t count = 0;

    while (count < BATCH && client->first_job != NULL) {
        bool undoes = client->first_job->duty == HF__UNDO;
        if (undoes && count > 0)
            break;
        hf_lock *lock = pop(client);
        if (!lock->job_wanted) {
            hf__lock_unref(lock);
        } else if (undoes) {
            undo(client, lock);
            return;
        } else {
            locks[count++] = lock;
        }
    }
    if (count > 0)
        renew(client, locks, count);
}

static void *run(void *arg)
{
    hf_client *client = arg;

    hf__lock_client(client);
    while (!client->closing) {
        if (client->first_job == NULL)
            pthread_cond_wait(&client->has_job, &client->mutex);
        else
            work(client);
    }
    hf__unlock_client(client);
    return NULL;
}

void hf__hand_push(hf_lock *lock)
{
    hf_client *client = lock->client;

    if (lock->job_wanted)
        return;
    if (!client->hand_runs) {
        if (client->closing || hf__thread_start(&client->hand, 512 * 1024, run, client) < 0) {
            note_failure(lock);
            return;
        }
        client->hand_runs = true;
    }
    lock->job_wanted = true;
    if (lock->job_queued)
        return;
    lock->job_queued = true;
    hf__lock_ref(lock);
    if (client->last_job != NULL)
        client->last_job->next_job = lock;
    else
        client->first_job = lock;
    client->last_job = lock;
    pthread_cond_signal(&client->has_job);
}

void hf__hand_stop(hf_client *client)
{
    hf__lock_client(client);
    bool runs = client->hand_runs;
    pthread_cond_signal(&client->has_job); /* `closing` is set */
    hf__unlock_client(client);
    if (runs)
        pthread_join(client->hand, NULL);

    hf__lock_client(client);
    client->hand_runs = false;
    while (client->first_job != NULL) {
        hf__lock_unref(pop(client));
    }
    hf__unlock_client(client);
}
