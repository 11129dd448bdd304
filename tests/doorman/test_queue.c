/* The queue (C5): order, death, what is over and stays over, and how much fits. */
#include "lib/check.h"
#include "lib/operate.h"
#include "record.h"

#include <stdlib.h>

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
        is("in turn", where(&p, i), HF__PLACE_INSIDE);
    }
}

static void c5_a_no_wait_bid_neither_queues_nor_overtakes(void **state)
{
    struct place p;

    (void)state;
    begin(&p);
    attempt(&p, reader(1, 0));
    attempt(&p, writer(2));
    is("would fit, but a writer waits", attempt(&p, no_wait(reader(3, 0))).verdict,
       HF__VERDICT_BUSY);
    is("gone", where(&p, 3), HF__PLACE_GONE);
    withdraw(&p, 2, 0);
    is("fits now", attempt(&p, no_wait(reader(3, 0))).verdict, HF__VERDICT_GRANTED);
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
    is("kept alive by a sign of life", renew(&p, 3, 0).verdict, HF__VERDICT_QUEUED);
    pass(&p, 1);
    is("now first", attempt(&p, writer(3)).position, 1);
    is("gone", where(&p, 2), HF__PLACE_GONE);
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
    is("handed over to the dead", where(&p, 2), HF__PLACE_INSIDE);
    is("for its own lease", left_ms(&p, 2), 10000);
    pass(&p, 9999);
    is("not yet", attempt(&p, with_ttl(writer(3), 60000)).verdict, HF__VERDICT_QUEUED);
    pass(&p, 1);
    is("no lock-delay", attempt(&p, with_ttl(writer(3), 60000)).verdict, HF__VERDICT_GRANTED);
}

static void c5_a_withdrawn_bid_is_not_let_in_by_its_late_attempt(void **state)
{
    struct place p;

    (void)state;
    begin(&p);
    is("never seen", withdraw(&p, 1, 60000).verdict, HF__VERDICT_STALE);
    is("its attempt", attempt(&p, writer(1)).verdict, HF__VERDICT_WITHDRAWN);
    pass(&p, 59999);
    is("remembered", attempt(&p, writer(1)).verdict, HF__VERDICT_WITHDRAWN);
    pass(&p, 1);
    is("forgotten", attempt(&p, writer(1)).verdict, HF__VERDICT_GRANTED);
    is("granted meanwhile", withdraw(&p, 1, 60000).verdict, HF__VERDICT_DONE);
    is("its attempt", attempt(&p, writer(1)).verdict, HF__VERDICT_WITHDRAWN);
}

static void c5_a_withdraw_renews_an_older_tombstone(void **state)
{
    struct place p;

    (void)state;
    begin(&p);
    attempt(&p, writer(1));
    pass(&p, 3000 + 59000);
    is("expired long ago", withdraw(&p, 1, 60000).verdict, HF__VERDICT_STALE);
    pass(&p, 59999);
    is("its attempt", attempt(&p, writer(1)).verdict, HF__VERDICT_WITHDRAWN);
    is("a shorter one does not cut it", withdraw(&p, 1, 1).verdict, HF__VERDICT_STALE);
    is("left", left_ms(&p, 1), 1);
}

static void c5_a_release_that_retires_is_remembered_like_a_withdraw(void **state)
{
    struct place p;

    (void)state;
    begin(&p);
    is("never seen", release(&p, 1, 60000).verdict, HF__VERDICT_STALE);
    is("its attempt", attempt(&p, writer(1)).verdict, HF__VERDICT_WITHDRAWN);
    attempt(&p, writer(2));
    is("inside", release(&p, 2, 60000).verdict, HF__VERDICT_DONE);
    is("its attempt", attempt(&p, writer(2)).verdict, HF__VERDICT_WITHDRAWN);
    pass(&p, 59000);
    is("again", release(&p, 2, 60000).verdict, HF__VERDICT_STALE);
    is("renewed", left_ms(&p, 2), 60000);
}

static void c5_the_release_of_a_waiting_ticket_takes_it_out(void **state)
{
    struct place p;

    (void)state;
    begin(&p);
    attempt(&p, writer(1));
    attempt(&p, writer(2));
    is("not a holder", release(&p, 2, 0).verdict, HF__VERDICT_STALE);
    is("gone", where(&p, 2), HF__PLACE_GONE);
}

static void c5_an_expired_ticket_is_not_let_in_again(void **state)
{
    struct place p;

    (void)state;
    begin(&p);
    attempt(&p, writer(1));
    pass(&p, 3000);
    is("expired", attempt(&p, writer(1)).verdict, HF__VERDICT_WITHDRAWN);
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
    is("granted", a.verdict, HF__VERDICT_GRANTED);
    is("by hand-over", a.claimed, false);
    is("marked", p.let_in, 1);
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
    fill(&record, 1, HF__PLACE_INSIDE, HF__NEVER);
    record.entries[0].ticket = ticket(2);
    fill(&record, most, place, at.now_ms + 60000);
    is("full", ask_doorman(&record, op_attempt(&bid), at).verdict, HF__VERDICT_FULL);
    is("nobody joined", record.count, most + 1);
    struct hf__answer a = ask_doorman(&record, op_attempt(&known), at);
    is("one that is known", a.verdict,
       place == HF__PLACE_WAITING ? HF__VERDICT_QUEUED : HF__VERDICT_WITHDRAWN);
    is("a tombstone still finds room", ask_doorman(&record, op_withdraw(&bid, 60000), at).verdict,
       HF__VERDICT_STALE);
    is("its attempt", ask_doorman(&record, op_attempt(&bid), at).verdict, HF__VERDICT_WITHDRAWN);
    at.now_ms += 60000;
    record.count = most + 1;
    is("after they left", ask_doorman(&record, op_attempt(&bid), at).verdict, HF__VERDICT_QUEUED);
    free(entries);
}

static void c5_a_full_queue_refuses_new_bids(void **state)
{
    (void)state;
    check_cap(HF__PLACE_WAITING, HF__QUEUE_MAX);
}

static void c5_a_refused_bid_still_lets_the_next_in(void **state)
{
    struct hf__entry *entries = calloc(HF__QUEUE_MAX + 2, sizeof *entries);
    struct hf__record record = {.entries = entries, .capacity = HF__QUEUE_MAX + 2};
    struct hf__moment at = {.now_ms = 1000000};
    struct hf__bid bid = writer(1);

    (void)state;
    assert_non_null(entries);
    fill(&record, 1, HF__PLACE_INSIDE, at.now_ms);
    record.entries[0].ticket = ticket(2);
    fill(&record, HF__QUEUE_MAX, HF__PLACE_WAITING, at.now_ms + 60000);
    is("full", ask_doorman(&record, op_attempt(&bid), at).verdict, HF__VERDICT_FULL);
    is("the head", record.entries[1].place, HF__PLACE_INSIDE);
    free(entries);
}

static void c5_full_tombstones_refuse_new_bids_and_none_is_dropped(void **state)
{
    (void)state;
    check_cap(HF__PLACE_RETIRED, HF__RETIRED_MAX);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
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
        cmocka_unit_test(c5_a_full_queue_refuses_new_bids),
        cmocka_unit_test(c5_a_refused_bid_still_lets_the_next_in),
        cmocka_unit_test(c5_full_tombstones_refuse_new_bids_and_none_is_dropped),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
