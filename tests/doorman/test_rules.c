/* The doorman's rules, one test each: who fits, whose it is and for how long (C1 to C4, C9, C12).
 * What they do together is for the walk to find out. */
#include "lib/check.h"
#include "record.h"

/* C1, C9: who fits --------------------------------------------------------- */
static void c1_a_writer_is_alone(void **state)
{
    struct place p;

    (void)state;
    begin(&p);
    is("first", attempt(&p, writer(1)).verdict, HF__VERDICT_GRANTED);
    is("second", attempt(&p, writer(2)).verdict, HF__VERDICT_QUEUED);
    is("reader", attempt(&p, reader(3, 0)).verdict, HF__VERDICT_QUEUED);
}

static void c1_the_smallest_limit_counts(void **state)
{
    struct place p;

    (void)state;
    begin(&p);
    is("limit 3", attempt(&p, reader(1, 3)).verdict, HF__VERDICT_GRANTED);
    is("no limit", attempt(&p, reader(2, 0)).verdict, HF__VERDICT_GRANTED);
    is("limit 2 beside two", attempt(&p, reader(3, 2)).verdict, HF__VERDICT_QUEUED);
    is("withdraw", withdraw(&p, 3, 0).verdict, HF__VERDICT_DONE);
    is("third", attempt(&p, reader(4, 0)).verdict, HF__VERDICT_GRANTED);
    is("fourth beside a limit of 3", attempt(&p, reader(5, 0)).verdict, HF__VERDICT_QUEUED);
}

static void c1_a_writers_limit_is_ignored(void **state)
{
    struct place p;
    struct hf__bid bid = writer(1);

    (void)state;
    begin(&p);
    bid.limit = 5;
    is("writer", attempt(&p, bid).verdict, HF__VERDICT_GRANTED);
    is("kept", p.entries[0].limit, 0);
}

static void c9_a_waiting_writer_stops_later_readers(void **state)
{
    struct place p;

    (void)state;
    begin(&p);
    attempt(&p, reader(1, 0));
    is("reader joins reader", attempt(&p, reader(2, 0)).verdict, HF__VERDICT_GRANTED);
    is("writer", attempt(&p, writer(3)).verdict, HF__VERDICT_QUEUED);
    is("later reader", attempt(&p, reader(4, 0)).verdict, HF__VERDICT_QUEUED);
    release(&p, 1, 0);
    is("one reader left", where(&p, 3), HF__PLACE_WAITING);
    release(&p, 2, 0);
    is("the writer's turn", where(&p, 3), HF__PLACE_INSIDE);
    is("not yet", where(&p, 4), HF__PLACE_WAITING);
}

static void c9_readers_enter_together_after_a_writer(void **state)
{
    struct place p;

    (void)state;
    begin(&p);
    attempt(&p, writer(1));
    attempt(&p, reader(2, 0));
    attempt(&p, reader(3, 0));
    attempt(&p, writer(4));
    release(&p, 1, 0);
    is("let in", p.let_in, 2);
    is("second reader", where(&p, 3), HF__PLACE_INSIDE);
    is("writer behind them", where(&p, 4), HF__PLACE_WAITING);
}

/* C2, C3: whose it is, and how long ---------------------------------------- */
static void c2_only_its_ticket_releases(void **state)
{
    struct place p;

    (void)state;
    begin(&p);
    attempt(&p, writer(1));
    attempt(&p, writer(2));
    is("a stranger", release(&p, 9, 0).verdict, HF__VERDICT_STALE);
    is("a waiter", release(&p, 2, 0).verdict, HF__VERDICT_STALE);
    is("still inside", where(&p, 1), HF__PLACE_INSIDE);
    is("the holder", release(&p, 1, 0).verdict, HF__VERDICT_DONE);
    is("again", release(&p, 1, 0).verdict, HF__VERDICT_STALE);
}

static void c2_a_renewal_with_another_generation_is_lost(void **state)
{
    struct place p;

    (void)state;
    begin(&p);
    struct hf__answer a = attempt(&p, writer(1));
    pass(&p, 1000);
    is("another", renew(&p, 1, a.generation + 1).verdict, HF__VERDICT_GONE);
    is("left as it was", left_ms(&p, 1), 2000);
    is("its own", renew(&p, 1, a.generation).verdict, HF__VERDICT_GRANTED);
    is("restarted", left_ms(&p, 1), 3000);
}

static void c2_an_expired_holder_cannot_renew(void **state)
{
    struct place p;

    (void)state;
    begin(&p);
    struct hf__answer a = attempt(&p, writer(1));
    pass(&p, 3000);
    is("too late", renew(&p, 1, a.generation).verdict, HF__VERDICT_GONE);
    is("retired", where(&p, 1), HF__PLACE_RETIRED);
}

static void c3_a_repeated_attempt_restarts_the_lease(void **state)
{
    struct place p;

    (void)state;
    begin(&p);
    struct hf__answer first = attempt(&p, writer(1));
    pass(&p, 2000);
    struct hf__answer again = attempt(&p, writer(1));
    is("granted", again.verdict, HF__VERDICT_GRANTED);
    is("the same grant", again.generation, first.generation);
    is("claimed", again.claimed, true);
    is("lease", left_ms(&p, 1), 3000);
}

