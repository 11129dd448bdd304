/* What is sent, byte for byte, as the specifications of v4 and v5 have it. */
#include "cql/message.h"
#include "golden.h"

static void check_frame(const char *what, struct hf__cql_writer *w, const char *notes)
{
    struct golden wanted = golden(notes);

    assert_false(w->failed);
    check_number(what, (int64_t)w->len, (int64_t)wanted.len);
    if (memcmp(w->data, wanted.bytes, wanted.len) != 0) {
        for (size_t i = 0; i < w->len; i++)
            check_number(what, (int64_t)(i << 8 | w->data[i]), (int64_t)(i << 8 | wanted.bytes[i]));
    }
    hf__cql_writer_clear(w);
}

static struct hf__cql_writer writer(void)
{
    struct hf__cql_writer w;

    hf__cql_writer_init(&w, HF__CQL_REQUEST_MAX);
    return w;
}

static void the_handshake_is_as_specified(void **state)
{
    struct hf__cql_writer w = writer();

    (void)state;
    hf__cql_write_startup(&w, 4);
    check_frame("STARTUP", &w,
                "04 00 0000 01 0000002d  0002 000b'CQL_VERSION' 0005'3.0.0'"
                " 000b'DRIVER_NAME' 0008'holdfast'");
    hf__cql_write_options(&w, 5);
    check_frame("OPTIONS", &w, "05 00 0000 05 00000000");
    hf__cql_write_login(&w, 4, "u", "pw");
    check_frame("AUTH_RESPONSE", &w, "04 00 0000 0f 00000009  00000005 00'u'00'pw'");
}

static void statements_are_as_specified(void **state)
{
    const struct hf__cql_parameters plain = {.consistency = HF__CQL_CONSISTENCY_ONE};
    struct hf__cql_writer w = writer();

    (void)state;
    hf__cql_write_query(&w, 4, "USE x", &plain);
    check_frame("QUERY, v4", &w, "04 00 0000 07 0000000c  00000005'USE x' 0001 00");
    hf__cql_write_query(&w, 5, "USE x", &plain);
    check_frame("QUERY, v5", &w, "05 00 0000 07 0000000f  00000005'USE x' 0001 00000000");
    hf__cql_write_prepare(&w, 4, "USE x");
    check_frame("PREPARE, v4", &w, "04 00 0000 09 00000009  00000005'USE x'");
    hf__cql_write_prepare(&w, 5, "USE x");
    check_frame("PREPARE, v5", &w, "05 00 0000 09 0000000d  00000005'USE x' 00000000");
}

static void bound_values_are_as_specified(void **state)
{
    const struct hf__cql_prepared prepared = {
        .id = {1, 2}, .id_len = 2, .metadata_id = {0xee}, .metadata_id_len = 1};
    const struct hf__cql_value values[] = {hf__cql_integer(5), hf__cql_null()};
    const struct hf__cql_parameters swap = {.values = values,
                                            .value_count = 2,
                                            .consistency = HF__CQL_CONSISTENCY_QUORUM,
                                            .serial = HF__CQL_CONSISTENCY_SERIAL};
    struct hf__cql_writer w = writer();

    (void)state;
    hf__cql_write_execute(&w, 4, &prepared, &swap);
    check_frame("EXECUTE, v4", &w,
                "04 00 0000 0a 00000017  0002 0102  0004 11 0002 00000004 00000005 ffffffff 0008");
    hf__cql_write_execute(&w, 5, &prepared, &swap);
    check_frame("EXECUTE, v5", &w,
                "05 00 0000 0a 0000001d  0002 0102 0001 ee  0004 00000011 0002 00000004 00000005"
                " ffffffff 0008");

    const struct hf__cql_parameters page = {.consistency = HF__CQL_CONSISTENCY_LOCAL_SERIAL,
                                            .page_size = 100,
                                            .paging_state = {(const unsigned char *)"\253\315", 2},
                                            .skip_metadata = true};
    hf__cql_write_execute(&w, 4, &prepared, &page);
    check_frame("the next page", &w,
                "04 00 0000 0a 00000011  0002 0102  0009 0e 00000064 00000002 abcd");
}

static void values_are_as_specified(void **state)
{
    const unsigned char bits[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    const struct hf__cql_value values[] = {
        hf__cql_boolean(true),   hf__cql_boolean(false), hf__cql_integer(-2), hf__cql_bigint(-2),
        hf__cql_timestamp(1000), hf__cql_uuid(bits),     hf__cql_text("hi"),  hf__cql_blob("", 0),
        hf__cql_null(),          hf__cql_unset(),
    };
    struct hf__cql_writer w = writer();

    (void)state;
    for (size_t i = 0; i < COUNT(values); i++)
        hf__cql_put_value(&w, &values[i]);
    check_frame("values", &w,
                "00000001 01  00000001 00  00000004 fffffffe  00000008 fffffffffffffffe"
                "  00000008 00000000000003e8  00000010 000102030405060708090a0b0c0d0e0f"
                "  00000002'hi'  00000000  ffffffff  fffffffe");
}

/* A list of one tuple (a text and a nested list of no elements), whose count is known at the
 * end. */
static void collections_are_nested(void **state)
{
    struct hf__cql_value text = hf__cql_text("a");
    struct hf__cql_writer w = writer();

    (void)state;
    size_t count = hf__cql_reserve_int(&w);
    size_t tuple = hf__cql_begin_bytes(&w);
    hf__cql_put_value(&w, &text);
    size_t list = hf__cql_begin_bytes(&w);
    hf__cql_put_int(&w, 0);
    hf__cql_end_bytes(&w, list);
    hf__cql_end_bytes(&w, tuple);
    hf__cql_fill_int(&w, count, 1);
    check_frame("nested", &w, "00000001  0000000d  00000001'a'  00000004 00000000");
}

static void the_writer_stops_at_its_cap(void **state)
{
    struct hf__cql_writer w;

    (void)state;
    hf__cql_writer_init(&w, 10);
    hf__cql_put(&w, "12345678", 8);
    assert_false(w.failed);
    hf__cql_put(&w, "90", 2);
    assert_false(w.failed);
    assert_int_equal(w.len, 10);
    hf__cql_put_byte(&w, 1);
    assert_true(w.failed);
    hf__cql_put(&w, "", 0);
    assert_true(w.failed && w.len == 10);
    hf__cql_writer_clear(&w);
    assert_false(w.failed);

    const struct hf__cql_value endless = hf__cql_blob("", (size_t)INT32_MAX + 5);
    hf__cql_put_value(&w, &endless);
    assert_true(w.failed);
    hf__cql_writer_clear(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_handshake_is_as_specified),
        cmocka_unit_test(statements_are_as_specified),
        cmocka_unit_test(bound_values_are_as_specified),
        cmocka_unit_test(values_are_as_specified),
        cmocka_unit_test(collections_are_nested),
        cmocka_unit_test(the_writer_stops_at_its_cap),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
