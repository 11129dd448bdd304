/* C8, lock-delay: after a holder that vanished the lock stays closed; after a release it opens at
 * once. */
#include "harness.h"

#define DELAY_MS 600
#define CLOCK_MS 20 /* the store's clock may run a little fast */

static hf_options delayed(int64_t ttl_ms, int64_t delay_ms)
{
    hf_options opt = options(ttl_ms, 0);

    opt.by_hand = 1;
    opt.lock_delay_ms = delay_ms;
    return opt;
}

static void c8_vanished_holder_keeps_it_closed(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    int64_t asked_ms = now_ms(); /* the lease cannot have begun before */
    hf_lock *gone = TAKE(ctx, client, name, delayed(SHORT_MS, DELAY_MS));

    await_lost(gone);
    EXPECT(HF_BUSY, probe(client, name));
    await_count(client, name, HF_PLACE_LINGERING, 1);
    hf_lock *lock = TAKE(ctx, client, name, options(LONG_MS, HF_FOREVER));
    CHECK(now_ms() - asked_ms >= SHORT_MS + DELAY_MS - CLOCK_MS);
    EXPECT(HF_STALE, hf_lock_release(gone, &ctx->err));
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
}

static void hold_with_delay(struct ctx *ctx, int fd, void *arg)
{
    hf_options opt = options(1000, 0);

    opt.lock_delay_ms = DELAY_MS;
    TAKE(ctx, open_client(ctx), arg, opt);
    say(fd, 'h');
    hear(fd, '-');
}

static void c8_killed_holder_keeps_it_closed(struct ctx *ctx)
{
    const char *name = name_of(ctx, "a");
    struct actor holder = actor_start(ctx, hold_with_delay, (void *)name);
    hf_client *client = open_client(ctx);

    hear(holder.fd, 'h');
    int64_t killed_ms = now_ms();
    actor_kill(&holder);
    hf_lock *lock = TAKE(ctx, client, name, options(LONG_MS, HF_FOREVER));
    CHECK(now_ms() - killed_ms >= DELAY_MS - CLOCK_MS); /* it was alive then */
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
}

static void c8_release_opens_it_at_once(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, client, name, delayed(LONG_MS, HF_DELAY_MAX_MS));

    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    EXPECT(HF_OK, probe(client, name));
}

static void c8_release_after_a_wait_opens_it_at_once(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, client, name, options(LONG_MS, 0));
    hf_options opt = delayed(LONG_MS, HF_DELAY_MAX_MS);
    struct bid bid;

    opt.wait_ms = HF_FOREVER;
    bid_queue(&bid, client, name, opt, 1);
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    lock = bid_join_lock(&bid);
    CHECK(look_at(client, name).claimed);
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    EXPECT(HF_OK, probe(client, name));
}

static void c8_late_release_does_not_cut_the_delay(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *gone = TAKE(ctx, client, name, delayed(SHORT_MS, HF_DELAY_MAX_MS));

    await_count(client, name, HF_PLACE_LINGERING, 1);
    char ticket[HF_TICKET_SIZE];
    snprintf(ticket, sizeof ticket, "%s", hf_lock_ticket(gone));
    EXPECT(HF_LOST, hf_lock_renew(gone, &ctx->err));
    EXPECT(HF_STALE, hf_lock_release(gone, &ctx->err));
    CHECK(count_place(client, name, HF_PLACE_LINGERING) == 1);
    EXPECT(HF_BUSY, probe(client, name));
    EXPECT(HF_OK, hf_break(client, name, HF_NTS, ticket, 1, &ctx->err));
    EXPECT(HF_OK, probe(client, name));
}

static void c8_grant_that_nobody_knew_of_leaves_no_delay(struct ctx *ctx)
{
    hf_options opt = options(1000, HF_FOREVER);

    opt.lock_delay_ms = HF_DELAY_MAX_MS;
    pass_over_frozen(ctx, opt, options(1000, HF_FOREVER));
}

/* The store has let it in, but the answer is lost for longer than its lease. */
static void c8_bid_that_is_given_up_leaves_no_delay(struct ctx *ctx)
{
    hf_client *client = open_fault(ctx, "slow=attempt:*:1h&op_timeout=1s"),
              *plain = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_options opt = delayed(SHORT_MS, HF_DELAY_MAX_MS);
    hf_lock *none;

    EXPECT(HF_UNAVAILABLE, hf_acquire(client, name, HF_NTS, &opt, &none, &ctx->err));
    EXPECT(HF_OK, probe(plain, name));
}

static void c8_grant_that_came_too_late_is_not_waited_for(struct ctx *ctx)
{
    hf_client *client = open_fault(ctx, "slow=attempt:1:500ms");
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, client, name, delayed(SHORT_MS, HF_DELAY_MAX_MS));

    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
}

static void c8_vanished_reader_keeps_writers_out_only(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_options opt = delayed(SHORT_MS, HF_DELAY_MAX_MS);

    opt.mode = HF_SHARED;
    hf_lock *gone = TAKE(ctx, client, name, opt);
    await_count(client, name, HF_PLACE_LINGERING, 1);
    EXPECT(HF_OK, probe_shared(client, name));
    EXPECT(HF_BUSY, probe(client, name));
    EXPECT(HF_OK, hf_break(client, name, HF_NTS, hf_lock_ticket(gone), 1, &ctx->err));
    EXPECT(HF_OK, probe(client, name));
    EXPECT(HF_STALE, hf_lock_release(gone, &ctx->err));
}

static void c8_max_hold_is_followed_by_the_delay(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_options opt = options(400, 0);

    opt.max_hold_ms = 300;
    opt.lock_delay_ms = HF_DELAY_MAX_MS;
    hf_lock *gone = TAKE(ctx, client, name, opt);
    await_count(client, name, HF_PLACE_LINGERING, 1);
    EXPECT(HF_OK, hf_break(client, name, HF_NTS, hf_lock_ticket(gone), 1, &ctx->err));
    EXPECT(HF_STALE, hf_lock_release(gone, &ctx->err));
}

#define DELAY (HF_CAN_DELAY | HF_CAN_LEASE)

const struct conformance_case cases_delay[] = {
    CASE(DELAY, c8_vanished_holder_keeps_it_closed),
    CASE(DELAY | HF_CAN_PROCESS, c8_killed_holder_keeps_it_closed),
    CASE(DELAY, c8_release_opens_it_at_once),
    CASE(DELAY, c8_release_after_a_wait_opens_it_at_once),
    CASE(DELAY | HF_CAN_BREAK, c8_late_release_does_not_cut_the_delay),
    CASE(DELAY | HF_CAN_PROCESS | HF_CAN_QUEUE, c8_grant_that_nobody_knew_of_leaves_no_delay),
    CASE(DELAY, c8_bid_that_is_given_up_leaves_no_delay),
    CASE(DELAY, c8_grant_that_came_too_late_is_not_waited_for),
    CASE(DELAY | HF_CAN_SHARE | HF_CAN_BREAK, c8_vanished_reader_keeps_writers_out_only),
    CASE(DELAY | HF_CAN_BREAK, c8_max_hold_is_followed_by_the_delay),
    {0},
};
