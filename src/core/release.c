/* The ways out of a lock: giving it back, leaving it in the store for somebody else, and freeing the
 * handle of a client that is closed.
 *
 * In all of them the handle is forgotten first, which waits for a callback of it; only then is the store
 * spoken to. So nobody can be told of a loss that the release itself has caused, and a callback never
 * sees a handle that is freed. */
#include "core/cache.h"
#include "core/started.h"

#include "base/banned.h"

void hf__lock_forget_user(hf_lock *lock)
{
    hf__reentry_remove(lock);
    lock->on_at_risk = lock->on_lost = lock->on_wanted = NULL;
    hf__notifier_forget(lock);
}

/* Takes a handle that its user gives back out of everybody's care. It is kept while a callback of it
 * is waited for. True: it was held to the end. */
static bool take_back(hf_lock *lock)
{
    hf__lock_forget_user(lock);
    bool held = hf__lock_holds(lock, hf__now_ns(lock->client->env));
    hf__duty_end(lock);
    hf__forget_events(lock);
    return held;
}

/* The client is closed or closing: it gives everything back by itself. So there is nothing to wait
 * for, and a callback may do this too. */
static int free_after_close(hf_lock *lock, hf_error *err)
{
    hf_client *client = lock->client;
    int cancel_state = hf__forbid_cancel();

    hf__lock_client(client);
    if (lock->in_call && hf__workers_include_me(&client->notifier)) {
        hf__unlock_client(client);
        hf__allow_cancel(cancel_state);
        return hf__fail(err, HF_DEADLOCK, "a callback must not release the lock it is about");
    }
    client->refs++;
    if (--lock->count == 0) {
        hf__lock_forget_user(lock); /* its duty may go on until hf_close() has ended it */
        hf__forget_events(lock);
        hf__lock_unref(lock);
    }
    hf__unref_client(client);
    hf__allow_cancel(cancel_state);
    return hf__fail(err, HF_CLOSED, NULL);
}

int hf__lock_give_back(hf_lock *lock, hf_error *err)
{
    hf_client *client = lock->client;

    if (lock->in_call && hf__workers_include_me(&client->notifier))
        return hf__fail(err, HF_DEADLOCK, "a callback must not release the lock it is about");
    if (lock->count > 1) {
        lock->count--;
        bool held = hf__lock_holds(lock, hf__now_ns(client->env));
        return held ? 0 : hf__fail(err, HF_STALE, NULL);
    }
    if (lock->bid.cached && hf__cache_keep(lock))
        return 0;
    bool held = take_back(lock);
    hf_cause cause = lock->bidder.cause;

    /* A holder that outstayed max_hold and now says so itself need not keep others waiting. */
    int r = held || cause == HF_CAUSE_MAX_HOLD ? hf__undo(lock, true, err) : 0;
    if (!held)
        r = hf__fail(err, HF_STALE, "it was lost: %s", hf_cause_text(cause));
    char shown[80];
    if (r < 0)
        hf__wrap(err, r, "release '%s'",
                 hf__printable(lock->name, lock->bid.name_len, shown, sizeof shown));
    hf__lock_unref(lock);
    return r;
}

static int check_at_least(const hf_client *client, int64_t at_least_ms, hf_error *err)
{
    if (at_least_ms < 0 || at_least_ms > HF_AT_LEAST_MAX_MS)
        return hf__fail(err, HF_INVALID, "the time to stay closed must be from 0 to 366 days");
    if (at_least_ms > 0 && !(client->capabilities & HF_CAN_AT_LEAST))
        return hf__fail(err, HF_UNSUPPORTED, "%s cannot keep a released lock closed",
                        client->store_name);
    return 0;
}

int hf_lock_release_after(hf_lock *lock, int64_t at_least_ms, hf_error *err)
{
    if (lock == NULL)
        return 0;
    hf_client *client = lock->client;
    struct hf__visit visit;
    int r = check_at_least(client, at_least_ms, err);
    if (r == 0)
        r = hf__enter_locked(client, &visit, err);
    if (r == HF_CLOSED)
        return free_after_close(lock, err);
    if (r < 0)
        return r;
    int64_t before_ms = lock->at_least_ms;
    if (before_ms < at_least_ms)
        lock->at_least_ms = at_least_ms;
    r = hf__lock_give_back(lock, err);
    if (r == HF_DEADLOCK) /* refused: the handle is there, and as it was */
        lock->at_least_ms = before_ms;
    hf__leave_unlock(client, &visit);
    return r;
}

int hf_lock_release(hf_lock *lock, hf_error *err)
{
    return hf_lock_release_after(lock, 0, err);
}

static int detach(hf_lock *lock, hf_error *err)
{
    hf_client *client = lock->client;
    int r = 0;

    if (lock->in_call && hf__workers_include_me(&client->notifier))
        return hf__fail(err, HF_DEADLOCK, "a callback must not detach the lock it is about");
    if (lock->bid.cached)
        return hf__fail(err, HF_UNSUPPORTED,
                        "a cached lock cannot be passed on; acquire it without that");
    if (!hf__can_pass_on(client, lock->bid.ttl_ms == HF__NEVER))
        return hf__fail(err, HF_UNSUPPORTED, "this store's %s end with their client",
                        hf__can_pass_on(client, true) ? "leases" : "locks");
    if (!lock->bidder.claimed)
        r = hf__lock_renew_once(lock, err); /* somebody else will go on: the store must know */
    if (r < 0)
        return r;
    while (lock->in_call) /* kept meanwhile */
        pthread_cond_wait(&client->changed, &client->mutex);
    if (lock->count > 1) /* looked at last: somebody may have entered again meanwhile */
        return hf__fail(err, HF_INVALID, "it is held %u times; release it to once", lock->count);
    if (!hf__lock_holds(lock, hf__now_ns(client->env)))
        return hf__fail(err, HF_LOST, "it was lost: %s", hf_cause_text(lock->bidder.cause));
    take_back(lock);
    hf__lock_unref(lock);
    return 0;
}

int hf_lock_detach(hf_lock *lock, hf_error *err)
{
    if (lock == NULL)
        return hf__fail(err, HF_INVALID, "there is no lock");
    hf_client *client = lock->client;
    struct hf__visit visit;
    int r = hf__enter_locked(client, &visit, err);
    if (r < 0)
        return r;
    r = detach(lock, err);
    hf__leave_unlock(client, &visit);
    return r;
}
