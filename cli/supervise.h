/* Watches a command and its lock together: passes signals on, follows the terminal's job control,
 * ends the command when the lock ends, and returns when its whole process group is gone.
 *
 * It sees the lock through three functions only, so that it can be tested without one. */
#ifndef CLI_SUPERVISE_H
#define CLI_SUPERVISE_H

#include "child.h"
#include "guard.h"
#include "leash.h"
#include "terminal.h"

enum supervise_event {
    SUPERVISE_LOST,      /* only told: --on-lost ignore */
    SUPERVISE_SIGNALLED, /* the signal is sent; leash->cause says why */
    SUPERVISE_KILLED,
    SUPERVISE_RUNS_ON,  /* it was to be killed, but some of it we may not kill */
    SUPERVISE_STOPPING, /* we are about to stop, as the terminal's user asked */
};

struct supervise_lock {
    int lost_fd; /* readable once lost; -1: none */
    /* How it stands, without delay. */
    void (*look)(void *ctx, struct leash_view *ret_view);
    /* Asks the store, after we were stopped; may take a while. */
    void (*verify)(void *ctx);
    /* For people. Must not block: the command may have to be killed in a moment. */
    void (*tell)(void *ctx, enum supervise_event event, const struct leash *leash);
    void *ctx;
};

struct supervise {
    struct child *child;
    struct terminal *terminal;
    struct guard *guard;
    struct leash *leash;
    struct supervise_lock lock;
    int signal;        /* what to send first */
    int signal_fd;     /* of signals_catch() */
    int64_t ttl_ms;    /* how often the guard needs to hear of us; HF_NEVER */
    int wanted_fd;     /* readable when others have come to wait; -1: the command is not told */
    int wanted_signal; /* what to tell it with */
    pid_t untouchable; /* found when it was killed: it may not be signalled; 0: none */
};

/* Runs until the group is gone. 0, or the errno of a system call without which it cannot watch; the
 * group has been killed then. */
int supervise(struct supervise *s);

#endif
