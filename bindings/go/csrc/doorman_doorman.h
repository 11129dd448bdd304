/* The doorman: the rules of who may enter, in which order and for how long, without any I/O.
 *
 * A record is what a store keeps beside each name. Every operation takes the record and the store's
 * time, changes the record and gives an answer: sweep, apply, let in, answer. The functions have no
 * clock, allocate nothing and never fail; a store brings the record in, and writes out what
 * changed.
 *
 *              attempt                let in                    release, withdraw
 *      (none) ---------> WAITING ----------------> INSIDE ------------------------> gone
 *                           |  \                     |  \
 *            sign of life   |   \ withdraw, break    |   \ expired or broken, claimed, lock-delay
 *            overdue: gone  v    \                   |    v
 *                                 `--> RETIRED <-----+-- LINGERING (until its end, or a withdraw)
 *                                      (no longer let in; forgotten after retire_ms)
 *
 * Two ideas hold it together: a ticket is let in at most once, and only somebody who knows of a
 * grant can claim it. A grant that its bidder may not know of yet (a hand-over, or any that would
 * never expire) is provisional: its lease is the waiter's own lease until a renewal names its
 * generation.
 *
 * LINGERING is also where a release puts a holder that asked for the lock to stay closed for some time
 * after it was taken (C14): only the end it is given differs.
 *
 * Instants and durations are milliseconds of the store's clock, which may have any origin. */
#ifndef HF_DOORMAN_DOORMAN_H
#define HF_DOORMAN_DOORMAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base_env.h"
#include "base_ticket.h"
#include "holdfast.h"

#define HF__QUEUE_MAX   10000 /* waiters per lock */
#define HF__RETIRED_MAX 10000 /* tombstones per lock: beyond it new bids are refused */

/* So many numbers after its own belong to a cached grant (C20): its client gives them to those who take
 * the lock from it meanwhile. The record learns of them when the grant ends, by its release how many were
 * used; nobody else comes inside before. */
#ifndef HF__TOKENS_RESERVED /* fewer in the exhaustive test */
#define HF__TOKENS_RESERVED (UINT64_C(1) << 20)
#endif

enum hf__place {
    HF__PLACE_GONE,
    HF__PLACE_WAITING,
    HF__PLACE_INSIDE,
    HF__PLACE_LINGERING,
    HF__PLACE_RETIRED
};

/* What the last operation did to an entry; a store writes those that have any, and clears them. */
enum hf__effect {
    HF__EFFECT_CHANGED = 1, /* some field differs */
    HF__EFFECT_NEW = 2,     /* it was not there before */
    HF__EFFECT_LET_IN = 4,  /* it came inside: tell its bidder */
    HF__EFFECT_WANTED = 8,  /* it is inside and somebody has come to wait: call its holder */
};

struct hf__entry {
    struct hf__ticket ticket;
    enum hf__place place;
    unsigned effects;
    hf_mode mode;
    uint32_t limit;      /* 0: none */
    uint64_t generation; /* 0 until let in */
    int64_t ttl_ms;      /* HF__NEVER: until it is released or broken */
    int64_t lock_delay_ms;
    int64_t retire_ms; /* how long its ticket is remembered after it is over */
    int64_t since_ms;  /* joined, or let in */
    int64_t until_ms;  /* expiry, end of the linger, sign of life due, tombstone's end */
    int64_t lease_ms;  /* the span last given: until_ms was set to "then" + this */
    bool claimed;
    bool tell;   /* its holder wants to know when somebody waits (C16) */
    bool told;   /* it was called for that, and has not heard since that nobody waits */
    bool opened; /* it has read or written the value (C15) */
    bool cached; /* its client may keep it after its user has released it (C20) */
    void *who;   /* the store's own; carried along, never looked at */
};

/* What is kept beside a lock (C15). */
struct hf__value {
    uint64_t generation; /* of the grant that wrote it; 0: nobody has */
    uint64_t order;      /* counts the writes of one grant, from 1 */
    bool doubt;          /* a holder that had opened it vanished, and nobody has written it since */
    size_t len;
    unsigned char bytes[HF_VALUE_MAX];
};

/* The entries in the order in which they joined. A store that does not want to load a long queue
 * gives all that are not WAITING, those whose until_ms has passed (or, where its clock can go back,
 * is further ahead than lease_ms), the first few waiters, and the one the operation is about; the
 * `unseen` waiters it left out then stand in the queue just before entries[gap], or at its end if
 * gap == count. */
struct hf__record {
    uint64_t generation; /* the last one given */
    struct hf__entry *entries;
    size_t count, capacity; /* ATTEMPT, RELEASE and WITHDRAW need room for one more */
    size_t unseen, gap;

    /* Of those who share and are inside or lingering it may leave out all that nothing is done to: not
     * the one the operation is about, whose time has not passed (or is further ahead, as above), and
     * who need not be called because somebody waits. */
    struct {
        size_t count;
        uint32_t limit;   /* the smallest of theirs; 0: none has one */
        int64_t until_ms; /* the earliest of theirs, if count > 0 */
    } sharers;

    /* Of the value; its bytes are the store's own. The first two only matter to READ and WRITE. A store
     * need not load `doubt` for other operations: whatever it was, it is to be set when it is set. */
    uint64_t value_generation, value_order;
    bool doubt;
};

/* The store's time. `stamp_us` is wall time and only seeds generations (C4). */
struct hf__moment {
    int64_t now_ms;
    uint64_t stamp_us;
};

