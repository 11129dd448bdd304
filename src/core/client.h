/* The inside of a client: what its files share.
 *
 * Threads of a client
 *   callers   do their own round trips to the store; nothing is passed to another thread on the way
 *   keeper    sleeps until the next timer, call from the store or cancel; never blocks on the network
 *   hand      does the round trips that nobody waits for: renewals in batches, claims, signs of
 *             life, withdrawals that must go on; started with the first of them
 *   herald    runs the user's callbacks, and nothing else; started with the first of them
 *
 * The keeper is apart from the hand so that a lock is declared lost on time while a renewal hangs;
 * the herald so that a callback cannot delay a renewal.
 *
 * client->mutex guards everything below it. It is never held during a store call, a callback or a
 * system call that may block. There is no second mutex in the core, so there is no lock order. */
#ifndef HF_CORE_CLIENT_H
#define HF_CORE_CLIENT_H

#include <pthread.h>
#include <sys/types.h>

#include "doorman/bidder.h"
#include "doorman/lease.h"
#include "stores/store.h"
#include "util/heap.h"
#include "util/patience.h"
#include "util/table.h"

#define HF__PAUSE_MAX_MS 2000 /* between two tries of what failed */

/* What the keeper and the hand have to do for a lock. */
enum hf__duty {
    HF__NO_DUTY,
    HF__HELP_WAITING, /* a caller sleeps: give its signs of life, wake it */
    HF__KEEP,         /* held: renew, warn, declare lost */
    HF__UNDO,         /* nobody has the handle any more: withdraw or release until it is answered */
};

/* Why a sleeping caller was woken: one bit each. */
enum hf__news {
    HF__NEWS_GRANT = 1,
    HF__NEWS_ASK = 2,
    HF__NEWS_TIMEOUT = 4,
    HF__NEWS_CANCEL = 8,
    HF__NEWS_CLOSED = 16,
};

/* A caller that waits. */
struct hf__waiter {
    pthread_cond_t woken;
    unsigned refs; /* the caller's, and the keeper's while it wakes */
    unsigned news;
    int64_t until_ns; /* the end of the wait; INT64_MAX */
    int64_t ask_ns;   /* when to ask again although nobody called */
    int64_t sign_ns;  /* when the next sign of life is due */
    hf_cancel *cancel;
};

struct hf_lock {
    hf_client *client;
    unsigned refs; /* the user's, the hand's, the herald's */
    enum hf__duty duty;
    struct hf__bidder bidder;
    struct hf__bid bid; /* name and note point behind this structure */
    struct hf__who who;
    struct hf__timer timer;
    struct hf__link by_ticket;   /* while waiting: how a wake-up finds it */
    struct hf__link by_owner;    /* see reentry.c */
    struct hf_lock *next_job;    /* in the hand's queue */
    struct hf_lock *next_call;   /* in the herald's queue */
    struct hf_lock *prev, *next; /* all locks of the client */
    struct hf__waiter *waiter;   /* while acquiring */
    uint64_t owner;
    unsigned count;        /* reentrant acquires */
    int64_t held_ns;       /* when the caller got it */
    int64_t max_hold_ns;   /* the moment it must be over; INT64_MAX */
    int64_t retry_ns;      /* the hand failed: not before then */
    int64_t undo_until_ns; /* UNDO: no longer worth it */
    unsigned failures;     /* of the hand, in a row */
    hf_error *trouble;     /* of the last renewal; NULL: it did not fail */
    int lost_fd;           /* -1 until asked for */
    bool reentrant, by_hand, undo_is_release;
    bool claim_unanswered; /* it may have been applied */
    bool job_wanted;       /* the hand has to do something, or does it now */
    bool job_queued;       /* it is in the hand's queue, wanted or not */
    bool risk_told, lost_told;
    bool call_risk, call_lost; /* what the herald still has to tell */
    bool call_queued;          /* it is in the herald's queue */
    bool in_call;              /* a callback runs now */
    hf_lock_callback *on_at_risk, *on_lost;
    void *arg;
    char ticket[HF_TICKET_SIZE];
    char name[]; /* and a NUL, then the note and a NUL */
};

struct hf_client {
    /* Set at opening, then only read. */
    const struct hf_env *env;
    struct hf__store *store;
    uint32_t capabilities; /* the store's; still known when it is closed */
    struct hf__host host;
    struct hf__who self;
    char *self_text; /* storage of `self` */
    pid_t pid;
    struct hf__own *own; /* see own.c; NULL: the system has no such memory */
    int64_t op_timeout_ms, retain_ms, retire_ms;
    uint64_t seed;

