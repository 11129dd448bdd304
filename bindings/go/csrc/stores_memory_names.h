/* The names of the rooms that somebody looks for, sorted. */
#ifndef HF_STORES_MEMORY_NAMES_H
#define HF_STORES_MEMORY_NAMES_H

#include "stores_memory_memory.h"

struct name {
    size_t len;
    char bytes[];
};

struct names {
    const struct hf__search *search;
    bool (*wanted)(const struct room *room); /* of those whose names are asked for */
    struct name **all;
    size_t count, capacity;
    bool no_memory;
};

/* The space is not locked. One name that is asked for is found whether there is such a room or not. */
void hf__memory_find_names(struct memory *m, struct names *names);
void hf__memory_free_names(struct names *names);

#endif
