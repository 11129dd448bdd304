/* C3 for locks that never expire: they stay, are found by their age, and are broken by their
 * ticket. */
#include "harness.h"

static void c3_lock_without_a_lease_does_not_expire(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, client, name, options(HF_NEVER, 0));
    struct found found = look_at(client, name);

    CHECK(hf_lock_remaining_ms(lock) == INT64_MAX);
    CHECK(found.ttl_ms == HF_NEVER && found.remaining_ms == HF_NEVER && found.claimed);
    EXPECT(HF_OK, hf_lock_renew(lock, &ctx->err));
    CHECK(hf_lock_state(lock) == HF_STATE_HELD);
    EXPECT(HF_BUSY, probe(client, name));
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    EXPECT(HF_OK, probe(client, name));
}

static void c3_lock_without_a_lease_is_waited_for_and_handed_over(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, client, name, options(HF_NEVER, 0));
    struct bid bid;

    bid_queue(&bid, client, name, options(HF_NEVER, HF_FOREVER), 1);
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    lock = bid_join_lock(&bid);
    CHECK(look_at(client, name).remaining_ms == HF_NEVER);
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
}

static size_t count_older(struct ctx *ctx, hf_client *client, int64_t older_than_ms)
{
    hf_query query = {.size = sizeof query,
                      .prefix = ctx->prefix,
                      .prefix_len = strlen(ctx->prefix),
                      .older_than_ms = older_than_ms};
    hf_view *view;
    size_t count;

    EXPECT(HF_OK, hf_inspect(client, &query, &view, &ctx->err));
    count = hf_view_count(view);
    for (size_t i = 0; i < count; i++)
        CHECK(hf_view_entry(view, i)->age_ms >= older_than_ms);
    hf_view_free(view);
    return count;
}

static void c3_lock_is_found_by_its_age(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    hf_lock *old = TAKE(ctx, client, name_of(ctx, "old"), options(HF_NEVER, 0));
    struct bid waiter;

    bid_queue(&waiter, client, name_of(ctx, "old"), options(LONG_MS, HF_FOREVER), 1);
    await_age(now_ms(), 400);
    hf_lock *young = TAKE(ctx, client, name_of(ctx, "young"), options(HF_NEVER, 0));
    int64_t young_ms = now_ms();
    CHECK(count_older(ctx, client, 0) == 2 + in_queue(client, 1));
    CHECK(count_older(ctx, client, 3600000) == 0);
    size_t older = count_older(ctx, client, 350);
    /* On a machine that stood still the young one may have come of age. */
    CHECK(older == 1 || (older == 2 && now_ms() - young_ms >= 350));
    EXPECT(HF_OK, hf_lock_release(old, &ctx->err));
    EXPECT(HF_OK, hf_lock_release(young, &ctx->err));
    EXPECT(HF_OK, hf_lock_release(bid_join_lock(&waiter), &ctx->err));
}

static void hold_for_ever(struct ctx *ctx, int fd, void *arg)
{
    TAKE(ctx, open_client(ctx), arg, options(HF_NEVER, 0));
    say(fd, 'h');
    hear(fd, '-');
}

static void c3_lock_of_a_killed_process_stays_until_it_is_broken(struct ctx *ctx)
{
    const char *name = name_of(ctx, "a");
    struct actor holder = actor_start(ctx, hold_for_ever, (void *)name);
    hf_client *client = open_client(ctx);
    struct bid bid;

    hear(holder.fd, 'h');
    pid_t pid = holder.pid;
    actor_kill(&holder);
    bid_queue(&bid, client, name, options(LONG_MS, HF_FOREVER), 1);
    await_age(now_ms(), 1500); /* longer than any sign of life of a short lease */
    CHECK(!bid_is_done(&bid));
    hf_query query = {.size = sizeof query, .name = name, .name_len = strlen(name)};
    hf_view *view;
    EXPECT(HF_OK, hf_inspect(client, &query, &view, &ctx->err));
    CHECK(hf_view_count(view) == 1 + in_queue(client, 1) && hf_view_entry(view, 0)->pid == pid);
    EXPECT(HF_OK, hf_break(client, name, HF_NTS, hf_view_entry(view, 0)->ticket, 0, &ctx->err));
    hf_view_free(view);
    EXPECT(HF_OK, hf_lock_release(bid_join_lock(&bid), &ctx->err));
}

static void leave_it(struct ctx *ctx, int fd, void *arg)
{
    hf_client *client = open_client(ctx);
    hf_lock *lock = TAKE(ctx, client, name_of(ctx, "a"), options(HF_NEVER, 0));

    snprintf(arg, HF_TICKET_SIZE, "%s", hf_lock_ticket(lock));
    EXPECT(HF_OK, hf_lock_detach(lock, &ctx->err));
    close_client(ctx, client);
    say(fd, 'd');
}

static void c3_lock_without_a_lease_outlives_all_its_clients(struct ctx *ctx)
{
    char *ticket = shared_memory(HF_TICKET_SIZE);
    struct actor first = actor_start(ctx, leave_it, ticket);
    hf_options opt = options(0, 0);
    hf_lock *lock;

    hear(first.fd, 'd');
    actor_join(&first);
    hf_client *client = open_client(ctx);
    EXPECT(HF_BUSY, probe(client, name_of(ctx, "a")));
    EXPECT(HF_OK, hf_adopt(client, name_of(ctx, "a"), HF_NTS, ticket, &opt, &lock, &ctx->err));
    CHECK(hf_lock_remaining_ms(lock) == INT64_MAX);
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
}

static void c5_frozen_waiter_never_holds_for_ever(struct ctx *ctx)
{
    pass_over_frozen(ctx, options(HF_NEVER, HF_FOREVER), options(LONG_MS, HF_FOREVER));
}

#define NEVER HF_CAN_NEVER

const struct conformance_case cases_never[] = {
    CASE(NEVER, c3_lock_without_a_lease_does_not_expire),
    CASE(NEVER, c3_lock_without_a_lease_is_waited_for_and_handed_over),
    CASE(NEVER, c3_lock_is_found_by_its_age),
    CASE(NEVER | HF_CAN_PROCESS | HF_CAN_BREAK,
         c3_lock_of_a_killed_process_stays_until_it_is_broken),
    CASE(NEVER | HF_CAN_PROCESS, c3_lock_without_a_lease_outlives_all_its_clients),
    CASE(NEVER | HF_CAN_PROCESS | HF_CAN_QUEUE, c5_frozen_waiter_never_holds_for_ever),
    {0},
};
