/* Watches and wake-ups (watch.c), and what a waiter concludes from them (predecessors.c). */
#ifndef HF_STORES_ZOOKEEPER_WATCH_H
#define HF_STORES_ZOOKEEPER_WATCH_H

#include "stores/store.h"
#include "stores/zookeeper/session.h"

/* The server will tell when a node changes (watch.c). */
struct watch {
    struct hf__link link; /* by path, in its session */
    struct session *session;
    struct sight *sights; /* who wants to know */
    bool armed;           /* the server has answered */
    bool foreign;         /* its node is another client's */
    char path[];
};

/* What a bid that waits looks at: its own node, the last one before it that keeps it out, and the
 * last one before that (predecessors.c). */
enum sight_kind { HF__ZK_OWN, HF__ZK_FAR, HF__ZK_NEAR, HF__ZK_SIGHTS };
struct sight {
    struct watch *watch; /* NULL: none, or it has told */
    struct sight *next;  /* of the same watch */
    struct bidding *b;
};

/* Lets the bid look at these paths (NULL: leave that sight alone), in one round trip. ZNONODE: one
 * of them is not there. */
int hf__zk_watch(struct bidding *b, const char *const paths[HF__ZK_SIGHTS], int64_t deadline_ns);
void hf__zk_look_away(struct sight *sight); /* under the mutex */
/* Under the mutex. `generation` 0: ask. */
void hf__zk_call_ticket(struct zk *zk, const struct hf__ticket *ticket, uint64_t generation);
void hf__zk_free_watches(struct session *s);
int hf__zk_wake_fd(struct hf__store *store);
void hf__zk_wake(struct hf__store *store, hf__wake_sink *sink, void *ctx);

/* predecessors.c ------------------------------------------------------------------------------*/
struct standing {
    bool present;           /* its node is among the children */
    size_t position;        /* how many are before it */
    size_t crowd;           /* children in all */
    size_t blockers;        /* how many keep it out */
    const char *near, *far; /* the last of them and the one before, borrowed; NULL: nobody */
};
/* Under the mutex: it will watch the last two of these. */
void hf__zk_set_predecessors(struct bidding *b, const struct standing *at);
/* A watch has told `sight` that its node has gone, or will not tell. Under the mutex. True: its bid
 * has a question, for hf__zk_ask_after_event() without the mutex: who is left, or, if it was let in,
 * what stands in the directory. */
bool hf__zk_watch_told(struct sight *sight, int type);
void hf__zk_ask_after_event(struct bidding *b);
/* Finds out in the background whether b->may_tell. */
void hf__zk_read_directory(struct bidding *b);
/* Deletes the node of a writer that is inside, and says so to those behind it in the same step.
 * Only if b->may_tell. */
int hf__zk_delete_and_tell(struct bidding *b, int64_t deadline_ns);

#endif
