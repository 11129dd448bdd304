/* The client against a real server, once with each version of the protocol. */
#include "live.h"

static const char *const keyspace =
    "CREATE KEYSPACE IF NOT EXISTS cql_test WITH replication = {'class': 'SimpleStrategy', "
    "'replication_factor': 1}";

static struct hf__cql *setup(const char *options)
{
    struct hf__cql *cql = live_must_open("", options);

    live_do(cql, keyspace);
    return cql;
}

static const struct hf__cql_statement put_all = {
    HF__CQL_KIND_WRITE, "INSERT INTO cql_test.kinds (k, b, i, l, t, u, bo, ts, li, tu) VALUES "
                        "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"};
static const struct hf__cql_statement get_all = {
    HF__CQL_KIND_READ, "SELECT b, i, l, t, u, bo, ts, li, tu FROM cql_test.kinds WHERE k = ?"};

/* A list of two blobs, and a tuple of an int and a null text. */
static void pack(struct hf__cql_writer *list, struct hf__cql_writer *tuple)
{
    struct hf__cql_value element = hf__cql_blob("ab", 2), number = hf__cql_integer(-7),
                         none = hf__cql_null();

    hf__cql_writer_init(list, 100);
    hf__cql_put_int(list, 2);
    hf__cql_put_value(list, &element);
    element = hf__cql_blob("", 0);
    hf__cql_put_value(list, &element);
    hf__cql_writer_init(tuple, 100);
    hf__cql_put_value(tuple, &number);
    hf__cql_put_value(tuple, &none);
}

static void check_kinds(struct hf__cql_result *r, const unsigned char *uuid)
{
    unsigned char bits[16];
    int32_t i = 0;
    int64_t l = 0, ts = 0;
    bool bo = false;

    assert_true(hf__cql_next_row(r));
    assert_int_equal(hf__cql_column(r, 0).len, 3);
    assert_memory_equal(hf__cql_column(r, 0).data, "\0\1\377", 3);
    assert_true(hf__cql_get_integer(hf__cql_column(r, 1), &i) && i == -5);
    assert_true(hf__cql_get_bigint(hf__cql_column(r, 2), &l) && l == INT64_MIN);
    assert_memory_equal(hf__cql_column(r, 3).data, "t\303\266ne", 5);
    assert_true(hf__cql_get_uuid(hf__cql_column(r, 4), bits));
    assert_memory_equal(bits, uuid, 16);
    assert_true(hf__cql_get_boolean(hf__cql_column(r, 5), &bo) && bo);
    assert_true(hf__cql_get_bigint(hf__cql_column(r, 6), &ts) && ts == 1700000000123);
    struct hf__cql_reader list = hf__cql_reader_of(hf__cql_column(r, 7));
    assert_int_equal(hf__cql_take_count(&list, 4), 2);
    assert_int_equal(hf__cql_take_bytes(&list).len, 2);
    assert_int_equal(hf__cql_take_bytes(&list).len, 0);
    assert_true(!list.failed && list.left == 0);
    struct hf__cql_reader tuple = hf__cql_reader_of(hf__cql_column(r, 8));
    assert_true(hf__cql_get_integer(hf__cql_take_bytes(&tuple), &i) && i == -7);
    assert_null(hf__cql_take_bytes(&tuple).data);
    assert_false(hf__cql_next_row(r));
}

static void values_of_every_kind_come_back(void **state)
{
    struct hf__cql *cql = setup(*state);
    unsigned char uuid[16] = {0xf0, 1, 2, 3, 4, 5, 0x46, 7, 0x88, 9, 10, 11, 12, 13, 14, 15};
    struct hf__cql_writer list, tuple;

    live_do(cql, "CREATE TABLE IF NOT EXISTS cql_test.kinds (k text PRIMARY KEY, b blob, i int, "
                 "l bigint, t text, u uuid, bo boolean, ts timestamp, li frozen<list<blob>>, "
                 "tu frozen<tuple<int, text>>)");
    pack(&list, &tuple);
    const struct hf__cql_value values[] = {
        hf__cql_text("key"),       hf__cql_blob("\0\1\377", 3),      hf__cql_integer(-5),
        hf__cql_bigint(INT64_MIN), hf__cql_text("t\303\266ne"),      hf__cql_uuid(uuid),
        hf__cql_boolean(true),     hf__cql_timestamp(1700000000123), hf__cql_packed(&list),
        hf__cql_packed(&tuple),
    };
    struct hf__cql_result r = live_run(cql, live_request(&put_all, values, COUNT(values)));
    hf__cql_result_clear(&r);
    r = live_run(cql, live_request(&get_all, values, 1));
    check_kinds(&r, uuid);
    hf__cql_result_clear(&r);
    hf__cql_writer_clear(&list);
    hf__cql_writer_clear(&tuple);
    hf__cql_close(cql);
}

