/* What a worker is told, and what its threads share. */
#ifndef TESTS_LAB_WORKER_H
#define TESTS_LAB_WORKER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "holdfast.h"

/* What a turn may be like; a store that cannot do it leaves it out. */
#define WORKER_KINDS(X)                                                         \
    X(KIND_EXCLUSIVE, "exclusive", 0)                                           \
    X(KIND_SHARED, "shared", HF_CAN_SHARE)                                      \
    X(KIND_LIMITED, "limited", HF_CAN_LIMIT)                                    \
    X(KIND_TIMED, "timed", 0)         /* waits for a moment only */             \
    X(KIND_CANCELLED, "cancelled", 0) /* another thread ends the wait */        \
    X(KIND_NEVER, "never", HF_CAN_NEVER)                                        \
    X(KIND_REENTRANT, "reentrant", 0)         /* acquired and released twice */ \
    X(KIND_ADOPTED, "adopted", HF_CAN_DETACH) /* let go of, and adopted */      \
    X(KIND_FORKING, "forking", 0)             /* forks while it holds the lock */

enum kind {
#define KIND_X(id, name, needs) id,
    WORKER_KINDS(KIND_X)
#undef KIND_X
        KINDS
};

struct worker {
    const char *url, *id, *resource, *prefix;
    unsigned kinds; /* bits */
    int64_t ttl_ms, delay_ms, wait_ms, hold_min_ms, hold_max_ms, pause_ms;
    unsigned long_percent; /* so many of 100 turns hold for 0.5 to 2 ttl */
    unsigned turns;        /* 0: until SIGTERM */
    uint64_t seed;
    int history;
    hf_client *client;
    hf_cancel *stop; /* fired by SIGTERM: ends all waits */
    atomic_bool stopping;
};

/* One thread's turns, until it is told to stop. `number` is its place among the threads. */
void worker_run(struct worker *worker, unsigned number);

#endif
