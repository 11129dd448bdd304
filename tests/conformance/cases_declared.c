/* What a store declares is what it does: a capability it has works, and a call that needs one it
 * lacks says HF_UNSUPPORTED and leaves nothing behind. These cases run on every store. */
#include "harness.h"

static int expected(struct ctx *ctx, uint32_t capability)
{
    return ctx->can & capability ? HF_OK : HF_UNSUPPORTED;
}

static void check_acquire(struct ctx *ctx, uint32_t capability, hf_options opt)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *lock = NULL;

    EXPECT(expected(ctx, capability), hf_acquire(client, name, HF_NTS, &opt, &lock, &ctx->err));
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
}

static void c9_shared_locks_are_as_declared(struct ctx *ctx)
{
    check_acquire(ctx, HF_CAN_SHARE, shared(LONG_MS, 0));
}

static void c1_limits_are_as_declared(struct ctx *ctx)
{
    hf_options opt = shared(LONG_MS, 0);

    opt.limit = 2;
    check_acquire(ctx, HF_CAN_LIMIT, opt);
}

static void c3_never_expiring_locks_are_as_declared(struct ctx *ctx)
{
    check_acquire(ctx, HF_CAN_NEVER, options(HF_NEVER, 0));
}

static void c8_lock_delay_is_as_declared(struct ctx *ctx)
{
    hf_options opt = options(LONG_MS, 0);

    opt.lock_delay_ms = 1000;
    check_acquire(ctx, HF_CAN_DELAY, opt);
}

static void c20_cached_locks_are_as_declared(struct ctx *ctx)
{
    hf_options opt = options(LONG_MS, 0);

    opt.cached = 1;
    check_acquire(ctx, HF_CAN_CACHE, opt);
    close_client(ctx, ctx->clients[0]); /* which may have kept it */
}

static void c4_tokens_are_as_declared(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    hf_lock *lock = TAKE(ctx, client, name_of(ctx, "a"), options(LONG_MS, 0));
    char sequencer[HF_SEQUENCER_MAX];
    uint64_t generation = 0;

    EXPECT(expected(ctx, HF_CAN_TOKEN), hf_lock_generation(lock, &generation));
    EXPECT(expected(ctx, HF_CAN_TOKEN), hf_lock_sequencer(lock, sequencer, sizeof sequencer));
    CHECK((generation > 0) == ((ctx->can & HF_CAN_TOKEN) != 0));
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
}

static void c10_checking_is_as_declared(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    hf_lock *lock = TAKE(ctx, client, name_of(ctx, "a"), options(LONG_MS, 0));
    char sequencer[HF_SEQUENCER_MAX];

    if (ctx->can & HF_CAN_TOKEN) {
        EXPECT(HF_OK, hf_lock_sequencer(lock, sequencer, sizeof sequencer));
        EXPECT(expected(ctx, HF_CAN_CHECK), hf_check(client, sequencer, &ctx->err));
    } else {
        CHECK(!(ctx->can & HF_CAN_CHECK));
    }
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
}

static void c3_breaking_is_as_declared(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, client, name, options(LONG_MS, 0));

    EXPECT(expected(ctx, HF_CAN_BREAK),
           hf_break(client, name, HF_NTS, hf_lock_ticket(lock), 1, &ctx->err));
    EXPECT(ctx->can & HF_CAN_BREAK ? HF_STALE : HF_OK, hf_lock_release(lock, &ctx->err));
}

static void c2_detaching_is_as_declared(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, client, name, options(LONG_MS, 0));
    hf_options opt = options(LONG_MS, 0);
    char ticket[HF_TICKET_SIZE];

    snprintf(ticket, sizeof ticket, "%s", hf_lock_ticket(lock));
    EXPECT(expected(ctx, HF_CAN_DETACH), hf_lock_detach(lock, &ctx->err));
    if (ctx->can & HF_CAN_DETACH)
        EXPECT(HF_OK, hf_adopt(client, name, HF_NTS, ticket, &opt, &lock, &ctx->err));
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
}

static void c14_staying_closed_is_as_declared(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, client, name, options(LONG_MS, 0));

    EXPECT(expected(ctx, HF_CAN_AT_LEAST), hf_lock_release_after(lock, 1, &ctx->err));
    if (!(ctx->can & HF_CAN_AT_LEAST))
        EXPECT(HF_OK, hf_lock_release(lock, &ctx->err)); /* it was left as it is */
    lock = TAKE(ctx, client, name, options(LONG_MS, HF_FOREVER));
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
}

static void c15_values_are_as_declared(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    hf_lock *lock = TAKE(ctx, client, name_of(ctx, "a"), options(LONG_MS, 0));
    char buf[HF_VALUE_MAX];
    size_t len;

    EXPECT(expected(ctx, HF_CAN_VALUE),
           hf_lock_value(lock, buf, sizeof buf, &len, NULL, &ctx->err));
    EXPECT(expected(ctx, HF_CAN_VALUE), hf_lock_set_value(lock, NULL, 0, &ctx->err));
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
}

static void c16_telling_is_as_declared(struct ctx *ctx)
{
    hf_options opt = options(LONG_MS, 0);

    opt.wanted = 1;
    check_acquire(ctx, HF_CAN_WANTED, opt);
}

static void c21_a_trail_is_as_declared(struct ctx *ctx)
{
    char url[2000];
    hf_client *client = open_client(ctx), *writer = NULL;
    hf_trail *trail = NULL;

    snprintf(url, sizeof url, "%s%chistory=6", ctx->url, strchr(ctx->url, '?') ? '&' : '?');
    EXPECT(expected(ctx, HF_CAN_HISTORY), hf_open(url, NULL, &writer, &ctx->err));
    EXPECT(expected(ctx, HF_CAN_HISTORY), hf_history(client, NULL, &trail, &ctx->err));
    hf_trail_free(trail);
    hf_close(writer);
}

const struct conformance_case cases_declared[] = {
    CASE(0, c9_shared_locks_are_as_declared),
    CASE(0, c1_limits_are_as_declared),
    CASE(0, c3_never_expiring_locks_are_as_declared),
    CASE(0, c8_lock_delay_is_as_declared),
    CASE(0, c4_tokens_are_as_declared),
    CASE(0, c20_cached_locks_are_as_declared),
    CASE(0, c10_checking_is_as_declared),
    CASE(0, c3_breaking_is_as_declared),
    CASE(0, c2_detaching_is_as_declared),
    CASE(0, c14_staying_closed_is_as_declared),
    CASE(0, c15_values_are_as_declared),
    CASE(0, c16_telling_is_as_declared),
    CASE(0, c21_a_trail_is_as_declared),
    {0},
};
