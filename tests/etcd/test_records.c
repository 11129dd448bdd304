/* What stands in values is read as it was written, by this version and by those before it; what is not
 * ours is a stranger's. */
#include <stdlib.h>

#include "lib/check.h"
#include "stores/etcd/etcd.h"

static struct hf__slice slice(const char *text)
{
    return (struct hf__slice){text, strlen(text)};
}

static void c13_who_bids_is_read_as_it_was_written(void **state)
{
    static const struct hf__who whos[] = {
        {"host", "user", "program", "a note", 7},
        {"", "", "", "", 0},
        {"h\"o\\st", "\xc3\xbc", "\x01\x1f\n\t", "{}[],:\" \xf0\x9f\x94\x92", INT64_MAX},
        {"\xff", "\xc3", "a\x80", "not \xfe text, in every field, of any length \xff", 1},
    };
    struct hf__host host = {.env = &hf__system_env};
    struct hf__etcd e = {.base.host = &host, .inbox = "0123456789abcdef"};
    (void)state;

    for (size_t i = 0; i < sizeof whos / sizeof whos[0]; i++) {
        struct hf__bid bid = {.ttl_ms = 30000, .lock_delay_ms = 5, .who = &whos[i]};
        struct hf__etcd_details d;
        memset(bid.ticket.bits, (int)i + 1, sizeof bid.ticket.bits);
        char *text = hf__etcd_details_text(&e, &bid);
        assert_non_null(text);
        assert_true(hf__etcd_details_read(slice(text), &d));
        assert_true(hf__ticket_equal(&d.ticket, &bid.ticket));
        assert_int_equal(d.ttl_ms, 30000);
        assert_int_equal(d.delay_ms, 5);
        assert_true(d.since_ms > 0);
        assert_string_equal(d.inbox, e.inbox);
        assert_string_equal(d.who.host, whos[i].host);
        assert_string_equal(d.who.user, whos[i].user);
        assert_string_equal(d.who.program, whos[i].program);
        assert_string_equal(d.who.note, whos[i].note);
        assert_true(d.who.pid == whos[i].pid);
        hf__etcd_details_clear(&d);
        free(text);
    }
}

/* As versions wrote it that used another library. */
static void c13_older_records_are_read(void **state)
{
    static const char place[] =
        "{\"ticket\":\"000102030405060708090a0b0c0d0e0f\",\"ttl_ms\":30000,\"delay_ms\":0,"
        "\"since_ms\":1790000000000,\"pid\":42,\"inbox\":\"00ff00ff00ff00ff\",\"host\":\"h\","
        "\"user\":\"u\",\"program\":\"p \\u0001 \\ud83d\\udd12\",\"note64\":\"/2E=\"}";
    struct hf__etcd_details d;
    struct hf__etcd_record r;
    (void)state;

    assert_true(hf__etcd_details_read(slice(place), &d));
    assert_int_equal(d.ttl_ms, 30000);
    assert_int_equal(d.who.pid, 42);
    assert_string_equal(d.who.program, "p \x01 \xf0\x9f\x94\x92");
    assert_string_equal(d.who.note, "\xff"
                                    "a");
    hf__etcd_details_clear(&d);
    assert_true(hf__etcd_record_read(slice("{\"lease\":\"123\",\"joined\":\"9\"}"), &r));
    assert_int_equal(hf__etcd_record_number(&r, "lease"), 123);
    hf__etcd_record_clear(&r);
    assert_true(hf__etcd_record_read(slice(" { \"since_ms\" : -5 } "), &r));
    assert_int_equal(hf__etcd_record_number(&r, "since_ms"), -5);
    assert_null(hf__etcd_record_text(&r, "since_ms"));
    hf__etcd_record_clear(&r);
}

static void c13_what_is_not_ours_is_a_strangers(void **state)
{
    static const char *const values[] = {
        "",
        "{",
        "{}x",
        "[]",
        "null",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{\"a\":{}}",
        "{\"a\":[1]}",
        "{\"a\":\"\n\"}",
        "{\"a\":\"\\x\"}",
        "{\"a\":\"\\u12\"}",
        "{\"a\":\"\\u0000\"}",
        "{\"a\":\"\\ud800\"}",
        "{\"a\":\"\xff\"}",
        "{\"a\":99999999999999999999}",
        "{\"a\":\"",
        "{\"a\":\"\\",
        "{\"ticket\":\"short\"}",
        "{\"ticket\":7}",
    };
    struct hf__etcd_details d;
    (void)state;

    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        assert_false(hf__etcd_details_read(slice(values[i]), &d));
        hf__etcd_details_clear(&d);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(c13_who_bids_is_read_as_it_was_written),
        cmocka_unit_test(c13_older_records_are_read),
        cmocka_unit_test(c13_what_is_not_ours_is_a_strangers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
