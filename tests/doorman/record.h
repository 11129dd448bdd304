/* A record with a clock, for the tests of single rules: one line an operation.
 *
 * Tickets are small numbers. Every operation settles the record, as a store does after writing. */
#ifndef HF_TESTS_DOORMAN_RECORD_H
#define HF_TESTS_DOORMAN_RECORD_H

#include "doorman/doorman.h"
#include "lib/operate.h"

#define ROOM 64

#define is(what, got, wanted) check_number(what, (int64_t)(got), (int64_t)(wanted))

struct place {
    struct hf__record record;
    struct hf__entry entries[ROOM];
    struct hf__moment at;
    unsigned let_in, called; /* how many the last operation let in, or called, by their marks */
};

static inline struct hf__ticket ticket(unsigned number)
{
    return (struct hf__ticket){
        .bits = {(unsigned char)(number >> 8), (unsigned char)number, [15] = 1}};
}

static inline void begin(struct place *p)
{
    *p = (struct place){.at = {.now_ms = 1000000}};
    p->record = (struct hf__record){.entries = p->entries, .capacity = ROOM};
}

static inline void settle(struct place *p)
{
    p->let_in = p->called = 0;
    for (size_t i = 0; i < p->record.count; i++) {
        p->let_in += (p->record.entries[i].effects & HF__EFFECT_LET_IN) != 0;
        p->called += (p->record.entries[i].effects & HF__EFFECT_WANTED) != 0;
    }
    hf__record_settle(&p->record);
}

/* The usual bid: a writer that queues, a lease of 3 s, remembered for a minute. */
static inline struct hf__bid writer(unsigned number)
{
    return (struct hf__bid){.name = "n",
                            .name_len = 1,
                            .ticket = ticket(number),
                            .mode = HF_EXCLUSIVE,
                            .ttl_ms = 3000,
                            .retire_ms = 60000,
                            .queue = true};
}

static inline struct hf__bid reader(unsigned number, uint32_t limit)
{
    struct hf__bid bid = writer(number);

    bid.mode = HF_SHARED;
    bid.limit = limit;
    return bid;
}

static inline struct hf__bid with_delay(struct hf__bid bid, int64_t delay_ms)
{
    bid.lock_delay_ms = delay_ms;
    return bid;
}

static inline struct hf__bid with_ttl(struct hf__bid bid, int64_t ttl_ms)
{
    bid.ttl_ms = ttl_ms;
    return bid;
}

static inline struct hf__bid no_wait(struct hf__bid bid)
{
    bid.queue = false;
    return bid;
}

static inline struct hf__bid telling(struct hf__bid bid)
{
    bid.tell = true;
    return bid;
}

static inline struct hf__bid cached(struct hf__bid bid)
{
    bid.tell = bid.cached = true;
    return bid;
}

static inline struct hf__answer attempt(struct place *p, struct hf__bid bid)
{
    struct hf__answer a = ask_doorman(&p->record, op_attempt(&bid), p->at);

    settle(p);
    return a;
}

static inline struct hf__answer release(struct place *p, unsigned number, int64_t retire_ms)
{
    struct hf__bid bid = {.ticket = ticket(number)};
    struct hf__answer a = ask_doorman(&p->record, op_release(&bid, retire_ms), p->at);

    settle(p);
    return a;
}

static inline struct hf__answer release_after(struct place *p, unsigned number, int64_t at_least_ms)
{
    struct hf__bid bid = {.ticket = ticket(number)};
    struct hf__answer a = ask_doorman(&p->record, op_release_after(&bid, 0, at_least_ms), p->at);

    settle(p);
    return a;
}

static inline struct hf__answer release_used(struct place *p, unsigned number, uint64_t last)
{
    struct hf__bid bid = {.ticket = ticket(number)};
    struct hf__answer a = ask_doorman(&p->record, op_release_used(&bid, 0, 0, last), p->at);

    settle(p);
    return a;
}

static inline struct hf__answer reads(struct place *p, unsigned number, uint64_t generation)
{
    struct hf__bid bid = {.ticket = ticket(number)};
    struct hf__value value = {0};
    struct hf__answer a = ask_doorman(&p->record, op_read(&bid, generation, &value), p->at);

    settle(p);
    return a;
}

static inline struct hf__answer writes(struct place *p, unsigned number, uint64_t generation,
                                       uint64_t order)
{
    struct hf__bid bid = {.ticket = ticket(number)};
    struct hf__value value = {.order = order};
    struct hf__answer a = ask_doorman(&p->record, op_write(&bid, generation, &value), p->at);

    settle(p);
    return a;
}

static inline struct hf__answer withdraw(struct place *p, unsigned number, int64_t retire_ms)
{
    struct hf__bid bid = {.ticket = ticket(number)};
    struct hf__answer a = ask_doorman(&p->record, op_withdraw(&bid, retire_ms), p->at);

    settle(p);
    return a;
}

static inline struct hf__answer renew(struct place *p, unsigned number, uint64_t generation)
{
    struct hf__bid bid = {.ticket = ticket(number)};
    struct hf__answer a = ask_doorman(&p->record, op_renew(&bid, generation), p->at);

    settle(p);
    return a;
}

static inline struct hf__answer breaks(struct place *p, unsigned number, bool now)
{
    struct hf__bid bid = {.ticket = ticket(number)};
    struct hf__answer a = ask_doorman(&p->record, op_break(&bid, now), p->at);

    settle(p);
    return a;
}

static inline void sweep(struct place *p)
{
    ask_doorman(&p->record, op_sweep(), p->at);
    settle(p);
}

static inline void pass(struct place *p, int64_t ms)
{
    p->at.now_ms += ms;
}

static inline enum hf__place where(const struct place *p, unsigned number)
{
    struct hf__ticket t = ticket(number);
    const struct hf__entry *e = hf__record_find(&p->record, &t);

    return e == NULL ? HF__PLACE_GONE : e->place;
}

/* Until when, counted from now; HF__NEVER. */
static inline int64_t left_ms(const struct place *p, unsigned number)
{
    struct hf__ticket t = ticket(number);
    const struct hf__entry *e = hf__record_find(&p->record, &t);

    if (e == NULL)
        return -1;
    return e->until_ms == HF__NEVER ? HF__NEVER : e->until_ms - p->at.now_ms;
}

#endif
