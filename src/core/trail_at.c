/* Who held at a moment. Entries come name by name, those of one name in order. A grant whose end nobody has
 * written down is over when another one is there that excludes it. */
#include "core/trail.h"

#include <stdlib.h>

#include "base/bytes.h"

#include "base/banned.h"

/* Items of the name that is being told stand at the end: only grants that are open. */
static size_t first_of(const hf_trail *trail, const struct hf__trail_entry *told)
{
    size_t first = trail->count;

    while (first > 0 && trail->items[first - 1].entry.name_len == told->name_len &&
           memcmp(trail->items[first - 1].entry.name, told->name, told->name_len) == 0)
        first--;
    return first;
}

int hf__trail_add_at(void *ctx, const struct hf__trail_entry *told)
{
    hf_trail *trail = ctx;
    int64_t at_ms = trail->query.at_ms, granted_ms = told->at_ms - told->span_ms;
    char ticket[HF_TICKET_SIZE];
    bool found = false;

    if (told->kind == HF_TRAIL_GRANTED)
        return told->at_ms <= at_ms ? hf__trail_add(trail, told) : 0;
    if (told->generation == 0)
        return 0;
    hf__ticket_format(&told->ticket, ticket);
    for (size_t i = trail->count, first = first_of(trail, told); i > first; i--) {
        const hf_trail_entry *e = &trail->items[i - 1].entry;
        bool own = strcmp(e->ticket, ticket) == 0, over = told->at_ms <= at_ms;
        found |= own;
        if (over && (own || (told->mode == HF_EXCLUSIVE && e->at_ms <= granted_ms)))
            hf__trail_drop(trail, i - 1);
    }
    return !found && granted_ms <= at_ms && told->at_ms > at_ms ? hf__trail_add_grant(trail, told)
                                                                : 0;
}

static int by_name(const void *a, const void *b)
{
    const struct hf__trail_item *x = a, *y = b;
    int order = hf__bytes_order(x->entry.name, x->entry.name_len, y->entry.name, y->entry.name_len);

    if (order == 0 && x->entry.at_ms != y->entry.at_ms)
        order = x->entry.at_ms < y->entry.at_ms ? -1 : 1;
    return order != 0 ? order : x->nth < y->nth ? -1 : x->nth > y->nth;
}

static bool excludes(const hf_trail_entry *later, const hf_trail_entry *e)
{
    bool same_name =
        later->name_len == e->name_len && memcmp(later->name, e->name, e->name_len) == 0;
    bool exclusive = later->mode == HF_EXCLUSIVE || e->mode == HF_EXCLUSIVE;

    return same_name && exclusive;
}

/* From the last one back: what the last of a name does not exclude may stay. */
void hf__trail_settle_at(hf_trail *trail)
{
    size_t last = trail->count;

    if (trail->count > 1)
        qsort(trail->items, trail->count, sizeof *trail->items, by_name);
    for (size_t i = trail->count; i > 0; i--) {
        if (last < trail->count &&
            excludes(&trail->items[last].entry, &trail->items[i - 1].entry)) {
            hf__trail_drop(trail, i - 1);
            last--;
        } else {
            last = i - 1;
        }
    }
}
