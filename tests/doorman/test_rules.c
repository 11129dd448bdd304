/* The doorman's rules, one test each. What they do together is for the walk to find out. */
#include "lib/check.h"
#include "record.h"

#include <stdlib.h>

#define is(what, got, wanted) check_number(what, (int64_t)(got), (int64_t)(wanted))

static struct hf__bid with_delay(struct hf__bid bid, int64_t delay_ms)
{
    bid.lock_delay_ms = delay_ms;
    return bid;
}

static struct hf__bid with_ttl(struct hf__bid bid, int64_t ttl_ms)
{
    bid.ttl_ms = ttl_ms;
    return bid;
}

static struct hf__bid no_wait(struct hf__bid bid)
{
    bid.queue = false;
    return bid;
}

/* C1, C9: who fits. -------------------------------------------------------------------------------
 */
static void c1_a_writer_is_alone(void **state)
{
    struct place p;

    (void)state;
    begin(&p);
    is("first", attempt(&p, writer(1)).verdict, HF__GRANTED);
    is("second", attempt(&p, writer(2)).verdict, HF__QUEUED);
    is("reader", attempt(&p, reader(3, 0)).verdict, HF__QUEUED);
}

static void c1_the_smallest_limit_counts(void **state)
{
    struct place p;

    (void)state;
    begin(&p);
    is("limit 3", attempt(&p, reader(1, 3)).verdict, HF__GRANTED);
    is("no limit", attempt(&p, reader(2, 0)).verdict, HF__GRANTED);
    is("limit 2 beside two", attempt(&p, reader(3, 2)).verdict, HF__QUEUED);
    is("withdraw", withdraw(&p, 3, 0).verdict, HF__DONE);
    is("third", attempt(&p, reader(4, 0)).verdict, HF__GRANTED);
    is("fourth beside a limit of 3", attempt(&p, reader(5, 0)).verdict, HF__QUEUED);
}

static void c1_a_writers_limit_is_ignored(void **state)
{
    struct place p;
    struct hf__bid bid = writer(1);

    (void)state;
    begin(&p);
    bid.limit = 5;
    is("writer", attempt(&p, bid).verdict, HF__GRANTED);
    is("kept", p.entries[0].limit, 0);
}

static void c9_a_waiting_writer_stops_later_readers(void **state)
{
    struct place p;

    (void)state;
    begin(&p);
    attempt(&p, reader(1, 0));
    is("reader joins reader", attempt(&p, reader(2, 0)).verdict, HF__GRANTED);
    is("writer", attempt(&p, writer(3)).verdict, HF__QUEUED);
    is("later reader", attempt(&p, reader(4, 0)).verdict, HF__QUEUED);
    release(&p, 1, 0);
    is("one reader left", where(&p, 3), HF__WAITING);
    release(&p, 2, 0);
    is("the writer's turn", where(&p, 3), HF__INSIDE);
    is("not yet", where(&p, 4), HF__WAITING);
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
    is("second reader", where(&p, 3), HF__INSIDE);
    is("writer behind them", where(&p, 4), HF__WAITING);
}

/* C2, C3: whose it is, and how long. --------------------------------------------------------------
 */
static void c2_only_its_ticket_releases(void **state)
{
    struct place p;

    (void)state;
    begin(&p);
    attempt(&p, writer(1));
    attempt(&p, writer(2));
    is("a stranger", release(&p, 9, 0).verdict, HF__STALE);
    is("a waiter", release(&p, 2, 0).verdict, HF__STALE);
    is("still inside", where(&p, 1), HF__INSIDE);
    is("the holder", release(&p, 1, 0).verdict, HF__DONE);
    is("again", release(&p, 1, 0).verdict, HF__STALE);
}

static void c2_a_renewal_with_another_generation_is_lost(void **state)
{
    struct place p;

    (void)state;
    begin(&p);
    struct hf__answer a = attempt(&p, writer(1));
    pass(&p, 1000);
    is("another", renew(&p, 1, a.generation + 1).verdict, HF__GONE_LOST);
    is("left as it was", left_ms(&p, 1), 2000);
    is("its own", renew(&p, 1, a.generation).verdict, HF__GRANTED);
    is("restarted", left_ms(&p, 1), 3000);
}

