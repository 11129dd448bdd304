/* The inside of `inspect`: which names there are (scan.c), and what a majority knows of them
 * (inspect.c). */
#ifndef HF_STORES_REDLOCK_INSPECT_H
#define HF_STORES_REDLOCK_INSPECT_H

#include "stores/redlock/redlock.h"

struct hf__redlock_names {
    struct hf__redlock_name {
        size_t len;
        char *bytes;
    } * list;
    size_t count, capacity;
};

struct hf__redlock_inspection {
    struct hf__redlock_ask ask;
    struct hf__redlock *s;
    struct hf__redlock_set *set;
    const struct hf__search *search;
    int64_t deadline_ns;
    struct hf__redlock_names names;
    size_t from, upto; /* the names of this page */
    redisReply *pages[HF__REDLOCK_NODES_MAX];
    char cursors[HF__REDLOCK_NODES_MAX][HF__REDIS_CURSOR_SIZE];
    char pattern[2 * HF__REDIS_KEY_MAX];
};

/* Fills in the names, in order, each once. */
int hf__redlock_find_names(struct hf__redlock_inspection *w, hf_error *err);
int hf__redlock_add_name(struct hf__redlock_names *n, const char *bytes, size_t len, hf_error *err);

/* Puts w->ask to its nodes, and waits for all of them. HF_UNAVAILABLE: too few have answered. */
int hf__redlock_ask_nodes(struct hf__redlock_inspection *w, hf_error *err);

#endif
