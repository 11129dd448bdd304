/* The error list and the filling in of hf_error. */
#include <errno.h>

#include "base/error.h"
#include "base/utf8.h"
#include "lib/check.h"

static void every_code_has_a_name_a_text_and_a_status(void **state)
{
    static const int codes[] = {
#define X(code, value, status, text) code,
        HF_ERRORS(X)
#undef X
    };

    (void)state;
    for (size_t i = 0; i < COUNT(codes); i++) {
        check_number("values count down from -1", codes[i], -(int64_t)i - 1);
        check_contains("name", hf_code_name(codes[i]), "HF_");
        assert_true(strlen(hf_code_text(codes[i])) > 5);
        assert_in_range(hf_code_exit_status(codes[i]), 1, 99);
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(hf_code_name(codes[i]), hf_code_name(codes[j]));
    }
    check_text("name", hf_code_name(HF_BUSY), "HF_BUSY");
    check_text("name", hf_code_name(HF_OK), "HF_OK");
    check_number("status", hf_code_exit_status(HF_OK), 0);
    check_number("status", hf_code_exit_status(HF_TIMEOUT), 1);
    check_number("status", hf_code_exit_status(HF_LOST), 80);
    check_number("status", hf_code_exit_status(HF_UNKNOWN), 75);
    check_number("status", hf_code_exit_status(HF_UNAVAILABLE), 69);
    check_number("status", hf_code_exit_status(HF_INVALID), 64);
}

static void servers_are_quoted_with_their_blanks(void **state)
{
    static const char said[] = "ERR 50% of\tit\033[1m is \xc3\xbc";
    char whole[80], cut[12];

    (void)state;
    check_text("whole", hf__sentence(said, strlen(said), whole, sizeof whole),
               "ERR 50% of%09it%1B[1m is \xc3\xbc");
    check_text("cut", hf__sentence("no such key there", 17, cut, sizeof cut), "no such ...");
    check_text("a name", hf__printable("no such", 7, whole, sizeof whole), "no such");
}

static void strange_codes_and_causes_are_no_trouble(void **state)
{
    static const int strange[] = {1, -20, -1000, INT32_MAX, INT32_MIN};

    (void)state;
    for (size_t i = 0; i < COUNT(strange); i++) {
        assert_non_null(hf_code_name(strange[i]));
        assert_non_null(hf_code_text(strange[i]));
        assert_int_equal(hf_code_exit_status(strange[i]), 70);
        assert_non_null(hf_cause_text((hf_cause)strange[i]));
    }
    check_text("cause", hf_cause_text(HF_CAUSE_NONE), "not lost");
    check_text("cause", hf_cause_text(HF_CAUSE_CLOSED), "the client was closed");
}

static void failing_fills_in_everything(void **state)
{
    hf_error err;

    (void)state;
    memset(&err, 0x55, sizeof err);
    assert_int_equal(hf__fail(&err, HF_BUSY, "by %s", "x"), HF_BUSY);
    assert_int_equal(err.code, HF_BUSY);
    assert_int_equal(err.retriable, 1);
    assert_int_equal(err.store_code, 0);
    assert_int_equal(err.may_hold_ms, 0);
    assert_string_equal(err.text, "by x");

    assert_int_equal(hf__fail(&err, HF_INVALID, NULL), HF_INVALID);
    assert_int_equal(err.retriable, 0);
    assert_string_equal(err.text, hf_code_text(HF_INVALID));
}

static void only_what_may_pass_by_itself_is_retriable(void **state)
{
    static const struct {
        int code, retriable;
    } cases[] = {
        {HF_BUSY, 1},    {HF_TIMEOUT, 1}, {HF_UNAVAILABLE, 1}, {HF_UNKNOWN, 1},
        {HF_FULL, 1},    {HF_DENIED, 0},  {HF_STALE, 0},       {HF_LOST, 0},
        {HF_INVALID, 0}, {HF_CORRUPT, 0}, {HF_NO_STORE, 0},    {HF_FORKED, 0},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        hf_error err;
        hf__fail(&err, cases[i].code, NULL);
        check_number(hf_code_name(cases[i].code), err.retriable, cases[i].retriable);
    }
}

