/* C4, generations that only rise, and C10, sequencers: checked by the store, and by a gate without
 * it. */
#include <ctype.h>

#include "harness.h"

static void c4_generation_rises_with_every_grant(struct ctx *ctx)
{
    hf_client *one = open_client(ctx), *other = open_client(ctx);
    const char *name = name_of(ctx, "a");
    uint64_t last = 0;

    /* The lock is free in between: the counter must not live in what a release removes. */
    for (int i = 0; i < 10; i++) {
        hf_lock *lock = TAKE(ctx, i % 2 ? one : other, name, options(LONG_MS, 0));
        CHECK(generation_of(lock) > last);
        last = generation_of(lock);
        EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    }
}

/* The one that has got it, whoever it is: a store without a queue has an order of its own. */
static struct bid *next_done(struct bid *bids, size_t count)
{
    int64_t began_ms = now_ms();

    for (;;) {
        for (size_t i = 0; i < count; i++) {
            if (!bids[i].joined && bid_is_done(&bids[i]))
                return &bids[i];
        }
        CHECK(now_ms() - began_ms < AWAIT_MS);
        await_age(now_ms(), 1);
    }
}

static void c4_generation_rises_on_hand_over(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, client, name, options(LONG_MS, 0));
    uint64_t last = generation_of(lock);
    struct bid bids[3];

    for (size_t i = 0; i < 3; i++)
        bid_queue(&bids[i], client, name, options(LONG_MS, HF_FOREVER), i + 1);
    for (size_t i = 0; i < 3; i++) {
        EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
        lock = bid_join_lock(next_done(bids, 3));
        CHECK(generation_of(lock) > last);
        last = generation_of(lock);
    }
    CHECK(look_at(client, name).generation == last);
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
}

static void c4_generation_rises_on_takeover(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_options opt = options(SHORT_MS, 0);

    opt.by_hand = 1;
    hf_lock *gone = TAKE(ctx, client, name, opt);
    hf_lock *lock = TAKE(ctx, client, name, options(LONG_MS, HF_FOREVER));
    CHECK(generation_of(lock) > generation_of(gone));
    EXPECT(HF_STALE, hf_lock_release(gone, &ctx->err));
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
}

static void c4_every_reader_has_a_generation_of_its_own(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *locks[4];

    for (size_t i = 0; i < 4; i++) {
        locks[i] = TAKE(ctx, client, name, shared(LONG_MS, 0));
        CHECK(i == 0 || generation_of(locks[i]) > generation_of(locks[i - 1]));
    }
    for (size_t i = 0; i < 4; i++)
        EXPECT(HF_OK, hf_lock_release(locks[i], &ctx->err));
}

static void c4_generation_stays_while_it_is_held(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, client, name, options(LONG_MS, 0));
    uint64_t generation = generation_of(lock);

    EXPECT(HF_OK, hf_lock_renew(lock, &ctx->err));
    CHECK(generation_of(lock) == generation);
    CHECK(look_at(client, name).generation == generation);
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
}

static void c4_generation_survives_a_purge(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, client, name, options(LONG_MS, 0));
    uint64_t last = generation_of(lock), count;

    EXPECT(HF_OK, hf_purge(client, 1, &count, &ctx->err)); /* not what is held */
    CHECK(count_place(client, name, HF_PLACE_INSIDE) == 1);
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    await_age(now_ms(), 5); /* older than what is to be kept */
    EXPECT(HF_OK, hf_purge(client, 1, &count, &ctx->err));
    lock = TAKE(ctx, client, name, options(LONG_MS, 0));
    CHECK(generation_of(lock) > last);
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
}

static void c4_generation_survives_a_reopening(struct ctx *ctx)
{
    const char *name = name_of(ctx, "a");
    uint64_t last = 0;

    for (int i = 0; i < 3; i++) {
        hf_client *client = open_client(ctx);
        hf_lock *lock = TAKE(ctx, client, name, options(LONG_MS, 0));
        CHECK(generation_of(lock) > last);
        last = generation_of(lock);
        EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
        close_client(ctx, client);
    }
}

static void sequencer_of(const hf_lock *lock, char sequencer[HF_SEQUENCER_MAX])
{
    EXPECT(HF_OK, hf_lock_sequencer(lock, sequencer, HF_SEQUENCER_MAX));
}

