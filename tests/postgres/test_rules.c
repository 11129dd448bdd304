/* The functions against the doorman: see lib/walk.h. Every call and, now and then, every row must
 * be the same, too.
 *
 * The functions here are those of the store with two replacements made at build: clock_timestamp()
 * is a setting of the session, and a short way warns that it was taken. */
#include <inttypes.h>
#include <libpq-fe.h>
#include <stdlib.h>

#include "lib/check.h"
#include "lib/walk.h"
#include "sql/rows.h"
#include "sql/store.h"

#define ROOM 4096

extern const char hf__pg_schema_sql[], hf__pg_test_routines_sql[];

struct world {
    struct walk walk;
    PGconn *pg;
    unsigned called;
    enum walk_kind asked;
    unsigned short_ways[WALK_KINDS];
};

static PGresult *run(struct world *w, const char *sql)
{
    PGresult *result = PQexec(w->pg, sql);
    ExecStatusType status = PQresultStatus(result);

    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK)
        fail_msg("%.300s: %s", sql, PQerrorMessage(w->pg));
    return result;
}

static const char *hex_of(const struct hf__value *value)
{
    static char hex[2 * HF_VALUE_MAX + 1];

    hex[0] = '\0';
    for (size_t i = 0; i < value->len; i++)
        snprintf(hex + 2 * i, 3, "%02x", value->bytes[i]);
    return hex;
}

static void write_call(const struct walk *w, const struct walk_request *q, char *sql)
{
    char ticket[HF_TICKET_SIZE], room[16] = "NULL", clock[160];
    const struct hf__bid *b = &q->bid;

    hf__ticket_format(&b->ticket, ticket);
    if (b->limit > 0)
        snprintf(room, sizeof room, "%u", b->limit);
    snprintf(clock, sizeof clock, "SET holdfast.now = '%" PRId64 "'; SELECT * FROM", w->now_us);
    if (q->kind == WALK_ATTEMPT)
        snprintf(sql, ROOM,
                 "%s holdfast_attempt('lock-%u', '\\x%s', %s, %s, %" PRId64 ", %" PRId64
                 ", %" PRId64 ", %s, 'rules', 'host', 'user', 'program', 1, 'note', NULL, %d)",
                 clock, w->lock, ticket, b->mode == HF_SHARED ? "true" : "false", room,
                 hf__ttl_stored(b->ttl_ms), b->lock_delay_ms, b->retire_ms,
                 b->queue ? "true" : "false", hf__sql_flags(b));
    else if (q->kind == WALK_RENEW)
        snprintf(sql, ROOM,
                 "%s holdfast_renew(ARRAY['lock-%u'::bytea], ARRAY['\\x%s'::bytea], ARRAY[%" PRIu64
                 "::bigint], NULL)",
                 clock, w->lock, ticket, q->generation);
    else if (q->kind == WALK_BREAK)
        snprintf(sql, ROOM, "%s holdfast_break('lock-%u', '\\x%s', %s)", clock, w->lock, ticket,
                 q->number ? "true" : "false");
    else if (q->kind == WALK_READ)
        snprintf(sql, ROOM, "%s holdfast_read('lock-%u', '\\x%s', %" PRIu64 ")", clock, w->lock,
                 ticket, q->generation);
    else if (q->kind == WALK_WRITE)
        snprintf(sql, ROOM,
                 "%s holdfast_write('lock-%u', '\\x%s', %" PRIu64 ", %" PRIu64 ", '\\x%s')", clock,
                 w->lock, ticket, q->generation, q->value.order, hex_of(&q->value));
    else if (q->at_least_ms > 0 || q->generation > 0)
        snprintf(sql, ROOM,
                 "%s holdfast_release_after('lock-%u', '\\x%s', %" PRId64 ", %" PRId64 ", %" PRIu64
                 ")",
                 clock, w->lock, ticket, q->number, q->at_least_ms, q->generation);
    else
        snprintf(sql, ROOM, "%s holdfast_%s('lock-%u', '\\x%s', %" PRId64 ")", clock,
                 q->kind == WALK_RELEASE ? "release" : "withdraw", w->lock, ticket, q->number);
}

static struct hf__answer ask(struct walk *walk, const struct walk_request *q)
{
    static const char *const columns[HF__SQL_ANSWER_CELLS] = {
        [HF__SQL_ANSWER_VERDICT] = "verdict", [HF__SQL_ANSWER_GENERATION] = "generation",
        [HF__SQL_ANSWER_LEASE] = "lease",     [HF__SQL_ANSWER_CLAIMED] = "claimed",
        [HF__SQL_ANSWER_PLACE] = "place",     [HF__SQL_ANSWER_ASK_AGAIN] = "ask_again",
        [HF__SQL_ANSWER_WANTED] = "wanted"};
    struct world *w = (struct world *)walk;
    const char *cells[HF__SQL_ANSWER_CELLS] = {0};
    struct hf__answer answer = {0};
    char sql[ROOM];

    write_call(walk, q, sql);
    w->asked = q->kind;
    PGresult *result = run(w, sql);
    for (size_t i = 0; i < COUNT(columns); i++) {
        int column = PQfnumber(result, columns[i]);
        if (column >= 0 && !PQgetisnull(result, 0, column))
            cells[i] = PQgetvalue(result, 0, column);
    }
    assert_true(hf__sql_read_answer(cells, &answer));
    for (int i = 0; q->kind == WALK_READ && i < HF__SQL_VALUE_CELLS; i++)
        cells[i] = PQgetisnull(result, 0, i) ? NULL : PQgetvalue(result, 0, i);
    if (q->kind == WALK_READ)
        assert_true(hf__sql_read_value(cells, &walk->read));
    PQclear(result);
    return answer;
}

