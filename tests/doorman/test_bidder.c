/* The client's half of the rules: what a bidder believes, until when, and what it does not
 * believe. */
#include "base/lease.h"
#include "doorman/bidder.h"
#include "lib/check.h"

#define SECOND INT64_C(1000000000)
#define START  (1000 * SECOND)

#define is(what, got, wanted) check_number(what, (int64_t)(got), (int64_t)(wanted))

static struct hf__answer granted(uint64_t generation, int64_t sent_ns, int64_t lease_ms)
{
    return (struct hf__answer){.verdict = HF__VERDICT_GRANTED,
                               .generation = generation,
                               .lease_ms = lease_ms,
                               .claimed = true,
                               .sent_ns = sent_ns};
}

static struct hf__answer queued(uint64_t generation, int64_t sent_ns)
{
    return (struct hf__answer){.verdict = HF__VERDICT_QUEUED,
                               .generation = generation,
                               .lease_ms = 3000,
                               .position = 1,
                               .sent_ns = sent_ns};
}

static struct hf__answer told(enum hf__verdict verdict, int64_t sent_ns)
{
    return (struct hf__answer){.verdict = verdict, .sent_ns = sent_ns};
}

static enum hf__advice answered(struct hf__bidder *b, struct hf__answer a, int64_t now_ns)
{
    return hf__bidder_answered(b, &a, now_ns);
}

static enum hf__advice renewed(struct hf__bidder *b, uint64_t named, struct hf__answer a,
                               int64_t now_ns)
{
    return hf__bidder_renewed(b, named, &a, now_ns);
}

/* A bidder that was told at START that it waits; the last generation was 7. */
static struct hf__bidder waiting(void)
{
    struct hf__bidder b;

    hf__bidder_init(&b);
    is("queued", answered(&b, queued(7, START), START), HF__ADVICE_WAIT);
    return b;
}

/* A bidder that holds generation 8, asked for at START, for 3 s. */
static struct hf__bidder holding(void)
{
    struct hf__bidder b;

    hf__bidder_init(&b);
    is("granted", answered(&b, granted(8, START, 3000), START + SECOND), HF__ADVICE_HOLD);
    return b;
}

static void c16_the_newest_answer_says_whether_it_is_wanted(void **state)
{
    struct hf__bidder b = holding();
    struct hf__answer a = granted(8, START + SECOND, 3000);

    (void)state;
    is("not yet", b.wanted, false);
    a.wanted = true;
    renewed(&b, 8, a, START + SECOND);
    is("wanted", b.wanted, true);
    renewed(&b, 8, granted(8, START, 3000), START + SECOND);
    is("an older answer", b.wanted, true);
    renewed(&b, 8, granted(8, START + SECOND + 1, 3000), START + 2 * SECOND);
    is("nobody waits any more", b.wanted, false);
}

static void c3_the_deadline_counts_from_before_the_send(void **state)
{
    struct hf__bidder b = holding();

    (void)state;
    is("deadline", b.deadline_ns, hf__lease_deadline_ns(START, 3000));
    is("just before", hf__bidder_holds(&b, b.deadline_ns - 1), true);
    is("then", hf__bidder_holds(&b, b.deadline_ns), false);
    is("phase", b.phase, HF__PHASE_LOST);
    is("cause", b.cause, HF_CAUSE_EXPIRED);
}

static void c3_a_grant_that_took_too_long_is_asked_for_again(void **state)
{
    struct hf__bidder b;

    (void)state;
    hf__bidder_init(&b);
    is("too late", answered(&b, granted(8, START, 3000), START + 3 * SECOND), HF__ADVICE_ASK);
    is("holds nothing", hf__bidder_holds(&b, START + 3 * SECOND), false);
    is("again", answered(&b, granted(8, START + 3 * SECOND, 3000), START + 4 * SECOND),
       HF__ADVICE_HOLD);
    is("deadline", b.deadline_ns, hf__lease_deadline_ns(START + 3 * SECOND, 3000));
}

static void c3_the_latest_answered_request_proves_the_most(void **state)
{
    struct hf__bidder b = holding();

    (void)state;
    is("later", renewed(&b, 8, granted(8, START + SECOND, 3000), START + 2 * SECOND),
       HF__ADVICE_HOLD);
    int64_t deadline_ns = b.deadline_ns;
    is("moved", deadline_ns, hf__lease_deadline_ns(START + SECOND, 3000));
    is("earlier", renewed(&b, 8, granted(8, START, 3000), START + 2 * SECOND), HF__ADVICE_HOLD);
    is("kept", b.deadline_ns, deadline_ns);
}

