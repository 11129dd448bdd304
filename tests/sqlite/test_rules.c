/* The SQLite store against the doorman on a plain record in memory: the same random operations
 * through both must be answered alike and leave the same line behind, however much of it the store
 * has loaded. */
#include "lib/operate.h"
#include "sqlite/fixture.h"

#define NAMES      2
#define PEOPLE     140 /* per name */
#define OPERATIONS 60000
#define CAPACITY   40000

struct person {
    struct hf__bid bid;
    uint64_t generation; /* of its grant, as last told; 0: none */
};

struct world {
    struct fixture *f;
    struct random dice;
    struct hf__record record[NAMES];
    struct person people[NAMES][PEOPLE];
    size_t longest, widest; /* the longest queue, the most let in at once */
};

static const char *const names[NAMES] = {"invoice/1", "invoice/1 "};

static void renew_person(struct world *w, int lock, struct person *p)
{
    static const int64_t ttls[] = {0, 100, 700, 5000, 10000, 30000};
    static const int64_t delays[] = {0, 0, 0, 300, 2500};
    static const int64_t retires[] = {0, 1000, 60000};

    p->bid = make_bid(w->f, names[lock]);
    p->bid.mode = random_below(&w->dice, 3) == 0 ? HF_EXCLUSIVE : HF_SHARED;
    p->bid.limit = random_below(&w->dice, 4) == 0 ? (uint32_t)random_below(&w->dice, 6) : 0;
    p->bid.ttl_ms = ttls[random_below(&w->dice, COUNT(ttls))];
    p->bid.lock_delay_ms = delays[random_below(&w->dice, COUNT(delays))];
    p->bid.retire_ms = retires[random_below(&w->dice, COUNT(retires))];
    p->bid.queue = random_below(&w->dice, 8) != 0;
    p->generation = 0;
}

static struct hf__moment now(const struct world *w)
{
    struct hf__moment at = {w->f->now_ns / HF__NS_PER_MS, w->f->wall_us};

    return at;
}

static void check_alike(const struct hf__answer *got, const struct hf__answer *wanted,
                        int64_t now_ns)
{
    check_number("verdict", got->verdict, wanted->verdict);
    check_number("generation", (int64_t)got->generation, (int64_t)wanted->generation);
    check_number("lease", got->lease_ms, wanted->lease_ms);
    check_number("claimed", got->claimed, wanted->claimed);
    check_number("position", (int64_t)got->position, (int64_t)wanted->position);
    check_number("sent", got->sent_ns, now_ns);
    if (got->verdict == HF__VERDICT_QUEUED && (got->ask_again_ms <= 0 || got->ask_again_ms > 10000))
        fail_msg("ask again in %lld ms", (long long)got->ask_again_ms);
}

enum kind { ATTEMPT, WITHDRAW, RELEASE, RENEW, RENEW_BLIND, BREAK, BREAK_NOW };

static enum kind choose(struct world *w)
{
    static const enum kind often[] = {ATTEMPT, ATTEMPT, ATTEMPT,     ATTEMPT,  RENEW, RENEW,
                                      RENEW,   RELEASE, RENEW_BLIND, WITHDRAW, BREAK, BREAK_NOW};

    return often[random_below(&w->dice, COUNT(often))];
}

static struct hf__answer by_rules(struct world *w, int lock, enum kind kind, const struct person *p)
{
    struct hf__record *r = &w->record[lock];

    switch (kind) {
    case ATTEMPT:
        return ask_doorman(r, op_attempt(&p->bid), now(w));
    case WITHDRAW:
        return ask_doorman(r, op_withdraw(&p->bid, p->bid.retire_ms), now(w));
    case RELEASE:
        return ask_doorman(r, op_release(&p->bid, p->bid.retire_ms), now(w));
    case RENEW:
        return ask_doorman(r, op_renew(&p->bid, p->generation), now(w));
    case RENEW_BLIND:
        return ask_doorman(r, op_renew(&p->bid, 0), now(w));
    default:
        return ask_doorman(r, op_break(&p->bid, kind == BREAK_NOW), now(w));
    }
}

