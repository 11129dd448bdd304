/* The herald: runs the user's callbacks, one at a time, and nothing else. Its thread starts with
 * the first callback there is to run. A lock that is being released has nothing more to tell, and
 * the release waits for a callback of that lock which is under way: afterwards none runs. */
#include "core/client.h"
#include "util/banned.h"

static hf_lock *pop(hf_client *client)
{
    hf_lock *lock = client->first_call;

    client->first_call = lock->next_call;
    if (client->first_call == NULL)
        client->last_call = NULL;
    lock->next_call = NULL;
    lock->call_queued = false;
    return lock;
}

static void call(hf_client *client, hf_lock *lock)
{
    bool risk = lock->call_risk, lost = lock->call_lost;
    hf_cause cause = lock->bidder.cause;

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

static void *run(void *arg)
{
    hf_client *client = arg;

    hf__lock_client(client);
    while (!client->stop || client->first_call != NULL) {
        if (client->first_call == NULL)
            pthread_cond_wait(&client->has_call, &client->mutex);
        else
            call(client, pop(client));
    }
    hf__unlock_client(client);
    return NULL;
}

void hf__herald_push(hf_lock *lock)
{
    hf_client *client = lock->client;

    if (lock->call_queued)
        return;
    if (!client->herald_runs) {
        if (hf__thread_start(&client->herald, 0, run, client) < 0)
            return; /* the state and the descriptor still tell */
        client->herald_runs = true;
    }
    lock->call_queued = true;
    hf__lock_ref(lock);
    if (client->last_call != NULL)
        client->last_call->next_call = lock;
    else
        client->first_call = lock;
    client->last_call = lock;
    pthread_cond_signal(&client->has_call);
}

bool hf__herald_is_me(const hf_client *client)
{
    return client->herald_runs && pthread_equal(client->herald, pthread_self());
}

void hf__herald_forget(hf_lock *lock)
{
    lock->call_risk = lock->call_lost = false;
    while (lock->in_call)
        pthread_cond_wait(&lock->client->changed, &lock->client->mutex);
}

void hf__herald_stop(hf_client *client)
{
    hf__lock_client(client);
    bool runs = client->herald_runs;
    client->stop = true;
    pthread_cond_signal(&client->has_call);
    hf__unlock_client(client);
    if (runs)
        pthread_join(client->herald, NULL);
    client->herald_runs = false;
}