enum hf__verdict {
    HF__VERDICT_GRANTED,   /* inside: generation, lease_ms, claimed */
    HF__VERDICT_QUEUED,    /* waits: position, generation, ask_again_ms */
    HF__VERDICT_BUSY,      /* a no-wait bid that was not let in */
    HF__VERDICT_WITHDRAWN, /* this ticket was retired: it is never let in again */
    HF__VERDICT_FULL,      /* the queue or the tombstones are */
    HF__VERDICT_DONE,      /* released, withdrawn, broken, read, written */
    HF__VERDICT_STALE, /* release, withdraw: this ticket was not inside; break: there is no such ticket;
                          write: what is there is newer */
    HF__VERDICT_GONE, /* renew: neither inside with this generation nor waiting; read, write: not inside
                         with it */
    HF__VERDICT_MORE, /* the record was too short a window: load more waiters and apply again */
};

struct hf__answer {
    enum hf__verdict verdict;
    uint64_t generation; /* GRANTED: its own; QUEUED: the last one given */
    int64_t lease_ms;    /* GRANTED: the lease in force, HF__NEVER; QUEUED: the provisional lease a
                            hand-over would give */
    bool claimed;
    bool wanted;     /* GRANTED, to a bid with `tell`: somebody waits. BUSY: who is inside may not
                             be using it, and was called: it is worth asking again soon */
    size_t position; /* QUEUED: from 1; 0 if the store did not count */
    int64_t ask_again_ms; /* QUEUED: when it is worth asking, if nobody calls */
    int64_t sent_ns;      /* the client's clock from before the request in which the store read its
                             own; the doorman leaves it alone */
};

struct hf__bid {
    const char *name;
    size_t name_len;
    struct hf__ticket ticket;
    hf_mode mode;
    uint32_t limit;
    int64_t ttl_ms; /* HF__NEVER: until it is released or broken */
    int64_t lock_delay_ms;
    int64_t retire_ms;
    bool queue;  /* false: no-wait */
    bool tell;   /* the holder wants to know when somebody waits; needs HF_CAN_WANTED */
    bool cached; /* see the entry's; with `tell`, exclusive, and with a lease; needs HF_CAN_CACHE */
    const struct hf__who *who;
};

/* How long a waiter counts as alive without a sign of life: clamp(ttl, 1 s, 10 s), 5 s for a
 * lock that never expires. */
int64_t hf__own_lease_ms(int64_t ttl_ms);

/* Rows, scripts and nodes say 0 for a ttl of HF__NEVER: what a store writes, and what it has read. */
static inline int64_t hf__ttl_stored(int64_t ttl_ms)
{
    return ttl_ms == HF__NEVER ? 0 : ttl_ms;
}
static inline int64_t hf__ttl_of_stored(int64_t stored_ms)
{
    return stored_ms == 0 ? HF__NEVER : stored_ms;
}

/* The lease of a grant its bidder may not know of: the own lease, or the ttl if that is shorter. */
int64_t hf__provisional_lease_ms(int64_t ttl_ms);

/* What is asked of a record, and of a store. */
struct hf__operation {
    enum hf__operation_kind {
        /* A bid, or the same bid again. GRANTED, QUEUED, BUSY, WITHDRAWN, FULL, MORE. */
        HF__OPERATION_ATTEMPT,
        /* The holder leaves and the next are let in. Retires the ticket, as WITHDRAW does, if
         * retire_ms > 0: an attempt of it is unanswered. With at_least_ms the door stays closed for
         * so long after the holder was let in. The generation is the last token that was used of those
         * of a cached grant, or 0. DONE (it was inside), STALE, MORE. */
        HF__OPERATION_RELEASE,
        /* The bidder gives up, whatever became of its bid. Retires the ticket if retire_ms > 0, also
         * one that was never seen: its attempt may still be on the way. Ends its lock-delay too:
         * whoever withdraws has not told anybody of a grant, so nobody has worked under it. DONE (it
         * was inside, waiting or lingering), STALE (the bidder has nothing here), MORE. */
        HF__OPERATION_WITHDRAW,
        /* A sign of life. With the generation it claims the grant and restarts its lease; with 0
         * (the bidder does not know of a grant) it restarts the lease in force, or keeps the waiter
         * alive. GRANTED, QUEUED (position 0), GONE, MORE. */
        HF__OPERATION_RENEW,
        /* Takes the lock away from a ticket: see hf_break(). DONE, STALE, MORE. */
        HF__OPERATION_BREAK,
        /* Reads the value. With the generation: for the holder, which is remembered if it is an
         * exclusive one. With 0: for anybody, whatever the ticket. DONE, GONE, MORE. */
        HF__OPERATION_READ,
        /* The holder, if it is an exclusive one, writes the value, unless what is there is newer.
         * DONE, STALE, GONE, MORE. */
        HF__OPERATION_WRITE,
        /* Nothing but what every operation does first: sweeps, and lets in. DONE, MORE. */
        HF__OPERATION_SWEEP,
    } kind;
    const struct hf__bid *bid; /* all of it for ATTEMPT, else name and ticket; SWEEP: NULL */
    void *who;                 /* ATTEMPT: goes into a new entry as it is */
    int64_t retire_ms;         /* RELEASE, WITHDRAW */
    int64_t at_least_ms;       /* RELEASE; needs HF_CAN_AT_LEAST */
    uint64_t generation;       /* RENEW, READ, WRITE; RELEASE of a cached grant */
    struct hf__value *value;   /* READ: the store fills it in. WRITE: its order and bytes */
    bool now;                  /* BREAK: without waiting for the lease */
};

struct hf__answer hf__doorman_apply(struct hf__record *record, const struct hf__operation *op,
                                    struct hf__moment at);

/* Drops entries that are GONE and clears the effects, after the store has written them. */
void hf__record_settle(struct hf__record *record);

/* The entry with this ticket, gone ones not counted, or NULL. */
struct hf__entry *hf__record_find(const struct hf__record *record, const struct hf__ticket *ticket);

#endif
