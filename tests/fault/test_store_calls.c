/* Every call to the store goes wrong in turn: it fails, its answer is lost, it hangs, it is late.
 * The tour through the library must end with clean codes and leave nothing in the store. */
#include <stdlib.h>

#include "lib/check.h"
#include "lib/scratch.h"
#include "scenario.h"

#define CALLS_MAX 12 /* of one kind in a tour, and a few more */

static const int allowed[] = {HF_UNAVAILABLE, HF_UNKNOWN, 0};

/* Runs the tour over a fresh store, in `dir` or in memory if that is NULL, with these rules. */
static int tour(const char *dir, const char *rules, bool may_leave)
{
    static unsigned runs;
    char url[250], clean_url[100];
    struct scenario scenario = {
        .url = url, .clean_url = clean_url, .allowed = allowed, .may_leave = may_leave};

    if (dir != NULL)
        snprintf(clean_url, sizeof clean_url, "sqlite:%s/%u.db", dir, runs++);
    else
        snprintf(clean_url, sizeof clean_url, "memory://calls-%u", runs++);
    snprintf(url, sizeof url, "fault+%s?op_timeout=%s&%s", clean_url,
             dir != NULL ? "500ms" : "100ms", rules);
    return scenario_run(&scenario);
}

static void fail_each(const char *dir, const char *format, const char *op)
{
    for (int n = 1; n <= CALLS_MAX; n++) {
        char rules[120];
        snprintf(rules, sizeof rules, format, op, n);
        int code = tour(dir, rules, false);
        if (code != 0)
            print_message("%s: %s\n", rules, hf_code_name(code));
    }
}

static const char *const ops[] = {"attempt", "release", "renew", "inspect"};

static void c6_each_call_that_fails_leaves_nothing(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(ops); i++)
        fail_each(NULL, "fail=%s:%d", ops[i]);
}

static void c6_each_answer_that_is_lost_leaves_nothing(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(ops); i++)
        fail_each(NULL, "lose=%s:%d", ops[i]);
}

static void c6_each_call_that_hangs_leaves_nothing(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(ops); i++)
        fail_each(NULL, "hang=%s:%d", ops[i]);
}

static void c5_each_call_that_comes_late_leaves_nothing(void **state)
{
    (void)state;
    fail_each(NULL, "late=%s:%d:30ms", "attempt");
    fail_each(NULL, "late=%s:%d:30ms", "release");
}

/* An attempt whose answer was lost is withdrawn if it was refused after all; that goes wrong
 * too. */
static void c5_a_withdrawal_that_goes_wrong_leaves_nothing(void **state)
{
    (void)state;
    fail_each(NULL, "lose=%s:%d&fail=withdraw:1", "attempt");
    fail_each(NULL, "lose=%s:%d,withdraw:1", "attempt");
    fail_each(NULL, "late=%s:%d:30ms,withdraw:1:10ms", "attempt");
}

static void c6_sqlite_leaves_nothing_either(void **state)
{
    for (size_t i = 0; i < COUNT(ops); i++) {
        fail_each(*state, "fail=%s:%d", ops[i]);
        fail_each(*state, "lose=%s:%d", ops[i]);
    }
    fail_each(*state, "late=%s:%d:30ms", "attempt");
    fail_each(*state, "late=%s:%d:30ms", "release");
    fail_each(*state, "lose=%s:%d,withdraw:1", "attempt");
}

static void the_first_and_all_that_follow_may_fail(void **state)
{
    static const struct {
        const char *rules;
        int code;
    } cases[] = {
        {"fail=attempt:*", HF_UNAVAILABLE}, {"fail=release:*", HF_UNKNOWN},
        {"fail=inspect:*", HF_UNAVAILABLE}, {"fail=renew:*", HF_UNAVAILABLE},
        {"lose=inspect:*", HF_UNAVAILABLE}, {"lose=renew:*", HF_UNKNOWN},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++)
        check_number(cases[i].rules, tour(NULL, cases[i].rules, true), cases[i].code);
}

static void the_tour_is_whole_without_a_fault(void **state)
{
    (void)state;
    check_number("no fault", tour(NULL, "fail=attempt:1000", false), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_tour_is_whole_without_a_fault),
        cmocka_unit_test(the_first_and_all_that_follow_may_fail),
        cmocka_unit_test(c6_each_call_that_fails_leaves_nothing),
        cmocka_unit_test(c6_each_answer_that_is_lost_leaves_nothing),
        cmocka_unit_test(c6_each_call_that_hangs_leaves_nothing),
        cmocka_unit_test(c5_each_call_that_comes_late_leaves_nothing),
        cmocka_unit_test(c5_a_withdrawal_that_goes_wrong_leaves_nothing),
        cmocka_unit_test(c6_sqlite_leaves_nothing_either),
    };

    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
