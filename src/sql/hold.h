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
#ifndef HF_SQL_HOLD_H
#define HF_SQL_HOLD_H

#include "sql/store.h"

enum hf__held_state { HF__HELD_WAITING, HF__HELD_INSIDE, HF__HELD_REFUSED, HF__HELD_DEAD };

/* Whether the server still has a session. */
enum hf__held_gone { HF__HELD_NOT_SAID, HF__HELD_STILL_THERE, HF__HELD_GONE };

/* A bid. A store's own structure begins with this. */
struct hf__held {
    struct hf__held *next;
    struct hf__ticket ticket;
    int64_t ttl_ms; /* only for how often the core gives signs of life */
    enum hf__held_state state;
    uint64_t generation; /* INSIDE; 0: `finish` is to find it */
    hf_error refusal;    /* REFUSED: why; code 0: somebody else is there */
    bool leaving;        /* ended, but without proof */
    bool busy;           /* some thread works on it: nobody else may look at it */
    bool polled;         /* wake() hears from it */
};

/* What a store does. `owner` is the store. */
struct hf__hold_type {
    const char *store; /* for messages */
    size_t held_size;
    int64_t first_look_ms; /* how long an attempt waits for an answer before it says "queued" */

    /* Borrows a connection and sends the statement. An error means that nothing was sent, and that
     * nothing is kept. */
    int (*send)(void *owner, struct hf__held *h, const struct hf__bid *bid, int64_t deadline_ns,
                hf_error *err);

    /* Takes what has come, without blocking, and moves the state. */
    void (*look)(struct hf__held *h);

    /* Waits until there is something to look at; false: the deadline has come. */
    bool (*wait)(void *owner, struct hf__held *h, int64_t deadline_ns);

    /* The connection's descriptor, to be polled for reading; negative: there is none. */
    int (*fd)(const struct hf__held *h);

    /* Finds the generation of one that is INSIDE without it. NULL: it came with the lock. */
    int (*finish)(void *owner, struct hf__held *h, const struct hf__bid *bid, int64_t deadline_ns,
                  hf_error *err);

    /* Sends a sign of life, without blocking, on a connection that is INSIDE. NULL: not needed. */
    void (*touch)(struct hf__held *h);

    /* On `other`, a connection that was borrowed for it: ends the wait in the server, whose answer
     * then says how. False: it was not asked. */
    bool (*cancel)(void *owner, struct hf__held *h, void *other, int64_t deadline_ns);

    /* Gives up what it has, unless it is in the middle of a statement, and gives its connection
     * back or hangs it up; there may be none any more. True: the server has said so. */
    bool (*leave)(void *owner, struct hf__held *h, int64_t deadline_ns);

    /* On `other`: ends its session, if the server still has it. */
    enum hf__held_gone (*kill)(void *owner, const struct hf__held *h, void *other,
                               int64_t deadline_ns);

    /* Hangs up and clears, when the store is closed. */
    void (*drop)(struct hf__held *h);
};

struct hf__hold {
    const struct hf__hold_type *type;
    const struct hf_env *env;
    struct hf__holding *owner;
    int64_t max_held;
    pthread_mutex_t mutex;
    pthread_cond_t idle_one; /* one is busy no more */
    struct hf__held *first;
    int64_t count; /* connections that hold, wait, or are about to */
    int epoll_fd;
    struct hf__retired_ticket {
        struct hf__ticket ticket;
        int64_t until_ns;
    } * retired; /* for this process only: nobody else can send something for them */
    size_t retired_count, retired_capacity;
};

/* The store of such locks begins with these, so that the functions below can be its own. */
struct hf__holding {
    struct hf__store base;
    struct hf__sql sql;
    struct hf__hold hold;
};
#define HF__IS_HOLDING(type) \
    _Static_assert(offsetof(type, hold) == offsetof(struct hf__holding, hold), "begins otherwise")

/* HF_SYSTEM; it can be cleared even then, and where it was never made. */
int hf__hold_init(struct hf__holding *s, const struct hf__hold_type *type, hf_error *err);
void hf__hold_clear(struct hf__hold *hold);

/* The functions of a store; see store.h. */
int hf__hold_operate(struct hf__store *store, const struct hf__operation *op, int64_t deadline_ns,
                     struct hf__answer *ret_answer, hf_error *err);
int hf__hold_renew(struct hf__store *store, struct hf__renewal *items, size_t count,
                   int64_t deadline_ns, hf_error *err);
int hf__hold_wake_fd(struct hf__store *store);
void hf__hold_wake(struct hf__store *store, hf__wake_sink *sink, void *ctx);

#define HF__HOLD_CAPABILITIES \
    (HF_CAN_SHARE | HF_CAN_QUEUE | HF_CAN_PUSH | HF_CAN_TOKEN | HF_CAN_PROCESS)

/* Who asks, as a comment at the head of a statement, which is what others see of it in the server's
 * list of sessions; and how it is read there. */
#define HF__ABOUT_MAX 1200
struct hf__about {
    struct hf__ticket ticket;
    hf_mode mode;
    int64_t ttl_ms;
    struct hf__who who; /* the strings are in `text` */
    char text[4][HF_NOTE_MAX + 1];
};
void hf__about_format(const struct hf__bid *bid, const struct hf__who *who,
                      char buf[HF__ABOUT_MAX]);
bool hf__about_parse(const char *statement, struct hf__about *ret_about);

#endif
