/* memory:// loads of a name what an operation needs, not all of it: that is little however many wait or
 * share, and the answers are those of the doorman with the whole record. */
#include "lib/check.h"
#include "lib/fake_clock.h"
#include "lib/operate.h"
#include "lib/random.h"
#include "stores/builtin.h"
#include "stores/memory/memory.h"
#include "stores/memory/window.h"

#define CROWD         500
#define LITTLE        8
#define FIRST_WAITERS 4 /* that are loaded in any case */
#define TICKETS       40
#define SEQUENCES     300
#define OPERATIONS    400

static struct fake_clock fake;
static const struct hf__who self = {.host = "", .user = "", .program = "", .note = ""};
static const struct hf__host host = {.env = &fake.env, .self = &self};

static struct hf__store *open_store(const char *url)
{
    struct hf__url parsed;
    struct hf__store *store;
    hf_error err;

    assert_int_equal(hf__url_parse(url, &parsed, &err), 0);
    assert_int_equal(hf__memory_store_type.open(&parsed, &host, &store, &err), 0);
    hf__url_clear(&parsed);
    return store;
}

static struct hf__bid bid_of(unsigned number, hf_mode mode, uint32_t limit)
{
    return (struct hf__bid){
        .name = "n",
        .name_len = 1,
        .ticket = {.bits = {(unsigned char)(number >> 8), (unsigned char)number, [15] = 1}},
        .mode = mode,
        .limit = limit,
        .ttl_ms = 30000,
        .retire_ms = 5000,
        .queue = true,
        .who = &self};
}

static struct hf__answer ask(struct hf__store *store, struct hf__operation op)
{
    struct hf__answer a = {0};
    hf_error err;

    assert_int_equal(ask_store(store, op, INT64_MAX, &a, &err), 0);
    return a;
}

/* How many the doorman is shown for an operation of this ticket. */
static size_t loaded(struct hf__store *store, unsigned number)
{
    struct memory *m = (struct memory *)store;
    struct hf__bid bid = bid_of(number, HF_SHARED, 0);
    struct window w = {.space = m->space,
                       .room = hf__space_find(m->space, "n", 1),
                       .ticket = &bid.ticket,
                       .now_ms = hf__now_ns(&fake.env) / HF__NS_PER_MS,
                       .waiters = FIRST_WAITERS};

    assert_true(hf__window_load(&w));
    return w.record.count;
}

static void fill(struct hf__store *store, unsigned from, hf_mode mode, uint32_t limit,
                 enum hf__verdict expected)
{
    for (unsigned i = from; i < from + CROWD; i++) {
        struct hf__bid bid = bid_of(i, mode, limit);
        assert_int_equal(ask(store, op_attempt(&bid)).verdict, expected);
    }
}

static void an_operation_looks_at_few_however_many_share(void **state)
{
    static const uint32_t limits[] = {0, CROWD};

    (void)state;
    for (size_t i = 0; i < COUNT(limits); i++) {
        char url[40];
        snprintf(url, sizeof url, "memory://sharers%zu", i);
        struct hf__store *store = open_store(url);
        fill(store, 1, HF_SHARED, limits[i], HF__VERDICT_GRANTED);
        assert_in_range(loaded(store, 1), 1, LITTLE);         /* one of them renews or leaves */
        assert_in_range(loaded(store, CROWD + 1), 0, LITTLE); /* one more comes */
        fill(store, CROWD + 1, HF_EXCLUSIVE, 0, HF__VERDICT_QUEUED);
        assert_in_range(loaded(store, 1), 1, LITTLE);
        assert_in_range(loaded(store, 2 * CROWD), 1, LITTLE);
        hf__memory_store_type.close(store);
    }
}

/* The same by the doorman alone. --------------------------------------------------------------- */
struct plain {
    struct hf__record record;
    struct hf__entry entries[4 * TICKETS];
};

static struct hf__answer ask_plain(struct plain *p, struct hf__operation op)
{
    struct hf__moment at = {hf__now_ns(&fake.env) / HF__NS_PER_MS, fake.env.wall_us(fake.env.ctx)};
    struct hf__answer a = hf__doorman_apply(&p->record, &op, at);

    hf__record_settle(&p->record);
    return a;
}

