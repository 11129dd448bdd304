/* The options of a URL against the tables that declare them. */
#include "base/url.h"
#include "lib/check.h"

static const struct hf__option table[] = {
    {"mode", HF__OPTION_TEXT, "wal", 0, 0, "text with a default"},
    {"label", HF__OPTION_TEXT, NULL, 0, 0, "text without"},
    {"count", HF__OPTION_NUMBER, "3", 1, 10, "a number in a range"},
    {"offset", HF__OPTION_NUMBER, NULL, 0, 0, "any number"},
    {"every", HF__OPTION_DURATION, "1500ms", 1000, 60000, "a duration in a range"},
    {"push", HF__OPTION_SWITCH, "yes", 0, 0, "a switch that is on"},
    {"loud", HF__OPTION_SWITCH, NULL, 0, 0, "a switch that is off"},
    {"secret_count", HF__OPTION_NUMBER, NULL, 0, 0, "a number nobody may see"},
    {0},
};

static void parse(const char *text, struct hf__url *url)
{
    hf_error err;

    if (hf__url_parse(text, url, &err) != 0)
        fail_msg("%s: %s", text, err.text);
}

static void defaults_hold_where_nothing_is_given(void **state)
{
    struct hf__url url;

    (void)state;
    parse("x:/p", &url);
    assert_int_equal(hf__url_check(&url, table, NULL), 0);
    check_text("mode", hf__url_text(&url, "mode"), "wal");
    check_text("label", hf__url_text(&url, "label"), NULL);
    check_number("count", hf__url_number(&url, "count"), 3);
    check_number("offset", hf__url_number(&url, "offset"), 0);
    check_number("every", hf__url_number(&url, "every"), 1500);
    assert_true(hf__url_switch(&url, "push"));
    assert_false(hf__url_switch(&url, "loud"));
    check_number("op_timeout", hf__url_number(&url, "op_timeout"), 5000);
    check_number("retain", hf__url_number(&url, "retain"), 30LL * 86400000);
    hf__url_clear(&url);
}

static void given_values_are_taken(void **state)
{
    struct hf__url url;

    (void)state;
    parse("x:/?mode=a%20b&label=&count=10&offset=-7&every=1m&push=off&loud=true&op_timeout=100ms"
          "&retain=365d",
          &url);
    assert_int_equal(hf__url_check(&url, table, NULL), 0);
    check_text("mode", hf__url_text(&url, "mode"), "a b");
    check_text("label", hf__url_text(&url, "label"), "");
    check_number("count", hf__url_number(&url, "count"), 10);
    check_number("offset", hf__url_number(&url, "offset"), -7);
    check_number("every", hf__url_number(&url, "every"), 60000);
    assert_false(hf__url_switch(&url, "push"));
    assert_true(hf__url_switch(&url, "loud"));
    check_number("op_timeout", hf__url_number(&url, "op_timeout"), 100);
    hf__url_clear(&url);
}

static void switches_have_four_spellings_each(void **state)
{
    static const char *const words[] = {"no", "yes", "off", "on", "false", "true", "0", "1"};

    (void)state;
    for (size_t i = 0; i < COUNT(words); i++) {
        char text[40];
        struct hf__url url;
        snprintf(text, sizeof text, "x:/?loud=%s&push=%s", words[i], words[i]);
        parse(text, &url);
        assert_int_equal(hf__url_check(&url, table, NULL), 0);
        check_number(words[i], hf__url_switch(&url, "loud"), i % 2);
        check_number(words[i], hf__url_switch(&url, "push"), i % 2);
        hf__url_clear(&url);
    }
}

