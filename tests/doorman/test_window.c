/* The record as a window on a long queue and on many who share: with only a few loaded, the doorman
 * must answer and change what it answers and changes with all of them. Random operations run through both. */
#include "lib/check.h"
#include "lib/operate.h"
#include "lib/random.h"
#include "record.h"

#define SEQUENCES  20000
#define OPERATIONS 60
#define TICKETS    14

struct operation {
    enum { ATTEMPT, RELEASE, WITHDRAW, RENEW, BREAK, SWEEP, KINDS } kind;
    struct hf__bid bid;
    uint64_t generation;
    int64_t retire_ms;
    bool now;
};

/* Each number always bids alike. */
static struct hf__bid bid_of(unsigned number)
{
    static const int64_t ttls_ms[] = {HF__NEVER, 500, 3000, 20000}, delays_ms[] = {0, 0, 700, 4000};
    struct hf__bid bid = number % 3 == 0 ? writer(number) : reader(number, number % 5 / 2 * 2);

    bid.ttl_ms = ttls_ms[number % 4];
    bid.lock_delay_ms = delays_ms[number / 2 % 4];
    bid.retire_ms = 5000;
    bid.queue = number % 7 != 6;
    return bid;
}

static struct operation draw(struct random *r, const struct place *p)
{
    unsigned number = 1 + (unsigned)random_below(r, TICKETS);
    struct operation op = {.bid = bid_of(number)};
    const struct hf__entry *e = hf__record_find(&p->record, &op.bid.ticket);

    op.kind = random_below(r, 2) == 0 ? ATTEMPT : (int)random_below(r, KINDS);
    op.generation = e == NULL || random_below(r, 3) == 0 ? 0 : e->generation;
    op.retire_ms = random_below(r, 2) == 0 ? 0 : 5000;
    op.now = random_below(r, 2) == 0;
    return op;
}

static struct hf__answer apply(struct hf__record *record, const struct operation *op,
                               struct hf__moment at)
{
    switch (op->kind) {
    case ATTEMPT:
        return ask_doorman(record, op_attempt(&op->bid), at);
    case RELEASE:
        return ask_doorman(record, op_release(&op->bid, op->retire_ms), at);
    case WITHDRAW:
        return ask_doorman(record, op_withdraw(&op->bid, op->retire_ms), at);
    case RENEW:
        return ask_doorman(record, op_renew(&op->bid, op->generation), at);
    case BREAK:
        return ask_doorman(record, op_break(&op->bid, op->now), at);
    default:
        return ask_doorman(record, op_sweep(), at);
    }
}

/* Whether a sweep or the operation itself would touch it. */
static bool matters(const struct place *full, const struct operation *op, const struct hf__entry *e)
{
    if (e->until_ms <= full->at.now_ms || hf__ticket_equal(&e->ticket, &op->bid.ticket))
        return true;
    return e->until_ms != HF__NEVER && e->until_ms - full->at.now_ms > e->lease_ms;
}

static bool is_sharer(const struct hf__entry *e)
{
    return e->mode == HF_SHARED &&
           (e->place == HF__PLACE_INSIDE || e->place == HF__PLACE_LINGERING);
}

static void leave_out(struct place *p, const struct hf__entry *e)
{
    uint32_t limit = p->record.sharers.limit;

    if (p->record.sharers.count++ == 0)
        p->record.sharers.until_ms = HF__NEVER;
    if (e->limit != 0 && (limit == 0 || e->limit < limit))
        p->record.sharers.limit = e->limit;
    if (e->until_ms < p->record.sharers.until_ms)
        p->record.sharers.until_ms = e->until_ms;
}

/* What a store loads: see struct hf__record. Of those who share, every second that does not matter. */
static void open_window(const struct place *full, const struct operation *op, size_t waiters,
                        struct place *ret)
{
    size_t sharers = 0;

    *ret = *full;
    ret->record.entries = ret->entries;
    ret->record.count = 0;
    for (int behind = 0; behind < 2; behind++) {
        size_t line = 0;
        ret->record.gap = ret->record.count;
        for (size_t i = 0; i < full->record.count; i++) {
            const struct hf__entry *e = &full->entries[i];
            bool front = e->place != HF__PLACE_WAITING || line < waiters;
            line += e->place == HF__PLACE_WAITING;
            if (is_sharer(e) && !matters(full, op, e) && !behind && sharers++ % 2 == 0) {
                leave_out(ret, e);
                continue;
            }
            if (behind ? !front && matters(full, op, e) : front)
                ret->entries[ret->record.count++] = *e;
        }
    }
}

