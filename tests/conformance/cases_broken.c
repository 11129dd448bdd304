/* Breaking a lock by its ticket: what opens when, and how its holder learns of it (C3, C7, C8). */
#include "harness.h"

static void c3_broken_lock_without_a_lease_opens_at_once(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, client, name, options(HF_NEVER, 0));

    EXPECT(HF_OK, hf_break(client, name, HF_NTS, hf_lock_ticket(lock), 0, &ctx->err));
    EXPECT(HF_OK, probe(client, name));
    EXPECT(HF_LOST, hf_lock_renew(lock, &ctx->err)); /* told on the next contact */
    CHECK(hf_lock_state(lock) == HF_STATE_LOST && hf_lock_cause(lock) == HF_CAUSE_GONE);
    EXPECT(HF_STALE, hf_lock_release(lock, &ctx->err));
}

static void c3_broken_lock_stays_closed_until_its_lease_ends(struct ctx *ctx)
{
    hf_client *client = open_client(ctx), *other = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, client, name, options(1000, 0));

    EXPECT(HF_OK, hf_break(other, name, HF_NTS, hf_lock_ticket(lock), 0, &ctx->err));
    CHECK(count_place(other, name, HF_PLACE_LINGERING) == 1);
    EXPECT(HF_BUSY, probe(other, name));
    /* By the time it opens, the holder has been told. */
    hf_lock *next = TAKE(ctx, other, name, options(LONG_MS, HF_FOREVER));
    CHECK(hf_lock_state(lock) == HF_STATE_LOST);
    EXPECT(HF_STALE, hf_lock_release(lock, &ctx->err));
    EXPECT(HF_OK, hf_lock_release(next, &ctx->err));
}

static void c3_lock_broken_now_opens_at_once(struct ctx *ctx)
{
    hf_client *client = open_client(ctx), *other = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, client, name, options(LONG_MS, 0));
    struct bid bid;

    bid_queue(&bid, other, name, options(LONG_MS, HF_FOREVER), 1);
    EXPECT(HF_OK, hf_break(other, name, HF_NTS, hf_lock_ticket(lock), 1, &ctx->err));
    hf_lock *next = bid_join_lock(&bid);
    EXPECT(HF_STALE, hf_lock_release(lock, &ctx->err));
    CHECK(hf_lock_state(next) != HF_STATE_LOST);
    EXPECT(HF_OK, hf_lock_release(next, &ctx->err));
}

static void c7_keeper_learns_that_the_lock_was_broken(struct ctx *ctx)
{
    hf_client *client = open_client(ctx), *other = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, client, name, options(900, 0));

    EXPECT(HF_OK, hf_break(other, name, HF_NTS, hf_lock_ticket(lock), 1, &ctx->err));
    await_lost(lock);
    CHECK(hf_lock_cause(lock) == HF_CAUSE_GONE);
    EXPECT(HF_STALE, hf_lock_release(lock, &ctx->err));
}

static void c8_broken_lock_is_followed_by_its_delay(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_options opt = options(LONG_MS, 0);

    opt.lock_delay_ms = HF_DELAY_MAX_MS;
    hf_lock *lock = TAKE(ctx, client, name, opt);
    EXPECT(HF_OK, hf_break(client, name, HF_NTS, hf_lock_ticket(lock), 1, &ctx->err));
    CHECK(look_at(client, name).place == HF_PLACE_LINGERING);
    CHECK(look_at(client, name).remaining_ms <= HF_DELAY_MAX_MS);
    EXPECT(HF_BUSY, probe(client, name));
    EXPECT(HF_OK, hf_break(client, name, HF_NTS, hf_lock_ticket(lock), 1, &ctx->err));
    EXPECT(HF_OK, probe(client, name));
    EXPECT(HF_STALE, hf_lock_release(lock, &ctx->err));
}

static void c8_shorter_delay_does_not_cut_a_longer_one(struct ctx *ctx)
{
    static const int64_t delays_ms[] = {HF_DELAY_MAX_MS, 200};
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *locks[2];

    for (size_t i = 0; i < 2; i++) {
        hf_options opt = shared(LONG_MS, 0);
        opt.lock_delay_ms = delays_ms[i];
        locks[i] = TAKE(ctx, client, name, opt);
    }
    for (size_t i = 0; i < 2; i++)
        EXPECT(HF_OK, hf_break(client, name, HF_NTS, hf_lock_ticket(locks[i]), 1, &ctx->err));
    await_count(client, name, HF_PLACE_LINGERING, 1);
    CHECK(look_at(client, name).remaining_ms > HF_DELAY_MAX_MS / 2);
    EXPECT(HF_BUSY, probe(client, name));
    EXPECT(HF_OK, hf_break(client, name, HF_NTS, hf_lock_ticket(locks[0]), 1, &ctx->err));
    for (size_t i = 0; i < 2; i++)
        EXPECT(HF_STALE, hf_lock_release(locks[i], &ctx->err));
}