static struct hf__answer by_store(struct world *w, enum kind kind, const struct person *p)
{
    struct hf__store *s = w->f->store;
    struct hf__answer a = {.sent_ns = 1};
    int64_t deadline = soon(w->f), retire = p->bid.retire_ms;
    int code;

    switch (kind) {
    case ATTEMPT:
        code = ask_store(s, op_attempt(&p->bid), deadline, &a, &w->f->err);
        break;
    case WITHDRAW:
        code = ask_store(s, op_withdraw(&p->bid, retire), deadline, &a, &w->f->err);
        break;
    case RELEASE:
        code = ask_store(s, op_release(&p->bid, retire), deadline, &a, &w->f->err);
        break;
    case RENEW:
        return renew(w->f, &p->bid, p->generation);
    case RENEW_BLIND:
        return renew(w->f, &p->bid, 0);
    default:
        code = ask_store(s, op_break(&p->bid, kind == BREAK_NOW), deadline, &a, &w->f->err);
    }
    check_ok(w->f, "operation", code);
    return a;
}

static void measure(struct world *w, int lock)
{
    size_t waiting = 0, entered = 0;

    for (size_t i = 0; i < w->record[lock].count; i++) {
        waiting += w->record[lock].entries[i].place == HF__PLACE_WAITING;
        entered += (w->record[lock].entries[i].marks & HF__MARK_LET_IN) != 0;
    }
    w->longest = waiting > w->longest ? waiting : w->longest;
    w->widest = entered > w->widest ? entered : w->widest;
}

static void step(struct world *w)
{
    int lock = (int)random_below(&w->dice, NAMES);
    struct person *p = &w->people[lock][random_below(&w->dice, PEOPLE)];
    enum kind kind = choose(w);
    struct hf__answer wanted = by_rules(w, lock, kind, p);
    struct hf__answer got = by_store(w, kind, p);

    measure(w, lock);
    check_alike(&got, &wanted, w->f->now_ns);
    hf__record_settle(&w->record[lock]);
    if (got.verdict == HF__VERDICT_GRANTED)
        p->generation = got.generation;
    else if (got.verdict != HF__VERDICT_QUEUED && random_below(&w->dice, 2) == 0)
        renew_person(w, lock, p);
}

struct comparison {
    const struct hf__record *record;
    size_t at;
    int64_t now_ms;
};

static bool is_shown(const struct hf__entry *e)
{
    return e->place == HF__PLACE_INSIDE || e->place == HF__PLACE_LINGERING ||
           e->place == HF__PLACE_WAITING;
}

static const struct hf__entry *next_shown(struct comparison *c)
{
    while (c->at < c->record->count && !is_shown(&c->record->entries[c->at]))
        c->at++;
    return c->at < c->record->count ? &c->record->entries[c->at++] : NULL;
}

static int compare_entry(void *ctx, const char *name, size_t name_len, const struct hf__entry *got)
{
    struct comparison *c = ctx;
    const struct hf__entry *e = next_shown(c);

    (void)name, (void)name_len;
    assert_non_null(e);
    assert_memory_equal(&got->ticket, &e->ticket, sizeof e->ticket);
    check_number("place", got->place, e->place);
    check_number("mode", got->mode, e->mode);
    check_number("limit", got->limit, e->limit);
    check_number("ttl", got->ttl_ms, e->ttl_ms);
    check_number("generation of entry", (int64_t)got->generation, (int64_t)e->generation);
    check_number("claimed entry", got->claimed, e->claimed);
    check_number("since", got->since_ms, c->now_ms - e->since_ms);
    check_number("until", got->until_ms,
                 e->until_ms == HF__NEVER ? HF__NEVER : e->until_ms - c->now_ms);
    return 0;
}

/* Both were swept at this very moment. */
static void compare_lines(struct world *w, int lock)
{
    struct person nobody;
    struct comparison c = {.record = &w->record[lock], .now_ms = now(w).now_ms};
    struct hf__search search = {
        .name = names[lock], .name_len = strlen(names[lock]), .found = compare_entry, .ctx = &c};

    renew_person(w, lock, &nobody);
    by_rules(w, lock, RELEASE, &nobody);
    hf__record_settle(&w->record[lock]);
    by_store(w, RELEASE, &nobody);
    check_ok(w->f, "inspect",
             w->f->store->type->inspect(w->f->store, &search, soon(w->f), &w->f->err));
    assert_null(next_shown(&c));
}

