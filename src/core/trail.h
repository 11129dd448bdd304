/* Trails: what hf_history() has found. Stores write down the end of each bid, with the span for which it
 * held, and a grant only if it had been waited for. So a lock that is taken and released costs one entry;
 * the other grants are told from the ends, and from who holds now. Between trail.c, which collects, and
 * trail_at.c, which answers who held at a moment. */
#ifndef HF_CORE_TRAIL_H
#define HF_CORE_TRAIL_H

#include "stores/store.h"

struct hf__trail_item {
    hf_trail_entry entry; /* its name is the block of all its texts */
    uint64_t nth;         /* in which it came: even for a grant that is told from an end */
};

struct hf_trail {
    struct hf__trail_item *items;
    size_t count, capacity;
    size_t limit;
    uint64_t came;
    hf_history_query query;
};

/* Takes a copy of it. HF_NO_MEMORY. */
int hf__trail_add(hf_trail *trail, const struct hf__trail_entry *entry);

/* The same, of the grant that an entry tells the end of. */
int hf__trail_add_grant(hf_trail *trail, const struct hf__trail_entry *end);

/* Drops items[i]; those behind it move up. */
void hf__trail_drop(hf_trail *trail, size_t i);

/* Frees the items. */
void hf__trail_clear(hf_trail *trail);

/* hf__trail_search.found: keeps the grants that were not over at query.at_ms. HF_NO_MEMORY. */
int hf__trail_add_at(void *trail, const struct hf__trail_entry *entry);

/* Afterwards: drops the grants that a later one excludes, whose end nobody has written down. */
void hf__trail_settle_at(hf_trail *trail);

#endif