static void c2_an_expired_holder_cannot_renew(void **state)
{
    struct place p;

    (void)state;
    begin(&p);
    struct hf__answer a = attempt(&p, writer(1));
    pass(&p, 3000);
    is("too late", renew(&p, 1, a.generation).verdict, HF__GONE_LOST);
    is("retired", where(&p, 1), HF__RETIRED);
}

static void c3_a_repeated_attempt_restarts_the_lease(void **state)
{
    struct place p;

    (void)state;
    begin(&p);
    struct hf__answer first = attempt(&p, writer(1));
    pass(&p, 2000);
    struct hf__answer again = attempt(&p, writer(1));
    is("granted", again.verdict, HF__GRANTED);
    is("the same grant", again.generation, first.generation);
    is("claimed", again.claimed, true);
    is("lease", left_ms(&p, 1), 3000);
}

static void c3_own_and_provisional_leases(void **state)
{
    static const int64_t cases[][3] = {{0, 5000, 5000},       {100, 1000, 100},
                                       {1000, 1000, 1000},    {3000, 3000, 3000},
                                       {10000, 10000, 10000}, {60000, 10000, 10000}};

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
    struct hf__answer a = attempt(&p, with_ttl(writer(1), 0));
    is("not claimed", a.claimed, false);
    is("own lease", left_ms(&p, 1), 5000);
    pass(&p, 4000);
    is("a sign of life", renew(&p, 1, 0).claimed, false);
    is("restarted only", left_ms(&p, 1), 5000);
    is("the claim", renew(&p, 1, a.generation).lease_ms, HF__NEVER);
    is("never", left_ms(&p, 1), HF__NEVER);
    pass(&p, 1000000000);
    is("still there", attempt(&p, writer(2)).verdict, HF__QUEUED);
}