static void c3_own_and_provisional_leases(void **state)
{
    static const int64_t cases[][3] = {{HF__NEVER, 5000, 5000}, {100, 1000, 100},
                                       {1000, 1000, 1000},      {3000, 3000, 3000},
                                       {10000, 10000, 10000},   {60000, 10000, 10000}};

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        is("own", hf__own_lease_ms(cases[i][0]), cases[i][1]);
        is("provisional", hf__provisional_lease_ms(cases[i][0]), cases[i][2]);
    }
}

static void c3_what_never_expires_is_provisional_until_claimed(void **state)
{
    struct place p;

    (void)state;
    begin(&p);
    struct hf__answer a = attempt(&p, with_ttl(writer(1), HF__NEVER));
    is("not claimed", a.claimed, false);
    is("own lease", left_ms(&p, 1), 5000);
    pass(&p, 4000);
    is("a sign of life", renew(&p, 1, 0).claimed, false);
    is("restarted only", left_ms(&p, 1), 5000);
    is("the claim", renew(&p, 1, a.generation).lease_ms, HF__NEVER);
    is("never", left_ms(&p, 1), HF__NEVER);
    pass(&p, 1000000000);
    is("still there", attempt(&p, writer(2)).verdict, HF__VERDICT_QUEUED);
}

static void c3_a_clock_that_went_back_prolongs_nothing_beyond_the_lease(void **state)
{
    struct place p;

    (void)state;
    begin(&p);
    attempt(&p, writer(1));
    attempt(&p, with_ttl(writer(2), HF__NEVER));
    withdraw(&p, 3, 60000);
    pass(&p, -3600000);
    sweep(&p);
    is("holder", left_ms(&p, 1), 3000);
    is("waiter", left_ms(&p, 2), 5000);
    is("tombstone", left_ms(&p, 3), 60000);
    pass(&p, -1000);
    release(&p, 1, 0);
    pass(&p, -1000);
    sweep(&p);
    is("a provisional grant that will never expire", left_ms(&p, 2), 5000);
}

/* C4: generations ---------------------------------------------------------- */
static void c4_every_grant_raises_the_generation(void **state)
{
    struct place p;
    uint64_t last = 0;

    (void)state;
    begin(&p);
    attempt(&p, writer(1));
    for (unsigned i = 2; i < 10; i++)
        attempt(&p, reader(i, 0));
    is("first", p.record.generation, 1);
    release(&p, 1, 0);
    is("let in", p.let_in, 8);
    for (size_t i = 0; i < p.record.count; i++) {
        assert_true(p.entries[i].generation > last);
        last = p.entries[i].generation;
    }
    is("last", p.record.generation, last);
}

static void c4_wall_time_seeds_the_generation_and_never_lowers_it(void **state)
{
    struct place p;

    (void)state;
    begin(&p);
    p.at.stamp_us = 5000;
    is("seeded", attempt(&p, writer(1)).generation, 5000);
    release(&p, 1, 0);
    p.at.stamp_us = 100;
    is("the clock went back", attempt(&p, writer(2)).generation, 5001);
    release(&p, 2, 0);
    is("a busy answer gives none", p.record.generation, 5001);
}

/* C12 ---------------------------------------------------------------------- */
static void c12_a_hand_over_is_provisional_and_marked(void **state)
{
    struct place p;

    (void)state;
    begin(&p);
    attempt(&p, with_ttl(writer(1), 60000));
    struct hf__answer q = attempt(&p, with_ttl(writer(2), 60000));
    is("queued with the last generation", q.generation, 1);
    is("and the lease a hand-over gives", q.lease_ms, 10000);
    is("worth asking when the holder's lease ends", q.ask_again_ms, 60000);
    release(&p, 1, 0);
    is("one is told", p.let_in, 1);
    is("provisional", left_ms(&p, 2), 10000);
    struct hf__answer a = attempt(&p, with_ttl(writer(2), 60000));
    is("an attempt does not claim", a.claimed, false);
    is("nor a sign of life", renew(&p, 2, 0).claimed, false);
    is("a claim gives the ttl", renew(&p, 2, a.generation).lease_ms, 60000);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(c1_a_writer_is_alone),
        cmocka_unit_test(c1_the_smallest_limit_counts),
        cmocka_unit_test(c1_a_writers_limit_is_ignored),
        cmocka_unit_test(c9_a_waiting_writer_stops_later_readers),
        cmocka_unit_test(c9_readers_enter_together_after_a_writer),
        cmocka_unit_test(c2_only_its_ticket_releases),
        cmocka_unit_test(c2_a_renewal_with_another_generation_is_lost),
        cmocka_unit_test(c2_an_expired_holder_cannot_renew),
        cmocka_unit_test(c3_a_repeated_attempt_restarts_the_lease),
        cmocka_unit_test(c3_own_and_provisional_leases),
        cmocka_unit_test(c3_what_never_expires_is_provisional_until_claimed),
        cmocka_unit_test(c3_a_clock_that_went_back_prolongs_nothing_beyond_the_lease),
        cmocka_unit_test(c4_every_grant_raises_the_generation),
        cmocka_unit_test(c4_wall_time_seeds_the_generation_and_never_lowers_it),
        cmocka_unit_test(c12_a_hand_over_is_provisional_and_marked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