/* Each number always bids alike: two of three share, with three different limits. */
static struct hf__bid draw_bid(struct random *r)
{
    static const uint32_t limits[] = {0, 0, 6, 6, 9};
    static const int64_t ttls_ms[] = {0, 500, 3000, 20000};
    unsigned number = 1 + (unsigned)random_below(r, TICKETS);
    struct hf__bid bid =
        bid_of(number, number % 3 == 0 ? HF_EXCLUSIVE : HF_SHARED, limits[number % 5]);

    bid.ttl_ms = ttls_ms[number % 4];
    bid.lock_delay_ms = number % 7 == 0 ? 700 : 0;
    bid.queue = number % 11 != 0;
    bid.tell = number % 13 == 0;
    return bid;
}

static struct hf__operation draw(struct random *r, const struct hf__bid *bid)
{
    int64_t retire_ms = random_below(r, 2) == 0 ? 0 : 5000;

    switch (random_below(r, 8)) {
    case 0:
        return op_release(bid, retire_ms);
    case 1:
        return op_release_after(bid, retire_ms, 1000);
    case 2:
        return op_withdraw(bid, retire_ms);
    case 3:
        return op_break(bid, random_below(r, 2) == 0);
    default:
        return op_attempt(bid);
    }
}

static void renew_both(struct hf__store *store, struct plain *p, const struct hf__bid *bid)
{
    const struct hf__entry *e = hf__record_find(&p->record, &bid->ticket);
    uint64_t generation = e != NULL ? e->generation : 0;
    struct hf__renewal item = {
        .name = "n", .name_len = 1, .ticket = bid->ticket, .generation = generation};
    hf_error err;

    struct hf__answer plain = ask_plain(p, op_renew(bid, generation));
    assert_int_equal(hf__memory_store_type.renew(store, &item, 1, INT64_MAX, &err), 0);
    check_number("verdict of a renewal", item.answer.verdict, plain.verdict);
    check_number("wanted", item.answer.wanted, plain.wanted);
    check_number("its lease", item.answer.lease_ms, plain.lease_ms);
}

static size_t count_waiters(const struct plain *p)
{
    size_t waiting = 0;

    for (size_t i = 0; i < p->record.count; i++)
        waiting += p->entries[i].place == HF__PLACE_WAITING;
    return waiting;
}

static void compare(struct hf__store *store, struct plain *p, struct random *r)
{
    struct hf__bid bid = draw_bid(r);
    struct hf__operation op = draw(r, &bid);
    bool all_loaded = count_waiters(p) <= FIRST_WAITERS;

    if (random_below(r, 4) == 0) {
        renew_both(store, p, &bid);
        return;
    }
    struct hf__answer whole = ask_plain(p, op), part = ask(store, op);
    check_number("verdict", part.verdict, whole.verdict);
    check_number("generation", (int64_t)part.generation, (int64_t)whole.generation);
    check_number("lease", part.lease_ms, whole.lease_ms);
    check_number("claimed", part.claimed, whole.claimed);
    check_number("wanted", part.wanted, whole.wanted);
    if (whole.verdict == HF__VERDICT_QUEUED)
        check_number("position", (int64_t)part.position, (int64_t)whole.position);
    if (whole.verdict == HF__VERDICT_QUEUED && all_loaded)
        check_number("ask again", part.ask_again_ms, whole.ask_again_ms);
}

static void answers_are_those_of_the_whole_record(void **state)
{
    struct random r = {13};

    (void)state;
    for (int s = 0; s < SEQUENCES; s++) {
        char url[40];
        snprintf(url, sizeof url, "memory://whole%d", s);
        struct hf__store *store = open_store(url);
        struct plain p = {0};
        p.record.entries = p.entries;
        p.record.capacity = COUNT(p.entries);
        for (int i = 0; i < OPERATIONS; i++) {
            compare(store, &p, &r);
            if (random_below(&r, 3) == 0)
                fake_clock_advance(&fake, (int64_t)random_below(&r, 4) * 300);
        }
        hf__memory_store_type.close(store);
    }
}

static int start_clock(void **state)
{
    (void)state;
    fake_clock_init(&fake);
    return 0;
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_operation_looks_at_few_however_many_share),
        cmocka_unit_test(answers_are_those_of_the_whole_record),
    };

    return cmocka_run_group_tests(tests, start_clock, NULL);
}
