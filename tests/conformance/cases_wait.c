/* C5, waiting: first come, first served, and whoever gave up never holds. */
#include <signal.h>
#include <stdatomic.h>

#include "harness.h"

static void c5_endless_wait_ends_with_the_release(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, client, name, options(LONG_MS, 0));
    struct bid bid;

    bid_queue(&bid, client, name, options(LONG_MS, HF_FOREVER), 1);
    CHECK(!bid_is_done(&bid));
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    EXPECT(HF_OK, hf_lock_release(bid_join_lock(&bid), &ctx->err));
}

static void c5_timed_wait_is_served_within_its_time(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, client, name, options(LONG_MS, 0));
    struct bid bid;

    bid_queue(&bid, client, name, options(LONG_MS, AWAIT_MS), 1);
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    EXPECT(HF_OK, hf_lock_release(bid_join_lock(&bid), &ctx->err));
}

static void c5_timed_wait_is_not_cut_short(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, client, name, options(LONG_MS, 0)), *none;
    hf_options opt = options(LONG_MS, 250);
    int64_t began_ms = now_ms();

    EXPECT(HF_TIMEOUT, hf_acquire(client, name, HF_NTS, &opt, &none, &ctx->err));
    CHECK(now_ms() - began_ms >= 249);
    CHECK(ctx->err.code == HF_TIMEOUT && ctx->err.retriable);
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
}

static void c5_timed_out_waiter_leaves_nothing_and_never_holds(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, client, name, options(LONG_MS, 0)), *none;
    hf_options opt = options(LONG_MS, 100);

    EXPECT(HF_TIMEOUT, hf_acquire(client, name, HF_NTS, &opt, &none, &ctx->err));
    CHECK(count_place(client, name, HF_PLACE_WAITING) == 0);
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    CHECK(count_place(client, name, HF_PLACE_INSIDE) == 0);
    EXPECT(HF_OK, probe(client, name));
}

static void c5_cancelled_waiter_leaves_nothing_and_never_holds(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, client, name, options(LONG_MS, 0));
    hf_options opt = options(LONG_MS, HF_FOREVER);
    struct bid bid;

    EXPECT(HF_OK, hf_cancel_new(&opt.cancel));
    bid_queue(&bid, client, name, opt, 1);
    hf_cancel_fire(opt.cancel);
    EXPECT(HF_CANCELLED, bid_join(&bid));
    CHECK(count_place(client, name, HF_PLACE_WAITING) == 0);
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    CHECK(count_place(client, name, HF_PLACE_INSIDE) == 0);
    hf_cancel_free(opt.cancel);
}

static void c5_cancel_that_was_fired_before_ends_the_wait(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, client, name, options(LONG_MS, 0)), *none;
    hf_options opt = options(LONG_MS, HF_FOREVER);

    EXPECT(HF_OK, hf_cancel_new(&opt.cancel));
    hf_cancel_fire(opt.cancel);
    EXPECT(HF_CANCELLED, hf_acquire(client, name, HF_NTS, &opt, &none, &ctx->err));
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    hf_cancel_free(opt.cancel);
}

static void c5_one_cancel_ends_many_waits(struct ctx *ctx)
{
    hf_client *one = open_client(ctx), *other = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, one, name, options(LONG_MS, 0));
    hf_cancel *cancel;
    struct bid bids[6];

    EXPECT(HF_OK, hf_cancel_new(&cancel));
    for (size_t i = 0; i < 6; i++) {
        hf_options opt = options(LONG_MS, HF_FOREVER);
        opt.cancel = cancel;
        bid_queue(&bids[i], i % 2 ? one : other, name, opt, i + 1);
    }
    hf_cancel_fire(cancel);
    for (size_t i = 0; i < 6; i++)
        EXPECT(HF_CANCELLED, bid_join(&bids[i]));
    CHECK(count_place(one, name, HF_PLACE_WAITING) == 0);
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    hf_cancel_free(cancel);
}

/* A signal handler has no argument: there is no other way to hand it the object. */
static hf_cancel *_Atomic cancel_of_handler;

