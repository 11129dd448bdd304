/* Sets of connections, one to each node, lent as net/pool.h says. A set is made without dialling:
 * each operation connects those of its lines that are down. A line that still owes replies stays in
 * its set. */
#include <stdlib.h>

#include "stores/redlock/redlock.h"

#include "base/banned.h"

static int make(void *owner, size_t host, int64_t deadline_ns, struct hf__pooled **ret_set,
                hf_error *err)
{
    struct hf__redlock *s = owner;
    struct hf__redlock_set *set = calloc(1, sizeof *set + s->count * sizeof set->lines[0]);

    (void)host, (void)deadline_ns;
    if (set == NULL)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    set->count = s->count;
    *ret_set = &set->pooled;
    return 0;
}

static void hang_up(struct hf__pooled *pooled)
{
    struct hf__redlock_set *set = (struct hf__redlock_set *)pooled;

    for (size_t i = 0; i < set->count; i++)
        hf__redlock_hang_up(&set->lines[i]);
    free(set);
}

const struct hf__pool_type hf__redlock_pool_type = {
    .store = "redlock", .dial = make, .hang_up = hang_up};

int hf__redlock_take(struct hf__redlock *s, int64_t deadline_ns, struct hf__redlock_set **ret_set,
                     hf_error *err)
{
    struct hf__pooled *pooled = NULL;
    int r = hf__pool_take(&s->pool, deadline_ns, &pooled, err);

    if (r == 0)
        *ret_set = (struct hf__redlock_set *)pooled;
    return r;
}

void hf__redlock_give(struct hf__redlock *s, struct hf__redlock_set *set)
{
    hf__pool_give(&s->pool, &set->pooled, true);
}
