/* C3, leases: the store's clock decides, and the client gives up first. */
#include "harness.h"

static hf_options by_hand(int64_t ttl_ms)
{
    hf_options opt = options(ttl_ms, 0);

    opt.by_hand = 1;
    return opt;
}

static void c3_lease_that_runs_out_is_taken_over(struct ctx *ctx)
{
    hf_client *one = open_client(ctx), *other = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *gone = TAKE(ctx, one, name, by_hand(SHORT_MS));
    hf_lock *lock = TAKE(ctx, other, name, options(LONG_MS, HF_FOREVER));

    /* At this moment the first must know already. */
    CHECK(hf_lock_state(gone) == HF_STATE_LOST);
    CHECK(hf_lock_cause(gone) == HF_CAUSE_EXPIRED);
    CHECK(hf_lock_remaining_ms(gone) == 0);
    EXPECT(HF_STALE, hf_lock_release(gone, &ctx->err));
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
}

static void c3_lease_is_not_cut_short(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *gone = TAKE(ctx, client, name, by_hand(SHORT_MS));
    int64_t granted_ms = now_ms(); /* the store gave it no later than now */
    int64_t remaining_ms = hf_lock_remaining_ms(gone);
    hf_lock *lock = TAKE(ctx, client, name, options(LONG_MS, HF_FOREVER));

    CHECK(now_ms() - granted_ms >= remaining_ms);
    EXPECT(HF_STALE, hf_lock_release(gone, &ctx->err));
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
}

static void c3_remaining_time_is_on_the_safe_side(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, client, name, by_hand(5000));

    /* 1 % and a margin of 2 % are taken off, and what has passed by the store's own account. */
    CHECK(hf_lock_remaining_ms(lock) <= 5000 - 50 - 100);
    int64_t ours_ms = hf_lock_remaining_ms(lock), asked_ms = now_ms();
    int64_t stores_ms = look_at(client, name).remaining_ms;
    CHECK(ours_ms <= stores_ms + (now_ms() - asked_ms));
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
}

static void c3_keeper_keeps_it_far_beyond_its_lease(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, client, name, options(1500, 0));
    char ticket[HF_TICKET_SIZE];

    snprintf(ticket, sizeof ticket, "%s", hf_lock_ticket(lock));
    await_age(now_ms(), 2200);
    CHECK(hf_lock_state(lock) != HF_STATE_LOST);
    CHECK(strcmp(look_at(client, name).ticket, ticket) == 0);
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
}

static void c3_keeper_keeps_many_at_once(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    hf_lock *locks[40];
    char suffix[16];

    for (size_t i = 0; i < 40; i++) {
        snprintf(suffix, sizeof suffix, "%zu", i);
        locks[i] = TAKE(ctx, client, name_of(ctx, suffix), options(2000, 0));
    }
    await_age(now_ms(), 2600);
    for (size_t i = 0; i < 40; i++) {
        CHECK(hf_lock_state(locks[i]) != HF_STATE_LOST);
        EXPECT(HF_OK, hf_lock_release(locks[i], &ctx->err));
    }
}

static void c3_renewal_by_hand_restarts_the_lease(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, client, name, by_hand(1500));

    for (int i = 0; i < 3; i++) {
        await_age(now_ms(), 700);
        int64_t before_ms = hf_lock_remaining_ms(lock);
        EXPECT(HF_OK, hf_lock_renew(lock, &ctx->err));
        CHECK(hf_lock_remaining_ms(lock) > before_ms);
    }
    EXPECT(HF_BUSY, probe(client, name));
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
}

static void c3_renewal_comes_too_late(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *gone = TAKE(ctx, client, name, by_hand(SHORT_MS));

    await_free(client, name);
    EXPECT(HF_LOST, hf_lock_renew(gone, &ctx->err));
    CHECK(count_place(client, name, HF_PLACE_INSIDE) == 0);
    EXPECT(HF_STALE, hf_lock_release(gone, &ctx->err));
}

static void hold_for_ever(struct ctx *ctx, int fd, void *arg)
{
    TAKE(ctx, open_client(ctx), arg, options(500, 0));
    say(fd, 'h');
    hear(fd, '-');
}

