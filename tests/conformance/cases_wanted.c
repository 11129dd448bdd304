/* C16: a holder that asked for it is told that somebody waits. */
#include <poll.h>

#include "harness.h"

#define HOUR_MS (3600 * INT64_C(1000))

static hf_options telling(int64_t ttl_ms)
{
    hf_options opt = options(ttl_ms, 0);

    opt.wanted = 1;
    return opt;
}

static void await_wanted(const hf_lock *lock, int wanted)
{
    int64_t until_ms = now_ms() + AWAIT_MS;

    while (hf_lock_wanted(lock) != wanted) {
        if (now_ms() > until_ms)
            fail_at(__FILE__, __LINE__, "not told that it is %swanted", wanted ? "" : "not ");
        poll(NULL, 0, 3);
    }
}

/* With this lease the next renewal would come in 20 minutes. */
static void c16_told_by_call(struct ctx *ctx)
{
    hf_client *client = open_client(ctx), *other = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, client, name, telling(HOUR_MS));
    struct bid bid;

    EXPECT(HF_OK, hf_lock_renew(lock, &ctx->err)); /* claimed: nothing is due */
    CHECK(hf_lock_wanted(lock) == 0);
    bid_start(&bid, other, name, options(LONG_MS, HF_FOREVER));
    await_wanted(lock, 1);
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    EXPECT(HF_OK, hf_lock_release(bid_join_lock(&bid), &ctx->err));
}

static void c16_told_by_renewal(struct ctx *ctx)
{
    hf_client *client = open_fault(ctx, "drop_wakes=*"), *other = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, client, name, telling(1500));
    struct bid bid;

    CHECK(hf_lock_wanted(lock) == 0);
    bid_queue(&bid, other, name, options(LONG_MS, HF_FOREVER), 1);
    await_wanted(lock, 1);
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    EXPECT(HF_OK, hf_lock_release(bid_join_lock(&bid), &ctx->err));
}

struct calls {
    pthread_mutex_t mutex;
    unsigned count;
};

static void count_call(hf_lock *lock, hf_cause cause, void *arg)
{
    struct calls *calls = arg;

    CHECK(cause == HF_CAUSE_NONE);
    CHECK(hf_lock_wanted(lock) == 1);
    pthread_mutex_lock(&calls->mutex);
    calls->count++;
    pthread_mutex_unlock(&calls->mutex);
}

static unsigned count_of(struct calls *calls)
{
    pthread_mutex_lock(&calls->mutex);
    unsigned count = calls->count;
    pthread_mutex_unlock(&calls->mutex);
    return count;
}

/* The waiter gives up, and the next one is news again. */
static void c16_told_again(struct ctx *ctx)
{
    hf_client *client = open_client(ctx), *other = open_client(ctx);
    const char *name = name_of(ctx, "a");
    struct calls calls = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    hf_options opt = options(1500, 0);

    opt.on_wanted = count_call;
    opt.arg = &calls;
    hf_lock *lock = TAKE(ctx, client, name, opt);
    for (unsigned i = 0; i < 2; i++) {
        struct bid bid;
        bid_start(&bid, other, name, options(LONG_MS, 3000));
        await_wanted(lock, 1);
        EXPECT(HF_TIMEOUT, bid_join(&bid));
        EXPECT(HF_OK, hf_lock_renew(lock, &ctx->err));
        await_wanted(lock, 0);
        CHECK(count_of(&calls) == i + 1);
    }
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
}

static void c16_two_waiters_are_one_call(struct ctx *ctx)
{
    hf_client *client = open_fault(ctx, "dup_wakes=*"), *other = open_client(ctx);
    const char *name = name_of(ctx, "a");
    struct calls calls = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    hf_options opt = options(1500, 0);
    struct bid bids[2];

    opt.on_wanted = count_call;
    opt.arg = &calls;
    hf_lock *lock = TAKE(ctx, client, name, opt);
    bid_queue(&bids[0], other, name, options(LONG_MS, HF_FOREVER), 1);
    await_wanted(lock, 1);
    bid_queue(&bids[1], other, name, options(LONG_MS, HF_FOREVER), 2);
    await_renewal(lock);
    CHECK(count_of(&calls) == 1);
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    for (size_t i = 0; i < 2; i++)
        EXPECT(HF_OK, hf_lock_release(bid_join_lock(&bids[i]), &ctx->err));
}

