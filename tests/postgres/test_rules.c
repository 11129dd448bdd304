/* The functions against the doorman: random operations go through both, on the same made-up clock,
 * and every answer, every call and, now and then, every row must be the same.
 *
 * The functions here are those of the store with two replacements made at build: clock_timestamp()
 * is a setting of the session, and a short way warns that it was taken. */
#include <inttypes.h>
#include <libpq-fe.h>
#include <stdlib.h>

#include "doorman/doorman.h"
#include "lib/check.h"
#include "lib/random.h"

#define TICKETS    14
#define PER_LOCK   200
#define OPERATIONS 60000
#define CAPACITY   64
#define ROOM       4096

extern const char hf__pg_schema_sql[], hf__pg_test_routines_sql[];

enum kind { ATTEMPT, RELEASE, RENEW, WITHDRAW, BREAK };

struct world {
    PGconn *pg;
    struct random random;
    unsigned lock, step;
    int64_t now_us;
    struct hf__record record;
    struct hf__entry entries[CAPACITY];
    struct hf__ticket tickets[TICKETS];
    uint64_t known[TICKETS]; /* a generation this ticket was told of, perhaps an old one */
    unsigned let_in, told, went_back;
    enum kind asked;
    unsigned short_ways[RENEW + 1]; /* the others have none */
};

struct request {
    enum kind kind;
    struct hf__bid bid;
    size_t who;
    int64_t number;
    uint64_t generation;
};

static PGresult *ask(struct world *w, const char *sql)
{
    PGresult *result = PQexec(w->pg, sql);
    ExecStatusType status = PQresultStatus(result);

    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK)
        fail_msg("%.300s: %s", sql, PQerrorMessage(w->pg));
    return result;
}

static int64_t pick(struct world *w, const int64_t *from, size_t count)
{
    return from[random_below(&w->random, count)];
}

/* Two of three locks are wanted by one, and seldom by a second, which leaves room for the short ways. */
static bool is_quiet(const struct world *w)
{
    return w->lock % 3 != 0;
}

static enum kind pick_kind(struct world *w)
{
    static const enum kind kinds[] = {ATTEMPT, ATTEMPT, ATTEMPT, ATTEMPT,  RENEW,
                                      RENEW,   RELEASE, RELEASE, WITHDRAW, BREAK};
    static const enum kind few[] = {ATTEMPT, ATTEMPT, RENEW, RELEASE};

    if (is_quiet(w) && random_below(&w->random, 10) != 0)
        return few[random_below(&w->random, COUNT(few))];
    return kinds[random_below(&w->random, COUNT(kinds))];
}

static size_t pick_ticket(struct world *w)
{
    if (is_quiet(w))
        return random_below(&w->random, 12) == 0;
    return random_below(&w->random, TICKETS);
}

static struct request make_request(struct world *w)
{
    static const int64_t ttls[] = {0, 100, 700, 1000, 5000, 12000, 30000, 60000};
    static const int64_t delays[] = {0, 0, 0, 500, 9000};
    static const int64_t retires[] = {0, 0, 3000, 60000},
                         few_retires[] = {0, 0, 0, 0, 0, 0, 0, 300};
    static const int64_t limits[] = {0, 0, 1, 2, 3};
    struct request q = {.kind = pick_kind(w), .who = pick_ticket(w)};
    bool shared = random_below(&w->random, 2) == 0;
    int64_t retire =
        is_quiet(w) ? pick(w, few_retires, COUNT(few_retires)) : pick(w, retires, COUNT(retires));

    q.bid = (struct hf__bid){.ticket = w->tickets[q.who],
                             .mode = shared ? HF_SHARED : HF_EXCLUSIVE,
                             .limit = shared ? (uint32_t)pick(w, limits, COUNT(limits)) : 0,
                             .ttl_ms = pick(w, ttls, COUNT(ttls)),
                             .lock_delay_ms = pick(w, delays, COUNT(delays)),
                             .retire_ms = retire,
                             .queue = random_below(&w->random, 4) != 0};
    if (q.kind == BREAK)
        q.number = (int64_t)random_below(&w->random, 2);
    else if (q.kind == RELEASE || q.kind == WITHDRAW)
        q.number = retire;
    if (q.kind == RENEW && random_below(&w->random, 3) != 0)
        q.generation = w->known[q.who] + (random_below(&w->random, 8) == 0); /* or a wrong one */
    return q;
}

