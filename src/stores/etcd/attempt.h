/* One attempt of a bid, as attempt.c runs it and questions.c asks it. */
#ifndef HF_STORES_ETCD_ATTEMPT_H
#define HF_STORES_ETCD_ATTEMPT_H

#include "stores/etcd/etcd.h"

#define HF__ETCD_MARGIN_MS 100

struct hf__etcd_attempt {
    struct hf__etcd *e;
    const struct hf__bid *bid;
    struct hf__etcd_name name;
    struct hf__etcd_bid known;
    int64_t lease, deadline_ns;
    struct hf__etcd_key place, inside, broken, tombstone;
    struct hf__etcd_key from[2], to[2]; /* where those who conflict are */
    size_t ranges;
    int64_t ask_again_ms; /* when the one before us could be called dead; 0: not looked */
    hf_error *err;
};

/* What the store said. */
struct hf__etcd_seen {
    bool granted, tombstone, broken;
    uint64_t joined, generation, marked, revision;
    bool has_before;
    struct hf__etcd_key before; /* the last of those before us */
    uint64_t before_joined;
    int64_t before_lease, before_ttl_ms;
    bool before_ours;
    struct hf__ticket before_ticket;
    char before_inbox[HF__ETCD_INBOX];
    bool handed; /* the generation is of a mark that somebody else has put: it is not claimed */
};

/* Fills in the keys. */
void hf__etcd_prepare_attempt(struct hf__etcd_attempt *a);

enum hf__etcd_question {
    HF__ETCD_QUESTION_ENTER_FREE, /* a place and inside at once, if nobody is there */
    HF__ETCD_QUESTION_LINE_UP, /* a place, if there is none (a no-wait bid gets none), and look */
    HF__ETCD_QUESTION_LOOK,
    HF__ETCD_QUESTION_ENTER,      /* inside, if nobody stands before our place */
    HF__ETCD_QUESTION_ENTER_FIRST /* the same; it is known that nobody does */
};
/* One transaction. The two that only enter show nothing if they fail. */
int hf__etcd_ask(struct hf__etcd_attempt *a, enum hf__etcd_question question, uint64_t joined,
                 struct hf__etcd_seen *ret_seen);

/* Clears the one before us away if it has died while it waited. 1: it was so; look again. Notes
 * when it is worth asking again. */
int hf__etcd_clear_dead(struct hf__etcd_attempt *a, const struct hf__etcd_seen *s);

/* handover.c: watches the one before us, and tells it that we are next. 1: one of the two places is
 * gone; look again. */
int hf__etcd_stand_behind(struct hf__etcd_attempt *a, const struct hf__etcd_seen *s);

#endif
