/* What servers answer: results and errors, byte for byte as specified, and cut at every length. */
#include "cql/failure.h"
#include "golden.h"

/* Results ------------------------------------------------------------------ */
static const char not_applied[] = "00000002 00000001 00000002  0002'ks' 0006'leases'"
                                  " 0009'[applied]' 0004  0005'owner' 000d"
                                  " 00000001  00000001 00  00000002'me'";
static const char tables_apart[] = "00000002 00000000 00000002"
                                   " 0002'ks' 0001't' 0001'a' 0003  0002'ks' 0001't' 0001'b' 0009"
                                   " 00000002  00000001 ff 00000004 00000001  ffffffff 00000000";
static const char no_metadata[] = "00000002 00000006 00000001 00000003 abcdef"
                                  " 00000002  00000001 61  00000001 62";
static const char every_type[] = "00000002 00000009 00000007 0001 99 0001'k' 0001't'"
                                 " 0001'a' 0000 0003'x.Y'"
                                 " 0001'b' 0020 0009"
                                 " 0001'c' 0021 000d 0022 0003"
                                 " 0001'd' 0030 0001'k' 0001'u' 0002 0001'p' 0009 0001'q' 000c"
                                 " 0001'e' 0031 0002 0009 0020 0031 0001 000d"
                                 " 0001'f' 0015"
                                 " 0001'g' 000b"
                                 " 00000000";

static struct hf__cql_result read_result(const char *body, uint8_t version)
{
    struct hf__cql_frame frame = golden_frame(body, version, HF__CQL_OP_RESULT);
    struct hf__cql_result r = {0};
    hf_error err;

    if (hf__cql_read_result(&frame, &r, &err) != 0)
        fail_msg("%s: %s", body, err.text);
    assert_null(frame.body);
    return r;
}

static void rows_are_read(void **state)
{
    bool applied = true;
    int32_t number = 0;

    (void)state;
    struct hf__cql_result r = read_result(not_applied, 4);
    assert_int_equal(hf__cql_applied(&r, &applied, NULL), 0);
    assert_false(applied);
    assert_int_equal(hf__cql_column_of(&r, "owner"), 1);
    assert_int_equal(hf__cql_column_of(&r, "nobody"), -1);
    assert_memory_equal(hf__cql_column(&r, 1).data, "me", 2);
    assert_null(hf__cql_column(&r, 2).data);
    assert_false(hf__cql_next_row(&r));
    hf__cql_result_clear(&r);

    r = read_result(tables_apart, 4);
    assert_int_equal(hf__cql_applied(&r, &applied, NULL), HF_UNKNOWN); /* no such column */
    hf__cql_result_clear(&r);

    r = read_result(tables_apart, 4);
    assert_int_equal(hf__cql_column_of(&r, "b"), 1);
    assert_true(hf__cql_next_row(&r));
    assert_true(hf__cql_get_integer(hf__cql_column(&r, 1), &number) && number == 1);
    assert_true(hf__cql_next_row(&r));
    assert_null(hf__cql_column(&r, 0).data);
    assert_true(hf__cql_column(&r, 1).data != NULL && hf__cql_column(&r, 1).len == 0);
    assert_false(hf__cql_get_integer(hf__cql_column(&r, 1), &number));
    assert_false(hf__cql_next_row(&r));
    hf__cql_result_clear(&r);
}

static void pages_and_types_are_read(void **state)
{
    (void)state;
    struct hf__cql_result r = read_result(no_metadata, 4);
    assert_true(r.has_more);
    assert_int_equal(r.row_count, 2);
    assert_memory_equal(r.paging_state.data, "\253\315\357", 3);
    assert_int_equal(hf__cql_column_of(&r, "x"), -1);
    hf__cql_result_clear(&r);

    r = read_result(every_type, 5);
    assert_int_equal(r.column_count, 7);
    assert_int_equal(hf__cql_column_of(&r, "g"), 6);
    assert_false(r.has_more);
    hf__cql_result_clear(&r);

    static const char *const others[] = {"00000001", "00000003 0001'k'",
                                         "00000005 0007'CREATED' 0005'TABLE' 0001'k' 0001't'"};
    for (size_t i = 0; i < COUNT(others); i++) {
        r = read_result(others[i], 4);
        assert_int_equal(r.row_count, 0);
        assert_false(hf__cql_next_row(&r));
        hf__cql_result_clear(&r);
    }
}

