/* C6, one outcome or HF_UNKNOWN: answers that are lost and requests that arrive late, by fault+.
 *
 * A late request is delivered when its client is closed: after everything else, without a race. */
#include <stdatomic.h>
#include <unistd.h>

#include "harness.h"

#define AT_THE_END ":1:1h"

static void c6_lost_answer_to_an_attempt_is_asked_for_again(struct ctx *ctx)
{
    hf_client *client = open_fault(ctx, "lose=attempt:1-2"), *plain = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, client, name, options(LONG_MS, 0));

    CHECK(strcmp(look_at(plain, name).ticket, hf_lock_ticket(lock)) == 0);
    EXPECT(HF_BUSY, probe(plain, name));
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    EXPECT(HF_OK, probe(plain, name));
}

static void c6_lost_answer_does_not_queue_twice(struct ctx *ctx)
{
    hf_client *client = open_fault(ctx, "lose=attempt:1-2"), *plain = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, plain, name, options(LONG_MS, 0));
    struct bid bids[2];

    bid_queue(&bids[0], client, name, options(LONG_MS, HF_FOREVER), 1);
    bid_queue(&bids[1], plain, name, options(LONG_MS, HF_FOREVER), 2);
    CHECK(count_place(plain, name, HF_PLACE_WAITING) == 2);
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    EXPECT(HF_OK, hf_lock_release(bid_join_lock(&bids[0]), &ctx->err));
    EXPECT(HF_OK, hf_lock_release(bid_join_lock(&bids[1]), &ctx->err));
}

static void release_spoiled(struct ctx *ctx, const char *fault)
{
    hf_client *client = open_fault(ctx, fault), *plain = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, client, name, options(LONG_MS, 0));

    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    EXPECT(HF_OK, probe(plain, name));
}

static void c2_retried_release_is_not_an_error(struct ctx *ctx)
{
    release_spoiled(ctx, "lose=release:1");
}

static void c6_release_that_did_not_arrive_is_sent_again(struct ctx *ctx)
{
    release_spoiled(ctx, "fail=release:1");
}

static void c6_release_goes_on_in_the_background(struct ctx *ctx)
{
    hf_client *client = open_fault(ctx, "fail=release:1-4"), *plain = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, client, name, options(LONG_MS, 0));

    EXPECT(HF_UNKNOWN, hf_lock_release(lock, &ctx->err));
    CHECK(ctx->err.code == HF_UNKNOWN);
    if (ctx->can & HF_CAN_LEASE)
        CHECK(ctx->err.may_hold_ms > 0 && ctx->err.may_hold_ms <= LONG_MS + 1);
    else
        CHECK(ctx->err.may_hold_ms == HF_NEVER); /* until the connection ends */
    await_free(plain, name);                     /* long before the lease would have ended */
}

static void c6_store_that_stays_away_is_told_so(struct ctx *ctx)
{
    hf_client *client = open_fault(ctx, "fail=attempt:*&op_timeout=300ms");
    const char *name = name_of(ctx, "a");
    hf_options opt = options(LONG_MS, HF_FOREVER);
    hf_lock *none;

    EXPECT(HF_UNAVAILABLE, hf_acquire(client, name, HF_NTS, &opt, &none, &ctx->err));
    CHECK(ctx->err.retriable && ctx->err.text[0] != '\0');
    CHECK(count_place(client, name, HF_PLACE_INSIDE) == 0);
}

static void c6_store_that_comes_back_is_asked_again(struct ctx *ctx)
{
    hf_client *client = open_fault(ctx, "hang=attempt:1&fail=attempt:2-3&op_timeout=1500ms");
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, client, name, options(LONG_MS, 0));

    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
}

static void c6_bid_whose_answers_are_all_lost_is_withdrawn(struct ctx *ctx)
{
    /* Also the time that its withdrawal may take, on a busy machine. */
    hf_client *client = open_fault(ctx, "lose=attempt:*&op_timeout=2s");
    hf_client *plain = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_options opt = options(LONG_MS, HF_FOREVER);
    hf_lock *none;

    EXPECT(HF_UNAVAILABLE, hf_acquire(client, name, HF_NTS, &opt, &none, &ctx->err));
    CHECK(count_place(plain, name, HF_PLACE_INSIDE) == 0);
    EXPECT(HF_OK, probe(plain, name));
}

static void c6_unknown_outcome_says_for_how_long_and_is_undone(struct ctx *ctx)
{
    hf_client *client = open_fault(ctx, "lose=attempt:*&fail=withdraw:1-4&op_timeout=400ms");
    hf_client *plain = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_options opt = options(LONG_MS, 0);
    hf_lock *none;

    EXPECT(HF_UNKNOWN, hf_acquire(client, name, HF_NTS, &opt, &none, &ctx->err));
    CHECK(ctx->err.may_hold_ms >= LONG_MS);
    await_free(plain, name); /* the keeper went on withdrawing */
}

