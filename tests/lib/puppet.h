/* A store that does what the test says: it passes every call on to another store, counts it, and
 * can fail it, lose its answer, or hold it up until the test lets go. */
#ifndef TESTS_LIB_PUPPET_H
#define TESTS_LIB_PUPPET_H

#include <stdatomic.h>

#include "core/client.h"

enum puppet_call {
    PUPPET_ATTEMPT,
    PUPPET_WITHDRAW,
    PUPPET_RELEASE,
    PUPPET_RENEW,
    PUPPET_LISTEN, /* for its wake_fd */
    PUPPET_CALLS
};

struct puppet {
    struct hf__store base;
    struct hf__store *inner;
    struct hf__store_type type;
    atomic_int calls[PUPPET_CALLS];
    atomic_int fail[PUPPET_CALLS]; /* so many of the next calls do not reach the store */
    atomic_int lose[PUPPET_CALLS]; /* so many are applied, but not answered */
    atomic_int hold[PUPPET_CALLS]; /* while set, calls hang before they reach the store */
    atomic_int held[PUPPET_CALLS]; /* calls that hang now */
    atomic_int slow[PUPPET_CALLS]; /* while set, calls use up their time and get nowhere */
    atomic_int crowded;            /* while set, others have a turn whenever a call fails */
    _Atomic pthread_t heard_by;    /* the thread that took the last wake-ups */
    atomic_int hearing, crossed;   /* threads in wake() now; how often it was more than one */
};

/* Opens `url` on this clock (NULL: the system's) and puts the puppet between client and store. */
struct puppet *puppet_open(const char *url, const struct hf_env *env, hf_client **ret_client);

/* Closes the client; the puppet goes with it. */
void puppet_close(hf_client *client);

#endif
