/* Locks of the server that live and die with a connection, one connection each: hold=session and
 * hold=advisory.
 *
 * The server queues those who wait. There is no lease: what keeps a lock from being held for ever
 * is that the server sees when the connection is gone. An attempt sends the statement and looks
 * whether it was answered at once; if not the connection waits in the server, and wake() hears
 * from it. A lost connection is heard the same way: the core then asks, and is told that the lock
 * is gone.
 *
 *      attempt ---> WAITING ---answered---> INSIDE ---release---> the connection is lent again
 *                      |                       |
 *                      `--- withdraw, error ---`--- the connection is lost: DEAD
 *
 * Two things keep a bid that has ended from holding after all (C5). All requests of a ticket pass
 * through this one list, one at a time, so a ticket that was withdrawn is remembered here, and a
 * late attempt of it is refused. And what the server does for it is ended with proof: its own
 * answer, or another connection that no longer finds the first. Until there is proof the bid stays
 * in the list and the outcome is HF_UNKNOWN; the core asks again. */
#ifndef HF_SQL_SESSION_SESSION_H
#define HF_SQL_SESSION_SESSION_H

#include "sql/store.h"

enum hf__session_state {
    HF__SESSION_STATE_WAITING,
    HF__SESSION_STATE_INSIDE,
    HF__SESSION_STATE_REFUSED,
    HF__SESSION_STATE_DEAD
};

/* Whether the server still has a session. */
enum hf__session_gone { HF__SESSION_GONE_NOT_SAID, HF__SESSION_GONE_NOT, HF__SESSION_GONE_YES };

/* A bid. A store's own structure begins with this. */
struct hf__session_lock {
    struct hf__session_lock *next;
    struct hf__ticket ticket;
    int64_t ttl_ms; /* only for how often the core gives signs of life */
    enum hf__session_state state;
    uint64_t generation; /* INSIDE; 0: `finish` is to find it */
    hf_error refusal;    /* REFUSED: why; code 0: somebody else is there */
    bool leaving;        /* ended, but without proof */
    bool busy;           /* some thread works on it: nobody else may look at it */
    bool polled;         /* wake() hears from it */
};

/* What a store does. `owner` is the store. */
struct hf__session_type {
    const char *store; /* for messages */
    size_t lock_size;
    int64_t first_look_ms; /* how long an attempt waits for an answer before it says "queued" */

    /* Borrows a connection and sends the statement. An error means that nothing was sent, and that
     * nothing is kept. */
    int (*send)(void *owner, struct hf__session_lock *lock, const struct hf__bid *bid,
                int64_t deadline_ns, hf_error *err);

    /* Takes what has come, without blocking, and moves the state. */
    void (*look)(struct hf__session_lock *lock);

    /* Waits until there is something to look at; false: the deadline has come. */
    bool (*wait)(void *owner, struct hf__session_lock *lock, int64_t deadline_ns);

    /* The connection's descriptor, to be polled for reading; negative: there is none. */
    int (*fd)(const struct hf__session_lock *lock);

    /* Finds the generation of one that is INSIDE without it. NULL: it came with the lock. */
    int (*finish)(void *owner, struct hf__session_lock *lock, const struct hf__bid *bid,
                  int64_t deadline_ns, hf_error *err);

    /* Sends a sign of life, without blocking, on a connection that is INSIDE. NULL: not needed. */
    void (*touch)(struct hf__session_lock *lock);

    /* On `other`, a connection that was borrowed for it: ends the wait in the server, whose answer
     * then says how. False: it was not asked. */
    bool (*cancel)(void *owner, struct hf__session_lock *lock, void *other, int64_t deadline_ns);

    /* Gives up what it has, unless it is in the middle of a statement, and gives its connection
     * back or hangs it up; there may be none any more. True: the server has said so. */
    bool (*leave)(void *owner, struct hf__session_lock *lock, int64_t deadline_ns);

    /* On `other`: ends its session, if the server still has it. */
    enum hf__session_gone (*kill)(void *owner, const struct hf__session_lock *lock, void *other,
                                  int64_t deadline_ns);

    /* Hangs up and clears, when the store is closed. */
    void (*drop)(struct hf__session_lock *lock);
};

struct hf__session_list {
    const struct hf__session_type *type;
    const struct hf_env *env;
    struct hf__session_store *owner;
    int64_t max_held;
    pthread_mutex_t mutex;
    pthread_cond_t idle_one; /* one is busy no more */
    struct hf__session_lock *first;
    int64_t count; /* connections that list, wait, or are about to */
    int epoll_fd;
    struct hf__retired_ticket {
        struct hf__ticket ticket;
        int64_t until_ns;
    } * retired; /* for this process only: nobody else can send something for them */
    size_t retired_count, retired_capacity;
};

/* The store of such locks begins with these, so that the functions below can be its own. */
struct hf__session_store {
    struct hf__store base;
    struct hf__sql sql;
    struct hf__session_list list;
};
#define HF__IS_SESSION_STORE(type)                                                   \
    _Static_assert(offsetof(type, list) == offsetof(struct hf__session_store, list), \
                   "begins otherwise")

/* HF_SYSTEM; it can be cleared even then, and where it was never made. */
int hf__session_init(struct hf__session_store *s, const struct hf__session_type *type,
                     hf_error *err);
void hf__session_clear(struct hf__session_list *list);

/* The functions of a store; see store.h. */
int hf__session_operate(struct hf__store *store, const struct hf__operation *op,
                        int64_t deadline_ns, struct hf__answer *ret_answer, hf_error *err);
int hf__session_renew(struct hf__store *store, struct hf__renewal *items, size_t count,
                      int64_t deadline_ns, hf_error *err);
int hf__session_wake_fd(struct hf__store *store);
void hf__session_wake(struct hf__store *store, hf__wake_sink *sink, void *ctx);

#define HF__SESSION_CAPABILITIES \
    (HF_CAN_SHARE | HF_CAN_QUEUE | HF_CAN_PUSH | HF_CAN_TOKEN | HF_CAN_PROCESS)

/* Who asks, as a comment at the head of a statement, which is what others see of it in the server's
 * list of sessions; and how it is read there. */
#define HF__SESSION_COMMENT_MAX 1200
struct hf__session_comment {
    struct hf__ticket ticket;
    hf_mode mode;
    int64_t ttl_ms;
    struct hf__who who; /* the strings are in `text` */
    char text[4][HF_NOTE_MAX + 1];
};
void hf__session_comment_format(const struct hf__bid *bid, const struct hf__who *who,
                                char buf[HF__SESSION_COMMENT_MAX]);
bool hf__session_comment_parse(const char *statement, struct hf__session_comment *ret_about);

#endif