static void c6_renewal_of_unknown_outcome_loses_nothing(struct ctx *ctx)
{
    hf_client *client = open_fault(ctx, "lose=renew:1");
    hf_options opt = options(LONG_MS, 0);

    opt.by_hand = 1;
    hf_lock *lock = TAKE(ctx, client, name_of(ctx, "a"), opt);
    EXPECT(HF_UNKNOWN, hf_lock_renew(lock, &ctx->err));
    CHECK(hf_lock_state(lock) == HF_STATE_HELD);
    EXPECT(HF_OK, hf_lock_renew(lock, &ctx->err));
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
}

static void c6_lost_answer_to_a_claim_is_asked_for_again(struct ctx *ctx)
{
    hf_client *client = open_fault(ctx, "lose=renew:1"), *plain = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_options opt = options(LONG_MS, 0);

    opt.ttl_ms = ctx->can & HF_CAN_NEVER ? HF_NEVER : LONG_MS;
    opt.confirmed = 1;
    hf_lock *lock = TAKE(ctx, client, name, opt);
    CHECK(look_at(plain, name).claimed);
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
}

static void c5_lost_answer_to_a_withdrawal_leaves_nothing(struct ctx *ctx)
{
    hf_client *client = open_fault(ctx, "lose=withdraw:1"), *plain = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, plain, name, options(LONG_MS, 0)), *none;
    hf_options opt = options(LONG_MS, 150);

    EXPECT(HF_TIMEOUT, hf_acquire(client, name, HF_NTS, &opt, &none, &ctx->err));
    CHECK(count_place(plain, name, HF_PLACE_WAITING) == 0);
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    CHECK(count_place(plain, name, HF_PLACE_INSIDE) == 0);
}

static void c5_attempt_that_arrives_after_the_withdrawal_gets_nothing(struct ctx *ctx)
{
    char path[] = "/tmp/conformance-trace-XXXXXX";
    int fd = mkstemp(path);
    hf_client *client = open_traced(ctx, "late=attempt" AT_THE_END, path),
              *plain = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, plain, name, options(LONG_MS, 0));

    EXPECT(HF_BUSY, probe(client, name));
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    close_client(ctx, client); /* the first attempt arrives now, at a lock that is free */
    await_line(path, "attempt", "-> withdrawn", 1);
    CHECK(count_place(plain, name, HF_PLACE_INSIDE) == 0);
    EXPECT(HF_OK, probe(plain, name));
    close(fd);
    unlink(path);
}

static void late_attempt_after(struct ctx *ctx, int expected, bool cancel)
{
    hf_client *client = open_fault(ctx, "late=attempt" AT_THE_END), *plain = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, plain, name, options(LONG_MS, 0));
    hf_options opt = options(LONG_MS, cancel ? HF_FOREVER : 300);
    struct bid bid;

    EXPECT(HF_OK, hf_cancel_new(&opt.cancel));
    bid_queue(&bid, client, name, opt, 1);
    if (cancel)
        hf_cancel_fire(opt.cancel);
    EXPECT(expected, bid_join(&bid));
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    close_client(ctx, client);
    CHECK(count_place(plain, name, HF_PLACE_INSIDE) == 0);
    CHECK(count_place(plain, name, HF_PLACE_WAITING) == 0);
    hf_cancel_free(opt.cancel);
}

static void c5_attempt_that_arrives_after_the_timeout_gets_nothing(struct ctx *ctx)
{
    late_attempt_after(ctx, HF_TIMEOUT, false);
}

static void c5_attempt_that_arrives_after_the_cancel_gets_nothing(struct ctx *ctx)
{
    late_attempt_after(ctx, HF_CANCELLED, true);
}

static void c5_attempt_that_arrives_after_the_release_gets_nothing(struct ctx *ctx)
{
    hf_client *client = open_fault(ctx, "late=attempt" AT_THE_END), *plain = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, client, name, options(LONG_MS, 0));

    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    close_client(ctx, client);
    CHECK(count_place(plain, name, HF_PLACE_INSIDE) == 0);
    EXPECT(HF_OK, probe(plain, name));
}

static void c5_attempt_that_arrives_after_the_lease_gets_nothing(struct ctx *ctx)
{
    hf_client *client = open_fault(ctx, "late=attempt" AT_THE_END), *plain = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_options opt = options(SHORT_MS, 0);

    opt.by_hand = 1;
    hf_lock *lock = TAKE(ctx, client, name, opt);
    await_free(plain, name);
    EXPECT(HF_STALE, hf_lock_release(lock, &ctx->err));
    close_client(ctx, client);
    CHECK(count_place(plain, name, HF_PLACE_INSIDE) == 0); /* a ticket is let in once */
    EXPECT(HF_OK, probe(plain, name));
}