static void fire_in_handler(int signal)
{
    (void)signal;
    hf_cancel_fire(cancel_of_handler);
}

static void c5_cancel_works_from_a_signal_handler(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, client, name, options(LONG_MS, 0));
    hf_options opt = options(LONG_MS, HF_FOREVER);
    struct sigaction action = {.sa_handler = fire_in_handler};
    struct bid bid;

    EXPECT(HF_OK, hf_cancel_new(&opt.cancel));
    cancel_of_handler = opt.cancel;
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    bid_queue(&bid, client, name, opt, 1);
    raise(SIGUSR1);
    EXPECT(HF_CANCELLED, bid_join(&bid));
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    hf_cancel_free(opt.cancel);
}

static void c5_waiters_are_served_in_their_order(struct ctx *ctx)
{
    hf_client *one = open_client(ctx), *other = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, one, name, options(LONG_MS, 0));
    struct bid bids[6];

    for (size_t i = 0; i < 6; i++)
        bid_queue(&bids[i], i % 2 ? one : other, name, options(LONG_MS, HF_FOREVER), i + 1);
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    for (size_t i = 0; i < 6; i++) {
        lock = bid_join_lock(&bids[i]);
        CHECK(bids[i].order == i + 1);
        for (size_t k = i + 1; k < 6; k++)
            CHECK(!bid_is_done(&bids[k]));
        EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    }
}

static void c5_processes_are_served_in_their_order(struct ctx *ctx)
{
    const char *name = name_of(ctx, "a");
    struct waiting_part part = {name, options(LONG_MS, HF_FOREVER)};
    struct actor actors[4];

    for (size_t i = 0; i < 4; i++)
        actors[i] = actor_start(ctx, wait_and_hold, &part);
    hf_client *client = open_client(ctx);
    hf_lock *lock = TAKE(ctx, client, name, options(LONG_MS, 0));
    for (size_t i = 0; i < 4; i++) {
        say(actors[i].fd, 'b');
        await_count(client, name, HF_PLACE_WAITING, i + 1);
    }
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    for (size_t i = 0; i < 4; i++) {
        hear(actors[i].fd, 'h');
        await_count(client, name, HF_PLACE_WAITING,
                    3 - i); /* the next one may be between two steps */
        say(actors[i].fd, 'r');
        hear(actors[i].fd, 'd');
        actor_join(&actors[i]);
    }
}

static void c5_order_survives_those_who_give_up(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, client, name, options(LONG_MS, 0));
    struct bid bids[5];

    for (size_t i = 0; i < 5; i++) {
        hf_options opt = options(LONG_MS, HF_FOREVER);
        if (i % 2 == 0)
            EXPECT(HF_OK, hf_cancel_new(&opt.cancel));
        bid_queue(&bids[i], client, name, opt, i + 1);
    }
    for (size_t i = 0; i < 5; i += 2) {
        hf_cancel_fire(bids[i].opt.cancel);
        EXPECT(HF_CANCELLED, bid_join(&bids[i]));
        hf_cancel_free(bids[i].opt.cancel);
    }
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    for (size_t i = 1; i < 5; i += 2) {
        EXPECT(HF_OK, hf_lock_release(bid_join_lock(&bids[i]), &ctx->err));
        CHECK(bids[i].order == (i + 1) / 2);
    }
}

static void c5_bid_without_a_wait_never_queues(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, client, name, options(LONG_MS, 0));

    for (int i = 0; i < 3; i++)
        EXPECT(HF_BUSY, probe(client, name));
    CHECK(count_place(client, name, HF_PLACE_WAITING) == 0);
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    CHECK(count_place(client, name, HF_PLACE_INSIDE) == 0);
}

static void c5_bid_without_a_wait_never_overtakes_the_queue(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *reader = TAKE(ctx, client, name, shared(LONG_MS, 0));
    struct bid writer;

    /* A reader would fit, but a writer waits before it. */
    bid_queue(&writer, client, name, options(LONG_MS, HF_FOREVER), 1);
    EXPECT(HF_BUSY, probe_shared(client, name));
    CHECK(count_place(client, name, HF_PLACE_WAITING) == 1);
    EXPECT(HF_OK, hf_lock_release(reader, &ctx->err));
    EXPECT(HF_OK, hf_lock_release(bid_join_lock(&writer), &ctx->err));
}

