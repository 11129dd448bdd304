/* See walk.h. */
#include "lib/walk.h"

#include <stdlib.h>

#include "core/url.h"
#include "lib/check.h"

#define PER_LOCK 200

enum kind { ATTEMPT, RELEASE, WITHDRAW, RENEW, BREAK };

struct request {
    enum kind kind;
    struct hf__bid bid;
    size_t who;
    int64_t number;
    uint64_t generation;
};

static int64_t pick(struct walk *w, const int64_t *from, size_t count)
{
    return from[random_below(&w->random, count)];
}

/* Makes a request one that a lock without a queue sees. */
static void calm(struct walk *w, struct request *q)
{
    static const enum kind kinds[] = {ATTEMPT, ATTEMPT, ATTEMPT,  RELEASE, RELEASE,
                                      RELEASE, RELEASE, WITHDRAW, RENEW};

    q->who = random_below(&w->random, 6) == 0;
    q->bid.ticket = w->tickets[q->who];
    if (random_below(&w->random, 50) != 0)
        q->kind = kinds[random_below(&w->random, COUNT(kinds))];
    if (random_below(&w->random, 10) != 0) {
        q->bid.mode = HF_EXCLUSIVE;
        q->bid.limit = 0;
        q->bid.ttl_ms = q->bid.ttl_ms < 1000 ? 2000 : q->bid.ttl_ms;
        q->bid.lock_delay_ms = 0;
    }
    if (random_below(&w->random, 30) != 0)
        q->bid.retire_ms = 0;
}

static struct request make_request(struct walk *w)
{
    static const int64_t ttls[] = {0, 100, 700, 1000, 5000, 12000, 30000, 60000};
    static const int64_t delays[] = {0, 0, 0, 500, 9000};
    static const int64_t retires[] = {0, 0, 3000, 60000};
    static const int64_t limits[] = {0, 0, 1, 2, 3};
    static const enum kind kinds[] = {ATTEMPT, ATTEMPT, ATTEMPT, ATTEMPT,  RENEW,
                                      RENEW,   RELEASE, RELEASE, WITHDRAW, BREAK};
    struct request q = {.kind = kinds[random_below(&w->random, COUNT(kinds))],
                        .who = random_below(&w->random, WALK_TICKETS)};
    bool shared = random_below(&w->random, 2) == 0;

    q.bid = (struct hf__bid){.name = w->name,
                             .name_len = strlen(w->name),
                             .ticket = w->tickets[q.who],
                             .mode = shared ? HF_SHARED : HF_EXCLUSIVE,
                             .limit = shared ? (uint32_t)pick(w, limits, COUNT(limits)) : 0,
                             .ttl_ms = pick(w, ttls, COUNT(ttls)),
                             .lock_delay_ms = pick(w, delays, COUNT(delays)),
                             .retire_ms = pick(w, retires, COUNT(retires)),
                             .queue = random_below(&w->random, 4) != 0,
                             .who = &w->who};
    if (w->quiet)
        calm(w, &q);
    if (q.kind == BREAK)
        q.number = (int64_t)random_below(&w->random, 2);
    else if (q.kind == RELEASE || q.kind == WITHDRAW)
        q.number =
            w->quiet && random_below(&w->random, 30) != 0 ? 0 : pick(w, retires, COUNT(retires));
    if (q.kind == RENEW && random_below(&w->random, 3) != 0)
        q.generation = w->known[q.who];
    return q;
}

static struct hf__answer ask_doorman(struct walk *w, const struct request *q)
{
    const struct hf__ticket *ticket = &q->bid.ticket;
    struct hf__moment at = {.now_ms = w->now_us / 1000, .stamp_us = (uint64_t)w->now_us};

    switch (q->kind) {
    case ATTEMPT:
        return hf__doorman_attempt(&w->record, &q->bid, NULL, at);
    case RELEASE:
        return hf__doorman_release(&w->record, ticket, q->number, at);
    case WITHDRAW:
        return hf__doorman_withdraw(&w->record, ticket, q->number, at);
    case RENEW:
        return hf__doorman_renew(&w->record, ticket, q->generation, at);
    default:
        return hf__doorman_break(&w->record, ticket, q->number != 0, at);
    }
}

int64_t walk_soon(void)
{
    return hf__now_ns(&hf__system_env) + 5000 * HF__NS_PER_MS;
}

static struct hf__answer ask_store(struct walk *w, struct hf__store *s, const struct request *q)
{
    const struct hf__store_type *type = s->type;
    struct hf__answer a = {0};
    struct hf__renewal item = {.name = w->name,
                               .name_len = strlen(w->name),
                               .ticket = q->bid.ticket,
                               .generation = q->generation};
    int code;

    if (q->kind == ATTEMPT)
        code = type->attempt(s, &q->bid, walk_soon(), &a, &w->err);
    else if (q->kind == RELEASE)
        code = type->release(s, &q->bid, q->number, walk_soon(), &a, &w->err);
    else if (q->kind == WITHDRAW)
        code = type->withdraw(s, &q->bid, q->number, walk_soon(), &a, &w->err);
    else if (q->kind == RENEW)
        code = type->renew(s, &item, 1, walk_soon(), &w->err);
    else
        code = type->break_ticket(s, &q->bid, q->number != 0, walk_soon(), &a, &w->err);
    if (code != 0)
        fail_msg("kind %d: %s", q->kind, w->err.text);
    return q->kind == RENEW ? item.answer : a;
}

