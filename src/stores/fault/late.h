/* Calls whose request the network delivers late: each is made by a thread of its own, after a
 * while. */
#ifndef HF_STORES_FAULT_LATE_H
#define HF_STORES_FAULT_LATE_H

#include <pthread.h>

#include "stores/fault/plan.h"

struct late_call;

struct late {
    struct hf__store *inner;
    pthread_mutex_t mutex;
    pthread_cond_t closing_now;
    bool closing;
    struct late_call *calls;
};

void late_init(struct late *late, struct hf__store *inner);

/* Makes what is still to come at once, and waits for it. */
void late_clear(struct late *late);

/* Makes the call in `ms` milliseconds; copies the bid. 0 or HF_NO_MEMORY, HF_SYSTEM: then it is
 * never made. */
int late_add(struct late *late, const struct hf__operation *op, int64_t ms);

#endif
