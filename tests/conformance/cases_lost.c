/* C7, loss is told early, once and for all: by callback, descriptor and remaining time. The store
 * is made to fail by fault+. */
#include <poll.h>
#include <stdatomic.h>
#include <unistd.h>

#include "harness.h"

struct told {
    _Atomic unsigned at_risk, lost, risk_after_loss;
    _Atomic int cause;
    int wait_fd; /* the callback reads from it before it returns; -1: no */
};

static void note_risk(hf_lock *lock, hf_cause cause, void *arg)
{
    struct told *told = arg;

    (void)cause;
    CHECK(hf_lock_name(lock, NULL) != NULL);
    told->risk_after_loss += told->lost > 0;
    told->at_risk++;
}

static void note_loss(hf_lock *lock, hf_cause cause, void *arg)
{
    struct told *told = arg;
    char word;

    CHECK(hf_lock_state(lock) == HF_STATE_LOST);
    CHECK(hf_lock_remaining_ms(lock) == 0);
    told->cause = (int)cause;
    told->lost++;
    if (told->wait_fd >= 0)
        CHECK(read(told->wait_fd, &word, 1) == 1);
}

static hf_options telling(int64_t ttl_ms, struct told *told)
{
    hf_options opt = options(ttl_ms, 0);

    told->wait_fd = -1;
    opt.on_at_risk = note_risk;
    opt.on_lost = note_loss;
    opt.arg = told;
    return opt;
}

static void await_told(_Atomic unsigned *count)
{
    int64_t began_ms = now_ms();

    while (*count == 0) {
        CHECK(now_ms() - began_ms < AWAIT_MS);
        await_age(now_ms(), 1);
    }
}

static void lose_in_three_ways(struct ctx *ctx, const char *fault)
{
    hf_client *client = open_fault(ctx, fault), *plain = open_client(ctx);
    const char *name = name_of(ctx, "a");
    struct told told = {0};
    struct bid bid;

    hf_lock *lock = TAKE(ctx, client, name, telling(600, &told));
    bid_queue(&bid, plain, name, options(LONG_MS, HF_FOREVER), 1);
    await_lost(lock);
    CHECK(hf_lock_remaining_ms(lock) == 0);
    CHECK(hf_lock_cause(lock) == HF_CAUSE_EXPIRED);
    await_told(&told.lost);
    CHECK(told.cause == HF_CAUSE_EXPIRED);
    EXPECT(HF_LOST, hf_lock_renew(lock, &ctx->err));
    EXPECT(HF_STALE, hf_lock_release(lock, &ctx->err));
    CHECK(told.lost == 1 && told.at_risk >= 1 && told.risk_after_loss == 0);
    EXPECT(HF_OK, hf_lock_release(bid_join_lock(&bid), &ctx->err));
}

static void c7_loss_is_told_in_three_ways(struct ctx *ctx)
{
    lose_in_three_ways(ctx, "fail=renew:*");
}

static void c7_loss_is_told_while_a_renewal_hangs(struct ctx *ctx)
{
    lose_in_three_ways(ctx, "hang=renew:*&op_timeout=10s");
}

static void c7_loss_is_told_before_anybody_else_enters(struct ctx *ctx)
{
    hf_client *client = open_fault(ctx, "fail=renew:*"), *plain = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, client, name, options(SHORT_MS, 0));
    struct pollfd p = {.fd = hf_lock_fd(lock), .events = POLLIN};
    hf_lock *next = TAKE(ctx, plain, name, options(LONG_MS, HF_FOREVER));

    CHECK(hf_lock_state(lock) == HF_STATE_LOST);
    CHECK(poll(&p, 1, 0) == 1);
    EXPECT(HF_STALE, hf_lock_release(lock, &ctx->err));
    EXPECT(HF_OK, hf_lock_release(next, &ctx->err));
}

static void c7_lost_lock_never_comes_back(struct ctx *ctx)
{
    /* Renewals hang for as long as it is held; after that the store would answer again. */
    hf_client *client = open_fault(ctx, "hang=renew:1-50&op_timeout=10s");
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, client, name, options(SHORT_MS, 0));

    await_lost(lock);
    await_free(client, name);
    for (int i = 0; i < 5; i++)
        EXPECT(HF_LOST, hf_lock_renew(lock, &ctx->err));
    CHECK(hf_lock_state(lock) == HF_STATE_LOST);
    CHECK(count_place(client, name, HF_PLACE_INSIDE) == 0);
    EXPECT(HF_STALE, hf_lock_release(lock, &ctx->err));
}

static void c7_renewals_that_fail_are_tried_again(struct ctx *ctx)
{
    hf_client *client = open_fault(ctx, "fail=renew:1-2&lose=renew:4");
    const char *name = name_of(ctx, "a");
    struct told told = {0};
    hf_lock *lock = TAKE(ctx, client, name, telling(3000, &told));

    await_age(now_ms(), 6500);
    CHECK(hf_lock_state(lock) != HF_STATE_LOST);
    CHECK(told.lost == 0);
    EXPECT(HF_BUSY, probe(client, name));
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
}

