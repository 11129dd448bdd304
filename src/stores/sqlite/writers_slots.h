/* The slots of the line (writers.h): the file that all processes map, and who stands where in it. */
#ifndef HF_STORES_SQLITE_WRITERS_SLOTS_H
#define HF_STORES_SQLITE_WRITERS_SLOTS_H

#include <stdatomic.h>

#include "stores/sqlite/writers.h"

#define HF__WRITERS_MAGIC 0x77723031u /* a file of another layout is not used */
#define HF__WRITERS_SLOTS 4096
#define HF__WRITERS_AWAKE 8 /* how many may be woken at once */

/* A ticket: the class, that it is one, and the number of the arrival. */
#define HF__WRITERS_FIRST  0x80000000u
#define HF__WRITERS_IN     0x40000000u
#define HF__WRITERS_NUMBER 0x3fffffffu

struct hf__writers_slot {
    _Atomic uint32_t ticket;
    _Atomic uint32_t word;
    _Atomic uint32_t seen; /* when it was woken or last tried, in us; 0: it sleeps */
    uint32_t reserved;
};

struct hf__writers_map {
    _Atomic uint32_t magic;
    _Atomic uint32_t arrivals;
    _Atomic uint32_t busy;    /* somebody may be in line */
    _Atomic uint32_t high;    /* slots above are not in line */
    _Atomic uint32_t turns;   /* how often the first was woken */
    _Atomic uint32_t lag_us;  /* how long it takes them to react, about */
    _Atomic uint32_t commits; /* while somebody was in line */
    uint32_t reserved[9];
    struct hf__writers_slot slots[HF__WRITERS_SLOTS];
};

/* The first in line, as many as fit. */
struct hf__writers_head_list {
    int slots[HF__WRITERS_AWAKE];
    uint32_t ages[HF__WRITERS_AWAKE];
    int count, most;
};

/* The time in us, the same in every time namespace; never 0. */
uint32_t hf__writers_now_us(void);

/* A slot of our own. False: all that were tried are taken. */
bool hf__writers_claim(struct hf__writers *w);

/* The owner of a slot is gone. */
bool hf__writers_is_dead(const struct hf__writers *w, int slot);

/* Slots from here on are not in line; and makes that at least so much. */
int hf__writers_high(const struct hf__writers *w);
void hf__writers_raise(struct hf__writers *w, uint32_t high);

/* Larger is earlier in line; 0: not in line. The count of arrivals may wrap. */
uint32_t hf__writers_age(uint32_t ticket, uint32_t arrivals);

/* Fills `h` with h->most of those who react; `ret_before` (may be NULL): how many are before us. */
void hf__writers_heads(const struct hf__writers *w, struct hf__writers_head_list *h,
                       int *ret_before);

/* The very first; -1: nobody. */
int hf__writers_first(const struct hf__writers *w, int *ret_before);

#endif