static struct hf__moment moment(const struct world *w)
{
    return (struct hf__moment){.now_ms = w->now_us / 1000, .stamp_us = (uint64_t)w->now_us};
}

static struct hf__answer ask_doorman(struct world *w, const struct request *q)
{
    const struct hf__ticket *ticket = &q->bid.ticket;

    switch (q->kind) {
    case ATTEMPT:
        return hf__doorman_attempt(&w->record, &q->bid, NULL, moment(w));
    case RELEASE:
        return hf__doorman_release(&w->record, ticket, q->number, moment(w));
    case WITHDRAW:
        return hf__doorman_withdraw(&w->record, ticket, q->number, moment(w));
    case RENEW:
        return hf__doorman_renew(&w->record, ticket, q->generation, moment(w));
    default:
        return hf__doorman_break(&w->record, ticket, q->number != 0, moment(w));
    }
}

static void write_call(const struct world *w, const struct request *q, char *sql)
{
    char ticket[HF_TICKET_SIZE], room[16] = "NULL", clock[160];
    const struct hf__bid *b = &q->bid;

    hf__ticket_format(&b->ticket, ticket);
    if (b->limit > 0)
        snprintf(room, sizeof room, "%u", b->limit);
    snprintf(clock, sizeof clock, "SET holdfast.now = '%" PRId64 " microseconds'; SELECT * FROM",
             w->now_us);
    if (q->kind == ATTEMPT)
        snprintf(sql, ROOM,
                 "%s holdfast_attempt('lock-%u', '\\x%s', %s, %s, %" PRId64 ", %" PRId64
                 ", %" PRId64 ", %s, 'rules', 'host', 'user', 'program', 1, 'note')",
                 clock, w->lock, ticket, b->mode == HF_SHARED ? "true" : "false", room, b->ttl_ms,
                 b->lock_delay_ms, b->retire_ms, b->queue ? "true" : "false");
    else if (q->kind == RENEW)
        snprintf(sql, ROOM,
                 "%s holdfast_renew(ARRAY['lock-%u'::bytea], ARRAY['\\x%s'::bytea], ARRAY[%" PRIu64
                 "::bigint])",
                 clock, w->lock, ticket, q->generation);
    else if (q->kind == BREAK)
        snprintf(sql, ROOM, "%s holdfast_break('lock-%u', '\\x%s', %s)", clock, w->lock, ticket,
                 q->number ? "true" : "false");
    else
        snprintf(sql, ROOM, "%s holdfast_%s('lock-%u', '\\x%s', %" PRId64 ")", clock,
                 q->kind == RELEASE ? "release" : "withdraw", w->lock, ticket, q->number);
}

static int64_t cell(const PGresult *result, const char *name, int64_t null)
{
    int column = PQfnumber(result, name);

    if (column < 0 || PQgetisnull(result, 0, column))
        return null;
    return strtoll(PQgetvalue(result, 0, column), NULL, 10);
}

static void check_answer(const PGresult *got, const struct hf__answer *wanted)
{
    static const char *const verdicts[] = {"granted", "queued", "busy",  "withdrawn",
                                           "full",    "done",   "stale", "lost"};
    const char *verdict = PQgetvalue(got, 0, PQfnumber(got, "verdict"));
    bool in_or_queued = wanted->verdict == HF__GRANTED || wanted->verdict == HF__QUEUED;

    assert_string_equal(verdict, verdicts[wanted->verdict]);
    if (in_or_queued) {
        check_number("generation", cell(got, "generation", 0), (int64_t)wanted->generation);
        check_number("lease", cell(got, "lease", HF__NEVER), wanted->lease_ms);
    }
    if (wanted->verdict == HF__GRANTED)
        check_number("claimed", PQgetvalue(got, 0, PQfnumber(got, "claimed"))[0] == 't',
                     wanted->claimed);
    if (wanted->verdict == HF__QUEUED) {
        check_number("place", cell(got, "place", 0), (int64_t)wanted->position);
        check_number("ask again", cell(got, "ask_again", HF__NEVER), wanted->ask_again_ms);
    }
}

