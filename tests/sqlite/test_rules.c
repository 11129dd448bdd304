/* The SQLite store against the doorman on a plain record in memory: the same random operations
 * through both must be answered alike and leave the same line behind, however much of it the store
 * has loaded. */
#include "lib/operate.h"
#include "sqlite/fixture.h"

#define NAMES      2
#define PEOPLE     140 /* per name */
#define FEW        12  /* of them, where holders are to do more than to come and go */
#define OPERATIONS 60000
#define CAPACITY   40000

struct person {
    struct hf__bid bid;
    uint64_t generation; /* of its grant, as last told; 0: none */
    int64_t at_least_ms; /* of its release */
    uint64_t used;       /* likewise: the last token of a cached grant */
};

struct world {
    struct fixture *f;
    struct random dice;
    struct hf__record record[NAMES];
    struct hf__value value[NAMES], written,
        got; /* as it should be, to be written, as it was read */
    unsigned kept, wanted, writes, doubted, cached;
    struct person people[NAMES][PEOPLE];
    bool extended;          /* with values, times to stay closed, and holders to be told */
    size_t longest, widest; /* the longest queue, the most let in at once */
};

static const char *const names[NAMES] = {"invoice/1", "invoice/1 "};

static void renew_person(struct world *w, int lock, struct person *p)
{
    static const int64_t ttls[] = {HF__NEVER, 100, 700, 5000, 10000, 30000};
    static const int64_t delays[] = {0, 0, 0, 300, 2500};
    static const int64_t retires[] = {0, 1000, 60000};

    p->bid = make_bid(w->f, names[lock]);
    p->bid.mode = random_below(&w->dice, 3) == 0 ? HF_EXCLUSIVE : HF_SHARED;
    p->bid.limit = random_below(&w->dice, 4) == 0 ? (uint32_t)random_below(&w->dice, 6) : 0;
    p->bid.ttl_ms = ttls[random_below(&w->dice, COUNT(ttls))];
    p->bid.lock_delay_ms = delays[random_below(&w->dice, COUNT(delays))];
    p->bid.retire_ms = retires[random_below(&w->dice, COUNT(retires))];
    p->bid.queue = random_below(&w->dice, 8) != 0;
    p->bid.tell = w->extended && random_below(&w->dice, 3) == 0;
    p->bid.cached = p->bid.tell && p->bid.mode == HF_EXCLUSIVE && p->bid.ttl_ms != HF__NEVER;
    p->at_least_ms =
        w->extended && random_below(&w->dice, 3) == 0 ? (int64_t)random_below(&w->dice, 9000) : 0;
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
    check_number("wanted", got->wanted, wanted->wanted);
    check_number("position", (int64_t)got->position, (int64_t)wanted->position);
    check_number("sent", got->sent_ns, now_ns);
    if (got->verdict == HF__VERDICT_QUEUED && (got->ask_again_ms <= 0 || got->ask_again_ms > 10000))
        fail_msg("ask again in %lld ms", (long long)got->ask_again_ms);
}

enum kind { ATTEMPT, WITHDRAW, RELEASE, RENEW, RENEW_BLIND, BREAK, BREAK_NOW, READ, LOOK, WRITE };

static enum kind choose(struct world *w)
{
    static const enum kind often[] = {ATTEMPT, ATTEMPT, ATTEMPT,     ATTEMPT,  RENEW, RENEW,
                                      RENEW,   RELEASE, RENEW_BLIND, WITHDRAW, BREAK, BREAK_NOW};
    static const enum kind of_values[] = {READ, LOOK, WRITE, WRITE};

    if (w->extended && random_below(&w->dice, 4) == 0)
        return of_values[random_below(&w->dice, COUNT(of_values))];
    return often[random_below(&w->dice, COUNT(often))];
}

static struct hf__answer by_rules(struct world *w, int lock, enum kind kind, const struct person *p)
{
    struct hf__record *r = &w->record[lock];
    struct hf__value *value = &w->written;
    struct hf__answer a;

    switch (kind) {
    case ATTEMPT:
        return ask_doorman(r, op_attempt(&p->bid), now(w));
    case WITHDRAW:
        return ask_doorman(r, op_withdraw(&p->bid, p->bid.retire_ms), now(w));
    case RELEASE:
        return ask_doorman(r, op_release_used(&p->bid, p->bid.retire_ms, p->at_least_ms, p->used),
                           now(w));
    case RENEW:
        return ask_doorman(r, op_renew(&p->bid, p->generation), now(w));
    case RENEW_BLIND:
        return ask_doorman(r, op_renew(&p->bid, 0), now(w));
    case READ:
        return ask_doorman(r, op_read(&p->bid, p->generation, value), now(w));
    case LOOK:
        return ask_doorman(r, op_read(&p->bid, 0, value), now(w));
    case WRITE:
        a = ask_doorman(r, op_write(&p->bid, p->generation, value), now(w));
        if (a.verdict == HF__VERDICT_DONE)
            w->value[lock] = *value;
        return a;
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
        code = ask_store(s, op_release_used(&p->bid, retire, p->at_least_ms, p->used), deadline, &a,
                         &w->f->err);
        break;
    case READ:
        code = ask_store(s, op_read(&p->bid, p->generation, &w->got), deadline, &a, &w->f->err);
        break;
    case LOOK:
        code = ask_store(s, op_read(&p->bid, 0, &w->got), deadline, &a, &w->f->err);
        break;
    case WRITE:
        code =
            ask_store(s, op_write(&p->bid, p->generation, &w->written), deadline, &a, &w->f->err);
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
        entered += (w->record[lock].entries[i].effects & HF__EFFECT_LET_IN) != 0;
    }
    w->longest = waiting > w->longest ? waiting : w->longest;
    w->widest = entered > w->widest ? entered : w->widest;
}

