/* Bids and releases that no thread of the program waits for, and what is told of them.
 *
 *                       .--- news <--- asleep <---.
 *                       v                         |
 *      start -------> ready ------> a runner -----+---> over: an event
 *
 * A bid is the same one as that of hf_acquire() (acquire.h): where that one sleeps this one is left,
 * and news make it ready again. A few runners take what is ready to its next sleep; so there are as
 * many threads as round trips under way, whatever number waits. What has ended stands in the queue
 * of events until the program takes it. So does a loss, whose event lives in what was started, and
 * needs no memory when it comes.
 *
 * The lock owns what its bid was started with, a release is its own. Mutex held throughout. */
#ifndef HF_CORE_STARTED_H
#define HF_CORE_STARTED_H

#include "core/acquire.h"
#include "core/events.h"

struct hf__started {
    hf_client *client;
    hf_lock *lock; /* a release: NULL when it is over */
    uint64_t tag;
    struct hf__timer turn;           /* the runner's */
    struct hf__link by_tag;          /* a bid that is under way */
    struct hf__started *prev, *next; /* in the queue of events */
    hf_error *err;                   /* why, or why it sleeps; NULL: no reason, or no memory */
    int code;                        /* how it ended */
    unsigned char tells;             /* what stands there: hf__tell */
    bool is_release;
    bool runs;   /* a runner has it */
    bool silent; /* its lock is given back: nothing more is told */
    struct hf__acquiring bid;
};

/* Bids for a lock that is under its owner's name. HF_NO_MEMORY, HF_SYSTEM. */
int hf__start_bid(hf_lock *lock, const hf_options *opt, uint64_t tag, hf_error *err);

/* The same, but as far as its first sleep on this thread. 0: it is held, and no event tells so.
 * HF__ACQUIRE_ASLEEP: it goes on by itself. Or the error with which it ended. */
int hf__bid_or_start(hf_lock *lock, const hf_options *opt, uint64_t tag, hf_error *err);

/* There are news of a bid that was started. */
void hf__started_ready(struct hf__started *started);
void hf__runner_work(hf_client *client);

void hf__started_free(struct hf__started *started); /* NULL is fine */

#endif
