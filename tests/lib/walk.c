/* See walk.h. */
#include "lib/walk.h"

#include <inttypes.h>

#include "lib/check.h"
#include "lib/operate.h"

#define PER_LOCK 200
#define TELLING  10000 /* from so many operations on, everything must have come up */

static int64_t pick(struct walk *w, const int64_t *from, size_t count)
{
    return from[random_below(&w->random, count)];
}

static bool one_in(struct walk *w, unsigned count)
{
    return random_below(&w->random, count) == 0;
}

/* Somebody who is inside, if there is one. */
static size_t whoever_is_inside(const struct walk *w, size_t otherwise)
{
    for (size_t i = 0; i < WALK_TICKETS; i++) {
        const struct hf__entry *e = hf__record_find(&w->record, &w->tickets[i]);
        if (e != NULL && e->place == HF__PLACE_INSIDE)
            return i;
    }
    return otherwise;
}

/* Makes a request one of a quiet day: a plain bid, or whoever is inside leaves. */
static void calm(struct walk *w, struct walk_request *q)
{
    static const enum walk_kind kinds[] = {WALK_ATTEMPT, WALK_ATTEMPT, WALK_ATTEMPT,
                                           WALK_ATTEMPT, WALK_RELEASE, WALK_RELEASE,
                                           WALK_RELEASE, WALK_RENEW,   WALK_WITHDRAW};

    if (!one_in(w, 50))
        q->kind = kinds[random_below(&w->random, COUNT(kinds))];
    if ((q->kind == WALK_RELEASE || q->kind == WALK_RENEW) && !one_in(w, 4))
        q->who = whoever_is_inside(w, q->who);
    q->bid.ticket = w->tickets[q->who];
    if (!one_in(w, 10)) {
        q->bid.mode = HF_EXCLUSIVE;
        q->bid.limit = 0;
        q->bid.ttl_ms = q->bid.ttl_ms < 1000 ? 2000 : q->bid.ttl_ms;
        q->bid.lock_delay_ms = 0;
    }
    if (!one_in(w, 30))
        q->bid.retire_ms = 0;
}

/* What only some stores can do. */
static void extend(struct walk *w, struct walk_request *q)
{
    static const int64_t at_least[] = {0, 0, 300, 5000, 40000};

    if (w->can & HF_CAN_WANTED)
        q->bid.tell = one_in(w, 2);
    if ((w->can & HF_CAN_AT_LEAST) && q->kind == WALK_RELEASE)
        q->at_least_ms = pick(w, at_least, COUNT(at_least));
    if ((w->can & HF_CAN_CACHE) && q->bid.mode == HF_EXCLUSIVE && q->bid.ttl_ms != HF__NEVER)
        q->bid.cached = q->bid.tell && !one_in(w, 4);
    if ((w->can & HF_CAN_CACHE) && q->kind == WALK_RELEASE && one_in(w, 2)) {
        q->who = whoever_is_inside(w, q->who);
        q->bid.ticket = w->tickets[q->who];
        q->generation =
            w->known[q->who] + random_below(&w->random, 3) * HF__TOKENS_RESERVED / 2 + one_in(w, 3);
    }
    if (!(w->can & HF_CAN_VALUE) || !one_in(w, 5))
        return;
    q->kind = one_in(w, 2) ? WALK_READ : WALK_WRITE;
    if (!one_in(w, 4))
        q->who = whoever_is_inside(w, q->who);
    q->bid.ticket = w->tickets[q->who];
    q->generation = w->known[q->who] + one_in(w, 8);
    if (q->kind == WALK_READ)
        return;
    q->value.order = 1 + random_below(&w->random, 3);
    q->value.len = one_in(w, 4) ? 0 : one_in(w, 4) ? HF_VALUE_MAX : 20;
    random_fill(&w->random, q->value.bytes, q->value.len);
    q->generation += q->generation == 0; /* a write always names one */
}

static struct walk_request make_request(struct walk *w)
{
    static const int64_t ttls[] = {HF__NEVER, 100, 700, 1000, 5000, 12000, 30000, 60000};
    static const int64_t delays[] = {0, 0, 0, 500, 9000};
    static const int64_t retires[] = {0, 0, 3000, 60000};
    static const int64_t limits[] = {0, 0, 1, 2, 3};
    static const enum walk_kind kinds[] = {WALK_ATTEMPT,  WALK_ATTEMPT, WALK_ATTEMPT, WALK_ATTEMPT,
                                           WALK_RENEW,    WALK_RENEW,   WALK_RELEASE, WALK_RELEASE,
                                           WALK_WITHDRAW, WALK_BREAK};
    struct walk_request q = {
        .kind = kinds[random_below(&w->random, COUNT(kinds))],
        .who = random_below(&w->random, one_in(w, 24) ? WALK_TICKETS : w->bidders)};
    bool shared = one_in(w, 2);

