/* What this client knows of its own tickets, so that most operations need not look first. */
#ifndef HF_STORES_ETCD_BIDS_H
#define HF_STORES_ETCD_BIDS_H

#include "base/table.h"
#include "stores/etcd/keys.h"
#include "stores/store.h"

struct hf__etcd_bid {
    struct hf__link link;
    struct hf__ticket ticket;
    hf_mode mode;
    int64_t ttl_ms, delay_ms;
    int64_t lease;       /* its own for as long as it bids or holds; in the names of its keys */
    bool lease_given;    /* by an answer: it is never asked for again */
    bool doubted;        /* a request of it may still be on the way */
    int64_t asked_ns;    /* when the lease was first asked for */
    bool lease_dropped;  /* it never expires, and is claimed */
    bool retired;        /* over: never let in again */
    uint64_t joined;     /* create revision of its place; 0: not known */
    uint64_t generation; /* 0: not inside */
    uint64_t marked;     /* revision at which its mark was last put, as far as is known */
    bool handed;         /* by another's release, and not claimed yet */
    int64_t inside_ns;   /* when we first knew that it was let in; 0: not known */
    bool tells;          /* its holder wants to know when somebody waits */
    bool wanted;         /* and somebody did when we last looked */
    int64_t proved_ns;   /* sent before the request that last restarted the lease */
    int64_t forget_ns;   /* INT64_MAX while it is of use */
    struct hf__etcd_opened {
        bool asked, done;    /* its key below opened/ was put: perhaps, surely */
        bool known;          /* what follows is what stands there, and no holder is in doubt */
        uint64_t put, order; /* revision of the value's last put, and its number if it is ours */
    } opened;
    struct hf__etcd_next {
        struct hf__ticket ticket;
        int64_t lease;
        uint64_t joined;
    } next; /* the writer right behind it, as far as is known; `joined` 0: nobody */
};

/* Each takes the mutex. */

/* A copy of what is known; with `bid` not NULL it is noted first if it is new. False: unknown, or
 * out of memory. */
bool hf__etcd_bid_get(struct hf__etcd *e, const struct hf__ticket *ticket,
                      const struct hf__bid *bid, struct hf__etcd_bid *ret_copy);
/* Writes back what a request has taught: fields only rise. */
void hf__etcd_bid_learn(struct hf__etcd *e, const struct hf__etcd_bid *copy);
/* It is over. Remembered for so long, so that a late attempt finds it; 0: none is on the way. */
void hf__etcd_bid_retire(struct hf__etcd *e, const struct hf__bid *bid, int64_t remember_ms);
void hf__etcd_bid_set_wanted(struct hf__etcd *e, const struct hf__ticket *ticket, bool wanted);
/* What it knows of the value, from now on. */
void hf__etcd_bid_set_opened(struct hf__etcd *e, const struct hf__ticket *ticket,
                             const struct hf__etcd_opened *opened);
/* Who stands right behind this ticket, if it is known here. */
void hf__etcd_bid_set_next(struct hf__etcd *e, const struct hf__ticket *ticket,
                           const struct hf__etcd_next *next);
/* Whose key below inside/ or broken/ this is. False: nobody's here. */
bool hf__etcd_bid_of_mark(struct hf__etcd *e, struct hf__slice key, struct hf__ticket *ret_ticket);
void hf__etcd_bids_clear(struct hf__etcd *e);

#endif