/* The store asks again after `poll` (a minute, more or less) at the latest. */
static void check_answer(const struct hf__answer *got, const struct hf__answer *wanted)
{
    check_number("verdict", got->verdict, wanted->verdict);
    check_number("generation", (int64_t)got->generation, (int64_t)wanted->generation);
    check_number("lease", got->lease_ms, wanted->lease_ms);
    check_number("claimed", got->claimed, wanted->claimed);
    check_number("position", (int64_t)got->position, (int64_t)wanted->position);
    if (got->ask_again_ms < 45000 || wanted->ask_again_ms < 45000)
        check_number("ask again", got->ask_again_ms, wanted->ask_again_ms);
}

struct comparison {
    struct walk *w;
    size_t shown;
};

static int compare_entry(void *ctx, const char *name, size_t name_len, const struct hf__entry *got)
{
    struct comparison *c = ctx;
    const struct hf__entry *e = hf__record_find(&c->w->record, &got->ticket);
    int64_t now_ms = c->w->now_us / 1000;

    (void)name, (void)name_len;
    assert_non_null(e);
    c->shown++;
    check_number("place", got->place, e->place);
    check_number("mode", got->mode, e->mode);
    check_number("limit", got->limit, e->limit);
    check_number("entry's generation", (int64_t)got->generation, (int64_t)e->generation);
    check_number("entry's claim", got->claimed, e->claimed);
    check_number("since", got->since_ms, now_ms - e->since_ms);
    check_number("until", got->until_ms,
                 e->until_ms == HF__NEVER ? HF__NEVER : e->until_ms - now_ms);
    return 0;
}

static void compare_entries(struct walk *w)
{
    struct comparison c = {.w = w};
    struct hf__look look = {
        .name = w->name, .name_len = strlen(w->name), .found = compare_entry, .ctx = &c};
    size_t wanted = 0;

    for (size_t i = 0; i < w->record.count; i++) {
        enum hf__place place = w->record.entries[i].place;
        wanted += place == HF__INSIDE || place == HF__WAITING || place == HF__LINGERING;
    }
    if (w->first->type->inspect(w->first, &look, walk_soon(), &w->err) != 0)
        fail_msg("inspect: %s", w->err.text);
    check_number("entries", (int64_t)c.shown, (int64_t)wanted);
}

static void new_ticket(struct walk *w, size_t who)
{
    random_fill(&w->random, &w->tickets[who], sizeof w->tickets[who]);
    w->known[who] = 0;
}

static void new_lock(struct walk *w)
{
    snprintf(w->name, sizeof w->name, "lock-%u \xff'", w->lock++);
    w->record = (struct hf__record){.entries = w->entries, .capacity = WALK_CAPACITY};
    memset(w->known, 0, sizeof w->known);
}

/* Mostly forward, in small and large steps; now and then back. */
static void pass_time(struct walk *w)
{
    static const int64_t steps[] = {0, 300, 1000, 10000, 40000, 400000, 3000000};

    w->now_us += pick(w, steps, COUNT(steps)) + (int64_t)random_below(&w->random, 999);
    if (random_below(&w->random, 40) == 0) {
        w->now_us -= (int64_t)random_below(&w->random, 20000000);
        w->went_back++;
    }
    w->set_clock(w);
}

static void step(struct walk *w, struct hf__store *s, unsigned i)
{
    struct request q = make_request(w);

    pass_time(w);
    struct hf__answer wanted = ask_doorman(w, &q), got = ask_store(w, s, &q);
    check_answer(&got, &wanted);
    for (size_t k = 0; k < w->record.count; k++)
        w->let_in += (w->record.entries[k].marks & HF__LET_IN) != 0;
    w->queued += wanted.verdict == HF__QUEUED;
    hf__record_settle(&w->record);
    if (wanted.verdict == HF__GRANTED)
        w->known[q.who] = wanted.generation;
    else if (wanted.verdict != HF__QUEUED && random_below(&w->random, 2) == 0)
        new_ticket(w, q.who);
    if (i % 25 == 0)
        compare_entries(w);
}

void walk(struct walk *w, struct hf__store *first, struct hf__store *second, unsigned operations)
{
    w->first = first;
    for (unsigned i = 0; i < operations; i++) {
        if (i % PER_LOCK == 0)
            new_lock(w);
        step(w, random_below(&w->random, 2) == 0 ? first : second, i);
    }
    print_message("%u operations%s, %u let in, %u queued, clock back %u times\n", operations,
                  first != second ? " of both kinds" : "", w->let_in, w->queued, w->went_back);
}

void walk_init(struct walk *w, void (*set_clock)(struct walk *w), void *ctx)
{
    *w = (struct walk){.set_clock = set_clock, .ctx = ctx, .now_us = INT64_C(1700000000000000)};
    w->random.state = 4;
    w->who = (struct hf__who){"host", "user", "program", "note", 42};
    w->host = (struct hf__host){.env = &hf__system_env, .self = &w->who, .op_timeout_ms = 5000};
    for (size_t i = 0; i < WALK_TICKETS; i++)
        new_ticket(w, i);
}

struct hf__store *walk_open(struct walk *w, const struct hf__store_type *type, const char *text)
{
    struct hf__store *store = NULL;
    struct hf__url url;

    assert_int_equal(hf__url_parse(text, &url, &w->err), 0);
    if (hf__url_check(&url, type->options, &w->err) != 0 ||
        type->open(&url, &w->host, &store, &w->err) != 0)
        fail_msg("%s: %s", text, w->err.text);
    hf__url_clear(&url);
    return store;
}