static void c3_lock_of_a_killed_process_is_taken_over(struct ctx *ctx)
{
    const char *name = name_of(ctx, "a");
    struct actor holder = actor_start(ctx, hold_for_ever, (void *)name);
    hf_client *client = open_client(ctx);
    struct bid bid;

    hear(holder.fd, 'h');
    bid_queue(&bid, client, name, options(LONG_MS, HF_FOREVER), 1);
    actor_kill(&holder);
    EXPECT(HF_OK, hf_lock_release(bid_join_lock(&bid), &ctx->err));
}

static void hold_and_end(struct ctx *ctx, int fd, void *arg)
{
    TAKE(ctx, open_client(ctx), arg, options(LONG_MS, 0));
    say(fd, 'h');
}

static void c3_lease_outlives_the_connection(struct ctx *ctx)
{
    const char *name = name_of(ctx, "a");
    struct actor holder = actor_start(ctx, hold_and_end, (void *)name);
    hf_client *client = open_client(ctx);

    hear(holder.fd, 'h');
    actor_join(&holder);
    EXPECT(HF_BUSY, probe(client, name));
    EXPECT(HF_OK, hf_break(client, name, HF_NTS, look_at(client, name).ticket, 1, &ctx->err));
}

static void c3_lease_out_of_bounds_is_refused(struct ctx *ctx)
{
    static const int64_t wrong_ms[] = {1, HF_TTL_MIN_MS - 1, HF_TTL_MAX_MS + 1, -2, INT64_MIN};
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");

    for (size_t i = 0; i < sizeof wrong_ms / sizeof wrong_ms[0]; i++) {
        hf_options opt = options(wrong_ms[i], 0);
        hf_lock *none;
        EXPECT(HF_INVALID, hf_acquire(client, name, HF_NTS, &opt, &none, &ctx->err));
    }
    hf_lock *lock = TAKE(ctx, client, name, options(HF_TTL_MAX_MS, 0));
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
}

static void c13_max_hold_ends_it_although_it_could_be_renewed(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_options opt = options(500, 0);

    opt.max_hold_ms = 700;
    int64_t asked_ms = now_ms();
    hf_lock *lock = TAKE(ctx, client, name, opt);
    CHECK(hf_lock_remaining_ms(lock) <= 700);
    await_lost(lock);
    CHECK(hf_lock_cause(lock) == HF_CAUSE_MAX_HOLD);
    CHECK(now_ms() - asked_ms >= 699);
    await_free(client, name);
    EXPECT(HF_STALE, hf_lock_release(lock, &ctx->err));
}

static void c3_options_that_make_no_sense_are_refused(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_options wrong[7];
    hf_lock *none;

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        wrong[i] = options(LONG_MS, 0);
    wrong[0].size = 0;
    wrong[1].mode = (hf_mode)7;
    wrong[2].lock_delay_ms = HF_DELAY_MAX_MS + 1;
    wrong[3].lock_delay_ms = -1;
    wrong[4].wait_ms = -7;
    wrong[5].max_hold_ms = -1;
    wrong[6].owner = UINT64_C(1) << 63; /* the library's own */
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        EXPECT(HF_INVALID, hf_acquire(client, name, HF_NTS, &wrong[i], &none, &ctx->err));
}

#define LEASE HF_CAN_LEASE

const struct conformance_case cases_lease[] = {
    CASE(LEASE, c3_lease_that_runs_out_is_taken_over),
    CASE(LEASE, c3_lease_is_not_cut_short),
    CASE(LEASE, c3_remaining_time_is_on_the_safe_side),
    CASE(0, c3_keeper_keeps_it_far_beyond_its_lease),
    CASE(0, c3_keeper_keeps_many_at_once),
    CASE(LEASE, c3_renewal_by_hand_restarts_the_lease),
    CASE(LEASE, c3_renewal_comes_too_late),
    CASE(HF_CAN_PROCESS, c3_lock_of_a_killed_process_is_taken_over),
    CASE(LEASE | HF_CAN_PROCESS | HF_CAN_BREAK, c3_lease_outlives_the_connection),
    CASE(0, c3_lease_out_of_bounds_is_refused),
    CASE(0, c3_options_that_make_no_sense_are_refused),
    CASE(LEASE, c13_max_hold_ends_it_although_it_could_be_renewed),
    {0},
};