static void a_trace_warnings_and_a_payload_come_before_the_message(void **state)
{
    struct hf__cql_frame frame = golden_frame(
        "000102030405060708090a0b0c0d0e0f  0002 0001'w' 0000  0001 0001'k' 00000001 aa  00000001",
        4, HF__CQL_OP_RESULT);
    struct hf__cql_result r = {0};

    (void)state;
    frame.header.flags = HF__CQL_FLAG_TRACED | HF__CQL_FLAG_WARNED | HF__CQL_FLAG_PAYLOAD;
    assert_int_equal(hf__cql_read_result(&frame, &r, NULL), 0);
    hf__cql_result_clear(&r);
}

static void prepared_statements_are_read(void **state)
{
    struct hf__cql_frame v4 = golden_frame("00000004 0002 0102 00000000", 4, HF__CQL_OP_RESULT);
    struct hf__cql_frame v5 = golden_frame("00000004 0001 01 0002 eeff", 5, HF__CQL_OP_RESULT);
    struct hf__cql_prepared p = {.metadata_id_len = 9};

    (void)state;
    assert_int_equal(hf__cql_read_prepared(&v4, &p, NULL), 0);
    assert_true(p.id_len == 2 && p.id[1] == 2 && p.metadata_id_len == 0);
    assert_int_equal(hf__cql_read_prepared(&v5, &p, NULL), 0);
    assert_true(p.id_len == 1 && p.metadata_id_len == 2 && p.metadata_id[1] == 0xff);
    free(v4.body);
    free(v5.body);
}

static void what_is_no_result_is_refused(void **state)
{
    static const char *const bodies[] = {
        "",
        "00000000",
        "00000006",
        "00000004 0002 0102",
        "00000002 00000004 ffffffff 00000000",                     /* columns below zero */
        "00000002 00000004 00000401 00000000",                     /* too many */
        "00000002 00000004 00000001 ffffffff",                     /* rows below zero */
        "00000002 00000004 00000001 7fffffff 00000001 00",         /* more than there can be */
        "00000002 00000004 00000000 7fffffff",                     /* rows of nothing */
        "00000002 00000004 00000001 00000001 7fffffff 00",         /* a cell that is longer */
        "00000002 00000001 00000001 0001'k' 0001't' 0001'a' 0020", /* half a type */
    };

    (void)state;
    for (size_t i = 0; i < COUNT(bodies); i++) {
        struct hf__cql_frame frame = golden_frame(bodies[i], 4, HF__CQL_OP_RESULT);
        struct hf__cql_result r = {0};
        check_number(bodies[i], hf__cql_read_result(&frame, &r, NULL), HF_CORRUPT);
        assert_null(r.body);
    }
}

static void types_are_not_nested_for_ever(void **state)
{
    char body[1024] = "00000002 00000001 00000001 0001'k' 0001't' 0001'a'";

    (void)state;
    for (int i = 0; i < 100; i++)
        snprintf(body + strlen(body), sizeof body - strlen(body), " 0020");
    snprintf(body + strlen(body), sizeof body - strlen(body), " 0009 00000000");
    struct hf__cql_frame frame = golden_frame(body, 4, HF__CQL_OP_RESULT);
    struct hf__cql_result r = {0};
    assert_int_equal(hf__cql_read_result(&frame, &r, NULL), HF_CORRUPT);
}

static void results_cut_anywhere_are_refused(void **state)
{
    static const char *const bodies[] = {not_applied, tables_apart, no_metadata, every_type};

    (void)state;
    for (size_t i = 0; i < COUNT(bodies); i++) {
        struct hf__cql_frame whole = golden_frame(bodies[i], 5, HF__CQL_OP_RESULT);
        for (uint32_t len = 0; len < whole.header.length; len++) {
            struct hf__cql_frame cut = shorter(&whole, len);
            struct hf__cql_result r = {0};
            check_number(bodies[i], hf__cql_read_result(&cut, &r, NULL), HF_CORRUPT);
        }
        free(whole.body);
    }
}

