/* Which call goes wrong, and how: the options of fault+URL as rules, and the counting of calls. */
#ifndef HF_STORES_FAULT_PLAN_H
#define HF_STORES_FAULT_PLAN_H

#include <pthread.h>

#include "stores/store.h"

/* What is counted. A rule names one of the first nine, or '*' for all of these. */
enum hf__fault_op {
    HF__FAULT_OP_ATTEMPT,
    HF__FAULT_OP_WITHDRAW,
    HF__FAULT_OP_RELEASE,
    HF__FAULT_OP_WRITE, /* up to here they can be late */
    HF__FAULT_OP_READ,
    HF__FAULT_OP_RENEW,
    HF__FAULT_OP_INSPECT,
    HF__FAULT_OP_BREAK,
    HF__FAULT_OP_UPKEEP,
    HF__FAULT_OP_CALLS, /* so many operations, and as an operation: any of them */
    HF__FAULT_OP_WAKE = HF__FAULT_OP_CALLS, /* a wake-up that the inner store delivers */
    HF__FAULT_OP_QUEUED,                    /* an attempt that was answered "queued" once more */
    HF__FAULT_OP_OPS,
};

enum hf__fault_act {
    HF__FAULT_ACT_NONE,
    HF__FAULT_ACT_FAIL,  /* not passed on; HF_UNAVAILABLE */
    HF__FAULT_ACT_LOSE,  /* passed on, its answer lost; HF_UNKNOWN */
    HF__FAULT_ACT_DELAY, /* passed on later */
    HF__FAULT_ACT_SLOW,  /* passed on at once, answered later */
    HF__FAULT_ACT_HANG,  /* not passed on, blocks until the deadline; HF_UNKNOWN */
    HF__FAULT_ACT_LATE,  /* HF_UNKNOWN at once, passed on later */
    HF__FAULT_ACT_DROP,  /* a wake-up: not delivered */
    HF__FAULT_ACT_DUP,   /* a wake-up: delivered twice */
    HF__FAULT_ACT_DEFER, /* a wake-up: delivered later */
    HF__FAULT_ACT_STALE, /* a bid that is queued again is called with the generation it was told before */
};

#define HF__FAULT_RULES_MAX 32

struct hf__fault_rule {
    enum hf__fault_act act;
    bool any; /* any of the calls, each counted by itself */
    enum hf__fault_op op;
    uint64_t first, last; /* counted from 1 */
    int64_t ms;
};

struct hf__fault_plan {
    pthread_mutex_t mutex;
    struct hf__fault_rule rules[HF__FAULT_RULES_MAX];
    size_t rule_count;
    uint64_t seen[HF__FAULT_OP_OPS];
    uint64_t chaos; /* the state of the generator; 0: no chaos */
    unsigned percent;
};

struct hf__fault_order {
    enum hf__fault_act act;
    int64_t ms;
};

extern const struct hf__option hf__fault_options[];

/* HF_INVALID with a sentence that says what to write, HF_SYSTEM. */
int hf__fault_plan_init(struct hf__fault_plan *plan, const struct hf__url *url, hf_error *err);
void hf__fault_plan_clear(struct hf__fault_plan *plan);

/* Counts one call and says what is to happen to it. */
struct hf__fault_order hf__fault_plan_next(struct hf__fault_plan *plan, enum hf__fault_op op);

#endif
