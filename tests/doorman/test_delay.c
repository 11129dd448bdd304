/* The lock-delay (C8), and locks that are broken by hand. */
#include "lib/check.h"
#include "record.h"

static void c8_a_vanished_holder_keeps_the_lock_closed(void **state)
{
    struct place p;

    (void)state;
    begin(&p);
    attempt(&p, with_delay(writer(1), 2000));
    pass(&p, 4999);
    is("closed", attempt(&p, writer(2)).verdict, HF__VERDICT_QUEUED);
    is("its ticket", attempt(&p, writer(1)).verdict, HF__VERDICT_WITHDRAWN);
    is("its release", release(&p, 1, 60000).verdict, HF__VERDICT_STALE);
    is("its renewal", renew(&p, 1, 1).verdict, HF__VERDICT_GONE);
    is("none of which opened it", where(&p, 1), HF__PLACE_LINGERING);
    pass(&p, 1);
    is("open", attempt(&p, writer(2)).verdict, HF__VERDICT_GRANTED);
}

static void c8_a_bid_that_is_given_up_ends_its_delay(void **state)
{
    struct place p;

    (void)state;
    begin(&p);
    attempt(&p, with_delay(writer(1), 60000));
    attempt(&p, writer(2));
    pass(&p, 3000);
    is("closed", attempt(&p, writer(2)).verdict, HF__VERDICT_QUEUED);
    is("withdrawn", withdraw(&p, 1, 60000).verdict, HF__VERDICT_DONE);
    is("the next is inside", where(&p, 2), HF__PLACE_INSIDE);
    is("its ticket", attempt(&p, writer(1)).verdict, HF__VERDICT_WITHDRAWN);
    is("again", withdraw(&p, 1, 60000).verdict, HF__VERDICT_STALE);
}

static void c8_a_broken_bid_that_is_given_up_ends_its_delay(void **state)
{
    struct place p;

    (void)state;
    begin(&p);
    attempt(&p, with_delay(writer(1), 60000));
    attempt(&p, writer(2));
    breaks(&p, 1, false);
    is("withdrawn", withdraw(&p, 1, 0).verdict, HF__VERDICT_DONE);
    is("forgotten", where(&p, 1), HF__PLACE_GONE);
    is("the next is inside", where(&p, 2), HF__PLACE_INSIDE);
}

static void c8_no_delay_after_a_clean_release(void **state)
{
    struct place p;

    (void)state;
    begin(&p);
    attempt(&p, with_delay(writer(1), 2000));
    release(&p, 1, 0);
    is("open", attempt(&p, writer(2)).verdict, HF__VERDICT_GRANTED);
}

static void c8_no_delay_after_an_unclaimed_grant(void **state)
{
    struct place p;

    (void)state;
    begin(&p);
    attempt(&p, writer(1));
    attempt(&p, with_delay(writer(2), 60000));
    release(&p, 1, 0);
    pass(&p, 3000);
    is("open", attempt(&p, writer(3)).verdict, HF__VERDICT_GRANTED);
}

static void c8_a_claimed_hand_over_has_its_delay(void **state)
{
    struct place p;

    (void)state;
    begin(&p);
    attempt(&p, writer(1));
    attempt(&p, with_delay(writer(2), 60000));
    release(&p, 1, 0);
    is("claim", renew(&p, 2, 2).claimed, true);
    pass(&p, 3000);
    is("closed", attempt(&p, writer(3)).verdict, HF__VERDICT_QUEUED);
    is("for the delay", left_ms(&p, 2), 60000);
}

static void c8_a_lingering_reader_keeps_its_mode(void **state)
{
    struct place p;

    (void)state;
    begin(&p);
    attempt(&p, with_delay(reader(1, 2), 5000));
    pass(&p, 3000);
    is("a reader", attempt(&p, reader(2, 0)).verdict, HF__VERDICT_GRANTED);
    is("its limit counts", attempt(&p, reader(3, 0)).verdict, HF__VERDICT_QUEUED);
}