/* The next one; to somebody who was broken, which is not about a grant, only after a break. */
static PGnotify *next_call(struct world *w, const struct walk_request *q)
{
    PGnotify *call;

    while ((call = PQnotifies(w->pg)) != NULL && q->kind == WALK_BREAK &&
           strcmp(call->extra + 32, " 0") == 0)
        PQfreemem(call);
    return call;
}

static void check_call(struct world *w, const struct walk_request *q, const struct hf__entry *e,
                       uint64_t generation)
{
    char wanted[64], ticket[HF_TICKET_SIZE];
    PGnotify *call = next_call(w, q);

    hf__ticket_format(&e->ticket, ticket);
    snprintf(wanted, sizeof wanted, "%s %" PRIu64, ticket, generation);
    assert_non_null(call);
    assert_string_equal(call->extra, wanted);
    PQfreemem(call);
    w->called++;
}

/* Whoever was let in by somebody else's request was called, in order; then the holders that somebody
 * has come to wait for; and nobody else. */
static void compare_calls(struct walk *walk, const struct walk_request *q)
{
    struct world *w = (struct world *)walk;
    const struct hf__entry *e;

    for (size_t i = 0; (e = walk_next_called(walk, q, &i)) != NULL;) {
        if (e->effects & HF__EFFECT_LET_IN)
            check_call(w, q, e, e->generation);
    }
    for (size_t i = 0; (e = walk_next_called(walk, q, &i)) != NULL;) {
        if (e->effects & HF__EFFECT_WANTED)
            check_call(w, q, e, 0);
    }
    PGnotify *call = next_call(w, q);
    if (call != NULL)
        fail_msg("a call too many: %s", call->extra);
}

/* Holders, waiters and tickets that are retired. */
static void compare_rows(struct walk *walk)
{
    static const char rows[] =
        "SELECT ticket, place, (extract(epoch FROM since) * 1000)::bigint,"
        " CASE WHEN until < 'infinity' THEN (extract(epoch FROM until) * 1000)::bigint END FROM ("
        "SELECT ticket, CASE WHEN lingering THEN 3 ELSE 2 END AS place, since, until"
        " FROM holdfast_holder WHERE name = 'lock-%u'"
        " UNION ALL SELECT ticket, 1, since, until FROM holdfast_waiter WHERE name = 'lock-%u'"
        " UNION ALL SELECT ticket, 4, until, until FROM holdfast_retired WHERE name = 'lock-%u'"
        " AND until > timestamptz 'epoch' + current_setting('holdfast.now')::float8 * interval '1 "
        "microsecond') AS entries";
    char sql[ROOM], hex[HF_TICKET_SIZE + 2] = "\\x";
    size_t shown = 0;

    snprintf(sql, sizeof sql, rows, walk->lock, walk->lock, walk->lock);
    PGresult *got = run((struct world *)walk, sql);
    for (size_t i = 0; i < walk->record.count; i++) {
        const struct hf__entry *e = &walk->record.entries[i];
        int row = 0;
        if (e->place == HF__PLACE_GONE)
            continue;
        shown++;
        hf__ticket_format(&e->ticket, hex + 2);
        while (row < PQntuples(got) && strcmp(PQgetvalue(got, row, 0), hex) != 0)
            row++;
        assert_true(row < PQntuples(got));
        check_number("place of a row", strtol(PQgetvalue(got, row, 1), NULL, 10), e->place);
        if (e->until_ms == HF__NEVER)
            assert_true(PQgetisnull(got, row, 3));
        else
            check_number("until of a row", strtoll(PQgetvalue(got, row, 3), NULL, 10), e->until_ms);
        if (e->place == HF__PLACE_INSIDE || e->place == HF__PLACE_WAITING)
            check_number("since of a row", strtoll(PQgetvalue(got, row, 2), NULL, 10), e->since_ms);
    }
    check_number("rows", PQntuples(got), (int64_t)shown);
    PQclear(got);
}

static const struct walk_type functions = {
    .ask = ask, .compare = compare_calls, .compare_entries = compare_rows};

static void answers_calls_and_rows_are_those_of_the_doorman(void **state)
{
    struct world *w = *state;

    w->walk.can = HF_CAN_AT_LEAST | HF_CAN_VALUE | HF_CAN_WANTED | HF_CAN_CACHE;
    walk(&w->walk, 20000);
    w->walk.can = 0;
    w->walk.quiet = true;
    w->walk.bidders = 1;
    walk(&w->walk, 44000);
    print_message("%u called; short ways: %u attempts, %u releases, %u renewals\n", w->called,
                  w->short_ways[WALK_ATTEMPT], w->short_ways[WALK_RELEASE],
                  w->short_ways[WALK_RENEW]);
    assert_true(w->walk.kept > 100 && w->walk.wanted > 30 && w->walk.written > 40 &&
                w->walk.doubted > 1000);
    assert_true(w->walk.let_in > 1000 && w->called > 500 && w->walk.went_back > 100);
    assert_true(w->short_ways[WALK_ATTEMPT] > 300 && w->short_ways[WALK_RELEASE] > 300 &&
                w->short_ways[WALK_RENEW] > 300);
}

static void count_short_way(void *arg, const PGresult *warning)
{
    struct world *w = arg;

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
    walk_init(&w->walk, &functions);
    *state = w;
    PQclear(run(w, hf__pg_schema_sql));
    PQclear(run(w, hf__pg_test_routines_sql));
    PQclear(run(w, "LISTEN rules"));
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