static void answers_and_line_are_those_of_the_doorman(void **state)
{
    struct world *w = calloc(1, sizeof *w);

    assert_non_null(w);
    w->f = *state;
    w->dice.state = 22;
    for (int lock = 0; lock < NAMES; lock++) {
        w->record[lock].entries = calloc(CAPACITY, sizeof *w->record[lock].entries);
        assert_non_null(w->record[lock].entries);
        w->record[lock].capacity = CAPACITY;
        for (int i = 0; i < PEOPLE; i++)
            renew_person(w, lock, &w->people[lock][i]);
    }
    for (int i = 0; i < OPERATIONS; i++) {
        bool storm = i / 2000 % 4 == 3; /* now and then most leases run out */
        pass_time(w->f, (int64_t)random_below(&w->dice, storm ? 900 : 8));
        step(w);
        if (i % 100 == 0)
            compare_lines(w, i / 100 % NAMES);
    }
    check_number("miscounted locks",
                 ask(w->f,
                     "SELECT count(*) FROM holdfast_lock WHERE waiting <> (SELECT count(*) FROM"
                     " holdfast_entry WHERE lock = id AND place = 1) OR retired <>"
                     " (SELECT count(*) FROM holdfast_retired WHERE lock = id)"),
                 0);
    if (w->longest < 50 || w->widest < 8)
        fail_msg("the walk was too tame: queue %zu, let in at once %zu", w->longest, w->widest);
    for (int lock = 0; lock < NAMES; lock++)
        free(w->record[lock].entries);
    free(w);
}

/* The store loads the tombstones only when they are so many that they matter. */
static void c5_too_many_tombstones_refuse_new_bids_until_they_end(void **state)
{
    struct fixture *f = *state;
    struct hf__bid bid = make_bid(f, "x");
    char sql[400];

    attempt(f, &bid);
    snprintf(
        sql, sizeof sql,
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)"
        " INSERT INTO holdfast_retired SELECT 1, CAST(printf('%%016d', i) AS BLOB), %lld, 60000"
        " FROM n; UPDATE holdfast_lock SET retired = %d",
        HF__RETIRED_MAX, (long long)(f->now_ns / HF__NS_PER_MS + 60 * SECOND), HF__RETIRED_MAX);
    meddle(f, sql);
    release(f, &bid);
    bid = make_bid(f, "x");
    assert_int_equal(attempt(f, &bid).verdict, HF__VERDICT_FULL);
    pass_time(f, 60 * SECOND);
    assert_int_equal(attempt(f, &bid).verdict, HF__VERDICT_GRANTED);
    check_number("tombstones", ask(f, "SELECT count(*) FROM holdfast_retired"), 0);
    check_number("counted", ask(f, "SELECT retired FROM holdfast_lock"), 0);
}

static void c5_a_second_withdraw_neither_counts_twice_nor_shortens(void **state)
{
    struct fixture *f = *state;
    struct hf__bid bid = make_bid(f, "x");
    struct hf__answer a = {0};

    for (int64_t retire = 60 * SECOND; retire > 0; retire -= 59 * SECOND)
        check_ok(f, "withdraw",
                 ask_store(f->store, op_withdraw(&bid, retire), soon(f), &a, &f->err));
    check_number("counted", ask(f, "SELECT retired FROM holdfast_lock"), 1);
    pass_time(f, 59 * SECOND);
    assert_int_equal(attempt(f, &bid).verdict, HF__VERDICT_WITHDRAWN);
    pass_time(f, SECOND);
    assert_int_equal(attempt(f, &bid).verdict, HF__VERDICT_GRANTED);
}

int main(void)
{
#define OPEN(test) cmocka_unit_test_setup_teardown(test, setup_open, teardown)
    const struct CMUnitTest tests[] = {
        OPEN(answers_and_line_are_those_of_the_doorman),
        OPEN(c5_too_many_tombstones_refuse_new_bids_until_they_end),
        OPEN(c5_a_second_withdraw_neither_counts_twice_nor_shortens),
    };

    return cmocka_run_group_tests_name("sqlite_rules", tests, NULL, NULL);
}
