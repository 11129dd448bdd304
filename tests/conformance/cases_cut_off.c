/* Clients that the network cuts off: to the store they are dead, whatever they still believe. The
 * same as kill -9, for stores that live in one process as well (C3, C5, C8). */
#include <stdatomic.h>

#include "harness.h"

/* One question is answered, then nothing gets through in either direction. */
#define CUT_OFF "fail=attempt:2-,renew:*,withdraw:*&drop_wakes=*&op_timeout=300ms"

static void c3_renewal_that_arrives_after_the_lease_revives_nothing(struct ctx *ctx)
{
    hf_client *client = open_fault(ctx, "delay=renew:1:700ms"), *plain = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_options opt = options(SHORT_MS, 0);

    opt.by_hand = 1;
    hf_lock *lock = TAKE(ctx, client, name, opt);
    EXPECT(HF_LOST, hf_lock_renew(lock, &ctx->err)); /* sent in time, but under way for too long */
    CHECK(count_place(plain, name, HF_PLACE_INSIDE) == 0);
    EXPECT(HF_OK, probe(plain, name));
    EXPECT(HF_STALE, hf_lock_release(lock, &ctx->err));
}

static void c3_repeated_attempt_restarts_the_lease(struct ctx *ctx)
{
    /* The first answers are lost: the lease it learns of must count from the last attempt. */
    hf_client *client = open_fault(ctx, "lose=attempt:1-4"), *plain = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_options opt = options(1000, 0);

    opt.by_hand = 1;
    hf_lock *gone = TAKE(ctx, client, name, opt);
    hf_lock *lock = TAKE(ctx, plain, name, options(LONG_MS, HF_FOREVER));
    CHECK(hf_lock_state(gone) == HF_STATE_LOST);
    EXPECT(HF_STALE, hf_lock_release(gone, &ctx->err));
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
}

static void count_answer(size_t position, void *arg)
{
    atomic_uint *answers = arg;

    (void)position;
    atomic_fetch_add(answers, 1);
}

/* One waiter is cut off after so many answers, another waits behind it; the lock is released to the
 * first. */
static void pass_over(struct ctx *ctx, const char *fault, unsigned answered, hf_options cut_off)
{
    hf_client *client = open_fault(ctx, fault), *plain = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, plain, name, options(LONG_MS, 0));
    struct bid dead, bid;
    atomic_uint answers = 0;

    cut_off.on_wait = count_answer;
    cut_off.arg = &answers;
    bid_start(&dead, client, name, cut_off);
    for (int64_t began_ms = now_ms(); atomic_load(&answers) < answered; await_age(now_ms(), 1))
        CHECK(now_ms() - began_ms < AWAIT_MS);
    await_count(plain, name, HF_PLACE_WAITING, 1);
    bid_queue(&bid, plain, name, options(LONG_MS, HF_FOREVER), 2);
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    lock = bid_join_lock(&bid);
    CHECK(bid_join(&dead) != HF_OK);
    CHECK(hf_lock_state(lock) != HF_STATE_LOST);
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    await_free(plain, name);
}

static void c5_waiter_that_was_cut_off_costs_seconds(struct ctx *ctx)
{
    pass_over(ctx, CUT_OFF, 1, options(1000, HF_FOREVER));
}

static void c8_waiter_that_was_cut_off_leaves_no_delay(struct ctx *ctx)
{
    hf_options opt = options(1000, HF_FOREVER);

    opt.lock_delay_ms = HF_DELAY_MAX_MS;
    pass_over(ctx, CUT_OFF, 1, opt);
}

static void c8_sign_of_life_does_not_claim_a_grant(struct ctx *ctx)
{
    hf_options opt = options(1000, HF_FOREVER);

    /* It is heard for a while, but hears nothing: it cannot know that it was let in. */
    opt.lock_delay_ms = HF_DELAY_MAX_MS;
    pass_over(ctx, "lose=renew:*&fail=attempt:3-,withdraw:*&drop_wakes=*&op_timeout=300ms", 2, opt);
}

static void c3_waiter_that_was_cut_off_never_holds_for_ever(struct ctx *ctx)
{
    pass_over(ctx, CUT_OFF, 1, options(HF_NEVER, HF_FOREVER));
}

static void c5_waiter_that_was_cut_off_leaves_the_queue(struct ctx *ctx)
{
    hf_client *client = open_fault(ctx, CUT_OFF), *plain = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, plain, name, options(LONG_MS, 0));
    struct bid dead;

    bid_start(&dead, client, name, options(1000, HF_FOREVER));
    await_count(plain, name, HF_PLACE_WAITING, 1);
    CHECK(bid_join(&dead) != HF_OK);
    await_count(plain, name, HF_PLACE_WAITING, 0);
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    CHECK(count_place(plain, name, HF_PLACE_INSIDE) == 0);
}

static void c8_holder_that_was_cut_off_keeps_it_closed(struct ctx *ctx)
{
    hf_client *client = open_fault(ctx, "fail=renew:*"), *plain = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_options opt = options(SHORT_MS, 0);

    opt.lock_delay_ms = 600;
    int64_t asked_ms = now_ms();
    hf_lock *gone = TAKE(ctx, client, name, opt);
    await_lost(gone);
    hf_lock *lock = TAKE(ctx, plain, name, options(LONG_MS, HF_FOREVER));
    CHECK(now_ms() - asked_ms >= SHORT_MS + 600 - 20);
    EXPECT(HF_STALE, hf_lock_release(gone, &ctx->err));
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
}

const struct conformance_case cases_cut_off[] = {
    CASE(HF_CAN_LEASE, c3_renewal_that_arrives_after_the_lease_revives_nothing),
    CASE(HF_CAN_LEASE, c3_repeated_attempt_restarts_the_lease),
    CASE(HF_CAN_QUEUE | HF_CAN_LEASE, c5_waiter_that_was_cut_off_costs_seconds),
    CASE(HF_CAN_QUEUE | HF_CAN_DELAY, c8_waiter_that_was_cut_off_leaves_no_delay),
    CASE(HF_CAN_QUEUE | HF_CAN_DELAY, c8_sign_of_life_does_not_claim_a_grant),
    CASE(HF_CAN_QUEUE | HF_CAN_NEVER, c3_waiter_that_was_cut_off_never_holds_for_ever),
    CASE(HF_CAN_QUEUE | HF_CAN_LEASE, c5_waiter_that_was_cut_off_leaves_the_queue),
    CASE(HF_CAN_LEASE | HF_CAN_DELAY, c8_holder_that_was_cut_off_keeps_it_closed),
    {0},
};