/* Errors ------------------------------------------------------------------- */
static const struct failure_case {
    const char *body;
    uint8_t version;
    int read, write, swap; /* what it means for each */
    const char *says;
} failures[] = {
    {"00000000 0003'bug'", 4, HF_UNAVAILABLE, HF_UNKNOWN, HF_UNKNOWN, "bug"},
    {"0000000a 0002'no'", 4, HF_CORRUPT, HF_CORRUPT, HF_CORRUPT, "no"},
    {"00000100 0003'bad'", 4, HF_DENIED, HF_DENIED, HF_DENIED, "password is not accepted"},
    {"00001000 0000 0008 00000002 00000001", 4, HF_UNAVAILABLE, HF_UNAVAILABLE, HF_UNAVAILABLE,
     "SERIAL needs 2 replicas and 1 are alive"},
    {"00001000 0000 0004 00000002 00000001", 4, HF_UNAVAILABLE, HF_UNAVAILABLE, HF_UNKNOWN,
     "QUORUM needs 2"},
    {"00001001 0000", 4, HF_UNAVAILABLE, HF_UNKNOWN, HF_UNKNOWN, "overloaded"},
    {"00001002 0000", 4, HF_UNAVAILABLE, HF_UNAVAILABLE, HF_UNAVAILABLE, "joining"},
    {"00001003 0001't'", 4, HF_UNAVAILABLE, HF_UNKNOWN, HF_UNKNOWN, "t"},
    {"00001100 0000 0008 00000001 00000002 0003'CAS'", 4, HF_UNAVAILABLE, HF_UNKNOWN, HF_UNKNOWN,
     "1 answered in time"},
    {"00001100 0000 0008 00000001 00000002 0003'CAS' 0005", 5, HF_UNAVAILABLE, HF_UNKNOWN,
     HF_UNKNOWN, "may have been applied"},
    {"00001100 0000 0004 00000001 00000002 0006'SIMPLE'", 5, HF_UNAVAILABLE, HF_UNKNOWN, HF_UNKNOWN,
     "QUORUM needs 2"},
    {"00001200 0000 0008 00000001 00000002 00", 4, HF_UNAVAILABLE, HF_UNKNOWN, HF_UNKNOWN,
     "1 answered in time"},
    {"00001300 0000 0004 00000001 00000002 00000001 01", 4, HF_UNAVAILABLE, HF_UNKNOWN, HF_UNKNOWN,
     "1 failed"},
    {"00001300 0000 0004 00000001 00000002 00000001 04 7f000001 0000 01", 5, HF_UNAVAILABLE,
     HF_UNKNOWN, HF_UNKNOWN, "1 failed"},
    {"00001400 0001'f' 0001'k' 0001'f' 0001 0003'int'", 4, HF_INVALID, HF_INVALID, HF_INVALID, "f"},
    {"00001500 0000 0008 00000001 00000002 00000001 0003'CAS'", 4, HF_UNAVAILABLE, HF_UNKNOWN,
     HF_UNKNOWN, "1 failed"},
    {"00001500 0000 0008 00000001 00000002 00000001 04 7f000001 0000 0003'CAS'", 5, HF_UNAVAILABLE,
     HF_UNKNOWN, HF_UNKNOWN, "1 failed"},
    {"00001600 0001'c'", 4, HF_UNAVAILABLE, HF_UNKNOWN, HF_UNKNOWN, "c"},
    {"00001700 0000 0008 00000001 00000002", 5, HF_UNAVAILABLE, HF_UNKNOWN, HF_UNKNOWN,
     "outbid this one (1 of 2"},
    {"00002000 0004'line'", 4, HF_INVALID, HF_INVALID, HF_INVALID, "line"},
    {"00002100 0006'rights'", 4, HF_DENIED, HF_DENIED, HF_DENIED, "rights"},
    {"00002200 0005'wrong'", 4, HF_INVALID, HF_INVALID, HF_INVALID, "wrong"},
    {"00002200 0016'table t does not exist'", 4, HF_DENIED, HF_DENIED, HF_DENIED, "setup"},
    {"00002200 0014'unconfigured table t'", 4, HF_DENIED, HF_DENIED, HF_DENIED, "setup"},
    {"00002300 0003'cfg'", 4, HF_INVALID, HF_INVALID, HF_INVALID, "cfg"},
    {"00002400 0003'is!' 0001'k' 0001't'", 4, HF_INVALID, HF_INVALID, HF_INVALID, "is!"},
    {"00002500 0000 0002 0102", 4, HF_UNAVAILABLE, HF_UNAVAILABLE, HF_UNAVAILABLE, ""},
    {"7fffffff 0003'new'", 4, HF_UNAVAILABLE, HF_UNKNOWN, HF_UNKNOWN, "new"},
};

enum { SIMPLE_TIMEOUT = 10 }; /* its place above; it has no contentions */

