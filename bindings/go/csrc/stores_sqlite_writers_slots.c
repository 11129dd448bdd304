/* See writers_slots.h. */
#include "stores_sqlite_writers_slots.h"
#include "base_backoff.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "base_banned.h"

#define FEW_SLOTS 64    /* tried first, so that a short line is read fast */
#define SEEN_US   30000 /* who is to try and was not seen for so long is passed over */

/* Of the wall clock, which time namespaces do not shift. A step of it is taken for silence, or for
 * a sign of life, once. */
uint32_t hf__writers_now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    uint32_t us = (uint32_t)((uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000);
    return us != 0 ? us : 1;
}

static bool lock_slot(const struct hf__writers *w, int slot, int command, short *type)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = slot, .l_len = 1};

    if (fcntl(w->fd, command, &lock) != 0)
        return false;
    *type = lock.l_type;
    return true;
}

bool hf__writers_claim(struct hf__writers *w)
{
    short type;

    for (int tries = 0; w->slot < 0 && tries < 32; tries++) {
        int slot = (int)hf__jitter(&w->jitter, tries < 8 ? FEW_SLOTS : HF__WRITERS_SLOTS);
        if (lock_slot(w, slot, F_OFD_SETLK, &type))
            w->slot = slot;
    }
    return w->slot >= 0;
}

bool hf__writers_is_dead(const struct hf__writers *w, int slot)
{
    short type = F_WRLCK;

    return slot != w->slot && lock_slot(w, slot, F_OFD_GETLK, &type) && type == F_UNLCK;
}

int hf__writers_high(const struct hf__writers *w)
{
    uint32_t high = atomic_load(&w->map->high);

    return high < HF__WRITERS_SLOTS ? (int)high : HF__WRITERS_SLOTS;
}

void hf__writers_raise(struct hf__writers *w, uint32_t high)
{
    uint32_t old = atomic_load(&w->map->high);

    while (old < high && !atomic_compare_exchange_weak(&w->map->high, &old, high))
        continue;
}

uint32_t hf__writers_age(uint32_t ticket, uint32_t arrivals)
{
    if (ticket == 0)
        return 0;
    return (ticket & HF__WRITERS_FIRST) | HF__WRITERS_IN |
           ((arrivals - ticket) & HF__WRITERS_NUMBER);
}

/* Woken, but it does not try. */
static bool is_silent(const struct hf__writers_slot *slot, uint32_t now)
{
    uint32_t seen = atomic_load(&slot->seen);

    return seen != 0 && now - seen > SEEN_US;
}

void hf__writers_heads(const struct hf__writers *w, struct hf__writers_head_list *h,
                       int *ret_before)
{
    uint32_t arrivals = atomic_load(&w->map->arrivals), now = hf__writers_now_us();
    uint32_t own = hf__writers_age(w->ticket, arrivals);
    int before = 0;

    h->count = 0;
    for (int i = 0, high = hf__writers_high(w); i < high; i++) {
        const struct hf__writers_slot *slot = &w->map->slots[i];
        uint32_t age = hf__writers_age(atomic_load(&slot->ticket), arrivals);
        if (age == 0 || (i != w->slot && is_silent(slot, now)))
            continue;
        before += age > own;
        if (h->count == h->most && age <= h->ages[h->count - 1])
            continue;
        int at = h->count < h->most ? h->count++ : h->count - 1;
        for (; at > 0 && h->ages[at - 1] < age; at--) {
            h->ages[at] = h->ages[at - 1];
            h->slots[at] = h->slots[at - 1];
        }
        h->ages[at] = age;
        h->slots[at] = i;
    }
    if (ret_before != NULL)
        *ret_before = before;
}

int hf__writers_first(const struct hf__writers *w, int *ret_before)
{
    struct hf__writers_head_list h = {.most = 1};

    hf__writers_heads(w, &h, ret_before);
    return h.count > 0 ? h.slots[0] : -1;
}