    pthread_mutex_t mutex;
    pthread_cond_t changed; /* a user left, a callback ended, a thread ended */
    unsigned refs;          /* the opener's and one per lock handle */
    unsigned users;         /* calls under way; hf_close waits for them */
    bool closing, closed;
    struct hf__calling *calling; /* callbacks under way, but for the herald's */
    hf_lock *locks;
    struct hf__heap timers;
    size_t lock_count;
    struct hf__table waiting; /* by ticket */
    struct hf__table owned;   /* by name and owner */

    /* keeper.c */
    bool keeper_runs, stop;
    pthread_t keeper;
    int epoll_fd, timer_fd, kick_fd;
    int64_t armed_ns; /* what timer_fd is set to */

    /* ear.c */
    enum { HF__NOT_ASKED, HF__BEING_ASKED, HF__ASKED } listening; /* the store, for its wake_fd */
    int64_t listening_since_ns;                                   /* INT64_MIN: it has none */
    int wake_fd, nudge_fd;
    struct hf__waiter *ear; /* who reads wake_fd now; NULL: the keeper */
    bool keeper_hears;      /* it reads at this moment */
    bool nudged;            /* nudge_fd is readable */

    /* hand.c */
    bool hand_runs;
    pthread_t hand;
    pthread_cond_t has_job;
    hf_lock *first_job, *last_job;
    int64_t pressing_ns; /* no lease that it renews ends before; INT64_MAX: there is none */
    int64_t looked_ns;   /* when all were last looked at for that */

    /* herald.c */
    bool herald_runs;
    pthread_t herald;
    pthread_cond_t has_call;
    hf_lock *first_call, *last_call;
};

/* client.c ----------------------------------------------------------------- */

/* hf_open() with another clock; `env` NULL is the system's. For tests. */
int hf__open(const char *url, const hf_client_options *opt, const struct hf_env *env,
             hf_client **ret_client, hf_error *err);

/* Every public call on a client goes through these. In between the thread cannot be cancelled: it
 * may hold the mutex or a connection. HF_INVALID, HF_FORKED, HF_CLOSED: then there is nothing to
 * leave. */
struct hf__visit {
    int cancel_state;
};
int hf__enter(hf_client *client, struct hf__visit *visit, hf_error *err);
void hf__leave(hf_client *client, const struct hf__visit *visit);

/* Around a callback that runs on the caller's own thread. */
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

/* A thread that takes no signals. `stack` 0: the default size. */
int hf__thread_start(pthread_t *ret_thread, size_t stack, void *(*run)(void *), void *arg);

/* Mutex held. After every store call: whether the store has lost its data under us. */
void hf__after_call(hf_client *client);

/* The name's length, HF_NTS resolved; HF_INVALID with a sentence. */
int hf__name_len(const char *name, size_t given, size_t *ret_len, hf_error *err);

/* own.c -------------------------------------------------------------------- */
void hf__own_init(hf_client *client);
void hf__own_clear(hf_client *client);

/* This is a child of the process that opened the client. */
bool hf__is_forked(const hf_client *client);

/* A ticket that nobody had before. 0 or HF_SYSTEM. Mutex not held. */
int hf__draw_ticket(hf_client *client, struct hf__ticket *ret_ticket);

/* lock.c ------------------------------------------------------------------- */

struct hf__name {
    const char *bytes;
    size_t len;
};

/* Makes a handle with a fresh ticket, not yet known to the keeper. */
int hf__lock_new(hf_client *client, const struct hf__name *name, const hf_options *opt,
                 hf_lock **ret_lock, hf_error *err);

/* Another ticket, for a bid that starts afresh. */
int hf__lock_new_ticket(hf_lock *lock, hf_error *err);

/* Renews, and so claims, a lock that is held. Mutex not held. HF_LOST, or the store's error. */
int hf__lock_renew_once(hf_lock *lock, hf_error *err);

/* Mutex held. The last reference frees the lock (not the client's reference to itself). */
void hf__lock_ref(hf_lock *lock);
void hf__lock_unref(hf_lock *lock);

/* Mutex held. Whether it is still ours at this moment, max_hold included. */
bool hf__lock_holds(hf_lock *lock, int64_t now_ns);

/* Mutex held. Makes the descriptor readable, if there is one. */
void hf__lock_show_lost(hf_lock *lock);

/* Mutex held. How a renewal of a held lock went: `err` NULL is well. */
void hf__lock_note_renewal(hf_lock *lock, const hf_error *err);

