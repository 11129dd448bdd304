/* Watches and wake-ups (watch.c), and what a waiter concludes from them (predecessors.c). */
#ifndef HF_STORES_ZOOKEEPER_WATCH_H
#define HF_STORES_ZOOKEEPER_WATCH_H

#include "stores/store.h"
#include "stores/zookeeper/session.h"

/* The server will tell when a node changes (watch.c). */
struct hf__zk_watch {
    struct hf__link link; /* by path, in its session */
    struct hf__zk_session *session;
    struct hf__zk_subscription *subscriptions; /* who wants to know */
    bool armed;                                /* the server has answered */
    bool foreign;                              /* its node is another client's */
    bool children; /* it tells of who comes and goes below its node, not of the node */
    char path[];
};

/* What a bid that waits looks at: its own node, the last one before it that keeps it out, and the
 * last one before that (predecessors.c). */
enum hf__zk_watched {
    HF__ZK_WATCHED_OWN,
    HF__ZK_WATCHED_FAR,
    HF__ZK_WATCHED_NEAR,
    HF__ZK_WATCHED_ARRIVALS, /* of a holder: the children of the lock's directory (wanted.c) */
    HF__ZK_WATCHED_KINDS
};
struct hf__zk_subscription {
    struct hf__zk_watch *watch;       /* NULL: none, or it has told */
    struct hf__zk_subscription *next; /* of the same watch */
    struct hf__zk_bidding *b;
};

/* Lets the bid look at these paths (NULL: leave that subscription alone), in one round trip. ZNONODE: one
 * of them is not there. */
int hf__zk_watch(struct hf__zk_bidding *b, const char *const paths[HF__ZK_WATCHED_KINDS],
                 int64_t deadline_ns);
/* Lists the children of the lock's directory, and lets the bid know of the next change there. Gives the
 * server's code. */
int hf__zk_list_and_watch(struct hf__zk_bidding *b, int64_t deadline_ns, struct hf__zk_call *list);
void hf__zk_unsubscribe(struct hf__zk_subscription *subscription); /* under the mutex */
/* Under the mutex. `generation` 0: ask. */
void hf__zk_call_ticket(struct hf__zk *zk, const struct hf__ticket *ticket, uint64_t generation);
void hf__zk_free_watches(struct hf__zk_session *s);
int hf__zk_wake_fd(struct hf__store *store);
void hf__zk_wake(struct hf__store *store, hf__wake_sink *sink, void *ctx);

/* predecessors.c ------------------------------------------------------------------------------*/
struct hf__zk_standing {
    bool present;           /* its node is among the children */
    size_t position;        /* how many are before it */
    size_t crowd;           /* children in all */
    size_t blockers;        /* how many keep it out */
    const char *near, *far; /* the last of them and the one before, borrowed; NULL: nobody */
};
/* Under the mutex: it will watch the last two of these. */
void hf__zk_set_predecessors(struct hf__zk_bidding *b, const struct hf__zk_standing *at);
/* A watch has told `subscription` that its node has gone, or will not tell. Under the mutex. True: its bid
 * has a question, for hf__zk_ask_after_event() without the mutex: who is left, or, if it was let in,
 * what stands in the directory. */
bool hf__zk_watch_told(struct hf__zk_subscription *subscription, int type);
void hf__zk_ask_after_event(struct hf__zk_bidding *b);
/* Finds out in the background whether b->may_tell. */
void hf__zk_read_directory(struct hf__zk_bidding *b);
/* Deletes the node of one that is inside, and in the same step says so to those behind it (`tells`, only
 * if b->may_tell), and deletes what says that it has opened the value (`opened`). */
int hf__zk_delete_with(struct hf__zk_bidding *b, bool tells, bool opened, int64_t deadline_ns);

#endif
