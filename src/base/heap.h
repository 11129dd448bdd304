/* A binary heap of timers that live inside their owners: no allocation per timer, removal in O(log
 * n). The earliest is always at hand. Not thread-safe. */
#ifndef HF_BASE_HEAP_H
#define HF_BASE_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hf__timer {
    int64_t when_ns;
    size_t slot; /* 1 + index in the heap; 0: not in it */
};

struct hf__heap {
    struct hf__timer **timers;
    size_t count, capacity;
};

/* Makes room for one more owner's timer, so that hf__heap_set() cannot fail. False: no memory. */
bool hf__heap_reserve(struct hf__heap *heap, size_t count);

/* Inserts or moves. */
void hf__heap_set(struct hf__heap *heap, struct hf__timer *timer, int64_t when_ns);
void hf__heap_remove(struct hf__heap *heap, struct hf__timer *timer); /* fine if not in it */

/* The earliest, or NULL. */
struct hf__timer *hf__heap_first(const struct hf__heap *heap);

void hf__heap_clear(struct hf__heap *heap); /* frees the array, not the timers */

#endif