/* Whoever was let in by somebody else's request was called, in order, and nobody else. */
static void check_calls(struct world *w, const struct request *q)
{
    for (size_t i = 0; i < w->record.count; i++) {
        const struct hf__entry *e = &w->record.entries[i];
        char wanted[64], ticket[HF_TICKET_SIZE];
        bool own = hf__ticket_equal(&e->ticket, &q->bid.ticket);
        w->let_in += (e->marks & HF__LET_IN) != 0;
        if (!(e->marks & HF__LET_IN) || (own && q->kind == ATTEMPT))
            continue;
        PGnotify *call = PQnotifies(w->pg);
        while (call != NULL && strstr(call->extra, " 0") == call->extra + 32) {
            PQfreemem(call); /* to the one that was broken */
            call = PQnotifies(w->pg);
        }
        hf__ticket_format(&e->ticket, ticket);
        snprintf(wanted, sizeof wanted, "%s %" PRIu64, ticket, e->generation);
        assert_non_null(call);
        assert_string_equal(call->extra, wanted);
        PQfreemem(call);
        w->told++;
    }
    PGnotify *call;
    while ((call = PQnotifies(w->pg)) != NULL) {
        if (q->kind != BREAK || strstr(call->extra, " 0") != call->extra + 32)
            fail_msg("a call too many: %s", call->extra);
        PQfreemem(call);
    }
}

#define INSTANT(column) "(extract(epoch FROM " column ") * 1000)::bigint"

static void check_rows(struct world *w)
{
    static const char rows[] =
        "SELECT ticket, CASE WHEN lingering THEN 3 ELSE 2 END AS place, "
        "generation, " INSTANT(
            "since") " AS since, CASE WHEN until < 'infinity' "
                     "THEN " INSTANT("until") " END AS until, seq"
                                              " FROM holdfast_holder WHERE name = "
                                              "'lock-%u' UNION ALL SELECT ticket, "
                                              "1, 0, " INSTANT("since") ", " INSTANT(
                                                  "until") ", seq FROM "
                                                           "holdfast_waiter WHERE "
                                                           "name = 'lock-%u'"
                                                           " UNION ALL SELECT "
                                                           "ticket, 4, 0, "
                                                           "0, " INSTANT("until") ", 0 FROM "
                                                                                  "holdfast_"
                                                                                  "retired"
                                                                                  " WHERE "
                                                                                  "name = "
                                                                                  "'lock-%u' "
                                                                                  "AND until "
                                                                                  "> "
                                                                                  "timestamptz"
                                                                                  " 'epoch' + "
                                                                                  "current_"
                                                                                  "setting('"
                                                                                  "holdfast."
                                                                                  "now')::"
                                                                                  "interval";
    char sql[ROOM], hex[HF_TICKET_SIZE + 2] = "\\x";
    size_t shown = 0;

    snprintf(sql, sizeof sql, rows, w->lock, w->lock, w->lock);
    PGresult *got = ask(w, sql);
    for (size_t i = 0; i < w->record.count; i++) {
        const struct hf__entry *e = &w->record.entries[i];
        int row = 0;
        if (e->place == HF__GONE)
            continue;
        shown++;
        hf__ticket_format(&e->ticket, hex + 2);
        while (row < PQntuples(got) && strcmp(PQgetvalue(got, row, 0), hex) != 0)
            row++;
        assert_true(row < PQntuples(got));
        check_number("place of a row", strtol(PQgetvalue(got, row, 1), NULL, 10), e->place);
        if (e->until_ms == HF__NEVER)
            assert_true(PQgetisnull(got, row, 4));
        else
            check_number("until of a row", strtoll(PQgetvalue(got, row, 4), NULL, 10), e->until_ms);
        if (e->place == HF__INSIDE || e->place == HF__WAITING)
            check_number("since of a row", strtoll(PQgetvalue(got, row, 3), NULL, 10), e->since_ms);
    }
    check_number("rows", PQntuples(got), (int64_t)shown);
    PQclear(got);
}