static void c10_sequencer_is_printable_and_keeps_the_ticket_secret(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    char name[HF_NAME_MAX], sequencer[HF_SEQUENCER_MAX];
    size_t prefix_len = strlen(ctx->prefix);
    hf_options opt = options(LONG_MS, 0);
    hf_lock *lock;

    memset(name, 0xfe, sizeof name);
    memcpy(name, ctx->prefix, prefix_len);
    name[prefix_len] = '\0';
    EXPECT(HF_OK, hf_acquire(client, name, sizeof name, &opt, &lock, &ctx->err));
    sequencer_of(lock, sequencer);
    for (const char *c = sequencer; *c != '\0'; c++)
        CHECK(isgraph((unsigned char)*c) && (unsigned char)*c < 0x7f);
    CHECK(strstr(sequencer, hf_lock_ticket(lock)) == NULL);
    CHECK(hf_lock_sequencer(lock, sequencer, 4) != HF_OK); /* no room: no half a proof */
    sequencer_of(lock, sequencer);
    EXPECT(HF_OK, hf_check(client, sequencer, &ctx->err));
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    EXPECT(HF_STALE, hf_check(client, sequencer, &ctx->err));
}

static void c10_check_knows_the_very_grant(struct ctx *ctx)
{
    hf_client *client = open_client(ctx), *other = open_client(ctx);
    const char *name = name_of(ctx, "a");
    char first[HF_SEQUENCER_MAX], second[HF_SEQUENCER_MAX];
    hf_lock *lock = TAKE(ctx, client, name, options(LONG_MS, 0));

    sequencer_of(lock, first);
    EXPECT(HF_OK, hf_check(other, first, &ctx->err));
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    EXPECT(HF_STALE, hf_check(other, first, &ctx->err));
    lock = TAKE(ctx, client, name, options(LONG_MS, 0));
    sequencer_of(lock, second);
    EXPECT(HF_OK, hf_check(other, second, &ctx->err));
    EXPECT(HF_STALE, hf_check(other, first, &ctx->err));
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
}

static void c10_check_of_a_lease_that_ran_out_is_stale(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    char sequencer[HF_SEQUENCER_MAX];
    hf_options opt = options(SHORT_MS, 0);

    opt.by_hand = 1;
    hf_lock *lock = TAKE(ctx, client, name, opt);
    sequencer_of(lock, sequencer);
    await_free(client, name);
    EXPECT(HF_STALE, hf_check(client, sequencer, &ctx->err));
    EXPECT(HF_STALE, hf_lock_release(lock, &ctx->err));
}

static void c10_check_of_readers_is_one_by_one(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    char first[HF_SEQUENCER_MAX], second[HF_SEQUENCER_MAX];
    hf_lock *one = TAKE(ctx, client, name, shared(LONG_MS, 0));
    hf_lock *two = TAKE(ctx, client, name, shared(LONG_MS, 0));

    sequencer_of(one, first);
    sequencer_of(two, second);
    EXPECT(HF_OK, hf_check(client, first, &ctx->err));
    EXPECT(HF_OK, hf_lock_release(one, &ctx->err));
    EXPECT(HF_STALE, hf_check(client, first, &ctx->err));
    EXPECT(HF_OK, hf_check(client, second, &ctx->err));
    EXPECT(HF_OK, hf_lock_release(two, &ctx->err));
}

static void c10_changed_sequencer_is_never_current(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, client, name, options(LONG_MS, 0));
    char sequencer[HF_SEQUENCER_MAX], changed[HF_SEQUENCER_MAX];

    sequencer_of(lock, sequencer);
    size_t name_from = strlen(sequencer) - strlen(name);
    for (size_t i = 0; sequencer[i] != '\0'; i++) {
        memcpy(changed, sequencer, sizeof changed);
        /* With another digit it could be the name of a case that runs beside this one, which has got
         * the same generation if it bid in the same microsecond. */
        if (i >= name_from)
            changed[i] = 'Z';
        else
            changed[i] = changed[i] == '1' ? '2' : '1';
        CHECK(hf_check(client, changed, &ctx->err) != HF_OK);
        memcpy(changed, sequencer, sizeof changed);
        changed[i] = '\0';
        CHECK(hf_check(client, changed, &ctx->err) != HF_OK);
    }
    EXPECT(HF_INVALID, hf_check(client, "", &ctx->err));
    EXPECT(HF_INVALID, hf_check(client, NULL, &ctx->err));
    EXPECT(HF_INVALID, hf_check(client, "nonsense", &ctx->err));
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
}