static void c3_a_clock_that_went_back_prolongs_nothing_beyond_the_lease(void **state)
{
    struct place p;

    (void)state;
    begin(&p);
    attempt(&p, writer(1));
    attempt(&p, with_ttl(writer(2), 0));
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

/* C4: generations. --------------------------------------------------------------------------------
 */
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

/* C5: the queue. ----------------------------------------------------------------------------------
 */
static void c5_first_come_first_served(void **state)
{
    struct place p;

    (void)state;
    begin(&p);
    attempt(&p, writer(1));
    for (unsigned i = 2; i < 8; i++)
        is("position", attempt(&p, writer(i)).position, i - 1);
    for (unsigned i = 2; i < 8; i++) {
        release(&p, i - 1, 0);
        is("in turn", where(&p, i), HF__INSIDE);
    }
}

static void c5_a_no_wait_bid_neither_queues_nor_overtakes(void **state)
{
    struct place p;

    (void)state;
    begin(&p);
    attempt(&p, reader(1, 0));
    attempt(&p, writer(2));
    is("would fit, but a writer waits", attempt(&p, no_wait(reader(3, 0))).verdict, HF__BUSY);
    is("gone", where(&p, 3), HF__GONE);
    withdraw(&p, 2, 0);
    is("fits now", attempt(&p, no_wait(reader(3, 0))).verdict, HF__GRANTED);
}

static void c5_a_dead_waiter_leaves_by_its_own_lease(void **state)
{
    struct place p;

    (void)state;
    begin(&p);
    attempt(&p, with_ttl(writer(1), 60000));
    attempt(&p, writer(2));
    attempt(&p, writer(3));
    pass(&p, 2999);
    is("kept alive by a sign of life", renew(&p, 3, 0).verdict, HF__QUEUED);
    pass(&p, 1);
    is("now first", attempt(&p, writer(3)).position, 1);
    is("gone", where(&p, 2), HF__GONE);
}

static void c5_a_dead_waiter_at_the_head_costs_two_own_leases(void **state)
{
    struct place p;

    (void)state;
    begin(&p);
    attempt(&p, writer(1));
    attempt(&p, with_delay(with_ttl(writer(2), 60000), 60000));
    pass(&p, 2900);
    attempt(&p, with_ttl(writer(3), 60000));
    release(&p, 1, 0);
    is("handed over to the dead", where(&p, 2), HF__INSIDE);
    is("for its own lease", left_ms(&p, 2), 10000);
    pass(&p, 9999);
    is("not yet", attempt(&p, with_ttl(writer(3), 60000)).verdict, HF__QUEUED);
    pass(&p, 1);
    is("no lock-delay", attempt(&p, with_ttl(writer(3), 60000)).verdict, HF__GRANTED);
}

static void c5_a_withdrawn_bid_is_not_let_in_by_its_late_attempt(void **state)
{
    struct place p;

    (void)state;
    begin(&p);
    is("never seen", withdraw(&p, 1, 60000).verdict, HF__STALE);
    is("its attempt", attempt(&p, writer(1)).verdict, HF__WITHDRAWN);
    pass(&p, 59999);
    is("remembered", attempt(&p, writer(1)).verdict, HF__WITHDRAWN);
    pass(&p, 1);
    is("forgotten", attempt(&p, writer(1)).verdict, HF__GRANTED);
    is("granted meanwhile", withdraw(&p, 1, 60000).verdict, HF__DONE);
    is("its attempt", attempt(&p, writer(1)).verdict, HF__WITHDRAWN);
}

static void c5_a_withdraw_renews_an_older_tombstone(void **state)
{
    struct place p;

    (void)state;
    begin(&p);
    attempt(&p, writer(1));
    pass(&p, 3000 + 59000);
    is("expired long ago", withdraw(&p, 1, 60000).verdict, HF__STALE);
    pass(&p, 59999);
    is("its attempt", attempt(&p, writer(1)).verdict, HF__WITHDRAWN);
    is("a shorter one does not cut it", withdraw(&p, 1, 1).verdict, HF__STALE);
    is("left", left_ms(&p, 1), 1);
}

static void c5_a_release_that_retires_is_remembered_like_a_withdraw(void **state)
{
    struct place p;

    (void)state;
    begin(&p);
    is("never seen", release(&p, 1, 60000).verdict, HF__STALE);
    is("its attempt", attempt(&p, writer(1)).verdict, HF__WITHDRAWN);
    attempt(&p, writer(2));
    is("inside", release(&p, 2, 60000).verdict, HF__DONE);
    is("its attempt", attempt(&p, writer(2)).verdict, HF__WITHDRAWN);
    pass(&p, 59000);
    is("again", release(&p, 2, 60000).verdict, HF__STALE);
    is("renewed", left_ms(&p, 2), 60000);
}

static void c5_the_release_of_a_waiting_ticket_takes_it_out(void **state)
{
    struct place p;

    (void)state;
    begin(&p);
    attempt(&p, writer(1));
    attempt(&p, writer(2));
    is("not a holder", release(&p, 2, 0).verdict, HF__STALE);
    is("gone", where(&p, 2), HF__GONE);
}

static void c5_an_expired_ticket_is_not_let_in_again(void **state)
{
    struct place p;

    (void)state;
    begin(&p);
    attempt(&p, writer(1));
    pass(&p, 3000);
    is("expired", attempt(&p, writer(1)).verdict, HF__WITHDRAWN);
    is("counted from the expiry", left_ms(&p, 1), 60000);
}

static void c5_a_sign_of_life_can_let_its_sender_in(void **state)
{
    struct place p;

    (void)state;
    begin(&p);
    attempt(&p, writer(1));
    pass(&p, 1000);
    attempt(&p, writer(2));
    pass(&p, 2000);
    struct hf__answer a = renew(&p, 2, 0);
    is("granted", a.verdict, HF__GRANTED);
    is("by hand-over", a.claimed, false);
    is("marked", p.let_in, 1);
}

/* C8: the lock-delay. -----------------------------------------------------------------------------
 */
static void c8_a_vanished_holder_keeps_the_lock_closed(void **state)
{
    struct place p;

    (void)state;
    begin(&p);
    attempt(&p, with_delay(writer(1), 2000));
    pass(&p, 4999);
    is("closed", attempt(&p, writer(2)).verdict, HF__QUEUED);
    is("its ticket", attempt(&p, writer(1)).verdict, HF__WITHDRAWN);
    is("its release", release(&p, 1, 60000).verdict, HF__STALE);
    is("its withdraw", withdraw(&p, 1, 60000).verdict, HF__STALE);
    is("its renewal", renew(&p, 1, 1).verdict, HF__GONE_LOST);
    is("none of which opened it", where(&p, 1), HF__LINGERING);
    pass(&p, 1);
    is("open", attempt(&p, writer(2)).verdict, HF__GRANTED);
}

static void c8_no_delay_after_a_clean_release(void **state)
{
    struct place p;

    (void)state;
    begin(&p);
    attempt(&p, with_delay(writer(1), 2000));
    release(&p, 1, 0);
    is("open", attempt(&p, writer(2)).verdict, HF__GRANTED);
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
    is("open", attempt(&p, writer(3)).verdict, HF__GRANTED);
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
    is("closed", attempt(&p, writer(3)).verdict, HF__QUEUED);
    is("for the delay", left_ms(&p, 2), 60000);
}

static void c8_a_lingering_reader_keeps_its_mode(void **state)
{
    struct place p;

    (void)state;
    begin(&p);
    attempt(&p, with_delay(reader(1, 2), 5000));
    pass(&p, 3000);
    is("a reader", attempt(&p, reader(2, 0)).verdict, HF__GRANTED);
    is("its limit counts", attempt(&p, reader(3, 0)).verdict, HF__QUEUED);
}

/* Break. ------------------------------------------------------------------------------------------
 */
static void c3_break_leaves_a_leased_holder_its_lease(void **state)
{
    struct place p;

    (void)state;
    begin(&p);
    attempt(&p, with_delay(writer(1), 2000));
    pass(&p, 1000);
    is("break", breaks(&p, 1, false).verdict, HF__DONE);
    is("lease and delay", left_ms(&p, 1), 4000);
    is("again changes nothing", breaks(&p, 1, false).verdict, HF__DONE);
    is("lease and delay", left_ms(&p, 1), 4000);
    is("now removes it", breaks(&p, 1, true).verdict, HF__DONE);
    is("retired", where(&p, 1), HF__RETIRED);
    is("no such ticket", breaks(&p, 1, true).verdict, HF__STALE);
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
    is("handed over", where(&p, 2), HF__INSIDE);
    is("its ticket", attempt(&p, writer(1)).verdict, HF__WITHDRAWN);
}

static void c3_break_of_what_never_expires_opens_after_the_delay(void **state)
{
    struct place p;

    (void)state;
    begin(&p);
    renew(&p, 1, attempt(&p, with_delay(with_ttl(writer(1), 0), 2000)).generation);
    breaks(&p, 1, false);
    is("delay", left_ms(&p, 1), 2000);
    begin(&p);
    attempt(&p, with_delay(with_ttl(writer(1), 0), 2000));
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
    is("break", breaks(&p, 2, false).verdict, HF__DONE);
    is("its attempt", attempt(&p, writer(2)).verdict, HF__WITHDRAWN);
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
    is("closed", attempt(&p, writer(3)).verdict, HF__QUEUED);
    pass(&p, 1);
    is("open", attempt(&p, writer(3)).verdict, HF__GRANTED);
}

/* C12, caps. --------------------------------------------------------------------------------------
 */
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

static void fill(struct hf__record *record, size_t count, enum hf__place place, int64_t until_ms)
{
    for (size_t i = 0; i < count; i++)
        record->entries[record->count++] = (struct hf__entry){.ticket = ticket((unsigned)i + 100),
                                                              .place = place,
                                                              .ttl_ms = 3000,
                                                              .until_ms = until_ms,
                                                              .lease_ms = 60000};
}

static void check_cap(enum hf__place place, size_t most)
{
    struct hf__entry *entries = calloc(most + 2, sizeof *entries);
    struct hf__record record = {.entries = entries, .capacity = most + 2};
    struct hf__moment at = {.now_ms = 1000000};
    struct hf__bid bid = writer(1), known = writer(100);

    assert_non_null(entries);
    fill(&record, 1, HF__INSIDE, HF__NEVER);
    record.entries[0].ticket = ticket(2);
    fill(&record, most, place, at.now_ms + 60000);
    is("full", hf__doorman_attempt(&record, &bid, NULL, at).verdict, HF__FULL);
    is("nobody joined", record.count, most + 1);
    struct hf__answer a = hf__doorman_attempt(&record, &known, NULL, at);
    is("one that is known", a.verdict, place == HF__WAITING ? HF__QUEUED : HF__WITHDRAWN);
    is("a tombstone still finds room",
       hf__doorman_withdraw(&record, &bid.ticket, 60000, at).verdict, HF__STALE);
    is("its attempt", hf__doorman_attempt(&record, &bid, NULL, at).verdict, HF__WITHDRAWN);
    at.now_ms += 60000;
    record.count = most + 1;
    is("after they left", hf__doorman_attempt(&record, &bid, NULL, at).verdict, HF__QUEUED);
    free(entries);
}

static void c5_a_full_queue_refuses_new_bids(void **state)
{
    (void)state;
    check_cap(HF__WAITING, HF__QUEUE_MAX);
}

static void c5_a_refused_bid_still_lets_the_next_in(void **state)
{
    struct hf__entry *entries = calloc(HF__QUEUE_MAX + 2, sizeof *entries);
    struct hf__record record = {.entries = entries, .capacity = HF__QUEUE_MAX + 2};
    struct hf__moment at = {.now_ms = 1000000};
    struct hf__bid bid = writer(1);

    (void)state;
    assert_non_null(entries);
    fill(&record, 1, HF__INSIDE, at.now_ms);
    record.entries[0].ticket = ticket(2);
    fill(&record, HF__QUEUE_MAX, HF__WAITING, at.now_ms + 60000);
    is("full", hf__doorman_attempt(&record, &bid, NULL, at).verdict, HF__FULL);
    is("the head", record.entries[1].place, HF__INSIDE);
    free(entries);
}

static void c5_full_tombstones_refuse_new_bids_and_none_is_dropped(void **state)
{
    (void)state;
    check_cap(HF__RETIRED, HF__RETIRED_MAX);
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
        cmocka_unit_test(c5_first_come_first_served),
        cmocka_unit_test(c5_a_no_wait_bid_neither_queues_nor_overtakes),
        cmocka_unit_test(c5_a_dead_waiter_leaves_by_its_own_lease),
        cmocka_unit_test(c5_a_dead_waiter_at_the_head_costs_two_own_leases),
        cmocka_unit_test(c5_a_withdrawn_bid_is_not_let_in_by_its_late_attempt),
        cmocka_unit_test(c5_a_withdraw_renews_an_older_tombstone),
        cmocka_unit_test(c5_a_release_that_retires_is_remembered_like_a_withdraw),
        cmocka_unit_test(c5_the_release_of_a_waiting_ticket_takes_it_out),
        cmocka_unit_test(c5_an_expired_ticket_is_not_let_in_again),
        cmocka_unit_test(c5_a_sign_of_life_can_let_its_sender_in),
        cmocka_unit_test(c5_break_of_a_waiter_withdraws_it),
        cmocka_unit_test(c5_a_full_queue_refuses_new_bids),
        cmocka_unit_test(c5_a_refused_bid_still_lets_the_next_in),
        cmocka_unit_test(c5_full_tombstones_refuse_new_bids_and_none_is_dropped),
        cmocka_unit_test(c8_a_vanished_holder_keeps_the_lock_closed),
        cmocka_unit_test(c8_no_delay_after_a_clean_release),
        cmocka_unit_test(c8_no_delay_after_an_unclaimed_grant),
        cmocka_unit_test(c8_a_claimed_hand_over_has_its_delay),
        cmocka_unit_test(c8_a_lingering_reader_keeps_its_mode),
        cmocka_unit_test(c8_breaking_one_reader_leaves_the_longer_delay_of_another),
        cmocka_unit_test(c3_break_leaves_a_leased_holder_its_lease),
        cmocka_unit_test(c3_break_now_leaves_only_the_delay),
        cmocka_unit_test(c3_break_of_what_never_expires_opens_after_the_delay),
        cmocka_unit_test(c12_a_hand_over_is_provisional_and_marked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
