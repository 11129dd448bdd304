/* The notifier: runs the user's callbacks, one at a time, in the order in which they came up, and
 * nothing else. A lock that is being released has nothing more to tell, and the release waits for a
 * callback of that lock which is under way: afterwards none runs. */
#include "core/client.h"
#include "util/banned.h"

void hf__notifier_push(hf_lock *lock)
{
    struct hf__workers *notifier = &lock->client->notifier;
    bool queued = lock->call_turn.place != 0;

    if (queued || !hf__workers_add(notifier, &lock->call_turn, hf__now_ns(lock->client->env)))
        return; /* without a thread the state and the descriptor still tell */
    hf__lock_ref(lock);
}

void hf__notifier_work(hf_client *client)
{
    struct hf__timer *turn = hf__heap_first(&client->notifier.jobs);
    hf_lock *lock = (hf_lock *)((char *)turn - offsetof(hf_lock, call_turn));
    bool risk = lock->call_risk, lost = lock->call_lost;
    hf_cause cause = lock->bidder.cause;

    hf__heap_remove(&client->notifier.jobs, turn);
    lock->call_risk = lock->call_lost = false;
    lock->in_call = true;
    hf__unlock_client(client);
    if (risk && !lost)
        lock->on_at_risk(lock, HF_CAUSE_NONE, lock->arg);
    if (lost)
        lock->on_lost(lock, cause, lock->arg);
    hf__lock_client(client);
    lock->in_call = false;
    hf__lock_unref(lock);
    pthread_cond_broadcast(&client->changed);
}

void hf__notifier_forget(hf_lock *lock)
{
    lock->call_risk = lock->call_lost = false;
    while (lock->in_call)
        pthread_cond_wait(&lock->client->changed, &lock->client->mutex);
}