static void every_error_is_decoded_and_means_something(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(failures); i++) {
        const struct failure_case *c = &failures[i];
        struct hf__cql_frame frame = golden_frame(c->body, c->version, HF__CQL_OP_ERROR);
        struct hf__cql_failure f;
        hf_error err = {0};

        check_number(c->body, hf__cql_read_failure(&frame, &f, &err), 0);
        check_number(c->body, hf__cql_meaning(&f, HF__CQL_KIND_READ), c->read);
        check_number(c->body, hf__cql_meaning(&f, HF__CQL_KIND_WRITE), c->write);
        check_number(c->body, hf__cql_report(&f, HF__CQL_KIND_SWAP, &err), c->swap);
        check_number(c->body, err.code, c->swap);
        check_number(c->body, err.store_code, f.code);
        check_contains(c->body, err.text, c->says);
        if (c->swap == HF_UNKNOWN)
            check_contains(c->body, err.text, "may have been applied");
        assert_true(!hf__cql_is_local(&f, HF__CQL_KIND_SWAP) || c->swap == HF_UNAVAILABLE);
        free(frame.body);
    }
}

static void the_details_of_errors_are_kept(void **state)
{
    struct hf__cql_failure f;

    (void)state;
    struct hf__cql_frame frame =
        golden_frame("00001100 0000 0009 00000001 00000003 0003'CAS' 0007", 5, HF__CQL_OP_ERROR);
    assert_int_equal(hf__cql_read_failure(&frame, &f, NULL), 0);
    assert_int_equal(f.consistency, HF__CQL_CONSISTENCY_LOCAL_SERIAL);
    assert_true(f.received == 1 && f.required == 3 && f.contentions == 7);
    assert_memory_equal(f.write_type.data, "CAS", 3);
    free(frame.body);

    frame = golden_frame("00002500 0000 0002 0102", 4, HF__CQL_OP_ERROR);
    assert_int_equal(hf__cql_read_failure(&frame, &f, NULL), 0);
    assert_true(f.id.len == 2 && f.id.data[1] == 2);
    free(frame.body);

    frame = golden_frame("00002400 0000 0001'k' 0002'tt'", 4, HF__CQL_OP_ERROR);
    assert_int_equal(hf__cql_read_failure(&frame, &f, NULL), 0);
    assert_true(f.keyspace.len == 1 && f.thing.len == 2);
    free(frame.body);
}

static void errors_cut_anywhere_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(failures); i++) {
        struct hf__cql_frame whole =
            golden_frame(failures[i].body, failures[i].version, HF__CQL_OP_ERROR);
        for (uint32_t len = 0; len < whole.header.length; len++) {
            struct hf__cql_frame cut = shorter(&whole, len);
            struct hf__cql_failure f;
            int code = hf__cql_read_failure(&cut, &f, NULL);
            bool optional = /* what is not looked at, or came with a later v5 */
                (f.code == HF__CQL_CODE_FUNCTION_FAILURE && len >= whole.header.length - 7) ||
                (f.code == HF__CQL_CODE_WRITE_TIMEOUT && whole.header.version == 5 &&
                 len >= whole.header.length - 2 && i != SIMPLE_TIMEOUT);
            check_number(failures[i].body, code, optional ? 0 : HF_CORRUPT);
            free(cut.body);
        }
        free(whole.body);
    }
}

/* The server's words go into messages: they must be printable and end. */
static void a_servers_message_is_made_printable(void **state)
{
    struct hf__cql_frame frame =
        golden_frame("00002200 0006 1b 5b 41 0a 00 ff", 4, HF__CQL_OP_ERROR);
    struct hf__cql_failure f;
    hf_error err;

    (void)state;
    assert_int_equal(hf__cql_read_failure(&frame, &f, NULL), 0);
    hf__cql_report(&f, HF__CQL_KIND_READ, &err);
    assert_string_equal(err.text, "%1B[A%0A%00%FF");
    free(frame.body);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_read),
        cmocka_unit_test(pages_and_types_are_read),
        cmocka_unit_test(a_trace_warnings_and_a_payload_come_before_the_message),
        cmocka_unit_test(prepared_statements_are_read),
        cmocka_unit_test(what_is_no_result_is_refused),
        cmocka_unit_test(types_are_not_nested_for_ever),
        cmocka_unit_test(results_cut_anywhere_are_refused),
        cmocka_unit_test(every_error_is_decoded_and_means_something),
        cmocka_unit_test(the_details_of_errors_are_kept),
        cmocka_unit_test(errors_cut_anywhere_are_refused),
        cmocka_unit_test(a_servers_message_is_made_printable),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
