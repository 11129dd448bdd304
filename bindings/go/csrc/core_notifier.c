/* The notifier: runs the user's callbacks, one at a time, in the order in which they came up, and
 * nothing else. A lock that is being released has nothing more to tell, and the release waits for a
 * callback of that lock which is under way: afterwards none runs. */
#include "core_client.h"

#include "base_banned.h"

#define NO_THREAD_PAUSE_MS 500

void hf__notifier_push(hf_lock *lock)
{
    struct hf__workers *notifier = &lock->client->notifier;
    bool queued = lock->call_turn.slot != 0;

    if (queued)
        return;
    if (hf__workers_add(notifier, &lock->call_turn, hf__now_ns(lock->client->env)))
        hf__lock_ref(lock);
    else /* no thread can be had; the state and the descriptor tell meanwhile */
        lock->retry_ns = hf__now_ns(lock->client->env) + NO_THREAD_PAUSE_MS * HF__NS_PER_MS;
}

void hf__notifier_work(hf_client *client)
{
    struct hf__timer *turn = hf__heap_first(&client->notifier.jobs);

    if (hf__log_work(client, turn))
        return;
    hf_lock *lock = (hf_lock *)((char *)turn - offsetof(hf_lock, call_turn));
    /* Taken out under the mutex: who gives the lock back takes them away. */
    hf_lock_callback *call;
    hf_cause cause = HF_CAUSE_NONE;

    hf__heap_remove(&client->notifier.jobs, turn);
    if (lock->call_lost) { /* of which nothing else matters any more */
        call = lock->on_lost;
        cause = lock->bidder.cause;
        lock->call_lost = lock->call_risk = lock->call_wanted = false;
    } else if (lock->call_risk) {
        call = lock->on_at_risk;
        lock->call_risk = false;
    } else {
        call = lock->call_wanted ? lock->on_wanted : NULL;
        lock->call_wanted = false;
    }
    lock->in_call = true;
    hf__unlock_client(client);
    if (call != NULL)
        call(lock, cause, lock->arg);
    hf__lock_client(client);
    lock->in_call = false;
    if (lock->call_lost || lock->call_risk || lock->call_wanted)
        hf__notifier_push(lock);
    hf__lock_unref(lock);
    pthread_cond_broadcast(&client->changed);
}

void hf__notifier_forget(hf_lock *lock)
{
    lock->call_risk = lock->call_lost = lock->call_wanted = false;
    while (lock->in_call)
        pthread_cond_wait(&lock->client->changed, &lock->client->mutex);
}