    q.bid = (struct hf__bid){.name = w->name,
                             .name_len = strlen(w->name),
                             .ticket = w->tickets[q.who],
                             .mode = shared ? HF_SHARED : HF_EXCLUSIVE,
                             .limit = shared ? (uint32_t)pick(w, limits, COUNT(limits)) : 0,
                             .ttl_ms = pick(w, ttls, COUNT(ttls)),
                             .lock_delay_ms = pick(w, delays, COUNT(delays)),
                             .retire_ms = pick(w, retires, COUNT(retires)),
                             .queue = !one_in(w, 4),
                             .who = &w->who};
    if (w->quiet)
        calm(w, &q);
    if (q.kind == WALK_BREAK)
        q.number = one_in(w, 2);
    else if (q.kind == WALK_RELEASE || q.kind == WALK_WITHDRAW)
        q.number = w->quiet && !one_in(w, 30) ? 0 : pick(w, retires, COUNT(retires));
    if (q.kind == WALK_RENEW && !one_in(w, 3))
        q.generation = w->known[q.who] + one_in(w, 8); /* or a wrong one */
    if (w->can != 0)
        extend(w, &q);
    return q;
}

/* The bytes, which the doorman leaves to the store. */
static void keep_value(struct walk *w, const struct walk_request *q, const struct hf__answer *a)
{
    if (q->kind == WALK_WRITE && a->verdict == HF__VERDICT_DONE)
        w->value = q->value;
    w->value.generation = w->record.value_generation;
    w->value.order = w->record.value_order;
    w->value.doubt = w->record.doubt;
}

static struct hf__answer by_doorman(struct walk *w, const struct walk_request *q)
{
    struct hf__value value = q->value;
    struct hf__moment at = {.now_ms = w->now_us / 1000, .stamp_us = (uint64_t)w->now_us};

    switch (q->kind) {
    case WALK_ATTEMPT:
        return ask_doorman(&w->record, op_attempt(&q->bid), at);
    case WALK_RELEASE:
        return ask_doorman(&w->record,
                           op_release_used(&q->bid, q->number, q->at_least_ms, q->generation), at);
    case WALK_WITHDRAW:
        return ask_doorman(&w->record, op_withdraw(&q->bid, q->number), at);
    case WALK_RENEW:
        return ask_doorman(&w->record, op_renew(&q->bid, q->generation), at);
    case WALK_READ:
        return ask_doorman(&w->record, op_read(&q->bid, q->generation, &value), at);
    case WALK_WRITE:
        return ask_doorman(&w->record, op_write(&q->bid, q->generation, &value), at);
    default:
        return ask_doorman(&w->record, op_break(&q->bid, q->number != 0), at);
    }
}

/* So that a difference can be read. */
static void write_answer(const struct hf__answer *a, char *buf, size_t size)
{
    snprintf(buf, size,
             "verdict %d, generation %" PRIu64 ", lease %" PRId64
             ", claimed %d, wanted %d, position %zu, ask again %" PRId64,
             a->verdict, a->generation, a->lease_ms, a->claimed, a->wanted, a->position,
             a->ask_again_ms);
}

static void check_answer(const struct walk *w, const struct walk_request *q, struct hf__answer got,
                         const struct hf__answer *wanted)
{
    static const char *const kinds[] = {"attempt", "release", "withdrawal", "renewal",
                                        "break",   "read",    "write"};
    int64_t polls_ms = w->type->polls_ms * 3 / 4; /* at the earliest */
    char theirs[200], ours[200];

    if (polls_ms > 0 && got.ask_again_ms >= polls_ms && wanted->ask_again_ms >= polls_ms)
        got.ask_again_ms = wanted->ask_again_ms;
    write_answer(&got, theirs, sizeof theirs);
    write_answer(wanted, ours, sizeof ours);
    if (strcmp(theirs, ours) != 0)
        fail_msg("lock %u, step %u, at %" PRId64 ": %s of bidder %zu: got %s; the doorman: %s",
                 w->lock, w->step, w->now_us, kinds[q->kind], q->who, theirs, ours);
}