static void errno_is_told_and_kept(void **state)
{
    hf_error err;

    (void)state;
    errno = ENOENT;
    assert_int_equal(hf__fail_errno(&err, HF_SYSTEM, "open '%s'", "x"), HF_SYSTEM);
    assert_int_equal(err.store_code, ENOENT);
    assert_string_equal(err.text, "open 'x': No such file or directory");
}

static void wrapping_reads_from_the_outside_in(void **state)
{
    hf_error err;

    (void)state;
    hf__fail(&err, HF_FULL, "disk is full");
    hf__set_store_code(&err, 13);
    assert_int_equal(hf__wrap(&err, HF_FULL, "sqlite"), HF_FULL);
    assert_int_equal(hf__wrap(&err, HF_FULL, "acquire '%s'", "x"), HF_FULL);
    assert_string_equal(err.text, "acquire 'x': sqlite: disk is full");
    assert_int_equal(err.store_code, 13);
    assert_int_equal(err.retriable, 1);
}

static void long_texts_are_cut(void **state)
{
    char longer[2 * sizeof((hf_error *)0)->text];
    hf_error err;

    (void)state;
    memset(longer, 'a', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    hf__fail(&err, HF_FULL, "%s", longer);
    assert_int_equal(strlen(err.text), sizeof err.text - 1);
    hf__wrap(&err, HF_FULL, "outer");
    check_number("cut", (int64_t)strlen(err.text), sizeof err.text - 1);
    assert_memory_equal(err.text, "outer: aaa", 10);
    hf__wrap(&err, HF_FULL, "%s", longer);
    assert_int_equal(strlen(err.text), sizeof err.text - 1);
    errno = EIO;
    hf__fail_errno(&err, HF_SYSTEM, "%s", longer);
    assert_int_equal(strlen(err.text), sizeof err.text - 1);
}

/* Of two and of four bytes, so that some end is inside one. */
static void long_texts_are_cut_between_characters(void **state)
{
    static const char *const characters[] = {"\xc3\xa9", "\xf0\x9f\x94\x92"};
    char longer[2 * sizeof((hf_error *)0)->text] = "";
    hf_error err;

    (void)state;
    for (size_t i = 0; i < COUNT(characters); i++) {
        longer[0] = '\0';
        while (strlen(longer) + 5 < sizeof longer)
            strcat(longer, characters[i]);
        for (int shift = 0; shift < 4; shift++) {
            hf__fail(&err, HF_FULL, "%.*s%s", shift, "abc", longer);
            assert_true(hf__is_text(err.text, strlen(err.text)));
            hf__wrap(&err, HF_FULL, "%.*s", shift, "abc");
            assert_true(hf__is_text(err.text, strlen(err.text)));
            hf__fail_errno(&err, HF_SYSTEM, "%.*s%s", shift, "abc", longer);
            assert_true(hf__is_text(err.text, strlen(err.text)));
            assert_in_range(strlen(err.text), sizeof err.text - 4, sizeof err.text - 1);
        }
    }
}

static void no_error_wanted_is_fine(void **state)
{
    (void)state;
    assert_int_equal(hf__fail(NULL, HF_FULL, "x"), HF_FULL);
    assert_int_equal(hf__fail_errno(NULL, HF_SYSTEM, "x"), HF_SYSTEM);
    assert_int_equal(hf__wrap(NULL, HF_LOST, "x"), HF_LOST);
    hf__set_store_code(NULL, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_has_a_name_a_text_and_a_status),
        cmocka_unit_test(servers_are_quoted_with_their_blanks),
        cmocka_unit_test(strange_codes_and_causes_are_no_trouble),
        cmocka_unit_test(failing_fills_in_everything),
        cmocka_unit_test(only_what_may_pass_by_itself_is_retriable),
        cmocka_unit_test(errno_is_told_and_kept),
        cmocka_unit_test(wrapping_reads_from_the_outside_in),
        cmocka_unit_test(long_texts_are_cut),
        cmocka_unit_test(long_texts_are_cut_between_characters),
        cmocka_unit_test(no_error_wanted_is_fine),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
