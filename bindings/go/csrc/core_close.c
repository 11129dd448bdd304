/* Closing a client. The order is the point of it:
 *
 *   refuse new calls, and wake those that wait       so that each leaves by itself
 *   wait until the last has left                     from here on nobody else uses the client
 *   give back what is held                           the rest is renewed until its turn comes
 *   stop the threads that speak to the store         then nothing is under way any more
 *   stop the keeper, then the notifier               the keeper may still have had something to tell
 *   close the store, and free what the events hold
 *
 * A store that does not answer costs one op_timeout, not one for each lock: the leases end by
 * themselves. */
#include <sys/eventfd.h>

#include "core_cache.h"
#include "core_started.h"
#include "core_watch.h"

#include "base_banned.h"

#define CLOSER_STACK     (512 * 1024)
#define CLOSERS_MAX      7
#define LOCKS_PER_CLOSER 16

/* On a thread of the library, or in a callback on the thread that called it: closing would wait for
 * itself. Mutex held. */
static bool in_callback(const hf_client *client)
{
    const struct hf__calling *calling = client->calling;

    while (calling != NULL && !pthread_equal(calling->thread, pthread_self()))
        calling = calling->next;
    return calling != NULL || hf__workers_include_me(&client->notifier);
}

struct closing {
    hf_client *client;
    bool store_answers; /* once it does not, nobody tries any more: the leases end by themselves */
};

/* Gives back what is still held, so that others need not wait for the leases to end, and ends what
 * the withdrawer has not. Those whose turn has not come are renewed meanwhile. Mutex held, released
 * meanwhile; several threads may do this at once. */
static void release_all(struct closing *closing)
{
    hf_client *client = closing->client;
    hf_lock *lock;

    while ((lock = client->on_duty) != NULL) {
        bool undo = lock->duty == HF__DUTY_UNDO;
        bool held = !undo && hf__lock_holds(lock, hf__now_ns(client->env));

        held |= lock->bidder.cause == HF_CAUSE_MAX_HOLD; /* as in hf_lock_release() */
        hf__lock_ref(lock);
        hf__duty_end(lock);
        if (held) /* without a callback: whoever closes the client knows */
            hf__bidder_lose(&lock->bidder, HF_CAUSE_CLOSED);
        hf__lock_show_lost(lock);
        if (closing->store_answers && (held || undo)) {
            struct hf__answer answer;
            int r = hf__undo_once(lock, held || lock->undo_is_release, hf__op_deadline(client),
                                  &answer, NULL);
            closing->store_answers &= r == 0;
        }
        hf__lock_unref(lock);
    }
}

static void *run_release_all(void *arg)
{
    struct closing *closing = arg;

    hf__lock_client(closing->client);
    release_all(closing);
    hf__unlock_client(closing->client);
    return NULL;
}

/* With some helpers if there are many locks, since each is a round trip. Mutex held, released
 * meanwhile. */
static void release_with_helpers(hf_client *client)
{
    struct closing closing = {.client = client, .store_answers = true};
    pthread_t helpers[CLOSERS_MAX];
    size_t wanted = client->lock_count / LOCKS_PER_CLOSER, started = 0;

    while (started < wanted && started < CLOSERS_MAX &&
           hf__thread_start(&helpers[started], "hf-closer", CLOSER_STACK, run_release_all,
                            &closing) == 0)
        started++;
    release_all(&closing);
    hf__unlock_client(client);
    for (size_t i = 0; i < started; i++)
        pthread_join(helpers[i], NULL);
    hf__lock_client(client);
}

void hf_close(hf_client *client)
{
    if (client == NULL || hf__is_forked(client))
        return; /* in a forked child everything belongs to the parent */

    int cancel_state = hf__forbid_cancel();
    hf__lock_client(client);
    if (in_callback(client)) { /* it would wait for itself */
        hf__unlock_client(client);
        hf__allow_cancel(cancel_state);
        return;
    }
    client->closing = true;
    for (hf_lock *lock = client->on_duty; lock != NULL; lock = lock->next)
        hf__wait_tell(lock, HF__NEWS_CLOSED);
    if (client->event_fd >= 0) /* whoever waits for one */
        eventfd_write(client->event_fd, 1);
    hf__watches_close(client);
    while (client->users > 0)
        pthread_cond_wait(&client->changed, &client->mutex);
    hf__cache_close(client);
    release_with_helpers(client);
    hf__unlock_client(client);
    /* Nothing is on duty: there is no job left but what is under way, and what is to be told. */
    hf__workers_stop(&client->runner);
    hf__workers_stop(&client->renewer);
    hf__workers_stop(&client->withdrawer);
    hf__keeper_stop(client);
    hf__workers_stop(&client->notifier);
    hf__wake_reader_close(client);

    client->store->type->close(client->store);
    hf__lock_client(client);
    hf__drop_events(client);
    client->store = NULL;
    hf__unref_client(client);
    hf__allow_cancel(cancel_state);
}
