/* C14: a release can keep the lock closed until some time after it was taken. */
#include "harness.h"

#define HOUR_MS  (3600 * INT64_C(1000))
#define CLOCK_MS 20 /* the store's clock and ours count in milliseconds, and not at the same rate */

static void c14_opens_no_earlier(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    int64_t before_ms = now_ms();
    hf_lock *lock = TAKE(ctx, client, name, options(LONG_MS, 0));

    EXPECT(HF_OK, hf_lock_release_after(lock, 700, &ctx->err));
    lock = TAKE(ctx, client, name, options(LONG_MS, HF_FOREVER));
    CHECK(now_ms() - before_ms >= 700 - CLOCK_MS);
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
}

static void c14_break_now_opens(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, client, name, options(LONG_MS, 0));
    char ticket[HF_TICKET_SIZE];

    snprintf(ticket, sizeof ticket, "%s", hf_lock_ticket(lock));
    EXPECT(HF_OK, hf_lock_release_after(lock, HOUR_MS, &ctx->err));
    CHECK(count_place(client, name, HF_PLACE_LINGERING) == 1);
    EXPECT(HF_OK, hf_break(client, name, HF_NTS, ticket, 0, &ctx->err));
    EXPECT(HF_BUSY, probe(client, name));
    EXPECT(HF_OK, hf_break(client, name, HF_NTS, ticket, 1, &ctx->err));
    EXPECT(HF_OK, probe(client, name));
}

static void c14_time_that_is_over_opens_at_once(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, client, name, options(LONG_MS, 0));

    await_age(now_ms(), 50);
    EXPECT(HF_OK, hf_lock_release_after(lock, 30, &ctx->err));
    EXPECT(HF_OK, probe(client, name));
}

/* The first one arrived; what is asked again finds the lock released already. */
static void c14_lost_reply_changes_nothing(struct ctx *ctx)
{
    hf_client *losing = open_fault(ctx, "lose=release:1"), *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, losing, name, options(LONG_MS, 0));
    char ticket[HF_TICKET_SIZE];

    snprintf(ticket, sizeof ticket, "%s", hf_lock_ticket(lock));
    EXPECT(HF_OK, hf_lock_release_after(lock, HOUR_MS, &ctx->err));
    EXPECT(HF_BUSY, probe(client, name));
    EXPECT(HF_OK, hf_break(client, name, HF_NTS, ticket, 1, &ctx->err));
    EXPECT(HF_OK, probe(client, name));
}

/* The first one got lost, and before the second, half an op_timeout later, the lease has run out, on stores that
 * count whole seconds, too: nothing keeps it closed. */
static void c14_release_that_comes_too_late_says_so(struct ctx *ctx)
{
    hf_client *losing = open_fault(ctx, "hang=release:1&op_timeout=8s");
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_options opt = options(SHORT_MS, 0);

    opt.by_hand = 1;
    hf_lock *lock = TAKE(ctx, losing, name, opt);
    EXPECT(HF_STALE, hf_lock_release_after(lock, HOUR_MS, &ctx->err));
    EXPECT(HF_OK, probe(client, name));
}

static void c14_waiter_gets_it_then(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    int64_t before_ms = now_ms();
    hf_lock *lock = TAKE(ctx, client, name, options(LONG_MS, 0));
    struct bid bid;

    bid_queue(&bid, client, name, options(LONG_MS, HF_FOREVER), 1);
    EXPECT(HF_OK, hf_lock_release_after(lock, 1200, &ctx->err));
    lock = bid_join_lock(&bid);
    CHECK(now_ms() - before_ms >= 1200 - CLOCK_MS);
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
}

/* So many in so long: each place opens by itself. */
static void c14_place_among_readers_stays_taken(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_options opt = shared(LONG_MS, 0);
    hf_lock *none;

    opt.limit = 2;
    hf_lock *first = TAKE(ctx, client, name, opt);
    opt.owner = 0;
    hf_lock *second = TAKE(ctx, client, name, opt);
    char ticket[HF_TICKET_SIZE];
    snprintf(ticket, sizeof ticket, "%s", hf_lock_ticket(first));
    EXPECT(HF_OK, hf_lock_release_after(first, HOUR_MS, &ctx->err));
    opt.owner = 99;
    EXPECT(HF_BUSY, hf_acquire(client, name, HF_NTS, &opt, &none, &ctx->err));
    EXPECT(HF_OK, hf_lock_release(second, &ctx->err));
    hf_lock *third = TAKE(ctx, client, name, opt);
    EXPECT(HF_OK, hf_lock_release(third, &ctx->err));
    EXPECT(HF_OK, hf_break(client, name, HF_NTS, ticket, 1, &ctx->err));
}

static void c14_bad_times_are_refused(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    hf_lock *lock = TAKE(ctx, client, name_of(ctx, "a"), options(LONG_MS, 0));

    EXPECT(HF_INVALID, hf_lock_release_after(lock, -1, &ctx->err));
    EXPECT(HF_INVALID, hf_lock_release_after(lock, HF_AT_LEAST_MAX_MS + 1, &ctx->err));
    CHECK(hf_lock_state(lock) == HF_STATE_HELD);
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
}

const struct conformance_case cases_at_least[] = {
    CASE(HF_CAN_AT_LEAST, c14_opens_no_earlier),
    CASE(HF_CAN_AT_LEAST | HF_CAN_BREAK, c14_break_now_opens),
    CASE(HF_CAN_AT_LEAST, c14_time_that_is_over_opens_at_once),
    CASE(HF_CAN_AT_LEAST | HF_CAN_BREAK, c14_lost_reply_changes_nothing),
    CASE(HF_CAN_AT_LEAST | HF_CAN_LEASE, c14_release_that_comes_too_late_says_so),
    CASE(HF_CAN_AT_LEAST, c14_waiter_gets_it_then),
    CASE(HF_CAN_AT_LEAST | HF_CAN_BREAK | HF_CAN_LIMIT, c14_place_among_readers_stays_taken),
    CASE(HF_CAN_AT_LEAST, c14_bad_times_are_refused),
    {0},
};
