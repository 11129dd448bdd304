/* The bids of a client: what each has in the store (bidding.c), where it stands there (place.c), and
 * what takes out those that are over (timer_thread.c). */
#ifndef HF_STORES_ZOOKEEPER_BIDDING_H
#define HF_STORES_ZOOKEEPER_BIDDING_H

#include "base/heap.h"
#include "stores/zookeeper/names.h"
#include "stores/zookeeper/watch.h"

/* JOINING: nothing is known to be in the store, or nothing is needed there (a waiter for the simple
 * lock). LEAVING: its node is to be deleted. RETIRED: over; only the ticket is remembered. */
enum hf__zk_state {
    HF__ZK_STATE_JOINING,
    HF__ZK_STATE_JOINED,
    HF__ZK_STATE_LINGERING,
    HF__ZK_STATE_LEAVING,
    HF__ZK_STATE_RETIRED
};

/* One ticket of this client. */
struct hf__zk_bidding {
    struct hf__link link; /* by ticket */
    struct hf__timer timer;
    struct hf__zk *zk;
    struct hf__ticket ticket;
    unsigned refs;
    bool busy;   /* one operation at a time works on it */
    bool unsure; /* a create or a move may have been applied */
    bool inside, claimed, permanent, break_requested, listed;
    enum hf__zk_state state;
    hf_mode mode;
    int64_t ttl_ms, lock_delay_ms, retire_ms;
    struct hf__zk_session *session; /* of its node; NULL: none */
    uint64_t generation;
    int64_t until_ns; /* of the lease, the lock-delay or the memory of the ticket */
    struct hf__zk_subscription subscriptions[HF__ZK_WATCHED_KINDS];
    size_t blockers;     /* at most so many keep it out, the watched ones among them */
    unsigned connection; /* in which `blockers` was counted */
    int32_t far_number;  /* of the one that is watched as HF__ZK_WATCHED_FAR */
    bool waited;         /* for its turn */
    bool may_tell;       /* the directory's data is nobody else's (predecessors.c) */
    bool left_asked;     /* whether others but the nearest are left (predecessors.c) */
    bool near_gone;      /* while it asks */
    struct hf__zk_bidding *next_to_ask;
    bool tells,
        wanted; /* its holder wants to know when somebody waits; and somebody does (wanted.c) */
    struct {
        bool asked, done; /* its node beside the value was made: perhaps, surely */
        bool known;       /* what follows is what stands there, and no holder is in doubt */
        bool closes;      /* it is being released: that node goes with its own */
        int32_t version;
        uint64_t order; /* of the last write, if it is ours */
    } value;            /* value.c */
    char *directory;    /* the lock's path */
    char *path;         /* its node; NULL: not known */
    char *data;         /* what its node says */
};

/* The bidding of this ticket with a reference, NULL if there is none; _make: a new one if so. */
struct hf__zk_bidding *hf__zk_find(struct hf__zk *zk, const struct hf__ticket *ticket);
struct hf__zk_bidding *hf__zk_bidding_make(struct hf__zk *zk, const struct hf__bid *bid);
void hf__zk_bidding_unref(struct hf__zk_bidding *b);
/* One at a time. False: the deadline came first. */
bool hf__zk_begin(struct hf__zk_bidding *b, int64_t deadline_ns);
void hf__zk_end(struct hf__zk_bidding *b);
/* Under the mutex: */
struct hf__zk_bidding *hf__zk_lookup(struct hf__zk *zk, const struct hf__ticket *ticket);
void hf__zk_set_timer(struct hf__zk_bidding *b, int64_t when_ns);
void hf__zk_leave_session(struct hf__zk_bidding *b);
/* The ticket is over and is remembered for so long; 0: forgotten at once. */
void hf__zk_retire(struct hf__zk_bidding *b, int64_t retire_ms);

/* place.c: where a bid stands, and moving its node --------------------------------------------*/
struct hf__zk_standing hf__zk_find_standing(const struct hf__zk_bidding *b, char *const *names,
                                            int count);
/* "<directory>/<name>". False if it does not fit. */
bool hf__zk_child_path(const struct hf__zk_bidding *b, const char *name, char buf[HF__ZK_PATH_MAX]);
/* Into this session, or into a permanent node (`to` NULL); keeps path and generation. */
int hf__zk_move(struct hf__zk_bidding *b, struct hf__zk_session *to, int64_t deadline_ns);
/* After a lost answer: finds its node, if there is one, and in which session it is. ZOK: b->path
 * and b->session say. */
int hf__zk_find_node(struct hf__zk_bidding *b, int64_t deadline_ns);
/* The same for the node at this path, as far as this server knows. */
int hf__zk_adopt(struct hf__zk_bidding *b, const char *path, int64_t deadline_ns);
/* The session lengths of a bid. */
int64_t hf__zk_hold_ms(int64_t ttl_ms, int64_t lock_delay_ms);
int64_t hf__zk_wait_ms(int64_t ttl_ms, int64_t lock_delay_ms);
/* The answer GRANTED, and the timer thread's timer. */
void hf__zk_granted(struct hf__zk_bidding *b, struct hf__answer *ret_answer);

/* join.c: 0 if the bid is in the store, wherever; 1 if its ticket is over. In `ret_list` the
 * children as they were when it joined, NULL if it was there before. */
int hf__zk_join(struct hf__zk_bidding *b, bool queue, int64_t deadline_ns,
                struct hf__zk_call **ret_list, hf_error *err);
bool hf__zk_is_over(struct hf__zk_bidding *b);

/* wanted.c: whether somebody waits for what it holds. If nobody does, its client is called when somebody
 * comes. Without an answer it is what it was. */
bool hf__zk_is_wanted(struct hf__zk_bidding *b, int64_t deadline_ns);

/* value.c: "<prefix>/%value/<name>/<uuid>", which says that this bid has opened the value. */
void hf__zk_opened_path(const struct hf__zk_bidding *b, char *buf, size_t size);

/* permanent.c: whether its node may outlive its session. Under the mutex. */
bool hf__zk_may_be_permanent(const struct hf__zk_bidding *b);
/* Gives such a bid another session to act in if its own has ended and the servers answer. */
void hf__zk_renew_session(struct hf__zk_bidding *b, int64_t deadline_ns);
/* The bidding, with a reference, of a lock that never expires and that another client may have left.
 * ZNONODE: there is none of this ticket. */
int hf__zk_take_over(struct hf__zk *zk, const struct hf__renewal *renewal, int64_t deadline_ns,
                     struct hf__zk_bidding **ret_bidding);

/* leave.c: deletes what a bid has in the store, and proves it. ZOK: it was there; ZNONODE: it was not. */
int hf__zk_remove(struct hf__zk_bidding *b, int64_t deadline_ns);

/* timer_thread.c -------------------------------------------------------------------------------------*/
int hf__zk_start_timer_thread(struct hf__zk *zk, hf_error *err);
void hf__zk_stop_timer_thread(struct hf__zk *zk);

#endif
