/* Between the public functions (acquire_api.c, started.c) and the work of one bid (acquire.c,
 * adopt.c). Mutex held, released for round trips, callbacks and sleep. */
#ifndef HF_CORE_ACQUIRE_H
#define HF_CORE_ACQUIRE_H

#include "core_client.h"

/* One acquire that is under way. Whoever runs it, the caller's own thread or a runner, takes it as
 * far as it gets without sleeping, and again when there are news. */
struct hf__acquiring {
    hf_lock *lock;
    hf_error *err;
    hf_cancel *cancel;         /* NULL: there is none */
    hf_wait_callback *on_wait; /* likewise */
    int64_t max_hold_ms;
    int64_t until_ns;         /* the end of the wait; INT64_MAX */
    int64_t patience_ns;      /* how long setbacks are borne; INT64_MAX */
    int64_t setback_since_ns; /* being told of a cached lock is one, too */
    int64_t began_ns;         /* if somebody counts */
    unsigned setbacks;        /* since it last had a place in the queue */
    int slept_over;           /* the error of the setback, which `err` tells; 0: it was queued */

    bool waits;              /* for others */
    bool callable;           /* somebody listened already when the last attempt was sent */
    bool patient;            /* the caller has said how long to bear a store that is away */
    bool confirmed;          /* not to be had before the store knows that we know */
    bool spent;              /* the store will not grant this ticket any more */
    bool stopped;            /* the caller does not want it any more */
    bool slept;              /* ASLEEP was the last outcome */
    bool slept_ours;         /* it was ours then, and only its claim was missing */
    unsigned char idle_asks; /* a bid that does not wait has asked for a cached lock again */
};

/* What a step leads to: 0 the next one, negative giving up, or one of these. */
enum hf__acquire_outcome { HF__ACQUIRE_KEPT = 1, HF__ACQUIRE_ASLEEP = 2 };

/* What hf_acquire() makes of its options, which may be NULL, or of an older header. HF_INVALID,
 * HF_UNSUPPORTED. */
int hf__copy_options(const hf_options *given, hf_options *ret, hf_error *err);

/* Nothing of `opt` is needed afterwards but what it points to. `err` is left to be set; it has to say
 * the same after a sleep as before. */
void hf__acquire_begin(struct hf__acquiring *bid, hf_lock *lock, const hf_options *opt);

/* As far as it gets without sleeping. ASLEEP: go on when lock->waiter has news. KEPT: the lock is
 * kept. Negative: nothing of it is left in the store, or the withdrawer goes on undoing it
 * (HF_UNKNOWN). */
int hf__acquire_advance(struct hf__acquiring *bid);

/* Bids on this thread until it is held, refused, or no longer wanted: 0, or as above. */
int hf__bid(hf_lock *lock, const hf_options *opt, hf_error *err);

/* Takes over the grant of this ticket; then as above. HF_STALE: it holds nothing. */
int hf__adopt(hf_lock *lock, const char *ticket, const hf_options *opt, hf_error *err);

#endif
