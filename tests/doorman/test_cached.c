/* Grants that stay with their client (C20): the numbers that belong to them, and who calls them. */
#include "lib/check.h"
#include "record.h"

#define RESERVED HF__TOKENS_RESERVED

static void c20_the_next_token_is_above_those_used(void **state)
{
    struct place p;

    (void)state;
    begin(&p);
    uint64_t token = attempt(&p, cached(writer(1))).generation;
    is("others see no more than its own", attempt(&p, writer(2)).generation, token);
    is("released", release_used(&p, 1, token + 5).verdict, HF__VERDICT_DONE);
    is("the next", attempt(&p, writer(2)).generation, token + 6);
}

static void c20_what_was_not_used_goes_back(void **state)
{
    struct place p;

    (void)state;
    begin(&p);
    uint64_t token = attempt(&p, cached(writer(1))).generation;
    release_used(&p, 1, 0);
    is("the next", attempt(&p, writer(2)).generation, token + 1);
}

static void c20_a_vanished_holder_takes_all_of_them_along(void **state)
{
    struct place p;

    (void)state;
    begin(&p);
    uint64_t token = attempt(&p, cached(writer(1))).generation;
    attempt(&p, writer(2));
    pass(&p, 3000);
    is("the next", attempt(&p, writer(2)).generation, token + RESERVED + 1);
}

static void c20_so_does_a_broken_one(void **state)
{
    struct place p;

    (void)state;
    begin(&p);
    uint64_t token = attempt(&p, cached(writer(1))).generation;
    breaks(&p, 1, true);
    is("the next", attempt(&p, writer(2)).generation, token + RESERVED + 1);
    release(&p, 2, 0);
    is("once", attempt(&p, writer(3)).generation, token + RESERVED + 2);
}

static void c20_a_number_that_it_cannot_have_used_changes_nothing(void **state)
{
    struct place p;

    (void)state;
    begin(&p);
    uint64_t token = attempt(&p, cached(writer(1))).generation;
    release_used(&p, 1, token + RESERVED + 1);
    is("above", attempt(&p, cached(writer(2))).generation, token + 1);
    release_used(&p, 2, 1);
    is("below", attempt(&p, writer(3)).generation, token + 2);
    release_used(&p, 3, token + 9);
    is("of a plain grant", attempt(&p, writer(4)).generation, token + 3);
    release_used(&p, 1, token + 20);
    is("of one that is over", attempt(&p, writer(4)).generation, token + 3);
}

static void c20_the_last_numbers_may_be_used(void **state)
{
    struct place p;

    (void)state;
    begin(&p);
    uint64_t token = attempt(&p, cached(writer(1))).generation;
    release_used(&p, 1, token + RESERVED);
    is("the next", attempt(&p, writer(2)).generation, token + RESERVED + 1);
}

static void c20_who_does_not_wait_calls_it_and_may_ask_again(void **state)
{
    struct place p;

    (void)state;
    begin(&p);
    uint64_t token = attempt(&p, cached(writer(1))).generation;
    struct hf__answer a = attempt(&p, no_wait(writer(2)));
    is("refused", a.verdict, HF__VERDICT_BUSY);
    is("worth asking again", a.wanted, true);
    is("called", p.called, 1);
    is("again", attempt(&p, no_wait(writer(2))).wanted, true);
    is("once", p.called, 0);
    is("nobody waits", renew(&p, 1, token).wanted, false);
    attempt(&p, no_wait(writer(3)));
    is("called again", p.called, 1);
}

static void c20_who_does_not_wait_calls_no_other_holder(void **state)
{
    struct place p;

    (void)state;
    begin(&p);
    attempt(&p, telling(writer(1)));
    is("not worth it", attempt(&p, no_wait(writer(2))).wanted, false);
    is("called", p.called, 0);
}

static void c20_a_lock_that_only_lingers_is_not_worth_it(void **state)
{
    struct place p;

    (void)state;
    begin(&p);
    attempt(&p, with_delay(cached(writer(1)), 2000));
    breaks(&p, 1, true);
    is("not worth it", attempt(&p, no_wait(writer(2))).wanted, false);
    is("called", p.called, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(c20_the_next_token_is_above_those_used),
        cmocka_unit_test(c20_what_was_not_used_goes_back),
        cmocka_unit_test(c20_a_vanished_holder_takes_all_of_them_along),
        cmocka_unit_test(c20_so_does_a_broken_one),
        cmocka_unit_test(c20_a_number_that_it_cannot_have_used_changes_nothing),
        cmocka_unit_test(c20_the_last_numbers_may_be_used),
        cmocka_unit_test(c20_who_does_not_wait_calls_it_and_may_ask_again),
        cmocka_unit_test(c20_who_does_not_wait_calls_no_other_holder),
        cmocka_unit_test(c20_a_lock_that_only_lingers_is_not_worth_it),
    };

    return cmocka_run_group_tests_name("doorman_cached", tests, NULL, NULL);
}
