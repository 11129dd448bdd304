/* Tickets as text. */
#include "base/ticket.h"
#include "lib/check.h"
#include "lib/random.h"

static void a_ticket_is_32_hex_digits(void **state)
{
    struct hf__ticket ticket = {{0x00, 0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0xff}};
    char text[HF_TICKET_SIZE];

    (void)state;
    hf__ticket_format(&ticket, text);
    assert_string_equal(text, "000123456789abcdefff000000000000");
}

static void tickets_come_back_in_either_case(void **state)
{
    struct random r = {9};

    (void)state;
    for (int i = 0; i < 5000; i++) {
        struct hf__ticket ticket, back;
        char text[HF_TICKET_SIZE];
        random_fill(&r, ticket.bits, sizeof ticket.bits);
        hf__ticket_format(&ticket, text);
        assert_true(hf__ticket_parse(text, &back));
        assert_true(hf__ticket_equal(&ticket, &back));
        for (char *c = text; *c != '\0'; c++) {
            if (*c >= 'a')
                *c = (char)(*c - 0x20);
        }
        assert_true(hf__ticket_parse(text, &back));
        assert_true(hf__ticket_equal(&ticket, &back));
        back.bits[random_below(&r, 16)] ^= (unsigned char)(1 << random_below(&r, 8));
        assert_false(hf__ticket_equal(&ticket, &back));
    }
}

static void everything_else_is_refused(void **state)
{
    static const char *const cases[] = {
        NULL,
        "",
        "0",
        "0123456789abcdef0123456789abcde",
        "0123456789abcdef0123456789abcdef0",
        "0123456789abcdef0123456789abcdeg",
        "g123456789abcdef0123456789abcdef",
        "0123456789abcdef 123456789abcdef",
        " 123456789abcdef0123456789abcdef",
        "0x23456789abcdef0123456789abcdef",
        "+123456789abcdef0123456789abcdef",
        "0123456789abcdef0123456789abcde\n",
        "0123456789abcdef0123456789abcd\xc3\xa4",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct hf__ticket ticket = {{7}};
        if (hf__ticket_parse(cases[i], &ticket))
            fail_msg("'%s' was taken", cases[i] != NULL ? cases[i] : "(null)");
        check_number("what was refused leaves the result alone", ticket.bits[0], 7);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_ticket_is_32_hex_digits),
        cmocka_unit_test(tickets_come_back_in_either_case),
        cmocka_unit_test(everything_else_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
