/* C19: several locks at once, all or none, and two sets never wait for each other. */
#include "harness.h"

#define ROUNDS 20

static int acquire_two(struct ctx *ctx, hf_client *client, const char *first, const char *second,
                       const hf_options *opt, hf_lock *locks[2])
{
    const char *names[] = {first, second};

    return hf_acquire_all(client, names, NULL, 2, opt, locks, &ctx->err);
}

static void c19_all_are_held_each_with_its_own_token(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *a = name_of(ctx, "a"), *b = name_of(ctx, "b");
    hf_options opt = options(LONG_MS, 0);
    hf_lock *locks[2];

    EXPECT(HF_OK, acquire_two(ctx, client, b, a, &opt, locks));
    CHECK(strcmp(hf_lock_name(locks[0], NULL), b) == 0); /* in the caller's order */
    CHECK(strcmp(hf_lock_name(locks[1], NULL), a) == 0);
    EXPECT(HF_BUSY, probe(client, a));
    EXPECT(HF_BUSY, probe(client, b));
    EXPECT(HF_OK, hf_release_all(locks, 2, &ctx->err));
    EXPECT(HF_OK, probe(client, a));
    EXPECT(HF_OK, probe(client, b));
}

static void c19_one_that_is_busy_leaves_none(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *a = name_of(ctx, "a"), *b = name_of(ctx, "b");
    hf_lock *held = TAKE(ctx, client, b, options(LONG_MS, 0)), *locks[2];
    hf_options opt = options(LONG_MS, 0);

    EXPECT(HF_BUSY, acquire_two(ctx, client, a, b, &opt, locks));
    EXPECT(HF_OK, probe(client, a));
    opt = options(LONG_MS, 300);
    EXPECT(HF_TIMEOUT, acquire_two(ctx, client, a, b, &opt, locks));
    EXPECT(HF_OK, probe(client, a));
    CHECK(count_place(client, b, HF_PLACE_WAITING) == 0);
    EXPECT(HF_OK, hf_lock_release(held, &ctx->err));
}

struct taker {
    struct ctx *ctx;
    hf_client *client;
    const char *first, *second;
    pthread_t thread;
    unsigned rounds;
};

static void *take_turns(void *arg)
{
    struct taker *t = arg;
    const char *names[] = {t->first, t->second};
    hf_error err = {0};
    hf_lock *locks[2];

    for (; t->rounds < ROUNDS; t->rounds++) {
        hf_options opt = options(LONG_MS, AWAIT_MS);
        if (hf_acquire_all(t->client, names, NULL, 2, &opt, locks, &err) != HF_OK)
            fail_at(__FILE__, __LINE__, "round %u: %s", t->rounds, err.text);
        EXPECT(HF_OK, hf_release_all(locks, 2, &err));
    }
    return NULL;
}

/* Each is told the names in the other's order: one after the other as told would stand still soon. */
static void c19_two_sets_never_block(struct ctx *ctx)
{
    const char *a = name_of(ctx, "a"), *b = name_of(ctx, "b");
    struct taker takers[] = {{ctx, open_client(ctx), a, b, 0, 0},
                             {ctx, open_client(ctx), b, a, 0, 0}};

    for (size_t i = 0; i < 2; i++)
        CHECK(pthread_create(&takers[i].thread, NULL, take_turns, &takers[i]) == 0);
    for (size_t i = 0; i < 2; i++) {
        CHECK(pthread_join(takers[i].thread, NULL) == 0);
        CHECK(takers[i].rounds == ROUNDS);
    }
}

static void *wait_and_fail(void *arg)
{
    struct taker *t = arg;
    hf_options opt = options(1000, AWAIT_MS);
    hf_lock *locks[2];

    EXPECT(HF_LOST, acquire_two(t->ctx, t->client, t->first, t->second, &opt, locks));
    return NULL;
}

static void c19_one_lost_while_the_other_is_waited_for_leaves_none(struct ctx *ctx)
{
    hf_client *client = open_client(ctx), *other = open_client(ctx);
    const char *a = name_of(ctx, "a"), *b = name_of(ctx, "b");
    hf_lock *held = TAKE(ctx, other, b, options(LONG_MS, 0));
    struct taker t = {ctx, client, a, b, 0, 0};

    CHECK(pthread_create(&t.thread, NULL, wait_and_fail, &t) == 0);
    await_count(other, b, HF_PLACE_WAITING, 1);
    EXPECT(HF_OK, hf_break(other, a, HF_NTS, look_at(other, a).ticket, 1, &ctx->err));
    hf_lock *lock = TAKE(ctx, other, a, options(LONG_MS, 0));
    await_age(now_ms(), 1000); /* by then it has tried to renew it */
    EXPECT(HF_OK, hf_lock_release(held, &ctx->err));
    CHECK(pthread_join(t.thread, NULL) == 0);
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    EXPECT(HF_OK, probe(other, b));
}

static void c19_bad_sets_are_refused(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *a = name_of(ctx, "a"), *names[HF_TOGETHER_MAX + 1];
    hf_options opt = options(LONG_MS, 0);
    hf_lock *locks[HF_TOGETHER_MAX + 1];

    for (size_t i = 0; i <= HF_TOGETHER_MAX; i++)
        names[i] = a;
    EXPECT(HF_INVALID, acquire_two(ctx, client, a, a, &opt, locks));
    EXPECT(HF_INVALID, acquire_two(ctx, client, a, "", &opt, locks));
    EXPECT(HF_INVALID, hf_acquire_all(client, names, NULL, 0, &opt, locks, &ctx->err));
    EXPECT(HF_INVALID,
           hf_acquire_all(client, names, NULL, HF_TOGETHER_MAX + 1, &opt, locks, &ctx->err));
    EXPECT(HF_OK, probe(client, a));
    EXPECT(HF_OK, hf_release_all(locks, 0, &ctx->err));
}

const struct conformance_case cases_together[] = {
    CASE(0, c19_all_are_held_each_with_its_own_token),
    CASE(0, c19_one_that_is_busy_leaves_none),
    CASE(0, c19_two_sets_never_block),
    CASE(HF_CAN_BREAK | HF_CAN_QUEUE | HF_CAN_LEASE,
         c19_one_lost_while_the_other_is_waited_for_leaves_none),
    CASE(0, c19_bad_sets_are_refused),
    {0},
};
