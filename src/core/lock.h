/* A lock handle, from its bid to its last reference.
 *
 * A lock has a duty while the client has to do something for it:
 *
 *      NONE --asks--> WAIT --granted--> KEEP --release, detach--> NONE
 *        |              `--gives up--------------> NONE
 *        |--granted at once--> KEEP                  |
 *        `<----------- answered ------ UNDO <--------' the end was not answered
 *
 * Everything below needs client->mutex unless it says otherwise. */
#ifndef HF_CORE_LOCK_H
#define HF_CORE_LOCK_H

#include <pthread.h>

#include "base/heap.h"
#include "base/lease.h"
#include "base/table.h"
#include "doorman/bidder.h"
#include "stores/store.h"

enum hf__duty {
    HF__DUTY_NONE,
    HF__DUTY_WAIT, /* a caller waits: give its signs of life, wake it */
    HF__DUTY_KEEP, /* held: renew, warn, declare lost */
    HF__DUTY_UNDO, /* nobody has the handle any more: withdraw or release until it is answered */
};
#define HF__DUTIES 4

/* Why a sleeping caller was woken: one bit each. */
enum hf__news {
    HF__NEWS_GRANT = 1,
    HF__NEWS_ASK = 2,
    HF__NEWS_TIMEOUT = 4,
    HF__NEWS_CANCEL = 8,
    HF__NEWS_CLOSED = 16,
};

/* A bid that waits, and its caller if it has one. */
struct hf__waiter {
    unsigned refs; /* the caller's, and one of each that wakes it */
    unsigned news;
    int64_t until_ns; /* the end of the wait; INT64_MAX */
    int64_t ask_ns;   /* when to ask again although nobody called */
    int64_t sign_ns;  /* when the next sign of life is due */
    hf_cancel *cancel;
    bool has_caller;
    pthread_cond_t woken; /* the caller's: without one, there is no memory for it */
};

/* A round trip in the background, of the renewer or the withdrawer. */
enum hf__job { HF__JOB_NONE, HF__JOB_QUEUED, HF__JOB_UNDER_WAY };

struct hf_lock {
    hf_client *client;
    unsigned refs; /* the user's; its duty's; one for each queue it stands in, or call under way */
    enum hf__duty duty;
    hf_lock *prev, *next; /* in client->on_duty */

    /* Of this ticket: cleared with every new one. */
    struct hf__bidder bidder;
    bool in_store;         /* the store has said that it waits, is inside or was withdrawn, and so
                              may linger; no attempt since was refused */
    bool claim_unanswered; /* a renewal that named the grant may have been applied */
    bool lost_told;
    bool called; /* while it waited: whether somebody waits behind it is to be asked. Of a cached
                              one: for good, it is to go back */
    bool opened_value;     /* it has asked for the value, or written it */
    bool order_is_unknown; /* it was taken over: somebody may have written before */
    uint64_t value_order;  /* of the last write of the value */

    uint32_t local_grants; /* after the store's own: see cache.h */

    unsigned renewals; /* that name the grant, under way: each may still be applied */

    /* Of this duty: cleared with every new one. */
    unsigned failures; /* of jobs, in a row */
    int64_t retry_ns;  /* a job failed: not before then */
    bool risk_told, wanted_told;
    bool is_idle;            /* KEEP: its user has released it, and the client has kept it */
    bool used_since_renewal; /* of what can be idle */
    enum hf__job job;
    bool job_again;      /* it was asked for while it is under way */
    unsigned job_number; /* a job under way that has another number is of an earlier duty */

    struct hf__bid bid;         /* name and, with a note, `who` point behind this structure */
    struct hf__timer timer;     /* the keeper's */
    struct hf__timer job_turn;  /* the renewer's or the withdrawer's */
    struct hf__timer call_turn; /* the notifier's */
    struct hf__link by_ticket;
    struct hf__link by_owner;    /* while it is idle, which is nobody's: by name (cache.h) */
    struct hf__waiter *waiter;   /* WAIT */
    struct hf__started *started; /* how it was acquired, if not by a call that waits; NULL */
    uint64_t owner;
    int64_t max_hold_ns;   /* the moment it must be over; INT64_MAX */
    int64_t at_least_ms;   /* of its release */
    int64_t undo_until_ns; /* UNDO: the store may hold something until then */
    hf_error *trouble;     /* of the last renewal; NULL: it did not fail */
    unsigned count;        /* reentrant acquires */
    int lost_fd;           /* -1 until asked for */
    bool reentrant, by_hand, undo_is_release;
    bool call_risk, call_lost, call_wanted; /* what the notifier still has to tell */
    bool in_call;                           /* a callback runs now */
    hf_lock_callback *on_at_risk, *on_lost, *on_wanted;
    void *arg;
    char ticket[HF_TICKET_SIZE];
    char name[]; /* and a NUL; then, if there is a note, the bid's `who`, the note and a NUL */
};

struct hf__name {
    const char *bytes;
    size_t len;
};

/* The name's length, HF_NTS resolved; HF_INVALID with a sentence. Mutex not needed. */
int hf__name_len(const char *name, size_t given, size_t *ret_len, hf_error *err);

