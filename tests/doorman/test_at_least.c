/* Locks that stay closed for a time after they were taken (C14). */
#include "lib/check.h"
#include "record.h"

static void c14_the_door_stays_closed_from_the_grant_on(void **state)
{
    struct place p;

    (void)state;
    begin(&p);
    attempt(&p, writer(1));
    pass(&p, 1000);
    is("released", release_after(&p, 1, 5000).verdict, HF__VERDICT_DONE);
    is("until", left_ms(&p, 1), 4000);
    is("closed", attempt(&p, no_wait(writer(2))).verdict, HF__VERDICT_BUSY);
    is("again", release_after(&p, 1, 5000).verdict, HF__VERDICT_STALE);
    is("its ticket", attempt(&p, writer(1)).verdict, HF__VERDICT_WITHDRAWN);
    pass(&p, 3999);
    is("still", attempt(&p, no_wait(writer(2))).verdict, HF__VERDICT_BUSY);
    pass(&p, 1);
    is("open", attempt(&p, no_wait(writer(2))).verdict, HF__VERDICT_GRANTED);
    is("its ticket is remembered", where(&p, 1), HF__PLACE_RETIRED);
}

static void c14_a_time_that_is_over_is_a_plain_release(void **state)
{
    struct place p;

    (void)state;
    begin(&p);
    attempt(&p, writer(1));
    attempt(&p, writer(2));
    pass(&p, 1000);
    is("released", release_after(&p, 1, 1000).verdict, HF__VERDICT_DONE);
    is("gone", where(&p, 1), HF__PLACE_GONE);
    is("the next", where(&p, 2), HF__PLACE_INSIDE);
}

static void c14_only_a_break_now_opens_it(void **state)
{
    struct place p;

    (void)state;
    begin(&p);
    attempt(&p, writer(1));
    release_after(&p, 1, 60000);
    is("break", breaks(&p, 1, false).verdict, HF__VERDICT_DONE);
    is("closed", attempt(&p, no_wait(writer(2))).verdict, HF__VERDICT_BUSY);
    is("break now", breaks(&p, 1, true).verdict, HF__VERDICT_DONE);
    is("open", attempt(&p, writer(2)).verdict, HF__VERDICT_GRANTED);
}

static void c14_nobody_but_a_holder_closes_it(void **state)
{
    struct place p;

    (void)state;
    begin(&p);
    attempt(&p, writer(1));
    attempt(&p, writer(2));
    is("a stranger", release_after(&p, 9, 60000).verdict, HF__VERDICT_STALE);
    is("a waiter", release_after(&p, 2, 60000).verdict, HF__VERDICT_STALE);
    is("which leaves", where(&p, 2), HF__PLACE_GONE);
    release(&p, 1, 0);
    is("open", attempt(&p, writer(3)).verdict, HF__VERDICT_GRANTED);
}

static void c14_a_clock_that_goes_back_never_opens_it_earlier(void **state)
{
    struct place p;

    (void)state;
    begin(&p);
    attempt(&p, writer(1));
    pass(&p, 1000);
    release_after(&p, 1, 5000);
    pass(&p, -60000);
    sweep(&p);
    is("cut to its own length", left_ms(&p, 1), 5000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(c14_the_door_stays_closed_from_the_grant_on),
        cmocka_unit_test(c14_a_time_that_is_over_is_a_plain_release),
        cmocka_unit_test(c14_only_a_break_now_opens_it),
        cmocka_unit_test(c14_nobody_but_a_holder_closes_it),
        cmocka_unit_test(c14_a_clock_that_goes_back_never_opens_it_earlier),
    };

    return cmocka_run_group_tests_name("doorman_at_least", tests, NULL, NULL);
}