static void c10_gate_refuses_a_writer_that_was_overtaken(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    char old[HF_SEQUENCER_MAX], new[HF_SEQUENCER_MAX];
    hf_options opt = options(SHORT_MS, 0);
    uint64_t exclusive, highest;
    hf_gate *gate, *restarted;

    EXPECT(HF_OK, hf_gate_new(&gate));
    EXPECT(HF_OK, hf_gate_new(&restarted));
    opt.by_hand = 1;
    hf_lock *gone = TAKE(ctx, client, name, opt);
    sequencer_of(gone, old);
    EXPECT(HF_OK, hf_gate_pass(gate, old, &ctx->err));
    hf_lock *lock = TAKE(ctx, client, name, options(LONG_MS, HF_FOREVER));
    sequencer_of(lock, new);
    EXPECT(HF_OK, hf_gate_pass(gate, old, &ctx->err)); /* nobody newer was here yet */
    EXPECT(HF_OK, hf_gate_pass(gate, new, &ctx->err));
    EXPECT(HF_STALE, hf_gate_pass(gate, old, &ctx->err));
    EXPECT(HF_OK, hf_gate_levels(gate, name, HF_NTS, &exclusive, &highest));
    CHECK(exclusive == generation_of(lock) && highest == exclusive);
    EXPECT(HF_OK, hf_gate_restore(restarted, name, HF_NTS, exclusive, highest));
    EXPECT(HF_STALE, hf_gate_pass(restarted, old, &ctx->err));
    EXPECT(HF_STALE, hf_lock_release(gone, &ctx->err));
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    hf_gate_free(gate);
    hf_gate_free(restarted);
}

static void c10_gate_knows_readers_from_writers(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    char writer[HF_SEQUENCER_MAX], first[HF_SEQUENCER_MAX], second[HF_SEQUENCER_MAX];
    hf_gate *gate;

    hf_lock *lock = TAKE(ctx, client, name, options(LONG_MS, 0));
    sequencer_of(lock, writer);
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    hf_lock *one = TAKE(ctx, client, name, shared(LONG_MS, 0));
    hf_lock *two = TAKE(ctx, client, name, shared(LONG_MS, 0));
    sequencer_of(one, first);
    sequencer_of(two, second);
    EXPECT(HF_OK, hf_gate_new(&gate));
    EXPECT(HF_OK, hf_gate_pass(gate, second, &ctx->err));
    EXPECT(HF_OK, hf_gate_pass(gate, first, &ctx->err)); /* readers have no order among them */
    EXPECT(HF_STALE, hf_gate_pass(gate, writer, &ctx->err));
    EXPECT(HF_OK, hf_lock_release(one, &ctx->err));
    EXPECT(HF_OK, hf_lock_release(two, &ctx->err));
    lock = TAKE(ctx, client, name, options(LONG_MS, 0));
    sequencer_of(lock, writer);
    EXPECT(HF_OK, hf_gate_pass(gate, writer, &ctx->err));
    EXPECT(HF_STALE, hf_gate_pass(gate, second, &ctx->err));
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    hf_gate_free(gate);
}

static void c10_gate_has_no_order_for_limited_grants(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    char sequencer[HF_SEQUENCER_MAX];
    hf_options opt = shared(LONG_MS, 0);
    hf_gate *gate;

    opt.limit = 2;
    hf_lock *lock = TAKE(ctx, client, name_of(ctx, "a"), opt);
    sequencer_of(lock, sequencer);
    EXPECT(HF_OK, hf_gate_new(&gate));
    EXPECT(HF_UNSUPPORTED, hf_gate_pass(gate, sequencer, &ctx->err));
    EXPECT(HF_OK, hf_check(client, sequencer, &ctx->err));
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    hf_gate_free(gate);
}

#define TOKEN   HF_CAN_TOKEN
#define CHECKED (HF_CAN_TOKEN | HF_CAN_CHECK)

const struct conformance_case cases_fence[] = {
    CASE(TOKEN, c4_generation_rises_with_every_grant),
    CASE(TOKEN, c4_generation_rises_on_hand_over),
    CASE(TOKEN | HF_CAN_LEASE, c4_generation_rises_on_takeover),
    CASE(TOKEN | HF_CAN_SHARE, c4_every_reader_has_a_generation_of_its_own),
    CASE(TOKEN, c4_generation_stays_while_it_is_held),
    CASE(TOKEN, c4_generation_survives_a_purge),
    CASE(TOKEN, c4_generation_survives_a_reopening),
    CASE(CHECKED, c10_sequencer_is_printable_and_keeps_the_ticket_secret),
    CASE(CHECKED, c10_check_knows_the_very_grant),
    CASE(CHECKED | HF_CAN_LEASE, c10_check_of_a_lease_that_ran_out_is_stale),
    CASE(CHECKED | HF_CAN_SHARE, c10_check_of_readers_is_one_by_one),
    CASE(CHECKED, c10_changed_sequencer_is_never_current),
    CASE(TOKEN | HF_CAN_LEASE, c10_gate_refuses_a_writer_that_was_overtaken),
    CASE(TOKEN | HF_CAN_SHARE, c10_gate_knows_readers_from_writers),
    CASE(CHECKED | HF_CAN_SHARE | HF_CAN_LIMIT, c10_gate_has_no_order_for_limited_grants),
    {0},
};
