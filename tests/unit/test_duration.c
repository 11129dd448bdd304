/* Durations: what is read, what is refused, and that nothing is rounded down. */
#include "base/duration.h"
#include "lib/check.h"
#include "lib/random.h"

#define YEAR_MS HF__DURATION_MAX_MS

static void every_unit_is_read(void **state)
{
    static const struct {
        const char *text;
        int64_t ms;
    } cases[] = {
        {"0", 0},
        {"0ms", 0},
        {"0d", 0},
        {"1", 1000},
        {"250ms", 250},
        {"30s", 30000},
        {"5m", 300000},
        {"2h", 7200000},
        {"1d", 86400000},
        {"365d", YEAR_MS},
        {"8760h", YEAR_MS},
        {"31536000", YEAR_MS},
        {"31536000000ms", YEAR_MS},
        {"007s", 7000},
        {"00000000000000000000000000000001s", 1000},
        {"1h30m", 5400000},
        {"1d2h3m4s5ms", 93784005},
        {"1m0.5s", 60500},
        {"364d24h", YEAR_MS},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        int64_t ms = -1;
        if (!hf__parse_duration(cases[i].text, &ms))
            fail_msg("'%s' was refused", cases[i].text);
        check_number(cases[i].text, ms, cases[i].ms);
    }
}

static void fractions_are_exact_and_rounded_up(void **state)
{
    static const struct {
        const char *text;
        int64_t ms;
    } cases[] = {
        {"0.5", 500},
        {"1.5s", 1500},
        {"0.0001s", 1},
        {"0.001s", 1},
        {"0.0010000000000000000000000001s", 2},
        {"0.000s", 0},
        {"0.1ms", 1},
        {"1.0ms", 1},
        {"1.000000000000000000000001ms", 2},
        {"0.30000000000000004", 301},
        {"0.3", 300},
        {"0.1d", 8640000},
        {"0.5m", 30000},
        {"2.25h", 8100000},
        {"0.99999999999999999999999999s", 1000},
        {"364.999d", 31535913600},
        {"364.9999999999999999d", YEAR_MS},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        int64_t ms = -1;
        if (!hf__parse_duration(cases[i].text, &ms))
            fail_msg("'%s' was refused", cases[i].text);
        check_number(cases[i].text, ms, cases[i].ms);
    }
}

static void what_is_no_duration_is_refused(void **state)
{
    static const char *const cases[] = {
        "",
        " ",
        "s",
        ".",
        ".5s",
        "5.",
        "5.s",
        "-1s",
        "+1s",
        " 1s",
        "1s ",
        "1 s",
        "1S",
        "1MS",
        "1sec",
        "1hour",
        "1w",
        "1y",
        "1h30",
        "30m1h",
        "1h1h",
        "1m60m",
        "1h 30m",
        "1h30m-1s",
        "364d24h1ms",
        "1e3s",
        "0x10s",
        "1,5s",
        "1.5.5s",
        "inf",
        "nan",
        "366d",
        "31536001s",
        "365.001d",
        "never",
        "1us",
        "31536000001ms",
        "18446744073709551617ms",
        "9223372036854775808s",
        "99999999999999999999999999999999d",
        "365.0000000000000000000000001d",
        "1s\n",
        "\xd9\xa1s",
        "1\xc2\xa0s",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        int64_t ms = -7;
        if (hf__parse_duration(cases[i], &ms))
            fail_msg("'%s' was taken as %lld ms", cases[i], (long long)ms);
        check_number("what was refused leaves the result alone", ms, -7);
    }
}

static void the_shortest_exact_form_is_written(void **state)
{
    static const struct {
        int64_t ms;
        const char *text;
    } cases[] = {
        {0, "0s"},
        {1, "1ms"},
        {999, "999ms"},
        {1000, "1s"},
        {1500, "1500ms"},
        {30000, "30s"},
        {60000, "1m"},
        {90000, "90s"},
        {3600000, "1h"},
        {7200000, "2h"},
        {86400000, "1d"},
        {90000000, "25h"},
        {YEAR_MS, "365d"},
        {-1000, "-1s"},
        {INT64_MAX, "9223372036854775807ms"},
        {INT64_MIN, "-9223372036854775808ms"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[24];
        hf__format_duration(cases[i].ms, text, sizeof text);
        check_text(cases[i].text, text, cases[i].text);
    }
}

static void what_was_written_is_read_back(void **state)
{
    struct random r = {1};

    (void)state;
    for (int i = 0; i < 20000; i++) {
        static const int64_t steps[] = {1, 1000, 60000, 3600000, 86400000};
        int64_t step = steps[random_below(&r, COUNT(steps))], back = -1;
        int64_t ms = (int64_t)random_below(&r, (uint64_t)(YEAR_MS / step + 1)) * step;
        char text[24];
        hf__format_duration(ms, text, sizeof text);
        if (!hf__parse_duration(text, &back) || back != ms)
            fail_msg("%lld ms was written as '%s' and read as %lld", (long long)ms, text,
                     (long long)back);
    }
}

/* Against the same sum in 128 bits. */
static void random_fractions_agree_with_long_arithmetic(void **state)
{
    struct random r = {2};

    (void)state;
    for (int i = 0; i < 20000; i++) {
        uint64_t whole = random_below(&r, 300), fraction = random_below(&r, 1000000000000);
        __extension__ unsigned __int128 parts = (unsigned __int128)fraction * 86400000;
        int64_t wanted =
            (int64_t)(whole * 86400000 + (uint64_t)((parts + 999999999999u) / 1000000000000u));
        int64_t ms = -1;
        char text[64];
        snprintf(text, sizeof text, "%llu.%012llud", (unsigned long long)whole,
                 (unsigned long long)fraction);
        assert_true(hf__parse_duration(text, &ms));
        check_number(text, ms, wanted);
    }
}

static void a_short_buffer_is_not_overrun(void **state)
{
    char text[4] = "abc";

    (void)state;
    hf__format_duration(1500, text, 3);
    assert_string_equal(text, "15");
    assert_int_equal(text[3], '\0');
    hf__format_duration(1500, NULL, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_unit_is_read),
        cmocka_unit_test(fractions_are_exact_and_rounded_up),
        cmocka_unit_test(what_is_no_duration_is_refused),
        cmocka_unit_test(the_shortest_exact_form_is_written),
        cmocka_unit_test(what_was_written_is_read_back),
        cmocka_unit_test(random_fractions_agree_with_long_arithmetic),
        cmocka_unit_test(a_short_buffer_is_not_overrun),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
