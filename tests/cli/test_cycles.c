/* Which waits make a circle, on views that the test writes down: a letter for each party.
 *
 * A line is a lock, "name: holders | waiters"; a capital letter bids alone, a small one shares; the
 * ticket is that of lock and party, so the same line in both views is the same wait. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cycles.h"
#include "entry.h"

#define ENTRIES_MAX 64

struct hf_view {
    hf_entry entries[ENTRIES_MAX];
    size_t count;
};

size_t hf_view_count(const hf_view *view)
{
    return view->count;
}

const hf_entry *hf_view_entry(const hf_view *view, size_t i)
{
    return i < view->count ? &view->entries[i] : NULL;
}

struct cli_span cli_span_at(const hf_view *view, size_t first)
{
    struct cli_span span = {.view = view, .first = first};

    while (first + span.count < view->count &&
           view->entries[first + span.count].name == view->entries[first].name)
        span.count++;
    return span;
}

static void add(hf_view *view, const char *line, hf_place place, char letter)
{
    static const char hosts[] = "a\0b\0c\0d\0e\0f\0g\0h";
    int party = (letter | 0x20) - 'a';
    hf_entry *e = &view->entries[view->count++];

    assert_in_range(party, 0, 7);
    *e = (hf_entry){.name = line,
                    .name_len = 1,
                    .place = place,
                    .mode = letter >= 'a' ? HF_SHARED : HF_EXCLUSIVE,
                    .host = hosts + 2 * (party / 2), /* two processes a machine */
                    .pid = 100 + party % 2};
    snprintf(e->ticket, sizeof e->ticket, "%.1s%c", line, letter);
}

static hf_view view_of(const char *const *lines)
{
    hf_view view = {0};

    for (; *lines != NULL; lines++) {
        hf_place place = HF_PLACE_INSIDE;
        for (const char *at = *lines + 2; *at != '\0'; at++) {
            if (*at == '|')
                place = HF_PLACE_WAITING;
            else if (*at == '-')
                place = HF_PLACE_LINGERING;
            else if (*at != ' ')
                add(&view, *lines, place, *at);
        }
    }
    return view;
}

static char found[400];

/* "party:holds>waits" for each step, in the order in which they are told. */
static void note(const struct cli_wait *steps, size_t count, void *ctx)
{
    (void)ctx;
    for (size_t i = 0; i < count; i++) {
        const hf_entry *holds = steps[i].holds, *waits = steps[i].waits;
        assert_string_equal(holds->host, waits->host);
        assert_int_equal(holds->pid, waits->pid);
        assert_string_equal(steps[i].waits->name, steps[(i + 1) % count].holds->name);
        size_t len = strlen(found);
        snprintf(found + len, sizeof found - len, "%s%c:%c>%c", i > 0 ? " " : "", waits->ticket[1],
                 holds->name[0], waits->name[0]);
    }
    size_t len = strlen(found);
    snprintf(found + len, sizeof found - len, ";");
}

static const char *cycles_in(const char *const *first, const char *const *again)
{
    hf_view a = view_of(first), b = view_of(again);

    found[0] = '\0';
    assert_true(cli_find_cycles(&a, &b, note, NULL));
    return found;
}

#define LINES(...)  ((const char *const[]){__VA_ARGS__, NULL})
#define CYCLES(...) cycles_in(LINES(__VA_ARGS__), LINES(__VA_ARGS__))

static void two_that_wait_for_each_other(void **state)
{
    (void)state;
    assert_string_equal(CYCLES("x A | B", "y B | A"), "A:x>y B:y>x;");
}

static void three_in_a_circle_and_who_only_waits_for_it(void **state)
{
    (void)state;
    assert_string_equal(CYCLES("v D | E", "x A | C D", "y B | A", "z C | B"), "A:x>y B:y>z C:z>x;");
}

static void waits_that_end_somewhere_are_no_circle(void **state)
{
    (void)state;
    assert_string_equal(CYCLES("x A | B C", "y B | D", "z D | E"), "");
    assert_string_equal(CYCLES("x A", "y | A"), "");
}

/* It may be another of its threads that holds what this one waits for. */
static void one_process_is_no_circle(void **state)
{
    (void)state;
    assert_string_equal(CYCLES("x A | A", "y A | A"), "");
}

static void who_has_gone_waits_for_nobody(void **state)
{
    (void)state;
    assert_string_equal(CYCLES("x - A | B", "y B | A"), "");
}

/* A reader that comes after a writer waits for the readers inside, as that writer does. */
static void a_reader_behind_a_writer_waits_for_readers(void **state)
{
    (void)state;
    assert_string_equal(CYCLES("x a | C b", "y B | A"), "b:y>x A:x>y;");
}

static void readers_keep_no_reader_out(void **state)
{
    (void)state;
    assert_string_equal(CYCLES("x a | b", "y B | A"), "");
}

static void several_circles_are_told_apart(void **state)
{
    (void)state;
    assert_string_equal(CYCLES("v C | D", "w D | C", "x A | B", "y B | A"),
                        "A:x>y B:y>x;C:v>w D:w>v;");
}

/* A had x and waited for y, then B had y and waited for x: never both at once. */
static void a_wait_that_has_ended_in_between_does_not_count(void **state)
{
    (void)state;
    assert_string_equal(cycles_in(LINES("x A | B", "y B | A"), LINES("x A | B", "y A")), "");
    assert_string_equal(cycles_in(LINES("x A | B", "y B | A"), LINES("x A", "y B | A")), "");
    assert_string_equal(cycles_in(LINES("x A | B", "y B | A"), LINES("y B | A")), "");
    assert_string_equal(cycles_in(LINES("x a | C b", "y B | A"), LINES("x a | b", "y B | A")), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_that_wait_for_each_other),
        cmocka_unit_test(three_in_a_circle_and_who_only_waits_for_it),
        cmocka_unit_test(waits_that_end_somewhere_are_no_circle),
        cmocka_unit_test(one_process_is_no_circle),
        cmocka_unit_test(who_has_gone_waits_for_nobody),
        cmocka_unit_test(a_reader_behind_a_writer_waits_for_readers),
        cmocka_unit_test(readers_keep_no_reader_out),
        cmocka_unit_test(several_circles_are_told_apart),
        cmocka_unit_test(a_wait_that_has_ended_in_between_does_not_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