static const struct hf__cql_statement claim = {
    HF__CQL_KIND_SWAP, "INSERT INTO cql_test.leases (name, owner) VALUES (?, ?) IF NOT EXISTS"};
static const struct hf__cql_statement drop = {
    HF__CQL_KIND_SWAP, "DELETE FROM cql_test.leases WHERE name = ? IF owner = ?"};
static const struct hf__cql_statement look = {
    HF__CQL_KIND_READ, "SELECT owner, toUnixTimestamp(now()) FROM cql_test.leases WHERE name = ?"};

static bool swap(struct hf__cql *cql, const struct hf__cql_statement *statement, const char *owner,
                 char *ret_owner)
{
    const struct hf__cql_value values[] = {hf__cql_text("the lock"), hf__cql_text(owner)};
    struct hf__cql_request request = live_request(statement, values, 2);
    request.consistency = HF__CQL_CONSISTENCY_QUORUM;
    struct hf__cql_result r = live_run(cql, request);
    bool applied = false;

    assert_int_equal(hf__cql_applied(&r, &applied, NULL), 0);
    int column = hf__cql_column_of(&r, "owner");
    ret_owner[0] = '\0';
    if (column >= 0) {
        struct hf__cql_bytes found = hf__cql_column(&r, (size_t)column);
        snprintf(ret_owner, 20, "%.*s", (int)found.len, (const char *)found.data);
    }
    hf__cql_result_clear(&r);
    return applied;
}

static void swaps_say_whether_they_were_applied_and_who_is_in_the_way(void **state)
{
    struct hf__cql *cql = setup(*state);
    const struct hf__cql_value name = hf__cql_text("the lock");
    char owner[20];

    live_do(cql, "CREATE TABLE IF NOT EXISTS cql_test.leases (name text PRIMARY KEY, owner text)");
    live_do(cql, "TRUNCATE cql_test.leases");
    assert_true(swap(cql, &claim, "me", owner));
    assert_false(swap(cql, &claim, "you", owner));
    assert_string_equal(owner, "me");
    assert_false(swap(cql, &drop, "you", owner));
    assert_string_equal(owner, "me");

    struct hf__cql_request request = live_request(&look, &name, 1);
    request.consistency = HF__CQL_CONSISTENCY_SERIAL;
    struct hf__cql_result r = live_run(cql, request);
    assert_true(hf__cql_next_row(&r));
    assert_memory_equal(hf__cql_column(&r, 0).data, "me", 2);
    int64_t now_ms = 0;
    assert_true(hf__cql_get_bigint(hf__cql_column(&r, 1), &now_ms));
    assert_true(now_ms > 1700000000000);
    hf__cql_result_clear(&r);

    assert_true(swap(cql, &drop, "me", owner));
    assert_false(swap(cql, &drop, "me", owner));
    r = live_run(cql, live_request(&look, &name, 1));
    assert_int_equal(r.row_count, 0);
    hf__cql_result_clear(&r);
    hf__cql_close(cql);
}

static const struct hf__cql_statement put_number = {HF__CQL_KIND_WRITE,
                                                    "INSERT INTO cql_test.numbers (n) VALUES (?)"};
static const struct hf__cql_statement numbers = {HF__CQL_KIND_READ,
                                                 "SELECT n FROM cql_test.numbers"};