static void c2_release_that_arrives_late_releases_nobody_else(struct ctx *ctx)
{
    hf_client *client = open_fault(ctx, "late=release" AT_THE_END), *plain = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, client, name, options(LONG_MS, 0));

    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    lock = TAKE(ctx, plain, name, options(LONG_MS, 0));
    close_client(ctx, client);
    CHECK(strcmp(look_at(plain, name).ticket, hf_lock_ticket(lock)) == 0);
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
}

struct storm {
    struct ctx ctx;
    hf_client *client;
    const char *name;
    _Atomic int *inside, *served;
    pthread_t thread;
};

static void *weather(void *arg)
{
    struct storm *s = arg;

    for (int served = 0; served < 5;) {
        hf_options opt = options(LONG_MS, HF_FOREVER);
        hf_lock *lock;
        int r = hf_acquire(s->client, s->name, HF_NTS, &opt, &lock, NULL);
        CHECK(r == HF_OK || r == HF_UNAVAILABLE || r == HF_UNKNOWN);
        if (r != HF_OK)
            continue;
        CHECK(atomic_fetch_add(s->inside, 1) == 0);
        ++*s->served;
        CHECK(atomic_fetch_sub(s->inside, 1) == 1);
        r = hf_lock_release(lock, NULL);
        EXPECT(HF_OK, r == HF_UNKNOWN ? HF_OK : r);
        served++;
    }
    return NULL;
}

static void weather_a_storm(struct ctx *ctx, const char *seed)
{
    hf_client *plain = open_client(ctx);
    const char *name = name_of(ctx, "a");
    _Atomic int inside = 0, served = 0;
    struct storm all[6];
    char fault[100];

    snprintf(fault, sizeof fault, "chaos=%s&chaos_percent=20", seed);
    for (size_t i = 0; i < 6; i++) {
        all[i] = (struct storm){.client = i < 3 ? open_fault(ctx, fault) : all[i - 3].client,
                                .name = name,
                                .inside = &inside,
                                .served = &served};
        CHECK(pthread_create(&all[i].thread, NULL, weather, &all[i]) == 0);
    }
    for (size_t i = 0; i < 6; i++)
        CHECK(pthread_join(all[i].thread, NULL) == 0);
    CHECK(served == 30);
    await_free(plain, name);
}

static void c1_storm_of_faults_lets_nobody_in_twice_1(struct ctx *ctx)
{
    weather_a_storm(ctx, "1");
}

static void c1_storm_of_faults_lets_nobody_in_twice_2(struct ctx *ctx)
{
    weather_a_storm(ctx, "20261115");
}

const struct conformance_case cases_lost_reply[] = {
    CASE(0, c6_lost_answer_to_an_attempt_is_asked_for_again),
    CASE(HF_CAN_QUEUE, c6_lost_answer_does_not_queue_twice),
    CASE(0, c2_retried_release_is_not_an_error),
    CASE(0, c6_release_that_did_not_arrive_is_sent_again),
    CASE(0, c6_release_goes_on_in_the_background),
    CASE(0, c6_store_that_stays_away_is_told_so),
    CASE(0, c6_store_that_comes_back_is_asked_again),
    CASE(0, c6_bid_whose_answers_are_all_lost_is_withdrawn),
    CASE(0, c6_unknown_outcome_says_for_how_long_and_is_undone),
    CASE(0, c6_renewal_of_unknown_outcome_loses_nothing),
    CASE(0, c6_lost_answer_to_a_claim_is_asked_for_again),
    CASE(0, c5_lost_answer_to_a_withdrawal_leaves_nothing),
    CASE(0, c5_attempt_that_arrives_after_the_withdrawal_gets_nothing),
    CASE(HF_CAN_QUEUE, c5_attempt_that_arrives_after_the_timeout_gets_nothing),
    CASE(HF_CAN_QUEUE, c5_attempt_that_arrives_after_the_cancel_gets_nothing),
    CASE(0, c5_attempt_that_arrives_after_the_release_gets_nothing),
    CASE(HF_CAN_LEASE, c5_attempt_that_arrives_after_the_lease_gets_nothing),
    CASE(0, c2_release_that_arrives_late_releases_nobody_else),
    CASE(0, c1_storm_of_faults_lets_nobody_in_twice_1),
    CASE(0, c1_storm_of_faults_lets_nobody_in_twice_2),
    {0},
};
