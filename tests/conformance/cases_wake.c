/* C12, wake-ups: pushed where the store can, and never believed when they are old. Losing one costs
 * time, never correctness. fault+ spoils them. */
#include <unistd.h>

#include "harness.h"

#define HOUR_MS (3600 * INT64_C(1000))

/* A client that has never waited tells the store where to call with its second question. Afterwards
 * it does so with its first: this takes two attempts. */
static void listen_first(hf_client *client, const char *name)
{
    hf_options opt = options(LONG_MS, 300); /* for two attempts: now it listens, and says so */
    hf_lock *none;

    EXPECT(HF_TIMEOUT, hf_acquire(client, name, HF_NTS, &opt, &none, NULL));
}

static void c12_waiter_is_woken_by_the_store(struct ctx *ctx)
{
    char path[] = "/tmp/conformance-trace-XXXXXX";
    int fd = mkstemp(path);
    hf_client *waiting = open_traced(ctx, "chaos=0", path), *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, client, name, options(HOUR_MS, 0));
    struct bid bid;

    listen_first(waiting, name);
    bid_queue(&bid, waiting, name, options(LONG_MS, HF_FOREVER), 1);
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    EXPECT(HF_OK, hf_lock_release(bid_join_lock(&bid), &ctx->err));
    await_line(path, "wake", "", 1);
    close(fd);
    unlink(path);
}

struct pushed {
    const char *name, *path;
};

static void wait_for_push(struct ctx *ctx, int fd, void *arg)
{
    struct pushed *p = arg;
    hf_client *client = open_traced(ctx, "chaos=0", p->path);

    hear(fd, 'b');
    listen_first(client, p->name);
    say(fd, 'l');
    hf_lock *lock = TAKE(ctx, client, p->name, options(LONG_MS, HF_FOREVER));
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    say(fd, 'g');
    hear(fd, 'e');
}

static void c12_processes_are_woken_by_the_store(struct ctx *ctx)
{
    char path[] = "/tmp/conformance-trace-XXXXXX";
    int fd = mkstemp(path);
    struct pushed pushed = {name_of(ctx, "a"), path};
    struct actor actors[3];

    for (size_t i = 0; i < 3; i++)
        actors[i] = actor_start(ctx, wait_for_push, &pushed);
    hf_client *client = open_client(ctx);
    hf_lock *lock = TAKE(ctx, client, pushed.name, options(HOUR_MS, 0));
    for (size_t i = 0; i < 3; i++) {
        say(actors[i].fd, 'b');
        hear(actors[i].fd, 'l');
        await_count(client, pushed.name, HF_PLACE_WAITING, i + 1);
    }
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    for (size_t i = 0; i < 3; i++)
        hear(actors[i].fd, 'g');
    await_line(path, "wake", "", 3);
    for (size_t i = 0; i < 3; i++) {
        say(actors[i].fd, 'e');
        actor_join(&actors[i]);
    }
    close(fd);
    unlink(path);
}

static void c12_waiters_of_many_locks_are_woken_each_for_its_own(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    struct bid bids[20];
    hf_lock *locks[20];
    char suffix[16];

    for (size_t i = 0; i < 20; i++) {
        snprintf(suffix, sizeof suffix, "%zu", i);
        const char *name = name_of(ctx, suffix);
        locks[i] = TAKE(ctx, client, name, options(HOUR_MS, 0));
        bid_queue(&bids[i], client, name, options(LONG_MS, HF_FOREVER), 1);
    }
    for (size_t i = 20; i-- > 0;) {
        EXPECT(HF_OK, hf_lock_release(locks[i], &ctx->err));
        hf_lock *lock = bid_join_lock(&bids[i]);
        CHECK(strcmp(hf_lock_name(lock, NULL), bids[i].name) == 0);
        CHECK(i == 0 || !bid_is_done(&bids[i - 1]));
        EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    }
}

static void c12_lost_wake_up_costs_time_only(struct ctx *ctx)
{
    hf_client *waiting = open_fault(ctx, "drop_wakes=*"), *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, client, name, options(HOUR_MS, 0));
    struct bid bids[2];

    bid_queue(&bids[0], waiting, name, options(1500, HF_FOREVER), 1);
    bid_queue(&bids[1], waiting, name, options(1500, HF_FOREVER), 2);
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    for (size_t i = 0; i < 2; i++)
        EXPECT(HF_OK, hf_lock_release(bid_join_lock(&bids[i]), &ctx->err));
}