static void c3_a_claim_makes_it_last_for_ever(void **state)
{
    struct hf__bidder b;
    struct hf__answer provisional = granted(8, START, 5000);

    (void)state;
    hf__bidder_init(&b);
    provisional.claimed = false;
    is("provisional", answered(&b, provisional, START), HF__ADVICE_HOLD);
    is("not claimed", b.claimed, false);
    is("claim", renewed(&b, 8, granted(8, START, HF__NEVER), START + SECOND), HF__ADVICE_HOLD);
    is("claimed", b.claimed, true);
    is("for ever", hf__bidder_holds(&b, INT64_MAX - 1), true);
}

static void c7_lost_never_turns_back(void **state)
{
    struct hf__bidder b = holding();

    (void)state;
    hf__bidder_lose(&b, HF_CAUSE_MAX_HOLD);
    hf__bidder_lose(&b, HF_CAUSE_GONE);
    is("the first cause", b.cause, HF_CAUSE_MAX_HOLD);
    is("a grant", answered(&b, granted(8, START + SECOND, 3000), START + SECOND),
       HF__ADVICE_NOTHING);
    is("a renewal", renewed(&b, 8, granted(8, START + SECOND, 3000), START + SECOND),
       HF__ADVICE_NOTHING);
    is("a wake-up", hf__bidder_woken(&b, 9, START + SECOND), HF__ADVICE_NOTHING);
    is("lost", hf__bidder_holds(&b, START + SECOND), false);
}

static void c7_an_answer_after_the_deadline_does_not_revive_it(void **state)
{
    struct hf__bidder b = holding();

    (void)state;
    renewed(&b, 8, granted(8, START + 2 * SECOND, 3000), START + 3 * SECOND);
    is("lost", b.phase, HF__PHASE_LOST);
    is("cause", b.cause, HF_CAUSE_EXPIRED);
}

static void c7_a_renewal_that_named_the_grant_can_tell_its_loss(void **state)
{
    static const enum hf__verdict bad[] = {HF__VERDICT_GONE, HF__VERDICT_QUEUED};

    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct hf__bidder b = holding();
        renewed(&b, 8, told(bad[i], START + SECOND), START + SECOND);
        is("lost", b.phase, HF__PHASE_LOST);
        is("cause", b.cause, HF_CAUSE_GONE);
    }
    struct hf__bidder b = holding();
    renewed(&b, 8, granted(9, START + SECOND, 3000), START + SECOND);
    is("another generation", b.phase, HF__PHASE_LOST);
}

static void c7_a_request_that_did_not_know_of_the_grant_says_nothing_about_it(void **state)
{
    struct hf__bidder b = waiting();

    (void)state;
    is("woken", hf__bidder_woken(&b, 8, START + SECOND), HF__ADVICE_HOLD);
    is("a sign of life", renewed(&b, 0, told(HF__VERDICT_GONE, START), START + SECOND),
       HF__ADVICE_NOTHING);
    is("an attempt", answered(&b, queued(7, START), START + SECOND), HF__ADVICE_NOTHING);
    is("of the same instant", answered(&b, queued(7, START + SECOND), START + SECOND),
       HF__ADVICE_NOTHING);
    is("holds", hf__bidder_holds(&b, START + SECOND), true);
    is("but it can confirm", renewed(&b, 0, granted(8, START + SECOND, 3000), START + SECOND),
       HF__ADVICE_HOLD);
    is("and prolong", b.deadline_ns, hf__lease_deadline_ns(START + SECOND, 3000));
}

static void c12_a_wake_up_is_the_grant(void **state)
{
    struct hf__bidder b = waiting();

    (void)state;
    is("woken", hf__bidder_woken(&b, 8, START + SECOND), HF__ADVICE_HOLD);
    is("generation", b.generation, 8);
    is("not claimed", b.claimed, false);
    is("counted from the queued answer's request", b.deadline_ns,
       hf__lease_deadline_ns(START, 3000));
}