static void pages_bring_every_row_once(void **state)
{
    enum { ROWS = 250, PAGE = 100 };
    struct hf__cql *cql = setup(*state);
    bool seen[ROWS] = {0};
    size_t count = 0, pages = 1;

    live_do(cql, "CREATE TABLE IF NOT EXISTS cql_test.numbers (n int PRIMARY KEY)");
    for (int i = 0; i < ROWS; i++) {
        const struct hf__cql_value value = hf__cql_integer(i);
        struct hf__cql_result r = live_run(cql, live_request(&put_number, &value, 1));
        hf__cql_result_clear(&r);
    }
    struct hf__cql_request request = live_request(&numbers, NULL, 0);
    request.page_size = PAGE;
    struct hf__cql_result r = live_run(cql, request);
    for (;;) {
        while (hf__cql_next_row(&r)) {
            int32_t n = -1;
            assert_true(hf__cql_get_integer(hf__cql_column(&r, 0), &n));
            assert_true(n >= 0 && n < ROWS && !seen[n]);
            seen[n] = true;
            count++;
        }
        if (!r.has_more)
            break;
        assert_int_equal(hf__cql_next_page(cql, &request, &r, NULL), 0);
        pages++;
    }
    assert_int_equal(count, ROWS);
    assert_true(pages >= 3);
    hf__cql_result_clear(&r);
    hf__cql_close(cql);
}

/* Dropping the table makes the server forget what was prepared on it. */
static void what_the_server_forgot_is_prepared_again(void **state)
{
    struct hf__cql *cql = setup(*state), *other = setup(*state);
    const struct hf__cql_value value = hf__cql_integer(1);

    for (int round = 0; round < 3; round++) {
        live_do(other, "DROP TABLE IF EXISTS cql_test.numbers");
        live_do(other, "CREATE TABLE cql_test.numbers (n int PRIMARY KEY)");
        struct hf__cql_result r = live_run(cql, live_request(&put_number, &value, 1));
        hf__cql_result_clear(&r);
    }
    hf__cql_close(cql);
    hf__cql_close(other);
}

static const struct hf__cql_statement nowhere = {HF__CQL_KIND_READ,
                                                 "SELECT n FROM cql_test.nowhere"};
static const struct hf__cql_statement nonsense = {HF__CQL_KIND_WRITE, "INSERT BY MAGIC"};
static const struct hf__cql_statement wrong_size = {HF__CQL_KIND_WRITE,
                                                    "INSERT INTO cql_test.numbers (n) VALUES (?)"};

static void refusals_say_what_is_wrong(void **state)
{
    struct hf__cql *cql = setup(*state);
    const struct hf__cql_value value = hf__cql_bigint(1);
    struct hf__cql_request request = live_request(&nowhere, NULL, 0);
    struct hf__cql_result r;
    hf_error err;

    live_do(cql, "CREATE TABLE IF NOT EXISTS cql_test.numbers (n int PRIMARY KEY)");
    assert_int_equal(hf__cql_execute(cql, &request, &r, &err), HF_DENIED);
    check_contains("a missing table", err.text, "holdfast setup");
    assert_int_equal(err.store_code, HF__CQL_CODE_INVALID);
    request = live_request(&nonsense, NULL, 0);
    assert_int_equal(hf__cql_execute(cql, &request, &r, &err), HF_INVALID);
    assert_int_equal(err.store_code, HF__CQL_CODE_SYNTAX_ERROR);
    request = live_request(&wrong_size, &value, 1);
    assert_int_equal(hf__cql_execute(cql, &request, &r, &err), HF_INVALID);
    assert_int_equal(err.store_code, HF__CQL_CODE_INVALID);
    hf__cql_close(cql);
}

#define FOR_BOTH(f)                                                               \
    {.name = #f " (v4)", .test_func = f, .initial_state = (void *)"protocol=4"},  \
    {                                                                             \
        .name = #f " (v5)", .test_func = f, .initial_state = (void *)"protocol=5" \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        FOR_BOTH(values_of_every_kind_come_back),
        FOR_BOTH(swaps_say_whether_they_were_applied_and_who_is_in_the_way),
        FOR_BOTH(pages_bring_every_row_once),
        FOR_BOTH(what_the_server_forgot_is_prepared_again),
        FOR_BOTH(refusals_say_what_is_wrong),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
