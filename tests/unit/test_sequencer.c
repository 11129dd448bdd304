/* Sequencers (C10): one spelling per grant, and never the ticket. */
#include "base/sequencer.h"
#include "lib/check.h"
#include "lib/random.h"

static struct hf__sequencer make(hf_mode mode, bool limited, uint64_t generation, const char *hint,
                                 const char *name)
{
    struct hf__sequencer s = {.mode = mode, .limited = limited, .generation = generation};

    snprintf(s.hint, sizeof s.hint, "%s", hint);
    s.name_len = strlen(name);
    memcpy(s.name, name, s.name_len);
    return s;
}

static void check_same(const char *what, const struct hf__sequencer *a,
                       const struct hf__sequencer *b)
{
    check_number(what, a->mode, b->mode);
    check_number(what, a->limited, b->limited);
    check_number(what, (int64_t)a->generation, (int64_t)b->generation);
    check_text(what, a->hint, b->hint);
    check_number(what, (int64_t)a->name_len, (int64_t)b->name_len);
    assert_memory_equal(a->name, b->name, a->name_len);
}

static void c10_each_grant_has_its_text(void **state)
{
    static const struct {
        hf_mode mode;
        bool limited;
        uint64_t generation;
        const char *hint, *name, *text;
    } cases[] = {
        {HF_EXCLUSIVE, false, 1763199999000001, "", "invoice/123",
         "hf1:x:1763199999000001::invoice/123"},
        {HF_SHARED, false, 1, "", "a", "hf1:s:1::a"},
        {HF_SHARED, true, UINT64_MAX, "", "a", "hf1:l:18446744073709551615::a"},
        {HF_EXCLUSIVE, false, 7, "rev=12,lease=0f", "a", "hf1:x:7:rev=12,lease=0f:a"},
        {HF_EXCLUSIVE, false, 7, "", "a:b::c", "hf1:x:7::a:b::c"},
        {HF_EXCLUSIVE, false, 7, "", ":", "hf1:x:7:::"},
        {HF_EXCLUSIVE, false, 7, "", "a b%c", "hf1:x:7::a%20b%25c"},
        {HF_EXCLUSIVE, false, 7, "", "\xc3\xa4\n\x7f", "hf1:x:7::%C3%A4%0A%7F"},
        {HF_EXCLUSIVE, false, 7, "", "._~/@+=,:-Zz09", "hf1:x:7::._~/@+=,:-Zz09"},
        {HF_EXCLUSIVE, false, 7, "", "'\";<>&|\\!*()[]{}^`$#?",
         "hf1:x:7::%27%22%3B%3C%3E%26%7C%5C%21%2A%28%29%5B%5D%7B%7D%5E%60%24%23%3F"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct hf__sequencer s = make(cases[i].mode, cases[i].limited, cases[i].generation,
                                      cases[i].hint, cases[i].name);
        struct hf__sequencer back;
        char text[HF_SEQUENCER_MAX];
        check_number(cases[i].text, hf__sequencer_format(&s, text, sizeof text), 0);
        check_text(cases[i].text, text, cases[i].text);
        check_number(cases[i].text, hf__sequencer_parse(text, &back, NULL), 0);
        check_same(cases[i].text, &s, &back);
    }
}

static void every_other_spelling_is_refused(void **state)
{
    static const char *const cases[] = {
        "",
        "hf1",
        "hf1:",
        "hf1:x",
        "hf1:x:",
        "hf1:x:7",
        "hf1:x:7:",
        "hf1:x:7::",
        "hf1:x:7:a",
        "hf2:x:7::a",
        "hf:x:7::a",
        "HF1:x:7::a",
        " hf1:x:7::a",
        "hf1:x:7::a ",
        "hf1:x:7::a\n",
        "hf1:X:7::a",
        "hf1:e:7::a",
        "hf1:xs:7::a",
        "hf1::7::a",
        "hf1:x:::a",
        "hf1:x:0::a",
        "hf1:x:07::a",
        "hf1:x:+7::a",
        "hf1:x:-7::a",
        "hf1:x: 7::a",
        "hf1:x:0x7::a",
        "hf1:x:7.0::a",
        "hf1:x:18446744073709551616::a",
        "hf1:x:99999999999999999999::a",
        "hf1:x:100000000000000000001::a",
        "hf1:x:7: :a",
        "hf1:x:7:%41:a",
        "hf1:x:7:\xc3\xa4:a",
        "hf1:x:7::a b",
        "hf1:x:7::a%",
        "hf1:x:7::a%4",
        "hf1:x:7::a%4z",
        "hf1:x:7::%41",
        "hf1:x:7::%c3",
        "hf1:x:7::%2f",
        "hf1:x:7::%2F",
        "hf1:x:7::\xc3\xa4",
        "hf1:x:7::a'b",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct hf__sequencer s = {.generation = 77};
        hf_error err = {0};
        check_number(cases[i], hf__sequencer_parse(cases[i], &s, &err), HF_INVALID);
        check_contains(cases[i], err.text, "is not a sequencer");
        check_number("what was refused leaves the result alone", (int64_t)s.generation, 77);
    }
    struct hf__sequencer s;
    assert_int_equal(hf__sequencer_parse(NULL, &s, NULL), HF_INVALID);
}

static void what_no_grant_can_be_is_not_written(void **state)
{
    struct hf__sequencer good = make(HF_SHARED, true, 1, "h", "n"), s;
    char text[HF_SEQUENCER_MAX];

    (void)state;
    assert_int_equal(hf__sequencer_format(&good, text, sizeof text), 0);
    s = good, s.mode = HF_EXCLUSIVE;
    assert_int_equal(hf__sequencer_format(&s, text, sizeof text), HF_INVALID);
    s = good, s.mode = (hf_mode)2;
    assert_int_equal(hf__sequencer_format(&s, text, sizeof text), HF_INVALID);
    s = good, s.generation = 0;
    assert_int_equal(hf__sequencer_format(&s, text, sizeof text), HF_INVALID);
    s = good, s.name_len = 0;
    assert_int_equal(hf__sequencer_format(&s, text, sizeof text), HF_INVALID);
    s = good, s.name_len = HF_NAME_MAX + 1;
    assert_int_equal(hf__sequencer_format(&s, text, sizeof text), HF_INVALID);
    s = good, s.hint[0] = ':';
    assert_int_equal(hf__sequencer_format(&s, text, sizeof text), HF_INVALID);
    s = good, s.hint[0] = ' ';
    assert_int_equal(hf__sequencer_format(&s, text, sizeof text), HF_INVALID);
    memset(s.hint, 'h', sizeof s.hint); /* without an end */
    assert_int_equal(hf__sequencer_format(&s, text, sizeof text), HF_INVALID);
}

static void the_longest_fits_and_one_byte_less_does_not(void **state)
{
    struct hf__sequencer s = {.mode = HF_EXCLUSIVE, .generation = UINT64_MAX}, back;
    char text[HF_SEQUENCER_MAX];

    (void)state;
    memset(s.hint, 'h', sizeof s.hint - 1);
    s.name_len = HF_NAME_MAX;
    memset(s.name, 0, sizeof s.name);
    assert_int_equal(hf__sequencer_format(&s, text, sizeof text), 0);
    assert_int_equal(hf__sequencer_parse(text, &back, NULL), 0);
    check_same("longest", &s, &back);

    size_t need = strlen(text) + 1;
    for (size_t size = 0; size < need; size++) {
        char shorter[HF_SEQUENCER_MAX];
        memset(shorter, '#', sizeof shorter);
        assert_int_equal(hf__sequencer_format(&s, shorter, size), HF_INVALID);
        assert_int_equal(shorter[size], '#');
    }
    assert_int_equal(hf__sequencer_format(&s, text, need), 0);

    memcpy(text + need - 1, "a", sizeof "a"); /* a name of 513 bytes */
    assert_int_equal(hf__sequencer_parse(text, &back, NULL), HF_INVALID);
}

static struct hf__sequencer make_random(struct random *r)
{
    static const char plain[] = "ABZabz019._~/@+=,-";
    struct hf__sequencer s = {.mode = random_below(r, 2) ? HF_SHARED : HF_EXCLUSIVE};
    size_t hint_len = random_below(r, sizeof s.hint);

    s.limited = s.mode == HF_SHARED && random_below(r, 2);
    s.generation = (random_next(r) >> random_below(r, 64)) | 1;
    for (size_t i = 0; i < hint_len; i++)
        s.hint[i] = plain[random_below(r, sizeof plain - 1)];
    s.name_len = 1 + random_below(r, random_below(r, 2) ? 8 : HF_NAME_MAX);
    random_fill(r, s.name, s.name_len);
    return s;
}

static void any_grant_comes_back_as_it_was(void **state)
{
    struct random r = {5};

    (void)state;
    for (int i = 0; i < 20000; i++) {
        struct hf__sequencer s = make_random(&r), back;
        char text[HF_SEQUENCER_MAX];
        assert_int_equal(hf__sequencer_format(&s, text, sizeof text), 0);
        assert_int_equal(strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                      "0123456789._~/@+=,:%-"),
                         strlen(text));
        assert_int_equal(hf__sequencer_parse(text, &back, NULL), 0);
        check_same(text, &s, &back);
    }
}