/* Mutex held. The lock is lost: wake whoever polls or listens. Called once the bidder says so. */
void hf__lock_tell_lost(hf_lock *lock);

/* keeper.c ----------------------------------------------------------------- */

/* Starts the thread if it does not run. Mutex held. */
int hf__keeper_start(hf_client *client, hf_error *err);

/* Mutex held. The store's descriptor is read by the keeper from now on; is lent to somebody, or given
 * back. */
int hf__keeper_hear(hf_client *client);
int hf__keeper_lend(hf_client *client, bool lent);

/* Mutex held. Sets the lock's timer to the next moment something is due, by its duty. */
void hf__keeper_schedule(hf_lock *lock);
void hf__keeper_forget(hf_lock *lock);
void hf__keeper_stop(hf_client *client); /* joins; mutex not held */

/* Mutex held. The keeper will see when it is fired; it forgets it by itself when it is freed. */
int hf__keeper_watch(hf_client *client, hf_cancel *cancel);

/* ear.c -------------------------------------------------------------------- */

/* Asks the store for its wake-up descriptor, the first time only. True: a request sent at `sent_ns`
 * was sent before anybody listened, so ask the store once more. Mutex held, released meanwhile. */
bool hf__ear_open(hf_client *client, int64_t sent_ns);
void hf__ear_close(hf_client *client);

/* For the keeper: there is something to read. Mutex not held. */
void hf__ear_serve(hf_client *client);

/* Mutex held, released meanwhile. Reads until there are news for this waiter; returns without if
 * somebody else reads, or has to. */
void hf__ear_borrow(hf_client *client, struct hf__waiter *waiter);

/* Mutex held. Wakes the one that reads. */
void hf__ear_nudge(hf_client *client);

/* hand.c, herald.c --------------------------------------------------------- */

/* Mutex held. */
void hf__hand_push(hf_lock *lock);
void hf__hand_heed(hf_lock *lock); /* its lease may be the most pressing */
void hf__hand_forget(hf_lock *lock);
void hf__hand_stop(hf_client *client); /* mutex not held */

void hf__herald_push(hf_lock *lock);
void hf__herald_forget(hf_lock *lock); /* waits for a callback of this lock that is under way */
void hf__herald_stop(hf_client *client);
bool hf__herald_is_me(const hf_client *client); /* a callback runs on this thread */

/* wait.c ------------------------------------------------------------------- */

/* Mutex held. Puts the lock in the keeper's care while its caller sleeps, until `until_ns` at most;
 * `cancel` may be NULL. HF_NO_MEMORY, HF_SYSTEM. */
int hf__wait_begin(hf_lock *lock, int64_t until_ns, hf_cancel *cancel, hf_error *err);
void hf__wait_end(hf_lock *lock);

/* Mutex held, released while it sleeps. Gives the news and clears them. */
unsigned hf__wait_for_news(hf_lock *lock);

/* Mutex held. */
void hf__wait_tell(hf_lock *lock, enum hf__news news);

/* The same in two steps: what is left to do when the mutex is given back, or the caller would wake
 * up only to wait for it. */
struct hf__waiter *hf__wait_note(hf_lock *lock, enum hf__news news); /* mutex held */
void hf__wait_wake(hf_client *client, struct hf__waiter *noted);     /* not held; NULL is fine */

/* reentry.c ---------------------------------------------------------------- */

/* Mutex held. What this owner has of this name already: a lock that is held or waited for, else one
 * that was lost but not given back, else NULL. */
hf_lock *hf__reentry_find(hf_client *client, const char *name, size_t name_len, uint64_t owner);
void hf__reentry_add(hf_lock *lock);
void hf__reentry_remove(hf_lock *lock);
uint64_t hf__reentry_owner(uint64_t given); /* 0: the calling thread */

/* cancel.c ----------------------------------------------------------------- */
struct hf_cancel {
    pid_t pid;
    int fd; /* eventfd: readable once fired */
};
bool hf__cancel_fired(const hf_cancel *cancel);

/* undo.c ------------------------------------------------------------------- */

/* Ends a bid or a grant in the store, whatever became of it, and goes on in the background if the
 * store stays away. `release`: it was held and goes back in good order. The lock must be out of the
 * keeper's care. HF_OK, HF_STALE, HF_UNKNOWN (with may_hold_ms). Mutex not held. */
int hf__undo(hf_lock *lock, bool release, hf_error *err);

/* One more try, by the hand. True: it is over. Mutex not held. */
bool hf__undo_again(hf_lock *lock, int64_t deadline_ns);

#endif
