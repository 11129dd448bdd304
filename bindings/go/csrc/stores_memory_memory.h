/* Between memory.c, which changes records, and those that only read. */
#ifndef HF_STORES_MEMORY_MEMORY_H
#define HF_STORES_MEMORY_MEMORY_H

#include "stores_memory_space.h"

struct memory {
    struct hf__store base;
    struct space *space;
    struct client *client;
    int64_t retain_ms, history;
};

int hf__memory_inspect(struct hf__store *store, const struct hf__search *search,
                       int64_t deadline_ns, hf_error *err);

/* trail.c */
int hf__memory_trail(struct hf__store *store, const struct hf__trail_search *search,
                     int64_t deadline_ns, hf_error *err);

#endif