static void c7_at_risk_is_told_before_the_loss_and_can_pass(struct ctx *ctx)
{
    hf_client *client = open_fault(ctx, "fail=renew:1-6");
    struct told told = {0};
    hf_options opt = telling(3000, &told);
    hf_lock *lock;

    opt.by_hand = 1;
    lock = TAKE(ctx, client, name_of(ctx, "a"), opt);
    CHECK(hf_lock_state(lock) == HF_STATE_HELD);
    await_told(&told.at_risk);
    CHECK(hf_lock_state(lock) == HF_STATE_AT_RISK && told.lost == 0);
    for (int i = 0; i < 6; i++)
        EXPECT(HF_UNAVAILABLE, hf_lock_renew(lock, &ctx->err));
    EXPECT(HF_OK, hf_lock_renew(lock, &ctx->err));
    CHECK(hf_lock_state(lock) == HF_STATE_HELD && told.lost == 0);
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
}

static void c7_slow_callback_delays_no_renewal(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    struct told told = {0};
    hf_options opt = telling(SHORT_MS, &told);
    int fds[2];

    CHECK(pipe(fds) == 0);
    opt.by_hand = 1;
    told.wait_fd = fds[0];
    hf_lock *kept = TAKE(ctx, client, name_of(ctx, "kept"), options(1500, 0));
    hf_lock *gone = TAKE(ctx, client, name_of(ctx, "gone"), opt);
    await_told(&told.lost);
    await_age(now_ms(), 2200); /* the callback has not returned */
    CHECK(hf_lock_state(kept) != HF_STATE_LOST);
    CHECK(write(fds[1], "x", 1) == 1);
    EXPECT(HF_STALE, hf_lock_release(gone, &ctx->err));
    EXPECT(HF_OK, hf_lock_release(kept, &ctx->err));
    close(fds[0]);
    close(fds[1]);
}

static void c3_lease_counts_from_before_the_request(struct ctx *ctx)
{
    hf_client *client = open_fault(ctx, "slow=attempt:1:400ms");
    hf_options opt = options(1000, 0);

    opt.by_hand = 1;
    int64_t asked_ms = now_ms();
    hf_lock *lock = TAKE(ctx, client, name_of(ctx, "a"), opt);
    int64_t remaining_ms = hf_lock_remaining_ms(lock);
    CHECK(now_ms() - asked_ms >= 400);
    CHECK(remaining_ms <= 600);
    /* By chance it is over already, on a machine that is very busy. */
    hf_lock_release(lock, NULL);
    await_free(client, name_of(ctx, "a"));
}

static void c7_grant_that_arrives_after_its_lease_is_not_believed(struct ctx *ctx)
{
    hf_client *client = open_fault(ctx, "slow=attempt:1:500ms"), *plain = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_options opt = options(SHORT_MS, HF_FOREVER);
    struct bid slow;

    opt.by_hand = 1;
    bid_start(&slow, client, name, opt);
    await_count(plain, name, HF_PLACE_INSIDE, 1);
    /* The slow one's first grant runs out on the way; this one gets in before it asks again. */
    hf_lock *lock = TAKE(ctx, plain, name, options(LONG_MS, HF_FOREVER));
    await_count(plain, name, HF_PLACE_WAITING, 1);
    CHECK(!bid_is_done(&slow));
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    hf_lock_release(bid_join_lock(&slow), NULL); /* its short lease may be over again by now */
    await_free(plain, name);
}

static void c7_questions_are_answered_without_the_store(struct ctx *ctx)
{
    hf_client *client = open_fault(ctx, "fail=renew:*,release:*,withdraw:*,inspect:*");
    const char *name = name_of(ctx, "a");
    size_t len = 0;

    hf_lock *lock = TAKE(ctx, client, name, options(SHORT_MS, 0));
    CHECK(strcmp(hf_lock_name(lock, &len), name) == 0 && len == strlen(name));
    CHECK(strlen(hf_lock_ticket(lock)) == HF_TICKET_SIZE - 1);
    CHECK(hf_lock_fd(lock) >= 0);
    await_lost(lock);
    EXPECT(HF_STALE, hf_lock_release(lock, &ctx->err));
    EXPECT(HF_UNAVAILABLE, hf_inspect(client, NULL, &(hf_view *){NULL}, &ctx->err));
    await_free(open_client(ctx), name);
}

const struct conformance_case cases_lost[] = {
    CASE(HF_CAN_LEASE, c7_loss_is_told_in_three_ways),
    CASE(HF_CAN_LEASE, c7_loss_is_told_while_a_renewal_hangs),
    CASE(HF_CAN_LEASE, c7_loss_is_told_before_anybody_else_enters),
    CASE(HF_CAN_LEASE, c7_lost_lock_never_comes_back),
    CASE(HF_CAN_LEASE, c7_renewals_that_fail_are_tried_again),
    CASE(HF_CAN_LEASE, c7_at_risk_is_told_before_the_loss_and_can_pass),
    CASE(HF_CAN_LEASE, c7_slow_callback_delays_no_renewal),
    CASE(HF_CAN_LEASE, c3_lease_counts_from_before_the_request),
    CASE(HF_CAN_LEASE | HF_CAN_QUEUE, c7_grant_that_arrives_after_its_lease_is_not_believed),
    CASE(HF_CAN_LEASE, c7_questions_are_answered_without_the_store),
    {0},
};