static void c12_repeated_wake_up_grants_nothing_twice(struct ctx *ctx)
{
    hf_client *waiting = open_fault(ctx, "dup_wakes=*"), *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, client, name, options(LONG_MS, 0));
    struct bid bids[3];

    for (size_t i = 0; i < 3; i++)
        bid_queue(&bids[i], waiting, name, options(LONG_MS, HF_FOREVER), i + 1);
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    for (size_t i = 0; i < 3; i++) {
        lock = bid_join_lock(&bids[i]);
        CHECK(count_place(client, name, HF_PLACE_INSIDE) == 1);
        for (size_t k = i + 1; k < 3; k++)
            CHECK(!bid_is_done(&bids[k]));
        EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    }
}

static void c12_stale_wake_up_is_not_believed(struct ctx *ctx)
{
    hf_client *waiting = open_fault(ctx, "stale_wake=*"), *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, client, name, options(LONG_MS, 0)), *none;
    hf_options opt = options(LONG_MS, 500);

    /* It is called with a generation that it knows to be over, each time it asks. */
    EXPECT(HF_TIMEOUT, hf_acquire(waiting, name, HF_NTS, &opt, &none, &ctx->err));
    CHECK(strcmp(look_at(client, name).ticket, hf_lock_ticket(lock)) == 0);
    EXPECT(HF_OK, hf_lock_renew(lock, &ctx->err));
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
}

static void c12_wake_up_after_the_turn_has_passed_is_not_believed(struct ctx *ctx)
{
    /* What it asks is under way for longer than its turn lasts, its signs of life do not arrive, and
     * the call comes after that. */
    hf_client *waiting =
        open_fault(ctx, "fail=renew:*&delay=attempt:4:3s&late_wakes=1:2500ms&op_timeout=10s");
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, client, name, options(HOUR_MS, 0));
    struct bid late;

    listen_first(waiting, name);
    bid_queue(&late, waiting, name, options(1000, HF_FOREVER), 1);
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err)); /* its turn comes, and it does not know */
    lock = TAKE(ctx, client, name, options(LONG_MS, HF_FOREVER));
    await_count(client, name, HF_PLACE_WAITING, 1); /* now it was called, and asked */
    CHECK(!bid_is_done(&late));
    CHECK(count_place(client, name, HF_PLACE_INSIDE) == 1);
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    EXPECT(HF_OK, hf_lock_release(bid_join_lock(&late), &ctx->err));
}

static void c12_answer_from_before_the_grant_does_not_take_it_away(struct ctx *ctx)
{
    char path[] = "/tmp/conformance-trace-XXXXXX";
    int fd = mkstemp(path);
    hf_client *waiting = open_traced(ctx, "slow=renew:1:800ms,attempt:4:800ms", path);
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, client, name, options(HOUR_MS, 0));
    struct bid bid;

    listen_first(waiting, name);
    bid_queue(&bid, waiting, name, options(3000, HF_FOREVER), 1);
    /* After the three attempts so far: a sign of life, or another attempt. Its answer is under
     * way. */
    await_line(path, "", "-> queued", 4);
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    lock = bid_join_lock(&bid);
    await_line(path, "renew", "claimed", 1); /* so the slow answer has arrived before */
    CHECK(hf_lock_state(lock) != HF_STATE_LOST);
    EXPECT(HF_OK, hf_lock_renew(lock, &ctx->err));
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    close(fd);
    unlink(path);
}

#define PUSH (HF_CAN_PUSH | HF_CAN_QUEUE | HF_CAN_LEASE)

const struct conformance_case cases_wake[] = {
    CASE(PUSH, c12_waiter_is_woken_by_the_store),
    CASE(PUSH | HF_CAN_PROCESS, c12_processes_are_woken_by_the_store),
    CASE(HF_CAN_QUEUE, c12_waiters_of_many_locks_are_woken_each_for_its_own),
    CASE(PUSH, c12_lost_wake_up_costs_time_only),
    CASE(PUSH, c12_repeated_wake_up_grants_nothing_twice),
    CASE(PUSH, c12_stale_wake_up_is_not_believed),
    CASE(PUSH, c12_answer_from_before_the_grant_does_not_take_it_away),
    CASE(PUSH, c12_wake_up_after_the_turn_has_passed_is_not_believed),
    {0},
};
