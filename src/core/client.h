/* The inside of a client: what its files share.
 *
 * Threads of a client
 *   callers     do their own round trips to the store; nothing is passed to another thread on the
 *               way
 *   keeper      sleeps until the next timer, call from the store or cancel; never blocks on the
 *               network
 *   renewer     does the round trips that keep locks and places in the queue alive, in batches, the
 *               shortest lease first; more than one thread only if one hangs
 *   withdrawer  ends bids and grants whose end was not answered, again and again, one at a time
 *   notifier    runs the user's callbacks, one at a time, and nothing else
 *   runner      does the round trips of what was started (started.h), a few at a time
 *
 * All but the callers' start when there is something for them to do. They are apart so that nothing
 * that hangs delays what matters more: a lock is declared lost on time while a renewal hangs, a
 * renewal is sent while a withdrawal hangs, and no callback delays either.
 *
 * client->mutex guards everything below it. It is never held during a store call, a callback or a
 * system call that may block. There is no second mutex in the core, so there is no lock order. */
#ifndef HF_CORE_CLIENT_H
#define HF_CORE_CLIENT_H

#include <pthread.h>
#include <sys/types.h>

#include "base/backoff.h"
#include "base/table.h"
#include "base/thread.h"
#include "core/fork_guard.h"
#include "core/keeper.h"
#include "core/lock.h"
#include "core/log.h"
#include "core/meter.h"
#include "core/wake_reader.h"
#include "core/workers.h"
#include "stores/store.h"

#define HF__PAUSE_MAX_MS 2000 /* between two tries of what failed */

struct hf_client {
    /* Set at opening, then only read. */
    const struct hf_env *env;
    struct hf__store *store;
    uint32_t capabilities; /* the store's; still known when it is closed, as is its name */
    const char *store_name;
    struct hf__host host;
    struct hf__who self;
    char *self_text; /* storage of `self` and of host.modules */
    pid_t pid;
    struct hf__fork_guard *fork_guard; /* NULL: the system has no such memory */
    int64_t op_timeout_ms, retain_ms, retire_ms;
    int64_t history; /* bids in the trail of a name; 0: none is written */
    uint64_t seed;

    pthread_mutex_t mutex;
    pthread_cond_t changed; /* a user left, a callback ended, the wake-up descriptor is known */
    unsigned refs;          /* the opener's and one per lock */
    unsigned users;         /* calls under way; hf_close waits for them */
    bool closing;
    struct hf__calling *calling; /* callbacks under way on callers' threads */

    size_t lock_count;          /* for all that is kept per lock below: there is room for each */
    hf_lock *on_duty;           /* the locks that the client looks after */
    struct hf__table by_ticket; /* those of them that wait or are kept */
    struct hf__table by_owner;  /* see reentry.c */
    struct hf__table idle;      /* see cache.h; by name */
    struct hf__calm *calm;      /* NULL: no name has been called back yet */

    struct hf__keeper keeper;
    struct hf__wake_reader wake_reader;
    struct hf__workers renewer, withdrawer, notifier, runner;
    size_t in_duty[HF__DUTIES]; /* how many locks; NONE is not counted up to */

    struct hf__meter *meter;       /* NULL: nobody counts */
    struct hf__log *log;           /* NULL: nobody listens */
    _Atomic int64_t away_since_ns; /* the store; 0: it answers, or there is neither of these */

    hf_watch *watches; /* see watch.h */

    size_t started_count;    /* what the runner may have to do: see started.h */
    struct hf__table by_tag; /* those of them that are bids */
    struct hf__started *first_event, *last_event;
    int event_fd; /* readable while there is one; -1 until asked for */
};

/* hf_open() with another clock; `env` NULL is the system's. For tests. */
int hf__open(const char *url, const hf_client_options *opt, const struct hf_env *env,
             hf_client **ret_client, hf_error *err);

/* Around everything that may hold a mutex or a connection: no call is a cancellation point. */
static inline int hf__forbid_cancel(void)
{
    int before;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    return before;
}
static inline void hf__allow_cancel(int before)
{
    pthread_setcancelstate(before, NULL);
}

/* Every public call on a client goes through these. In between the thread cannot be cancelled. HF_INVALID, HF_FORKED, HF_CLOSED: then there is nothing to
 * leave. The first pair takes and gives back the mutex, the second one leaves it alone. */
struct hf__visit {
    int cancel_state;
};
int hf__enter_locked(hf_client *client, struct hf__visit *visit, hf_error *err);
void hf__leave_unlock(hf_client *client, const struct hf__visit *visit);
int hf__enter(hf_client *client, struct hf__visit *visit, hf_error *err);
void hf__leave(hf_client *client, const struct hf__visit *visit);

/* Around a callback that runs on the caller's own thread. Mutex held. */
struct hf__calling {
    struct hf__calling *next;
    pthread_t thread;
};
void hf__calling_begin(hf_client *client, struct hf__calling *calling);
void hf__calling_end(hf_client *client, const struct hf__calling *calling);

static inline void hf__lock_client(hf_client *client)
{
    pthread_mutex_lock(&client->mutex);
}
static inline void hf__unlock_client(hf_client *client)
{
    pthread_mutex_unlock(&client->mutex);
}

/* The moment by which a store call that starts now must have ended. */
int64_t hf__op_deadline(const hf_client *client);

/* Mutex held: unlocks it, and frees the client with its last reference. */
void hf__unref_client(hf_client *client);

/* After every store call: whether the store has lost its data under us, or speaks to another server.
 * Mutex held; hf__after_call_unlocked() takes it if there is something to do. */
void hf__after_call(hf_client *client);
void hf__after_call_unlocked(hf_client *client);

/* Whether a lock, one that never expires or another, can be left to whoever knows its ticket (adopt.c). */
bool hf__can_pass_on(const hf_client *client, bool never_expires);

#endif
