/* Requests that the network delivers late: each by a thread of its own, after a while. */
#ifndef HF_STORES_FAULT_LATE_H
#define HF_STORES_FAULT_LATE_H

#include <pthread.h>

#include "stores/fault/plan.h"

struct hf__fault_late_request;

struct hf__fault_late {
    struct hf__store *inner;
    pthread_mutex_t mutex;
    pthread_cond_t closing_now;
    bool closing;
    struct hf__fault_late_request *requests;
};

void hf__fault_late_init(struct hf__fault_late *late, struct hf__store *inner);

/* Delivers what is still to come at once, and waits for it. */
void hf__fault_late_clear(struct hf__fault_late *late);

/* Delivers the request in `ms` milliseconds; copies the bid. 0 or HF_NO_MEMORY, HF_SYSTEM: then it
 * is never delivered. */
int hf__fault_late_add(struct hf__fault_late *late, const struct hf__operation *op, int64_t ms);

#endif
