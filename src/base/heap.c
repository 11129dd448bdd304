/* See heap.h. */
#include "base/heap.h"

#include <stdlib.h>

#include "base/banned.h"

bool hf__heap_reserve(struct hf__heap *heap, size_t count)
{
    if (count <= heap->capacity)
        return true;

    size_t capacity = heap->capacity < 16 ? 16 : heap->capacity * 2;
    if (capacity < count)
        capacity = count;
    struct hf__timer **timers = realloc(heap->timers, capacity * sizeof *timers);
    if (timers == NULL)
        return false;
    heap->timers = timers;
    heap->capacity = capacity;
    return true;
}

static void put(struct hf__heap *heap, size_t i, struct hf__timer *timer)
{
    heap->timers[i] = timer;
    timer->slot = i + 1;
}

static void rise(struct hf__heap *heap, size_t i)
{
    struct hf__timer *timer = heap->timers[i];

    while (i > 0 && heap->timers[(i - 1) / 2]->when_ns > timer->when_ns) {
        put(heap, i, heap->timers[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
    put(heap, i, timer);
}

static void sink(struct hf__heap *heap, size_t i)
{
    struct hf__timer *timer = heap->timers[i];

    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= heap->count)
            break;
        if (child + 1 < heap->count &&
            heap->timers[child + 1]->when_ns < heap->timers[child]->when_ns)
            child++;
        if (heap->timers[child]->when_ns >= timer->when_ns)
            break;
        put(heap, i, heap->timers[child]);
        i = child;
    }
    put(heap, i, timer);
}

void hf__heap_set(struct hf__heap *heap, struct hf__timer *timer, int64_t when_ns)
{
    if (timer->slot == 0) {
        timer->when_ns = when_ns;
        put(heap, heap->count++, timer);
        rise(heap, timer->slot - 1);
        return;
    }

    int64_t before_ns = timer->when_ns;
    timer->when_ns = when_ns;
    if (when_ns < before_ns)
        rise(heap, timer->slot - 1);
    else
        sink(heap, timer->slot - 1);
}

void hf__heap_remove(struct hf__heap *heap, struct hf__timer *timer)
{
    if (timer->slot == 0)
        return;

    size_t i = timer->slot - 1;
    struct hf__timer *last = heap->timers[--heap->count];
    timer->slot = 0;
    if (last == timer)
        return;
    put(heap, i, last);
    rise(heap, i);
    sink(heap, last->slot - 1);
}

struct hf__timer *hf__heap_first(const struct hf__heap *heap)
{
    return heap->count > 0 ? heap->timers[0] : NULL;
}

void hf__heap_clear(struct hf__heap *heap)
{
    free(heap->timers);
    *heap = (struct hf__heap){0};
}
