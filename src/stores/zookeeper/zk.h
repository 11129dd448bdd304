/* The ZooKeeper store: the published lock recipe behind the store contract.
 *
 * There is no doorman's record here. A bid is an ephemeral sequential node in the lock's directory,
 * named by its ticket; the order of the sequence suffixes is the queue, the sessions are the
 * leases.
 *
 *      attempt      create _c_<uuid>-lock- | -read-lock-      (write)
 *                   children of the directory, no watch       (read, sent with it; same session, so
 *                                                              it sees all that came before)
 *                   nobody before it who conflicts: GRANTED, generation = czxid of the own node
 *                   otherwise get + watch of itself and of the last two who do: QUEUED (predecessors.c)
 *
 *      renew        multi [check own node]...                 (one write for many: the leader
 *                                                              agrees)
 *
 *      release      delete own node                           (write)
 *                   with [set directory: its number left] if it is a writer that had to wait
 *
 * A bid that holds lives in a session of ttl + lock-delay, one that waits in a session of its own
 * lease, so that a waiter that died is missed in seconds. The node changes its session in one multi
 * [set, delete, create at the same path]: it keeps its place, and its first czxid, its generation,
 * in the data; whoever watches it is told that it was written to. Such a move back into the long
 * session, or into a persistent node for a lock that never expires, is the claim of a grant.
 *
 * The lease told to the client is two thirds of the session: a follower passes on that it has heard
 * of a session, but only with its next ping to the leader, so the leader may count from the contact
 * before the last one, a third of the session ago.
 *
 * What ZooKeeper does not do is done by the timer thread of this store: it deletes the nodes of
 * bids that were not renewed although the session lives, keeps them for their lock-delay first, and
 * forgets retired tickets.
 *
 * Locks: zk->mutex guards everything below but what is marked; it is never held over the network.
 * It is taken on ZooKeeper's completion threads, so nobody holds it while calling
 * zookeeper_close(). */
#ifndef HF_STORES_ZOOKEEPER_ZK_H
#define HF_STORES_ZOOKEEPER_ZK_H

#include <pthread.h>

#include "stores/zookeeper/bidding.h"
#include "stores/zookeeper/break_requests.h"
#include "stores/zookeeper/names.h"
#include "stores/zookeeper/session.h"
#include "stores/zookeeper/watch.h"

struct hf__zk_wakeup {
    struct hf__zk_wakeup *next;
    struct hf__ticket ticket;
    uint64_t generation; /* of the grant; 0: ask */
};

struct hf__zk {
    struct hf__store base;
    char *hosts, *prefix; /* "h1:2181,h2:2181"; "/locks" */
    char *credentials;    /* "user:password" or NULL */
    const struct ACL_vector *acl;
    bool fair;
    enum hf__zk_layout layout;
    pthread_mutex_t mutex;
    pthread_cond_t changed; /* a session's state, a bidding's busy */
    pthread_cond_t due;     /* something for the timer thread, before armed_ns */
    int64_t armed_ns;
    size_t waiting_for_busy; /* how many wait until a bidding is not busy */
    struct hf__zk_session *sessions;
    size_t session_count;
    struct hf__zk_session *break_session; /* in which they are watched; NULL: none */
    struct hf__table biddings;
    struct hf__heap timers;
    uint64_t seed;
    pthread_t timer_thread;
    bool timer_thread_runs, stop;
    int wake_fd;
    struct hf__zk_wakeup *first_wake, **last_wake;
};

/* The operations of store.h, each in the file of its name. -------------------------------------*/
int hf__zk_attempt(struct hf__store *store, const struct hf__bid *bid, int64_t deadline_ns,
                   struct hf__answer *ret_answer, hf_error *err);
int hf__zk_answer_withdrawn(struct hf__zk_bidding *b,
                            struct hf__answer *ret_answer); /* the answer WITHDRAWN */
int hf__zk_simple_ask(struct hf__zk_bidding *b, const struct hf__bid *bid, int64_t deadline_ns,
                      struct hf__answer *ret_answer, hf_error *err);
/* Deletes the one node of the lock if it is this ticket's, or ZNONODE. */
int hf__zk_simple_delete(struct hf__zk_session *s, const struct hf__ticket *ticket,
                         const char *path, int64_t deadline_ns);
int hf__zk_simple_remove(struct hf__zk_bidding *b, int64_t deadline_ns); /* likewise */
void hf__zk_owner_path(const struct hf__zk *zk, const struct hf__ticket *ticket, char *buf,
                       size_t size);
int hf__zk_leave(struct hf__store *store, const struct hf__operation *op, int64_t deadline_ns,
                 struct hf__answer *ret_answer, hf_error *err); /* RELEASE, WITHDRAW */
int hf__zk_value(struct hf__store *store, const struct hf__operation *op, int64_t deadline_ns,
                 struct hf__answer *ret_answer, hf_error *err); /* READ, WRITE */
int hf__zk_renew(struct hf__store *store, struct hf__renewal *items, size_t count,
                 int64_t deadline_ns, hf_error *err);
int hf__zk_break(struct hf__store *store, const struct hf__bid *bid, bool now, int64_t deadline_ns,
                 struct hf__answer *ret_answer, hf_error *err);
int hf__zk_inspect(struct hf__store *store, const struct hf__search *search, int64_t deadline_ns,
                   hf_error *err);
int hf__zk_upkeep(struct hf__store *store, enum hf__upkeep what, int64_t retain_ms,
                  int64_t deadline_ns, uint64_t *ret_count, hf_error *err);
int hf__zk_diagnose(struct hf__store *store, hf_finding_callback *found, void *arg,
                    int64_t deadline_ns, hf_error *err);

#endif