static void c12_a_stale_wake_up_is_a_hint_only(void **state)
{
    struct hf__bidder b = waiting();

    (void)state;
    is("the last generation", hf__bidder_woken(&b, 7, START), HF__ADVICE_ASK);
    is("an older one", hf__bidder_woken(&b, 3, START), HF__ADVICE_ASK);
    is("ask again", hf__bidder_woken(&b, 0, START), HF__ADVICE_ASK);
    is("waits", b.phase, HF__PHASE_WAITING);
    is("too late", hf__bidder_woken(&b, 8, START + 3 * SECOND), HF__ADVICE_ASK);
    is("asks", b.phase, HF__PHASE_ASKING);
    is("not even again", hf__bidder_woken(&b, 8, START), HF__ADVICE_ASK);

    hf__bidder_init(&b);
    is("before any answer", hf__bidder_woken(&b, 8, START), HF__ADVICE_ASK);
}

static void c12_the_latest_queued_answer_counts(void **state)
{
    struct hf__bidder b = waiting();

    (void)state;
    is("a sign of life", renewed(&b, 0, queued(9, START + SECOND), START + SECOND),
       HF__ADVICE_WAIT);
    is("an older answer", renewed(&b, 0, queued(8, START), START + SECOND), HF__ADVICE_WAIT);
    is("not above", hf__bidder_woken(&b, 9, START + SECOND), HF__ADVICE_ASK);
    is("above", hf__bidder_woken(&b, 10, START + SECOND), HF__ADVICE_HOLD);
    is("counted from it", b.deadline_ns, hf__lease_deadline_ns(START + SECOND, 3000));
}

static void c5_what_a_bidder_is_advised_to_do(void **state)
{
    static const struct {
        enum hf__verdict verdict;
        enum hf__advice advice;
    } cases[] = {{HF__VERDICT_BUSY, HF__ADVICE_REFUSED},
                 {HF__VERDICT_WITHDRAWN, HF__ADVICE_REBID},
                 {HF__VERDICT_FULL, HF__ADVICE_NO_ROOM}};

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct hf__bidder b = waiting();
        is("advice", answered(&b, told(cases[i].verdict, START), START), cases[i].advice);
    }
    struct hf__bidder b = waiting();
    is("a waiter the store forgot", renewed(&b, 0, told(HF__VERDICT_GONE, START), START),
       HF__ADVICE_ASK);
    is("a waiter let in by its sign of life", renewed(&b, 0, granted(8, START, 3000), START),
       HF__ADVICE_HOLD);
}

static void c5_an_unanswered_attempt_is_remembered(void **state)
{
    struct hf__bidder b;

    (void)state;
    hf__bidder_init(&b);
    is("none", b.unanswered, false);
    hf__bidder_unanswered(&b);
    answered(&b, queued(7, START), START);
    is("although a later one was answered", b.unanswered, true);
}

static void a_bid_that_is_over_hears_nothing(void **state)
{
    struct hf__bidder b = waiting();

    (void)state;
    b.phase = HF__PHASE_OVER;
    is("a grant", answered(&b, granted(8, START, 3000), START), HF__ADVICE_NOTHING);
    is("a wake-up", hf__bidder_woken(&b, 8, START), HF__ADVICE_NOTHING);
    is("a renewal", renewed(&b, 0, granted(8, START, 3000), START), HF__ADVICE_NOTHING);
    hf__bidder_lose(&b, HF_CAUSE_CLOSED);
    is("over", b.phase, HF__PHASE_OVER);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(c3_the_deadline_counts_from_before_the_send),
        cmocka_unit_test(c16_the_newest_answer_says_whether_it_is_wanted),
        cmocka_unit_test(c3_a_grant_that_took_too_long_is_asked_for_again),
        cmocka_unit_test(c3_the_latest_answered_request_proves_the_most),
        cmocka_unit_test(c3_a_claim_makes_it_last_for_ever),
        cmocka_unit_test(c5_what_a_bidder_is_advised_to_do),
        cmocka_unit_test(c5_an_unanswered_attempt_is_remembered),
        cmocka_unit_test(c7_lost_never_turns_back),
        cmocka_unit_test(c7_an_answer_after_the_deadline_does_not_revive_it),
        cmocka_unit_test(c7_a_renewal_that_named_the_grant_can_tell_its_loss),
        cmocka_unit_test(c7_a_request_that_did_not_know_of_the_grant_says_nothing_about_it),
        cmocka_unit_test(c12_a_wake_up_is_the_grant),
        cmocka_unit_test(c12_a_stale_wake_up_is_a_hint_only),
        cmocka_unit_test(c12_the_latest_queued_answer_counts),
        cmocka_unit_test(a_bid_that_is_over_hears_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
