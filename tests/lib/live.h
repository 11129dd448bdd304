/* What the tests against real servers share, whichever server it is: clients, bids on threads of
 * their own, and waiting for what a store shows. */
#ifndef TESTS_LIB_LIVE_H
#define TESTS_LIB_LIVE_H

#include <pthread.h>

#include "holdfast.h"
#include "lib/check.h"

#define AWAIT_MS        30000 /* the servers may share a slow machine */
#define LONGEST_WAIT_MS (4 * AWAIT_MS)

hf_client *open_url(const char *url);

/* Takes a lock without waiting; the code that comes of it. */
int try_lock(hf_client *client, const char *name, int64_t ttl_ms, hf_lock **ret_lock);
/* One that must be free: fails the test, with the store's words, if it is not. */
hf_lock *take_free(hf_client *client, const char *name, int64_t ttl_ms);

/* An acquire on a thread of its own. */
struct waiter {
    hf_options opt; /* all 0: those of HF_OPTIONS_INIT; `on_wait` is its own, and nobody waits for
                       more than LONGEST_WAIT_MS */
    bool releases;  /* as soon as it has got it */
    hf_client *client;
    const char *name;
    pthread_t thread;
    bool joined;
    int result;
    hf_lock *lock;
    uint64_t generation; /* 0: the store gives none */
    hf_error err;
    int64_t got_ms;
    _Atomic bool queued; /* it has been told so */
    _Atomic bool done;
};
void wait_in_thread(struct waiter *w, hf_client *client, const char *name);
int join_waiter(struct waiter *w); /* its result, also when it is asked again */

int64_t now_ms(void); /* CLOCK_BOOTTIME */
void sleep_ms(int64_t ms);

/* Waits, for AWAIT_MS at most, until it is true; fails the test otherwise. */
void await(const char *what, int (*is_true)(void *), void *ctx);

/* Entries of this name, or -1 while the store does not answer. */
long count_entries(hf_client *client, const char *name);
void await_waiting(hf_client *client, const char *name, long count); /* so many, no more */
void await_free(hf_client *client, const char *name);
void await_queued(struct waiter *w); /* until it has been told that it waits */
void await_lost(hf_lock *lock);

#endif
