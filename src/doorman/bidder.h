/* The bidder: the client's half of the doorman's rules, without any I/O.
 *
 * One bidder is one ticket. It is told what was asked and answered, which wake-ups came and what
 * time it is, and says what this bid is now. The core drives it; so does the exhaustive test,
 * against the real doorman, with messages that come late, twice or never.
 *
 *      ASKING ---queued---> WAITING ---woken, or granted---> HOLDING ---deadline, gone---> LOST
 *         |                    |  ^                             |
 *         |                    `--' queued again                `--release, withdraw--> OVER
 *         `------------- granted ------------------------------>
 *
 * Three rules keep a late message from doing harm:
 *  - an answer to a request that was sent before we knew of the grant says nothing about the grant;
 *  - a wake-up is the grant only if its generation is above that of the last "queued" answer and it
 *    comes before the deadline counted from that answer's request: before that the store was still
 *    waiting for us, so the hand-over cannot be older;
 *  - LOST never turns back.
 *
 * Times are nanoseconds of the client's own clock. Not thread-safe: the core holds its mutex. */
#ifndef HF_DOORMAN_BIDDER_H
#define HF_DOORMAN_BIDDER_H

#include "doorman/doorman.h"

enum hf__phase {
    HF__PHASE_ASKING,
    HF__PHASE_WAITING,
    HF__PHASE_HOLDING,
    HF__PHASE_LOST,
    HF__PHASE_OVER
};

struct hf__bidder {
    enum hf__phase phase;
    hf_cause cause;             /* of LOST_IT */
    uint64_t generation;        /* of the grant; 0 before */
    bool claimed;               /* the store knows that we know */
    bool wanted;                /* somebody waits, as the last grant that was answered said (C16) */
    bool unanswered;            /* an attempt of this ticket may still be on the way */
    int64_t lease_ms;           /* in force, as last answered */
    int64_t sent_ns;            /* what the deadline counts from */
    int64_t known_ns;           /* when we learnt of the grant */
    int64_t deadline_ns;        /* INT64_MAX: never */
    uint64_t queued_generation; /* of the last "queued" answer */
    int64_t queued_sent_ns;
    int64_t queued_lease_ms;
};

enum hf__advice {
    HF__ADVICE_HOLD,    /* it is ours */
    HF__ADVICE_WAIT,    /* in the queue */
    HF__ADVICE_ASK,     /* ask again with the same ticket */
    HF__ADVICE_REFUSED, /* a no-wait bid: somebody else is there */
    HF__ADVICE_REBID,   /* this ticket is spent; bid anew with a new one */
    HF__ADVICE_NO_ROOM, /* the queue is full */
    HF__ADVICE_NOTHING, /* no longer of interest, or of no news */
};

void hf__bidder_init(struct hf__bidder *b);

/* An attempt was answered. Withdraw before REBID, REFUSED or NO_ROOM if b->unanswered. */
enum hf__advice hf__bidder_answered(struct hf__bidder *b, const struct hf__answer *a,
                                    int64_t now_ns);

/* An attempt may have been applied, but no answer came. */
void hf__bidder_unanswered(struct hf__bidder *b);

/* The store called this ticket. HOLD: that was the grant. ASK: only a hint. */
enum hf__advice hf__bidder_woken(struct hf__bidder *b, uint64_t generation, int64_t now_ns);

/* A renewal that named `generation` (0: a waiter's sign of life) was answered. */
enum hf__advice hf__bidder_renewed(struct hf__bidder *b, uint64_t generation,
                                   const struct hf__answer *a, int64_t now_ns);

/* Whether it is still ours at this moment; turns LOST_IT at the deadline, for good. */
bool hf__bidder_holds(struct hf__bidder *b, int64_t now_ns);

/* It is no longer ours, whatever the store would say. Only the first cause is kept. */
void hf__bidder_lose(struct hf__bidder *b, hf_cause cause);

#endif
