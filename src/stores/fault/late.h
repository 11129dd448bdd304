/* Requests that the network delivers late: each by a thread of its own, after a while. */
#ifndef HF_STORES_FAULT_LATE_H
#define HF_STORES_FAULT_LATE_H

#include <pthread.h>

#include "stores/fault/plan.h"

struct late_request;

struct late {
    struct hf__store *inner;
    pthread_mutex_t mutex;
    pthread_cond_t closing_now;
    bool closing;
    struct late_request *requests;
};

void late_init(struct late *late, struct hf__store *inner);

/* Delivers what is still to come at once, and waits for it. */
void late_clear(struct late *late);

/* Delivers the request in `ms` milliseconds; copies the bid. 0 or HF_NO_MEMORY, HF_SYSTEM: then it
 * is never delivered. */
int late_add(struct late *late, const struct hf__operation *op, int64_t ms);

#endif
