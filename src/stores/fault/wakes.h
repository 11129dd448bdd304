/* Wake-ups that do not come, come twice, late, or with a generation that is long past. */
#ifndef HF_STORES_FAULT_WAKES_H
#define HF_STORES_FAULT_WAKES_H

#include "stores/fault/plan.h"

#define HF__FAULT_WAKES_MAX 64

struct hf__fault_wakes {
    struct hf__fault_plan *plan;
    struct hf__store *inner;
    int epoll_fd; /* readable when the inner store's descriptor or the timer is; -1: no push */
    int timer_fd;
    pthread_mutex_t mutex;
    struct hf__fault_wakes_pending {
        int64_t when_ns;
        struct hf__ticket ticket;
        bool everybody;
        uint64_t generation;
    } pending[HF__FAULT_WAKES_MAX];
    size_t pending_count;
    struct hf__fault_wakes_told {
        struct hf__ticket ticket;
        uint64_t generation;
    } told[HF__FAULT_WAKES_MAX]; /* the last tickets that were told "queued"; a ring */
    size_t told_next;
};

int hf__fault_wakes_init(struct hf__fault_wakes *wakes, struct hf__fault_plan *plan,
                         struct hf__store *inner); /* HF_SYSTEM */
void hf__fault_wakes_clear(struct hf__fault_wakes *wakes);

/* A ticket is told that it is queued at this generation: may call it with the one it was told
 * before, which it knows to be over. (Not with this one: it may not have the answer yet, and a
 * store never calls anybody with a generation that was not given to him.) */
void hf__fault_wakes_queued(struct hf__fault_wakes *wakes, const struct hf__ticket *ticket,
                            uint64_t generation);

/* As in struct hf__store_type. */
int hf__fault_wakes_fd(struct hf__fault_wakes *wakes);
void hf__fault_wakes_pass(struct hf__fault_wakes *wakes, hf__wake_sink *sink, void *ctx);

#endif
