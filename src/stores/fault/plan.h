/* Which call goes wrong, and how: the options of fault+URL as rules, and the counting of calls. */
#ifndef HF_STORES_FAULT_PLAN_H
#define HF_STORES_FAULT_PLAN_H

#include <pthread.h>

#include "stores/store.h"

/* What is counted. A rule names one of the first nine, or '*' for all of these. */
enum fault_op {
    FAULT_ATTEMPT,
    FAULT_WITHDRAW,
    FAULT_RELEASE,
    FAULT_WRITE, /* up to here they can be late */
    FAULT_READ,
    FAULT_RENEW,
    FAULT_INSPECT,
    FAULT_BREAK,
    FAULT_UPKEEP,
    FAULT_CALLS,              /* so many operations, and as an operation: any of them */
    FAULT_WAKE = FAULT_CALLS, /* a wake-up that the inner store delivers */
    FAULT_QUEUED,             /* an attempt that was answered "queued" once more */
    FAULT_OPS,
};

enum fault_act {
    FAULT_NONE,
    FAULT_FAIL,  /* not passed on; HF_UNAVAILABLE */
    FAULT_LOSE,  /* passed on, its answer lost; HF_UNKNOWN */
    FAULT_DELAY, /* passed on later */
    FAULT_SLOW,  /* passed on at once, answered later */
    FAULT_HANG,  /* not passed on, blocks until the deadline; HF_UNKNOWN */
    FAULT_LATE,  /* HF_UNKNOWN at once, passed on later */
    FAULT_DROP,  /* a wake-up: not delivered */
    FAULT_DUP,   /* a wake-up: delivered twice */
    FAULT_DEFER, /* a wake-up: delivered later */
    FAULT_STALE, /* a bid that is queued again is called with the generation it was told before */
};

#define FAULT_RULES_MAX 32

struct fault_rule {
    enum fault_act act;
    bool any; /* any of the calls, each counted by itself */
    enum fault_op op;
    uint64_t first, last; /* counted from 1 */
    int64_t ms;
};

struct fault_plan {
    pthread_mutex_t mutex;
    struct fault_rule rules[FAULT_RULES_MAX];
    size_t rule_count;
    uint64_t seen[FAULT_OPS];
    uint64_t chaos; /* the state of the generator; 0: no chaos */
    unsigned percent;
};

struct fault_order {
    enum fault_act act;
    int64_t ms;
};

extern const struct hf__option fault_options[];

/* HF_INVALID with a sentence that says what to write, HF_SYSTEM. */
int fault_plan_init(struct fault_plan *plan, const struct hf__url *url, hf_error *err);
void fault_plan_clear(struct fault_plan *plan);

/* Counts one call and says what is to happen to it. */
struct fault_order fault_plan_next(struct fault_plan *plan, enum fault_op op);

#endif