static void c9_one_reader_of_several_is_broken(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *stays = TAKE(ctx, client, name, shared(LONG_MS, 0));
    hf_lock *broken = TAKE(ctx, client, name, shared(LONG_MS, 0));
    struct bid writer;

    bid_queue(&writer, client, name, options(LONG_MS, HF_FOREVER), 1);
    EXPECT(HF_OK, hf_break(client, name, HF_NTS, hf_lock_ticket(broken), 1, &ctx->err));
    CHECK(count_place(client, name, HF_PLACE_INSIDE) == 1);
    EXPECT(HF_OK, hf_lock_renew(stays, &ctx->err));
    EXPECT(HF_LOST, hf_lock_renew(broken, &ctx->err));
    CHECK(!bid_is_done(&writer));
    EXPECT(HF_OK, hf_lock_release(stays, &ctx->err));
    EXPECT(HF_STALE, hf_lock_release(broken, &ctx->err));
    EXPECT(HF_OK, hf_lock_release(bid_join_lock(&writer), &ctx->err));
}

static void c5_broken_waiter_goes_to_the_end_of_the_queue(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, client, name, options(LONG_MS, 0));
    hf_query query = {.size = sizeof query, .name = name, .name_len = strlen(name)};
    struct bid first, second;
    hf_view *view;

    bid_queue(&first, client, name, options(1000, HF_FOREVER), 1);
    bid_queue(&second, client, name, options(1000, HF_FOREVER), 2);
    EXPECT(HF_OK, hf_inspect(client, &query, &view, &ctx->err));
    EXPECT(HF_OK, hf_break(client, name, HF_NTS, hf_view_entry(view, 1)->ticket, 0, &ctx->err));
    hf_view_free(view);
    await_count(client, name, HF_PLACE_WAITING, 2); /* it bids anew, with a new ticket */
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    EXPECT(HF_OK, hf_lock_release(bid_join_lock(&second), &ctx->err));
    EXPECT(HF_OK, hf_lock_release(bid_join_lock(&first), &ctx->err));
    CHECK(second.order < first.order);
}

static void c3_break_needs_the_right_ticket(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, client, name, options(LONG_MS, 0));
    const char *ticket = hf_lock_ticket(lock);

    EXPECT(HF_NOT_FOUND, hf_break(client, name_of(ctx, "b"), HF_NTS, ticket, 1, &ctx->err));
    EXPECT(HF_NOT_FOUND,
           hf_break(client, name, HF_NTS, "0123456789abcdef0123456789abcdef", 1, &ctx->err));
    EXPECT(HF_INVALID, hf_break(client, name, HF_NTS, "short", 1, &ctx->err));
    EXPECT(HF_INVALID, hf_break(client, name, HF_NTS, NULL, 1, &ctx->err));
    EXPECT(HF_OK, hf_lock_renew(lock, &ctx->err));
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
}

#define BREAK HF_CAN_BREAK

const struct conformance_case cases_broken[] = {
    CASE(BREAK | HF_CAN_NEVER, c3_broken_lock_without_a_lease_opens_at_once),
    CASE(BREAK | HF_CAN_LEASE, c3_broken_lock_stays_closed_until_its_lease_ends),
    CASE(BREAK, c3_lock_broken_now_opens_at_once),
    CASE(BREAK, c7_keeper_learns_that_the_lock_was_broken),
    CASE(BREAK | HF_CAN_DELAY, c8_broken_lock_is_followed_by_its_delay),
    CASE(BREAK | HF_CAN_SHARE | HF_CAN_DELAY, c8_shorter_delay_does_not_cut_a_longer_one),
    CASE(BREAK | HF_CAN_SHARE, c9_one_reader_of_several_is_broken),
    CASE(BREAK | HF_CAN_QUEUE, c5_broken_waiter_goes_to_the_end_of_the_queue),
    CASE(BREAK, c3_break_needs_the_right_ticket),
    {0},
};
