/* Names in messages: any bytes, shown as printable ASCII that cannot be mistaken for another
 * name. */
#include "base/error.h"
#include "lib/check.h"
#include "lib/random.h"

static void each_byte_has_its_form(void **state)
{
    (void)state;
    for (int c = 0; c < 256; c++) {
        char byte = (char)c, shown[8], wanted[8];
        bool plain = c > ' ' && c < 0x7f && c != '%';
        snprintf(wanted, sizeof wanted, plain ? "%c" : "%%%02X", c);
        check_text("byte", hf__printable(&byte, 1, shown, sizeof shown), wanted);
    }
}

static void names_are_shown_whole_if_they_fit(void **state)
{
    static const struct {
        const char *name;
        size_t len;
        const char *shown;
    } cases[] = {
        {"", 0, ""},
        {"invoice/123", 11, "invoice/123"},
        {"a b", 3, "a b"},
        {" a ", 3, "%20a%20"},
        {"\xc3\xbc", 2, "\xc3\xbc"},
        {"\xc3", 1, "%C3"},
        {"a\0b", 3, "a%00b"},
        {"100%", 4, "100%25"},
        {"%20", 3, "%2520"},
        {"\x1b[31m", 5, "%1B[31m"},
        {"\xe2\x80\xae", 3, "%E2%80%AE"},
        {"'; DROP", 7, "'; DROP"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        char shown[40];
        check_text(cases[i].shown, hf__printable(cases[i].name, cases[i].len, shown, sizeof shown),
                   cases[i].shown);
    }
}

static void a_cut_is_seen_and_splits_no_escape(void **state)
{
    struct random r = {8};

    (void)state;
    for (int round = 0; round < 20000; round++) {
        char name[40], whole[3 * 40 + 4], shown[80];
        size_t len = random_below(&r, sizeof name), size = 4 + random_below(&r, 60);
        random_fill(&r, name, len);
        memset(shown, '#', sizeof shown);
        hf__printable(name, len, whole, sizeof whole);
        hf__printable(name, len, shown, size);
        assert_int_equal(shown[size], '#');
        if (strcmp(shown, whole) == 0)
            continue;

        size_t kept = strlen(shown) - 3;
        check_text("end", shown + kept, "...");
        assert_memory_equal(shown, whole, kept);
        assert_false(kept >= 1 && shown[kept - 1] == '%');
        assert_false(kept >= 2 && shown[kept - 2] == '%');
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_byte_has_its_form),
        cmocka_unit_test(names_are_shown_whole_if_they_fit),
        cmocka_unit_test(a_cut_is_seen_and_splits_no_escape),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