/* Break -------------------------------------------------------------------- */
static void c3_break_leaves_a_leased_holder_its_lease(void **state)
{
    struct place p;

    (void)state;
    begin(&p);
    attempt(&p, with_delay(writer(1), 2000));
    pass(&p, 1000);
    is("break", breaks(&p, 1, false).verdict, HF__VERDICT_DONE);
    is("lease and delay", left_ms(&p, 1), 4000);
    is("again changes nothing", breaks(&p, 1, false).verdict, HF__VERDICT_DONE);
    is("lease and delay", left_ms(&p, 1), 4000);
    is("now removes it", breaks(&p, 1, true).verdict, HF__VERDICT_DONE);
    is("retired", where(&p, 1), HF__PLACE_RETIRED);
    is("no such ticket", breaks(&p, 1, true).verdict, HF__VERDICT_STALE);
}

static void c3_break_now_leaves_only_the_delay(void **state)
{
    struct place p;

    (void)state;
    begin(&p);
    attempt(&p, with_delay(writer(1), 2000));
    breaks(&p, 1, true);
    is("delay", left_ms(&p, 1), 2000);
    begin(&p);
    attempt(&p, writer(1));
    attempt(&p, writer(2));
    breaks(&p, 1, true);
    is("handed over", where(&p, 2), HF__PLACE_INSIDE);
    is("its ticket", attempt(&p, writer(1)).verdict, HF__VERDICT_WITHDRAWN);
}

static void c3_break_of_what_never_expires_opens_after_the_delay(void **state)
{
    struct place p;

    (void)state;
    begin(&p);
    renew(&p, 1, attempt(&p, with_delay(with_ttl(writer(1), HF__NEVER), 2000)).generation);
    breaks(&p, 1, false);
    is("delay", left_ms(&p, 1), 2000);
    begin(&p);
    attempt(&p, with_delay(with_ttl(writer(1), HF__NEVER), 2000));
    breaks(&p, 1, false);
    is("unclaimed: its provisional lease, no delay", left_ms(&p, 1), 5000);
}

static void c5_break_of_a_waiter_withdraws_it(void **state)
{
    struct place p;

    (void)state;
    begin(&p);
    attempt(&p, writer(1));
    attempt(&p, writer(2));
    is("break", breaks(&p, 2, false).verdict, HF__VERDICT_DONE);
    is("its attempt", attempt(&p, writer(2)).verdict, HF__VERDICT_WITHDRAWN);
}

static void c8_breaking_one_reader_leaves_the_longer_delay_of_another(void **state)
{
    struct place p;

    (void)state;
    begin(&p);
    attempt(&p, with_delay(reader(1, 0), 9000));
    attempt(&p, with_delay(reader(2, 0), 1000));
    breaks(&p, 1, true);
    breaks(&p, 2, true);
    is("longer", left_ms(&p, 1), 9000);
    pass(&p, 8999);
    is("closed", attempt(&p, writer(3)).verdict, HF__VERDICT_QUEUED);
    pass(&p, 1);
    is("open", attempt(&p, writer(3)).verdict, HF__VERDICT_GRANTED);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(c8_a_vanished_holder_keeps_the_lock_closed),
        cmocka_unit_test(c8_a_bid_that_is_given_up_ends_its_delay),
        cmocka_unit_test(c8_a_broken_bid_that_is_given_up_ends_its_delay),
        cmocka_unit_test(c8_no_delay_after_a_clean_release),
        cmocka_unit_test(c8_no_delay_after_an_unclaimed_grant),
        cmocka_unit_test(c8_a_claimed_hand_over_has_its_delay),
        cmocka_unit_test(c8_a_lingering_reader_keeps_its_mode),
        cmocka_unit_test(c3_break_leaves_a_leased_holder_its_lease),
        cmocka_unit_test(c3_break_now_leaves_only_the_delay),
        cmocka_unit_test(c3_break_of_what_never_expires_opens_after_the_delay),
        cmocka_unit_test(c5_break_of_a_waiter_withdraws_it),
        cmocka_unit_test(c8_breaking_one_reader_leaves_the_longer_delay_of_another),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
