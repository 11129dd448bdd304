/* C11, reentrancy: counted per owner, never outliving the lease, and no wait for oneself. */
#include "harness.h"

static hf_options reentrant(uint64_t owner)
{
    hf_options opt = options(LONG_MS, HF_FOREVER);

    opt.reentrant = 1;
    opt.owner = owner;
    return opt;
}

static void c11_owner_enters_again_and_releases_as_often(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, client, name, reentrant(7));

    CHECK(TAKE(ctx, client, name, reentrant(7)) == lock);
    CHECK(TAKE(ctx, client, name, reentrant(7)) == lock);
    CHECK(count_place(client, name, HF_PLACE_INSIDE) == 1);
    for (int i = 0; i < 2; i++) {
        EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
        EXPECT(HF_BUSY, probe(client, name));
    }
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    EXPECT(HF_OK, probe(client, name));
}

static void c11_thread_is_the_owner_by_default(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_options other = reentrant(0);
    struct bid bid;
    hf_lock *lock = TAKE(ctx, client, name, reentrant(0));

    CHECK(TAKE(ctx, client, name, reentrant(0)) == lock);
    other.wait_ms = 0;
    bid_start(&bid, client, name, other); /* on a thread of its own */
    EXPECT(HF_BUSY, bid_join(&bid));
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
}

/* The system gives the identity of a thread that has ended to the next one. */
static void c11_thread_is_not_the_owner_of_what_an_ended_one_took(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_options opt = reentrant(0);
    struct bid first, second;

    opt.wait_ms = 0;
    bid_start(&first, client, name, opt);
    hf_lock *lock = bid_join_lock(&first);
    bid_start(&second, client, name, opt);
    EXPECT(HF_BUSY, bid_join(&second));
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
}

static void c11_key_makes_threads_one_owner(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, client, name, reentrant(7));
    struct bid bid;

    bid_start(&bid, client, name, reentrant(7));
    CHECK(bid_join_lock(&bid) == lock);
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    EXPECT(HF_OK, probe(client, name));
}

static void c11_second_plain_bid_is_a_deadlock_at_once(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_options plain = options(LONG_MS, HF_FOREVER);
    hf_lock *lock = TAKE(ctx, client, name, plain), *none;

    EXPECT(HF_DEADLOCK, hf_acquire(client, name, HF_NTS, &plain, &none, &ctx->err));
    plain.reentrant = 1; /* the first was not */
    EXPECT(HF_DEADLOCK, hf_acquire(client, name, HF_NTS, &plain, &none, &ctx->err));
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    plain.reentrant = 0;
    lock = TAKE(ctx, client, name, plain);
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
}

static void c11_stronger_mode_is_a_deadlock_at_once(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_options reader = reentrant(7), writer = reentrant(7);
    hf_lock *lock, *none;

    reader.mode = HF_SHARED;
    lock = TAKE(ctx, client, name, reader);
    EXPECT(HF_DEADLOCK, hf_acquire(client, name, HF_NTS, &writer, &none, &ctx->err));
    CHECK(TAKE(ctx, client, name, reader) == lock);
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
}

static void c11_weaker_mode_is_held_already(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_options reader = reentrant(7);
    hf_lock *lock = TAKE(ctx, client, name, reentrant(7));

    reader.mode = HF_SHARED;
    CHECK(TAKE(ctx, client, name, reader) == lock);
    EXPECT(HF_BUSY, probe_shared(client, name));
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
}

static void c11_lost_lock_is_not_entered_again(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_options opt = reentrant(7);
    hf_lock *none;

    opt.ttl_ms = SHORT_MS;
    opt.by_hand = 1;
    hf_lock *lock = TAKE(ctx, client, name, opt);
    CHECK(TAKE(ctx, client, name, opt) == lock);
    await_lost(lock);
    EXPECT(HF_LOST, hf_acquire(client, name, HF_NTS, &opt, &none, &ctx->err));
    EXPECT(HF_STALE, hf_lock_release(lock, &ctx->err));
    EXPECT(HF_LOST, hf_acquire(client, name, HF_NTS, &opt, &none, &ctx->err));
    EXPECT(HF_STALE, hf_lock_release(lock, &ctx->err));
    /* With the last handle the loss is over, and a new bid is a new bid. */
    lock = TAKE(ctx, client, name, reentrant(7));
    CHECK(hf_lock_state(lock) == HF_STATE_HELD);
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
}

static void c11_lost_lock_is_not_entered_while_another_holds_it(struct ctx *ctx)
{
    hf_client *client = open_client(ctx), *other = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_options opt = reentrant(7);
    hf_lock *none;

    opt.ttl_ms = SHORT_MS;
    opt.by_hand = 1;
    hf_lock *lost = TAKE(ctx, client, name, opt);
    hf_lock *lock = TAKE(ctx, other, name, options(LONG_MS, HF_FOREVER));
    EXPECT(HF_LOST, hf_acquire(client, name, HF_NTS, &opt, &none, &ctx->err));
    EXPECT(HF_STALE, hf_lock_release(lost, &ctx->err));
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
}

static void c11_lock_held_twice_is_not_detached(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, client, name, reentrant(7));

    CHECK(TAKE(ctx, client, name, reentrant(7)) == lock);
    EXPECT(HF_INVALID, hf_lock_detach(lock, &ctx->err));
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
}

static void c11_adopting_is_not_entering_again(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_options reader = reentrant(7), other = reentrant(8);
    char ticket[HF_TICKET_SIZE];
    hf_lock *none;

    reader.mode = other.mode = HF_SHARED;
    hf_lock *lock = TAKE(ctx, client, name, reader);
    hf_lock *detached = TAKE(ctx, client, name, other);
    snprintf(ticket, sizeof ticket, "%s", hf_lock_ticket(detached));
    EXPECT(HF_OK, hf_lock_detach(detached, &ctx->err));
    EXPECT(HF_DEADLOCK, hf_adopt(client, name, HF_NTS, ticket, &reader, &none, &ctx->err));
    EXPECT(HF_OK, hf_adopt(client, name, HF_NTS, ticket, &other, &detached, &ctx->err));
    EXPECT(HF_OK, hf_lock_release(detached, &ctx->err));
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
}

static void c11_owner_cannot_adopt_what_it_has(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_options opt = options(LONG_MS, 0);
    hf_lock *lock = TAKE(ctx, client, name, opt), *none;

    EXPECT(HF_DEADLOCK,
           hf_adopt(client, name, HF_NTS, hf_lock_ticket(lock), &opt, &none, &ctx->err));
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
}

const struct conformance_case cases_reentry[] = {
    CASE(0, c11_owner_enters_again_and_releases_as_often),
    CASE(0, c11_thread_is_the_owner_by_default),
    CASE(0, c11_thread_is_not_the_owner_of_what_an_ended_one_took),
    CASE(0, c11_key_makes_threads_one_owner),
    CASE(0, c11_second_plain_bid_is_a_deadlock_at_once),
    CASE(HF_CAN_SHARE, c11_stronger_mode_is_a_deadlock_at_once),
    CASE(HF_CAN_SHARE, c11_weaker_mode_is_held_already),
    CASE(HF_CAN_LEASE, c11_lost_lock_is_not_entered_again),
    CASE(HF_CAN_LEASE, c11_lost_lock_is_not_entered_while_another_holds_it),
    CASE(HF_CAN_DETACH, c11_lock_held_twice_is_not_detached),
    CASE(HF_CAN_SHARE | HF_CAN_DETACH, c11_adopting_is_not_entering_again),
    CASE(HF_CAN_DETACH, c11_owner_cannot_adopt_what_it_has),
    {0},
};