static void what_is_wrong_is_told_in_a_sentence(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"x:/?count=11", "option 'count' is '11': it must be from 1 to 10"},
        {"x:/?count=0", "option 'count' is '0': it must be from 1 to 10"},
        {"x:/?count=", "option 'count' is '': it must be a whole number"},
        {"x:/?count=1.5", "option 'count' is '1.5': it must be a whole number"},
        {"x:/?count=+1", "option 'count' is '+1': it must be a whole number"},
        {"x:/?count=%201", "option 'count' is '%201': it must be a whole number"},
        {"x:/?count=-", "option 'count' is '-': it must be a whole number"},
        {"x:/?count=1-1", "option 'count' is '1-1': it must be a whole number"},
        {"x:/?offset=9223372036854775808",
         "option 'offset' is '9223372036854775808': it must be a whole number"},
        {"x:/?every=999ms", "option 'every' is '999ms': it must be from 1s to 1m"},
        {"x:/?every=60001ms", "option 'every' is '60001ms': it must be from 1s to 1m"},
        {"x:/?every=soon",
         "option 'every' is 'soon': it must be a duration such as 250ms, 30s, 5m, 2h or 1d"},
        {"x:/?push=maybe", "option 'push' is 'maybe': it must be yes or no"},
        {"x:/?push=YES", "option 'push' is 'YES': it must be yes or no"},
        {"x:/?push=", "option 'push' is '': it must be yes or no"},
        {"x:/?op_timeout=99ms", "option 'op_timeout' is '99ms': it must be from 100ms to 10m"},
        {"x:/?op_timeout=11m", "option 'op_timeout' is '11m': it must be from 100ms to 10m"},
        {"x:/?secret_count=Sesam", "option 'secret_count' is '***': it must be a whole number"},
        {"x:/?count=1&count=1", "option 'count' is given twice"},
        {"x:/?label=1&mode=2&l%61bel=3", "option 'label' is given twice"},
        {"x:/?retain=1d&retain=x", "option 'retain' is given twice"},
        {"x:/?op_timout=1s", "unknown option 'op_timout': did you mean 'op_timeout'? 'holdfast "
                             "stores x' lists all"},
        {"x:/?Count=1",
         "unknown option 'Count': did you mean 'count'? 'holdfast stores x' lists all"},
        {"x:/?quite%0Aelse=1",
         "unknown option 'quite%0Aelse': 'holdfast stores x' lists those there are"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct hf__url url;
        hf_error err = {0};
        parse(cases[i].text, &url);
        check_number(cases[i].text, hf__url_check(&url, table, &err), HF_INVALID);
        check_text(cases[i].text, err.text, cases[i].message);
        check_number(cases[i].text, hf__url_check(&url, table, NULL), HF_INVALID);
        hf__url_clear(&url);
    }
}

static void a_choice_is_one_of_its_words(void **state)
{
    static const struct hf__choice choices[] = {{"wal", 1}, {"delete", 2}, {"off", 3}, {0}};
    static const struct {
        const char *text;
        int value;
    } cases[] = {{"x:/", 1}, {"x:/?mode=delete", 2}, {"x:/?mode=off", 3}, {"x:/?mode=Off", 0}};

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct hf__url url;
        hf_error err = {0};
        int value = 0, other = 7;
        parse(cases[i].text, &url);
        assert_int_equal(hf__url_check(&url, table, NULL), 0);
        check_number(cases[i].text, hf__url_choose(&url, "mode", choices, &value, &err),
                     cases[i].value > 0 ? 0 : HF_INVALID);
        check_number(cases[i].text, value, cases[i].value);
        if (cases[i].value == 0)
            check_text(cases[i].text, err.text,
                       "option 'mode' is 'Off': it must be wal, delete or off");
        assert_int_equal(hf__url_choose(&url, "label", choices, &other, NULL), 0);
        check_number("what is not given", other, 7);
        hf__url_clear(&url);
    }
}

/* The presets are never checked at run time, so they are here. */
static void the_common_defaults_are_in_range(void **state)
{
    (void)state;
    for (const struct hf__option *o = hf__common_options; o->name != NULL; o++) {
        char text[100];
        struct hf__url url;
        snprintf(text, sizeof text, "x:/?%s=%s", o->name, o->preset);
        parse(text, &url);
        check_number(o->name, hf__url_check(&url, NULL, NULL), 0);
        assert_non_null(o->help);
        hf__url_clear(&url);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_hold_where_nothing_is_given),
        cmocka_unit_test(given_values_are_taken),
        cmocka_unit_test(switches_have_four_spellings_each),
        cmocka_unit_test(what_is_wrong_is_told_in_a_sentence),
        cmocka_unit_test(a_choice_is_one_of_its_words),
        cmocka_unit_test(the_common_defaults_are_in_range),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
