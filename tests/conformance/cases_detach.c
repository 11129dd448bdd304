/* C2 by ticket: a lock can be left in the store and taken over by whoever knows its ticket, and by
 * nobody else. */
#include "harness.h"

#define WRONG_TICKET "00000000000000000000000000000000"

static void keep_ticket(const hf_lock *lock, char ticket[HF_TICKET_SIZE])
{
    snprintf(ticket, HF_TICKET_SIZE, "%s", hf_lock_ticket(lock));
}

static void c2_detached_lock_stays_and_can_be_adopted(struct ctx *ctx)
{
    hf_client *one = open_client(ctx), *other = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, one, name, options(LONG_MS, 0));
    hf_options opt = options(0, 0);
    char ticket[HF_TICKET_SIZE];

    keep_ticket(lock, ticket);
    EXPECT(HF_OK, hf_lock_detach(lock, &ctx->err));
    EXPECT(HF_BUSY, probe(one, name));
    EXPECT(HF_OK, hf_adopt(other, name, HF_NTS, ticket, &opt, &lock, &ctx->err));
    CHECK(strcmp(hf_lock_ticket(lock), ticket) == 0);
    CHECK(hf_lock_state(lock) == HF_STATE_HELD);
    CHECK(hf_lock_remaining_ms(lock) > 0 && hf_lock_remaining_ms(lock) <= LONG_MS);
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    EXPECT(HF_OK, probe(one, name));
}

static void c4_adopted_lock_has_the_same_generation(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, client, name, options(LONG_MS, 0));
    uint64_t generation = generation_of(lock);
    hf_options opt = options(0, 0);
    char ticket[HF_TICKET_SIZE];

    keep_ticket(lock, ticket);
    EXPECT(HF_OK, hf_lock_detach(lock, &ctx->err));
    EXPECT(HF_OK, hf_adopt(client, name, HF_NTS, ticket, &opt, &lock, &ctx->err));
    CHECK(generation_of(lock) == generation);
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
}

static void c2_wrong_ticket_adopts_nothing(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, client, name, options(LONG_MS, 0)), *none;
    hf_options opt = options(0, 0);

    EXPECT(HF_STALE, hf_adopt(client, name, HF_NTS, WRONG_TICKET, &opt, &none, &ctx->err));
    EXPECT(HF_STALE, hf_adopt(client, name_of(ctx, "b"), HF_NTS, hf_lock_ticket(lock), &opt, &none,
                              &ctx->err));
    EXPECT(HF_INVALID, hf_adopt(client, name, HF_NTS, "no ticket", &opt, &none, &ctx->err));
    EXPECT(HF_INVALID, hf_adopt(client, name, HF_NTS, NULL, &opt, &none, &ctx->err));
    CHECK(count_place(client, name, HF_PLACE_INSIDE) == 1);
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
}

static void c2_released_ticket_adopts_nothing(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, client, name, options(LONG_MS, 0)), *none;
    hf_options opt = options(0, 0);
    char ticket[HF_TICKET_SIZE];

    keep_ticket(lock, ticket);
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    EXPECT(HF_STALE, hf_adopt(client, name, HF_NTS, ticket, &opt, &none, &ctx->err));
}

static void c3_detached_lock_lasts_as_long_as_its_lease(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, client, name, options(SHORT_MS, 0)), *none;
    hf_options opt = options(0, 0);
    char ticket[HF_TICKET_SIZE];

    keep_ticket(lock, ticket);
    EXPECT(HF_OK, hf_lock_detach(lock, &ctx->err));
    await_free(client, name); /* nobody renews it */
    EXPECT(HF_STALE, hf_adopt(client, name, HF_NTS, ticket, &opt, &none, &ctx->err));
}

static void c3_adopted_lock_is_kept_alive(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, client, name, options(1500, 0));
    hf_options opt = options(0, 0);
    char ticket[HF_TICKET_SIZE];

    keep_ticket(lock, ticket);
    EXPECT(HF_OK, hf_lock_detach(lock, &ctx->err));
    EXPECT(HF_OK, hf_adopt(client, name, HF_NTS, ticket, &opt, &lock, &ctx->err));
    await_age(now_ms(), 2200);
    CHECK(hf_lock_state(lock) != HF_STATE_LOST);
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
}

static void c7_lost_lock_cannot_be_detached(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_options opt = options(SHORT_MS, 0);

    opt.by_hand = 1;
    hf_lock *lock = TAKE(ctx, client, name, opt);
    await_lost(lock);
    EXPECT(HF_LOST, hf_lock_detach(lock, &ctx->err));
    EXPECT(HF_STALE, hf_lock_release(lock, &ctx->err)); /* the handle was as before */
    await_free(client, name);
}

static void leave_it(struct ctx *ctx, int fd, void *arg)
{
    char *ticket = arg;
    hf_lock *lock = TAKE(ctx, open_client(ctx), name_of(ctx, "a"), options(LONG_MS, 0));

    keep_ticket(lock, ticket);
    EXPECT(HF_OK, hf_lock_detach(lock, &ctx->err));
    say(fd, 'd');
}

static void c2_process_takes_over_from_another(struct ctx *ctx)
{
    char *ticket = shared_memory(HF_TICKET_SIZE);
    struct actor first = actor_start(ctx, leave_it, ticket);
    hf_options opt = options(0, 0);
    hf_lock *lock;

    hear(first.fd, 'd');
    actor_join(&first);
    hf_client *client = open_client(ctx);
    EXPECT(HF_OK, hf_adopt(client, name_of(ctx, "a"), HF_NTS, ticket, &opt, &lock, &ctx->err));
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
}

const struct conformance_case cases_detach[] = {
    CASE(HF_CAN_DETACH, c2_detached_lock_stays_and_can_be_adopted),
    CASE(HF_CAN_DETACH | HF_CAN_TOKEN, c4_adopted_lock_has_the_same_generation),
    CASE(HF_CAN_DETACH, c2_wrong_ticket_adopts_nothing),
    CASE(HF_CAN_DETACH, c2_released_ticket_adopts_nothing),
    CASE(HF_CAN_DETACH, c3_detached_lock_lasts_as_long_as_its_lease),
    CASE(HF_CAN_DETACH, c3_adopted_lock_is_kept_alive),
    CASE(HF_CAN_DETACH, c7_lost_lock_cannot_be_detached),
    CASE(HF_CAN_DETACH | HF_CAN_PROCESS, c2_process_takes_over_from_another),
    {0},
};