static void c16_bid_that_does_not_wait_wants_nothing(struct ctx *ctx)
{
    hf_client *client = open_client(ctx), *other = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, client, name, telling(LONG_MS));

    EXPECT(HF_BUSY, probe(other, name));
    EXPECT(HF_OK, hf_lock_renew(lock, &ctx->err));
    CHECK(hf_lock_wanted(lock) == 0);
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
}

static void c16_each_reader_is_told(struct ctx *ctx)
{
    hf_client *client = open_client(ctx), *other = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_options opt = shared(LONG_MS, 0);
    hf_lock *locks[2];
    struct bid bid;

    opt.wanted = 1;
    for (size_t i = 0; i < 2; i++) {
        opt.owner = 100 + i;
        locks[i] = TAKE(ctx, client, name, opt);
    }
    bid_start(&bid, other, name, options(LONG_MS, HF_FOREVER));
    for (size_t i = 0; i < 2; i++)
        await_wanted(locks[i], 1);
    for (size_t i = 0; i < 2; i++)
        EXPECT(HF_OK, hf_lock_release(locks[i], &ctx->err));
    EXPECT(HF_OK, hf_lock_release(bid_join_lock(&bid), &ctx->err));
}

/* Somebody stood behind it before it came in: its first renewal says so. */
static void c16_told_after_a_hand_over(struct ctx *ctx)
{
    hf_client *client = open_client(ctx), *other = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, other, name, options(LONG_MS, 0));
    hf_options opt = telling(1500);
    struct bid bids[2];

    opt.wait_ms = HF_FOREVER;
    bid_queue(&bids[0], client, name, opt, 1);
    bid_queue(&bids[1], other, name, options(LONG_MS, HF_FOREVER), 2);
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    lock = bid_join_lock(&bids[0]);
    await_wanted(lock, 1);
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    EXPECT(HF_OK, hf_lock_release(bid_join_lock(&bids[1]), &ctx->err));
}

static void c16_event_tells_it(struct ctx *ctx)
{
    hf_client *client = open_client(ctx), *other = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_options opt = telling(1500);
    hf_event event = {.size = sizeof event};
    struct bid bid;

    EXPECT(HF_OK, hf_acquire_start(client, name, HF_NTS, &opt, 7, &ctx->err));
    EXPECT(HF_OK, hf_event_next(client, AWAIT_MS, &event));
    CHECK(event.kind == HF_EVENT_ACQUIRED);
    hf_lock *lock = event.lock;
    bid_start(&bid, other, name, options(LONG_MS, HF_FOREVER));
    EXPECT(HF_OK, hf_event_next(client, AWAIT_MS, &event));
    CHECK(event.kind == HF_EVENT_WANTED && event.tag == 7 && event.lock == lock);
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    EXPECT(HF_OK, hf_lock_release(bid_join_lock(&bid), &ctx->err));
}

#define WANTED (HF_CAN_WANTED | HF_CAN_QUEUE)

const struct conformance_case cases_wanted[] = {
    CASE(WANTED | HF_CAN_PUSH, c16_told_by_call),
    CASE(WANTED | HF_CAN_LEASE, c16_told_by_renewal),
    CASE(WANTED | HF_CAN_LEASE, c16_told_again),
    CASE(WANTED | HF_CAN_LEASE, c16_two_waiters_are_one_call),
    CASE(WANTED, c16_bid_that_does_not_wait_wants_nothing),
    CASE(WANTED | HF_CAN_SHARE, c16_each_reader_is_told),
    CASE(WANTED | HF_CAN_LEASE, c16_told_after_a_hand_over),
    CASE(WANTED | HF_CAN_LEASE, c16_event_tells_it),
    {0},
};