static enum hf__place where(const struct world *w, int lock, const struct person *p)
{
    const struct hf__entry *e = hf__record_find(&w->record[lock], &p->bid.ticket);

    return e == NULL ? HF__PLACE_GONE : e->place;
}

static void check_value(struct world *w, int lock)
{
    const struct hf__record *r = &w->record[lock];

    check_number("value's generation", (int64_t)w->got.generation, (int64_t)r->value_generation);
    check_number("value's order", (int64_t)w->got.order, (int64_t)r->value_order);
    check_number("doubt", w->got.doubt, r->doubt);
    check_number("length", (int64_t)w->got.len, (int64_t)w->value[lock].len);
    assert_memory_equal(w->got.bytes, w->value[lock].bytes, w->value[lock].len);
}

static void choose_value(struct world *w)
{
    w->written.order = 1 + random_below(&w->dice, 4);
    w->written.len = random_below(&w->dice, 2) == 0 ? 9 : random_below(&w->dice, HF_VALUE_MAX + 1);
    random_fill(&w->dice, w->written.bytes, w->written.len);
}

/* For what only a holder can do, mostly one. */
static struct person *choose_holder(struct world *w, int lock, struct person *otherwise)
{
    for (int i = 0; i < FEW; i++) {
        struct person *p = &w->people[lock][i];
        if (p->generation != 0 && where(w, lock, p) == HF__PLACE_INSIDE)
            return p;
    }
    return otherwise;
}

/* Of a cached grant its client uses some tokens, all, or more than it may. */
static void note_grant(struct world *w, struct person *p, uint64_t generation)
{
    p->generation = generation;
    p->used = p->bid.cached ? generation + random_below(&w->dice, 3) * HF__TOKENS_RESERVED / 2 +
                                  random_below(&w->dice, 2)
                            : 0;
    w->cached += p->bid.cached;
}

static void step(struct world *w)
{
    int lock = (int)random_below(&w->dice, NAMES);
    struct person *p = &w->people[lock][random_below(&w->dice, w->extended ? FEW : PEOPLE)];
    enum kind kind = choose(w);

    if (w->extended)
        choose_value(w);
    if (kind == READ || kind == WRITE)
        p = choose_holder(w, lock, p);
    if (kind == WRITE && p->generation == 0)
        kind = LOOK; /* a write always names its grant */
    struct hf__answer wanted = by_rules(w, lock, kind, p);
    struct hf__answer got = by_store(w, kind, p);

    measure(w, lock);
    check_alike(&got, &wanted, w->f->now_ns);
    if ((kind == READ || kind == LOOK) && wanted.verdict == HF__VERDICT_DONE)
        check_value(w, lock);
    w->kept += kind == RELEASE && where(w, lock, p) == HF__PLACE_LINGERING;
    w->wanted += wanted.wanted;
    w->writes += kind == WRITE && wanted.verdict == HF__VERDICT_DONE;
    w->doubted += w->record[lock].doubt;
    hf__record_settle(&w->record[lock]);
    if (got.verdict == HF__VERDICT_GRANTED)
        note_grant(w, p, got.generation);
    else if (got.verdict != HF__VERDICT_QUEUED && kind < READ && random_below(&w->dice, 2) == 0)
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
    check_number("cached entry", got->cached, e->cached);
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

static struct world *new_world(struct fixture *f, bool extended)
{
    struct world *w = calloc(1, sizeof *w);

    assert_non_null(w);
    w->f = f;
    w->extended = extended;
    w->dice.state = 22;
    for (int lock = 0; lock < NAMES; lock++) {
        w->record[lock].entries = calloc(CAPACITY, sizeof *w->record[lock].entries);
        assert_non_null(w->record[lock].entries);
        w->record[lock].capacity = CAPACITY;
        for (int i = 0; i < PEOPLE; i++)
            renew_person(w, lock, &w->people[lock][i]);
    }
    return w;
}

static void free_world(struct world *w)
{
    for (int lock = 0; lock < NAMES; lock++)
        free(w->record[lock].entries);
    free(w);
}

static void walk(struct world *w, int operations)
{
    for (int i = 0; i < operations; i++) {
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
}

static void answers_and_line_are_those_of_the_doorman(void **state)
{
    struct world *w = new_world(*state, false);

    walk(w, OPERATIONS);
    if (w->longest < 50 || w->widest < 8)
        fail_msg("the walk was too tame: queue %zu, let in at once %zu", w->longest, w->widest);
    check_number("values", ask(w->f, "SELECT count(*) FROM holdfast_value"), 0);
    free_world(w);
}

static void so_are_values_and_who_is_told(void **state)
{
    struct world *w = new_world(*state, true);

    walk(w, OPERATIONS / 2);
    if (w->kept < 30 || w->wanted < 50 || w->writes < 50 || w->doubted < 50 || w->cached < 50)
        fail_msg("too tame: %u kept closed, %u wanted, %u written, %u in doubt, %u cached", w->kept,
                 w->wanted, w->writes, w->doubted, w->cached);
    print_message("%u kept closed, %u wanted, %u written, %u in doubt, %u cached\n", w->kept,
                  w->wanted, w->writes, w->doubted, w->cached);
    free_world(w);
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
        OPEN(so_are_values_and_who_is_told),
        OPEN(c5_too_many_tombstones_refuse_new_bids_until_they_end),
        OPEN(c5_a_second_withdraw_neither_counts_twice_nor_shortens),
    };

    return cmocka_run_group_tests_name("sqlite_rules", tests, NULL, NULL);
}