static const struct hf__entry *find(const struct place *p, const struct hf__ticket *t)
{
    return hf__record_find(&p->record, t);
}

static void load(const struct place *full, const struct operation *op, size_t waiters,
                 struct place *ret)
{
    size_t all = 0, seen = 0;

    open_window(full, op, waiters, ret);
    for (size_t i = 0; i < full->record.count; i++)
        all += full->entries[i].place == HF__PLACE_WAITING;
    for (size_t i = 0; i < ret->record.count; i++)
        seen += ret->entries[i].place == HF__PLACE_WAITING;
    ret->record.unseen = all - seen;
}

static void check_same(const char *what, const struct hf__entry *a, const struct hf__entry *b)
{
    if ((a == NULL) != (b == NULL))
        fail_msg("%s: only one of them has an entry", what);
    if (a == NULL)
        return;
    check_number("place", a->place, b->place);
    check_number("until", a->until_ms, b->until_ms);
    check_number("lease", a->lease_ms, b->lease_ms);
    check_number("since", a->since_ms, b->since_ms);
    check_number("generation", (int64_t)a->generation, (int64_t)b->generation);
    check_number("claimed", a->claimed, b->claimed);
}

static void check_entries(const struct place *before, const struct place *full,
                          const struct place *window, const struct place *loaded)
{
    for (unsigned number = 1; number <= TICKETS; number++) {
        struct hf__ticket t = ticket(number);
        if (find(loaded, &t) != NULL || find(before, &t) == NULL)
            check_same("in the window", find(full, &t), find(window, &t));
        else
            check_same("outside of the window", find(full, &t), find(before, &t));
    }
    check_number("generation", (int64_t)full->record.generation,
                 (int64_t)window->record.generation);
}

/* A waiter behind the gap is not told exactly where it stands and when to ask, unless it is the
 * last. */
static void check_answers(const struct hf__answer *full, const struct hf__answer *part,
                          const struct place *window, const struct hf__ticket *t)
{
    const struct hf__entry *mine = find(window, t);

    check_number("verdict", full->verdict, part->verdict);
    check_number("generation", (int64_t)full->generation, (int64_t)part->generation);
    check_number("lease", full->lease_ms, part->lease_ms);
    check_number("claimed", full->claimed, part->claimed);
    if (full->verdict != HF__VERDICT_QUEUED)
        return;
    bool front = window->record.unseen == 0 || mine < window->entries + window->record.gap;
    if (front)
        check_number("ask again", full->ask_again_ms, part->ask_again_ms);
    if (front || mine->effects & HF__EFFECT_NEW)
        check_number("position", (int64_t)full->position, (int64_t)part->position);
    assert_true(part->position >= full->position);
}

/* One operation through a window of `waiters`, wider as long as the doorman wants more. Returns how
 * often it did. */
static unsigned compare(const struct place *before, const struct operation *op, size_t waiters,
                        struct place *full)
{
    struct place window, loaded;
    struct hf__answer a, b;
    unsigned more = 0;

    for (;; waiters *= 2, more++) {
        load(before, op, waiters, &window);
        loaded = window;
        loaded.record.entries = loaded.entries;
        b = apply(&window.record, op, before->at);
        if (b.verdict != HF__VERDICT_MORE)
            break;
    }
    *full = *before;
    full->record.entries = full->entries;
    a = apply(&full->record, op, before->at);

    check_answers(&a, &b, &window, &op->bid.ticket);
    check_entries(before, full, &window, &loaded);
    return more;
}

static void a_window_answers_like_the_whole(void **state)
{
    struct random r = {20};
    unsigned more = 0, narrow = 0, left_out = 0;

    (void)state;
    for (unsigned s = 0; s < SEQUENCES; s++) {
        struct place p, next;
        begin(&p);
        for (unsigned i = 0; i < OPERATIONS; i++) {
            struct operation op = draw(&r, &p);
            struct place window;
            size_t waiters = 1 + (size_t)random_below(&r, 3);
            load(&p, &op, waiters, &window);
            narrow += window.record.unseen > 0;
            left_out += window.record.sharers.count > 0;
            more += compare(&p, &op, waiters, &next);
            p = next;
            p.record.entries = p.entries;
            settle(&p);
            pass(&p, (int64_t)random_below(&r, 4) * 400);
            if (random_below(&r, 50) == 0)
                pass(&p, -(int64_t)random_below(&r, 9000));
        }
    }
    assert_true(narrow > SEQUENCES); /* the windows were windows */
    assert_true(left_out > SEQUENCES);
    assert_true(more > SEQUENCES / 10);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_window_answers_like_the_whole),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
