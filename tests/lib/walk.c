/* See walk.h. */
#include "lib/walk.h"

#include <inttypes.h>

#include "lib/check.h"
#include "lib/operate.h"

#define PER_LOCK 200

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

static struct walk_request make_request(struct walk *w)
{
    static const int64_t ttls[] = {0, 100, 700, 1000, 5000, 12000, 30000, 60000};
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
    return q;
}

static struct hf__answer by_doorman(struct walk *w, const struct walk_request *q)
{
    struct hf__moment at = {.now_ms = w->now_us / 1000, .stamp_us = (uint64_t)w->now_us};

    switch (q->kind) {
    case WALK_ATTEMPT:
        return ask_doorman(&w->record, op_attempt(&q->bid), at);
    case WALK_RELEASE:
        return ask_doorman(&w->record, op_release(&q->bid, q->number), at);
    case WALK_WITHDRAW:
        return ask_doorman(&w->record, op_withdraw(&q->bid, q->number), at);
    case WALK_RENEW:
        return ask_doorman(&w->record, op_renew(&q->bid, q->generation), at);
    default:
        return ask_doorman(&w->record, op_break(&q->bid, q->number != 0), at);
    }
}

/* So that a difference can be read. */
static void write_answer(const struct hf__answer *a, char *buf, size_t size)
{
    snprintf(buf, size,
             "verdict %d, generation %" PRIu64 ", lease %" PRId64
             ", claimed %d, position %zu, ask again %" PRId64,
             a->verdict, a->generation, a->lease_ms, a->claimed, a->position, a->ask_again_ms);
}

static void check_answer(const struct walk *w, const struct walk_request *q, struct hf__answer got,
                         const struct hf__answer *wanted)
{
    static const char *const kinds[] = {"attempt", "release", "withdrawal", "renewal", "break"};
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

const struct hf__entry *walk_next_called(const struct walk *w, const struct walk_request *q,
                                         size_t *i)
{
    while (*i < w->record.count) {
        const struct hf__entry *e = &w->record.entries[(*i)++];
        bool asker = q->kind == WALK_ATTEMPT && hf__ticket_equal(&e->ticket, &q->bid.ticket);
        if ((e->marks & HF__MARK_LET_IN) && !asker)
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
    if (w->type->compare != NULL)
        w->type->compare(w, &q);
    for (size_t k = 0; k < w->record.count; k++)
        w->let_in += (w->record.entries[k].marks & HF__MARK_LET_IN) != 0;
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
        "%u operations of %zu bidders; so far %u let in, %u queued, clock back %u times\n",
        operations, w->bidders, w->let_in, w->queued, w->went_back);
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