static void check_read(const struct walk *w)
{
    const struct hf__value *got = &w->read, *wanted = &w->value;

    check_number("value's generation", (int64_t)got->generation, (int64_t)wanted->generation);
    check_number("value's order", (int64_t)got->order, (int64_t)wanted->order);
    check_number("doubt", got->doubt, wanted->doubt);
    check_number("length", (int64_t)got->len, (int64_t)wanted->len);
    assert_memory_equal(got->bytes, wanted->bytes, wanted->len);
}

const struct hf__entry *walk_next_called(const struct walk *w, const struct walk_request *q,
                                         size_t *i)
{
    while (*i < w->record.count) {
        const struct hf__entry *e = &w->record.entries[(*i)++];
        bool asker = q->kind == WALK_ATTEMPT && hf__ticket_equal(&e->ticket, &q->bid.ticket);
        if (((e->effects & HF__EFFECT_LET_IN) && !asker) || (e->effects & HF__EFFECT_WANTED))
            return e;
    }
    return NULL;
}

static void new_ticket(struct walk *w, size_t who)
{
    random_fill(&w->random, &w->tickets[who], sizeof w->tickets[who]);
    w->known[who] = 0;
}

static void new_lock(struct walk *w)
{
    snprintf(w->name, sizeof w->name, "lock-%u \xff'", ++w->lock);
    w->record = (struct hf__record){.entries = w->entries, .capacity = WALK_CAPACITY};
    w->value = (struct hf__value){0};
    memset(w->known, 0, sizeof w->known);
}

/* Mostly forward, in small and large steps; now and then back. */
static void pass_time(struct walk *w)
{
    static const int64_t steps[] = {0, 300, 1000, 10000, 40000, 400000, 3000000};

    w->now_us += pick(w, steps, w->quiet && !one_in(w, 10) ? 5 : COUNT(steps));
    w->now_us += (int64_t)random_below(&w->random, 999);
    if (one_in(w, 40)) {
        w->now_us -= (int64_t)random_below(&w->random, 20000000);
        w->went_back++;
    }
}

static void step(struct walk *w)
{
    struct walk_request q = make_request(w);

    pass_time(w);
    struct hf__answer got = w->type->ask(w, &q), wanted = by_doorman(w, &q);
    check_answer(w, &q, got, &wanted);
    keep_value(w, &q, &wanted);
    if (q.kind == WALK_READ && wanted.verdict == HF__VERDICT_DONE)
        check_read(w);
    w->written += q.kind == WALK_WRITE && wanted.verdict == HF__VERDICT_DONE;
    w->doubted += w->record.doubt;
    w->wanted += wanted.wanted;
    w->used += q.kind == WALK_RELEASE && w->record.generation == q.generation && q.generation > 0;
    w->cached += q.bid.cached && wanted.verdict == HF__VERDICT_GRANTED;
    w->kept += q.at_least_ms > 0 && wanted.verdict == HF__VERDICT_DONE;
    if (w->type->compare != NULL)
        w->type->compare(w, &q);
    for (size_t k = 0; k < w->record.count; k++)
        w->let_in += (w->record.entries[k].effects & HF__EFFECT_LET_IN) != 0;
    w->queued += wanted.verdict == HF__VERDICT_QUEUED;
    hf__record_settle(&w->record);
    if (wanted.verdict == HF__VERDICT_GRANTED)
        w->known[q.who] = wanted.generation;
    else if (wanted.verdict != HF__VERDICT_QUEUED && one_in(w, 2))
        new_ticket(w, q.who);
    if (w->step % 25 == 0 && w->type->compare_entries != NULL)
        w->type->compare_entries(w);
}

void walk(struct walk *w, unsigned operations)
{
    for (w->step = 0; w->step < operations; w->step++) {
        if (w->step % PER_LOCK == 0)
            new_lock(w);
        step(w);
    }
    print_message(
        "%u operations of %zu bidders; so far %u let in, %u queued, clock back %u times, %u kept"
        " closed, %u wanted, %u written, %u in doubt, %u cached, %u tokens used\n",
        operations, w->bidders, w->let_in, w->queued, w->went_back, w->kept, w->wanted, w->written,
        w->doubted, w->cached, w->used);
    if (operations >= TELLING && (w->can & HF_CAN_CACHE) && (w->cached < 30 || w->used < 10))
        fail_msg("too tame: too few cached grants");
}

void walk_init(struct walk *w, const struct walk_type *type)
{
    *w = (struct walk){.type = type,
                       .bidders = WALK_TICKETS,
                       .now_us = INT64_C(1700000000000000),
                       .who = {"host", "user", "program", "note", 42},
                       .random.state = 4};
    for (size_t i = 0; i < WALK_TICKETS; i++)
        new_ticket(w, i);
}