static void c5_waiter_that_died_at_the_head_costs_seconds(struct ctx *ctx)
{
    struct turn t = turn_start(ctx, options(LONG_MS, HF_FOREVER));
    struct bid bid;

    bid_queue(&bid, t.client, t.name, options(1000, HF_FOREVER), 2);
    actor_kill(&t.next);
    EXPECT(HF_OK, hf_lock_release(t.lock, &ctx->err));
    EXPECT(HF_OK, hf_lock_release(bid_join_lock(&bid), &ctx->err));
}

static void c5_waiter_that_died_leaves_the_queue(struct ctx *ctx)
{
    struct turn t = turn_start(ctx, options(LONG_MS, HF_FOREVER));

    actor_kill(&t.next);
    await_count(t.client, t.name, HF_PLACE_WAITING, 0);
    EXPECT(HF_OK, hf_lock_release(t.lock, &ctx->err));
}

struct places {
    hf_client *client;
    const char *name;
    _Atomic size_t calls, position, seen_inside;
};

static void note_place(size_t position, void *arg)
{
    struct places *p = arg;

    p->seen_inside = count_place(p->client, p->name, HF_PLACE_INSIDE);
    p->position = position;
    p->calls++;
}

static void c5_waiter_is_told_its_place_and_may_look(struct ctx *ctx)
{
    struct places places = {.client = open_client(ctx), .name = name_of(ctx, "a")};
    hf_lock *lock = TAKE(ctx, places.client, places.name, options(LONG_MS, 0));
    hf_options opt = options(LONG_MS, HF_FOREVER);
    struct bid first, second;

    bid_queue(&first, places.client, places.name, options(LONG_MS, HF_FOREVER), 1);
    opt.on_wait = note_place;
    opt.arg = &places;
    bid_queue(&second, places.client, places.name, opt, 2);
    int64_t began_ms = now_ms();
    while (places.calls == 0 && now_ms() - began_ms < AWAIT_MS)
        await_age(now_ms(), 1);
    CHECK(places.calls > 0 && places.seen_inside == 1);
    CHECK(places.position == 2 || places.position == 0);
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    EXPECT(HF_OK, hf_lock_release(bid_join_lock(&first), &ctx->err));
    EXPECT(HF_OK, hf_lock_release(bid_join_lock(&second), &ctx->err));
}

const struct conformance_case cases_wait[] = {
    CASE(0, c5_endless_wait_ends_with_the_release),
    CASE(0, c5_timed_wait_is_served_within_its_time),
    CASE(0, c5_timed_wait_is_not_cut_short),
    CASE(0, c5_timed_out_waiter_leaves_nothing_and_never_holds),
    CASE(0, c5_cancelled_waiter_leaves_nothing_and_never_holds),
    CASE(0, c5_cancel_that_was_fired_before_ends_the_wait),
    CASE(0, c5_one_cancel_ends_many_waits),
    CASE(0, c5_cancel_works_from_a_signal_handler),
    CASE(HF_CAN_QUEUE, c5_waiters_are_served_in_their_order),
    CASE(HF_CAN_QUEUE | HF_CAN_PROCESS, c5_processes_are_served_in_their_order),
    CASE(HF_CAN_QUEUE, c5_order_survives_those_who_give_up),
    CASE(0, c5_bid_without_a_wait_never_queues),
    CASE(HF_CAN_QUEUE | HF_CAN_SHARE, c5_bid_without_a_wait_never_overtakes_the_queue),
    CASE(HF_CAN_QUEUE | HF_CAN_PROCESS, c5_waiter_that_died_at_the_head_costs_seconds),
    CASE(HF_CAN_QUEUE | HF_CAN_PROCESS, c5_waiter_that_died_leaves_the_queue),
    CASE(HF_CAN_QUEUE, c5_waiter_is_told_its_place_and_may_look),
    {0},
};
