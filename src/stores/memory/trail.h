/* The trail of a room: its last steps, in the order in which they were written. */
#ifndef HF_STORES_MEMORY_TRAIL_H
#define HF_STORES_MEMORY_TRAIL_H

#include "stores/memory/window.h"

/* Writes down what has become of the member, if that is told; the last window->history bids stay. Without
 * memory it is not written. */
void hf__memory_note(const struct window *window, const struct member *member,
                     const struct hf__entry *was, const struct hf__entry *is);

/* All but the last `keep` bids. */
void hf__memory_forget(struct room *room, size_t keep);

#endif