static void new_ticket(struct world *w, size_t who)
{
    for (size_t k = 0; k < sizeof w->tickets[who].bits; k++)
        w->tickets[who].bits[k] = (unsigned char)random_below(&w->random, 256);
    w->known[who] = 0;
}

static void new_lock(struct world *w)
{
    w->lock++;
    w->record = (struct hf__record){.entries = w->entries, .capacity = CAPACITY};
    memset(w->known, 0, sizeof w->known);
}

/* Mostly forward, in small and large steps; now and then back. */
static void pass_time(struct world *w)
{
    static const int64_t steps[] = {0, 300, 1000, 10000, 40000, 400000, 3000000};

    w->now_us += pick(w, steps, COUNT(steps)) + (int64_t)random_below(&w->random, 999);
    if (random_below(&w->random, 40) == 0) {
        w->now_us -= (int64_t)random_below(&w->random, 20000000);
        w->went_back++;
    }
}

static void step(struct world *w)
{
    char sql[ROOM];
    struct request q = make_request(w);

    pass_time(w);
    w->asked = q.kind;
    struct hf__answer wanted = ask_doorman(w, &q);
    write_call(w, &q, sql);
    PGresult *got = ask(w, sql);
    check_answer(got, &wanted);
    PQclear(got);
    check_calls(w, &q);
    hf__record_settle(&w->record);
    if (wanted.verdict == HF__GRANTED)
        w->known[q.who] = wanted.generation;
    else if (wanted.verdict != HF__QUEUED && random_below(&w->random, 2) == 0)
        new_ticket(w, q.who);
    if (w->step % 25 == 0)
        check_rows(w);
}

static void answers_calls_and_rows_are_those_of_the_doorman(void **state)
{
    struct world *w = *state;

    for (w->step = 0; w->step < OPERATIONS; w->step++) {
        if (w->step % PER_LOCK == 0)
            new_lock(w);
        step(w);
    }
    print_message("%d operations, %u let in, %u called, clock back %u times\n", OPERATIONS,
                  w->let_in, w->told, w->went_back);
    print_message("short ways: %u attempts, %u releases, %u renewals\n", w->short_ways[ATTEMPT],
                  w->short_ways[RELEASE], w->short_ways[RENEW]);
    assert_true(w->let_in > 1000 && w->told > 500 && w->went_back > 100);
    for (size_t i = 0; i < COUNT(w->short_ways); i++)
        assert_true(w->short_ways[i] > 300);
}

static void count_short_way(void *arg, const PGresult *warning)
{
    struct world *w = arg;

    assert_true(w->asked <= RENEW);
    assert_string_equal(PQresultErrorField(warning, PG_DIAG_MESSAGE_PRIMARY), "short");
    w->short_ways[w->asked]++;
}

static int setup(void **state)
{
    struct world *w = calloc(1, sizeof *w);
    const char *dir = getenv("HOLDFAST_TEST_POSTGRES_DIR");
    const char *port = strchr(getenv("HOLDFAST_TEST_POSTGRES"), ':') + 1;
    const char *keywords[] = {"host", "port", "user", "dbname", "options", NULL};
    const char *values[] = {dir, port, "postgres", "empty", "-c client_min_messages=warning", NULL};

    assert_non_null(w);
    w->pg = PQconnectdbParams(keywords, values, 0);
    PQsetNoticeReceiver(w->pg, count_short_way, w);
    w->random.state = 4;
    w->now_us = INT64_C(1700000000000000);
    for (size_t i = 0; i < TICKETS; i++)
        new_ticket(w, i);
    *state = w;
    PQclear(ask(w, hf__pg_schema_sql));
    PQclear(ask(w, hf__pg_test_routines_sql));
    PQclear(ask(w, "LISTEN rules"));
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;

    PQfinish(w->pg);
    free(w);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_calls_and_rows_are_those_of_the_doorman),
    };

    return cmocka_run_group_tests_name("postgres_rules", tests, setup, teardown);
}
