/* The connection on which a server calls its client: one a client, for all who wait.
 *
 * wake() reads from it without blocking. It never dials: if the connection is lost everybody is told
 * to ask, and whoever asks dials again, on its own time. What is polled is an epoll descriptor,
 * which stays while the connection in it changes.
 *
 * Who owns what: `conn` is put in by a thread that dials, while it is NULL, and from then on
 * belongs to wake(), which alone takes it out. The mutex is for the fields, not for reading. */
#ifndef HF_NET_LISTENER_H
#define HF_NET_LISTENER_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/env.h"
#include "base/error.h"
#include "base/ticket.h"

#define HF__LISTENER_ADDRESS 64

/* What dialling brings. */
struct hf__line {
    void *conn;
    int fd;                             /* to be polled for reading */
    char address[HF__LISTENER_ADDRESS]; /* how others call it; ends with NUL */
};

/* What a store does. `owner` is the one given to hf__listener_init. */
struct hf__listener_type {
    /* Connects and gets ready to be called. HF_UNSUPPORTED: that cannot be had here, so it is not
     * tried again. */
    int (*dial)(void *owner, int64_t deadline_ns, struct hf__line *ret_line);

    /* `lost`: the other side has gone, so there is nobody to say good-bye to. */
    void (*hang_up)(void *conn, bool lost);
};

struct hf__listener {
    const struct hf__listener_type *type;
    const struct hf_env *env;
    void *owner;
    char word[HF_TICKET_SIZE]; /* nobody can guess it; for the address */
    pthread_mutex_t mutex;
    int epoll_fd, kick_fd; /* -1: nobody has asked to listen yet */
    void *conn;            /* NULL: not connected */
    int line_fd;           /* its descriptor in the epoll, one of our own; -1: none */
    char address[HF__LISTENER_ADDRESS];
    atomic_bool wanted; /* somebody has asked to listen, and dialled once */
    bool dialling;
    bool missed; /* calls may have been lost: everybody ask */
    bool kicked; /* kick_fd is readable */
    int64_t retry_ns;
    unsigned failures;
};

/* HF_SYSTEM: there is no randomness to be had. It can be cleared even then. */
int hf__listener_init(struct hf__listener *l, const struct hf__listener_type *type, void *owner,
                      const struct hf_env *env, hf_error *err);
void hf__listener_clear(struct hf__listener *l);

/* Makes the descriptor to be polled, once, before what follows. HF_SYSTEM: it cannot be had now. */
int hf__listener_open(struct hf__listener *l);

/* Dials for the first time. False: HF_UNSUPPORTED. */
bool hf__listener_start(struct hf__listener *l, int64_t deadline_ns);

/* Dials again if the connection was lost. False: nobody listens; otherwise, how to be called
 * (`ret_address` may be NULL). */
bool hf__listener_again(struct hf__listener *l, int64_t deadline_ns,
                        char ret_address[HF__LISTENER_ADDRESS]);

bool hf__listener_listens(struct hf__listener *l);

/* Makes the descriptor readable. Mutex held. */
void hf__listener_kick(struct hf__listener *l);

/* In wake(): what to read from, NULL if there is nothing; and whether everybody is to ask. */
void *hf__listener_wake(struct hf__listener *l, bool *ret_missed);
void hf__listener_lost(struct hf__listener *l);

/* What is said in a call: "<ticket> <generation>". False: it is something else. */
bool hf__call_parse(const char *text, struct hf__ticket *ret_ticket, uint64_t *ret_generation);

#endif