/* A handle without a ticket, of which the client does not know yet; to be freed by free(). NULL: no
 * memory. Mutex not needed. */
hf_lock *hf__lock_new(hf_client *client, const struct hf__name *name, const hf_options *opt);

/* The client counts it from now on, and has room for all it may have to keep of it. HF_NO_MEMORY.
 * The last reference frees it. */
int hf__lock_join(hf_lock *lock);
void hf__lock_ref(hf_lock *lock);
void hf__lock_unref(hf_lock *lock);

/* A bid starts afresh: a new ticket, and nothing of the last one. Mutex held, may be released.
 * HF_SYSTEM. */
int hf__lock_new_ticket(hf_lock *lock, hf_error *err);

/* From one duty to the next; nothing of the last one is left. */
void hf__duty_begin(hf_lock *lock, enum hf__duty duty);
void hf__duty_end(hf_lock *lock); /* fine if there is none; may free it with its last reference */

/* It is held, and the user is about to get it, for `max_hold_ms` at most; 0: no limit. */
void hf__lock_keep(hf_lock *lock, int64_t max_hold_ms);

/* Its user is through with it: no call finds it by its name, and nobody is told of it any more. Waits
 * for a callback that is under way. */
void hf__lock_forget_user(hf_lock *lock);

/* Renews, and so claims, a lock that is held, on the caller's thread. Released meanwhile. HF_LOST,
 * or the store's error. */
int hf__lock_renew_once(hf_lock *lock, hf_error *err);

/* A renewal of a lock was answered, or failed. `generation` is what it had named. */
enum hf__advice hf__lock_renewed(hf_lock *lock, uint64_t generation,
                                 const struct hf__answer *answer, int64_t now_ns);
void hf__lock_not_renewed(hf_lock *lock, uint64_t generation, const hf_error *err);

/* For the log, with the error of the last renewal if that is the reason. */
void hf__lock_log_danger(const hf_lock *lock, hf_log_kind kind, const char *text);

/* Whether it is still ours at this moment, max_hold included. If it is lost, and the user who has it
 * was not told yet: makes the descriptor readable, and calls. */
bool hf__lock_holds(hf_lock *lock, int64_t now_ns);

/* Gives it back, as hf_lock_release(). Released meanwhile. */
int hf__lock_give_back(hf_lock *lock, hf_error *err);

/* Makes the descriptor readable, if there is one. */
void hf__lock_show_lost(hf_lock *lock);

/* wait.c ------------------------------------------------------------------- */

/* The client looks after it while its caller waits, until `until_ns` at most; `cancel` may be NULL.
 * Nothing if it waits already. HF_NO_MEMORY, HF_SYSTEM. */
int hf__wait_begin(hf_lock *lock, int64_t until_ns, hf_cancel *cancel, hf_error *err);

/* Sleeps until there are news. Released meanwhile. */
void hf__wait_for_news(hf_lock *lock);
unsigned hf__wait_take_news(hf_lock *lock);

void hf__wait_tell(hf_lock *lock, enum hf__news news);

/* The same in two steps: what is left to do when the mutex is given back, or the caller would wake
 * up only to wait for it. */
struct hf__waiter *hf__wait_note(hf_lock *lock, enum hf__news news); /* NULL: nobody waits */
void hf__wait_wake(hf_client *client, struct hf__waiter *noted);     /* not held; NULL is fine */

void hf__waiter_unref(struct hf__waiter *waiter);

/* renewer.c ---------------------------------------------------------------- */

/* Renew it, or give its sign of life, soon. */
void hf__renewer_push(hf_lock *lock);
void hf__renewer_work(hf_client *client);

/* notifier.c --------------------------------------------------------------- */
void hf__notifier_push(hf_lock *lock); /* one of call_ is set */
void hf__notifier_work(hf_client *client);

/* There is nothing more to tell. Waits for a callback of this lock that is under way. */
void hf__notifier_forget(hf_lock *lock);

/* undo.c ------------------------------------------------------------------- */

/* Ends a bid or a grant in the store, whatever became of it, and goes on in the background if the
 * store stays away. `release`: it was held and goes back in good order. It has no duty. HF_OK,
 * HF_STALE, HF_UNKNOWN (with may_hold_ms). Released meanwhile. */
int hf__undo(hf_lock *lock, bool release, hf_error *err);

/* Leaves that to the withdrawer, whoever it was on duty for. */
void hf__undo_later(hf_lock *lock, bool release);

/* One try, until `deadline_ns`. Released meanwhile. */
int hf__undo_once(hf_lock *lock, bool release, int64_t deadline_ns, struct hf__answer *ret_answer,
                  hf_error *err);

void hf__withdrawer_push(hf_lock *lock);
void hf__withdrawer_work(hf_client *client);

/* reentry.c ---------------------------------------------------------------- */

#define HF__OWNER_NOBODY 0 /* it has nothing, and nothing can be found under it */

/* What this owner has of this name already: a lock that is held or waited for, else one that was
 * lost but not given back, else NULL. */
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

#endif