/* A sequencer with one byte changed is refused or is that of another grant. */
static void no_two_texts_are_the_same_grant(void **state)
{
    struct random r = {6};
    size_t taken = 0;

    (void)state;
    for (int i = 0; i < 50000; i++) {
        struct hf__sequencer s = make_random(&r);
        char text[HF_SEQUENCER_MAX], changed[HF_SEQUENCER_MAX], again[HF_SEQUENCER_MAX];
        assert_int_equal(hf__sequencer_format(&s, text, sizeof text), 0);
        memcpy(changed, text, sizeof changed);
        changed[random_below(&r, strlen(text))] = (char)(1 + random_below(&r, 255));
        if (hf__sequencer_parse(changed, &s, NULL) != 0)
            continue;
        taken++;
        assert_int_equal(hf__sequencer_format(&s, again, sizeof again), 0);
        check_text("canonical", again, changed);
    }
    assert_true(taken > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(c10_each_grant_has_its_text),
        cmocka_unit_test(every_other_spelling_is_refused),
        cmocka_unit_test(what_no_grant_can_be_is_not_written),
        cmocka_unit_test(the_longest_fits_and_one_byte_less_does_not),
        cmocka_unit_test(any_grant_comes_back_as_it_was),
        cmocka_unit_test(no_two_texts_are_the_same_grant),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
