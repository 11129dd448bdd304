/* C20: a cached lock stays with the client that released it, until somebody else wants it. */
#include <unistd.h>

#include "harness.h"

#define HOUR_MS (3600 * INT64_C(1000))

static hf_options cached(int64_t ttl_ms)
{
    hf_options opt = options(ttl_ms, HF_FOREVER);

    opt.cached = 1;
    return opt;
}

/* Takes and releases it, so that it stays here. Its token. */
static uint64_t leave_idle(struct ctx *ctx, hf_client *client, const char *name, hf_options opt)
{
    hf_lock *lock = TAKE(ctx, client, name, opt);
    uint64_t token = generation_of(lock);

    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    return token;
}

/* An idle lock is still inside. */
static void expect_idle(hf_client *looker, const char *name, uint64_t token)
{
    struct found found = look_at(looker, name);

    CHECK(found.place == HF_PLACE_INSIDE && found.generation == token);
}

static void c20_token_rises_locally(struct ctx *ctx)
{
    hf_client *client = open_client(ctx), *other = open_client(ctx);
    const char *name = name_of(ctx, "a");
    uint64_t first = leave_idle(ctx, client, name, cached(HOUR_MS)), last = first;
    char sequencer[HF_SEQUENCER_MAX];

    for (int i = 0; i < 50; i++) {
        hf_lock *lock = TAKE(ctx, client, name, cached(HOUR_MS));
        CHECK(generation_of(lock) > last);
        last = generation_of(lock);
        EXPECT(HF_OK, hf_lock_sequencer(lock, sequencer, sizeof sequencer));
        EXPECT(HF_OK, hf_check(other, sequencer, &ctx->err));
        EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    }
    expect_idle(other, name, first);
    close_client(ctx, client);
    hf_lock *lock = TAKE(ctx, other, name, options(LONG_MS, 0));
    CHECK(generation_of(lock) > last);
    EXPECT(HF_STALE, hf_check(other, sequencer, &ctx->err));
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
}

static void c20_idle_lock_shows_as_cached(struct ctx *ctx)
{
    hf_client *client = open_client(ctx), *other = open_client(ctx);
    const char *names[] = {name_of(ctx, "a"), name_of(ctx, "b")};
    hf_lock *plain = TAKE(ctx, client, names[1], options(LONG_MS, 0));

    leave_idle(ctx, client, names[0], cached(HOUR_MS));
    for (int i = 0; i < 2; i++) {
        hf_query query = {.size = sizeof query, .name = names[i], .name_len = strlen(names[i])};
        hf_view *view;
        EXPECT(HF_OK, hf_inspect(other, &query, &view, &ctx->err));
        CHECK(hf_view_count(view) == 1 && hf_view_entry(view, 0)->cached == (i == 0));
        hf_view_free(view);
    }
    EXPECT(HF_OK, hf_lock_release(plain, &ctx->err));
    close_client(ctx, client);
}

/* Nothing is due for an hour: whoever gets it was called for. */
static void c20_waiter_gets_idle_lock(struct ctx *ctx)
{
    hf_client *client = open_client(ctx), *other = open_client(ctx);
    const char *name = name_of(ctx, "a");
    uint64_t token = leave_idle(ctx, client, name, cached(HOUR_MS));
    hf_lock *lock = TAKE(ctx, other, name, options(LONG_MS, AWAIT_MS));

    CHECK(generation_of(lock) > token);
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
}

static void c20_no_wait_gets_idle_lock(struct ctx *ctx)
{
    hf_client *client = open_client(ctx), *other = open_client(ctx);
    const char *name = name_of(ctx, "a");
    int64_t until_ms = now_ms() + AWAIT_MS;

    leave_idle(ctx, client, name, cached(HOUR_MS));
    while (probe(other, name) !=
           HF_OK) { /* a busy machine may need more than the moment it waits */
        if (now_ms() > until_ms)
            fail_at(__FILE__, __LINE__, "an idle lock is never had without waiting");
    }
}

static void c20_no_wait_is_refused_while_it_is_used(struct ctx *ctx)
{
    hf_client *client = open_client(ctx), *other = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, client, name, cached(HOUR_MS));

    EXPECT(HF_BUSY, probe(other, name));
    CHECK(hf_lock_state(lock) == HF_STATE_HELD);
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err)); /* it was called: it does not stay */
    await_free(other, name);
}

/* Who came to the store first is let in first, whatever its client could do. */
static void c20_nobody_overtakes_a_waiter(struct ctx *ctx)
{
    hf_client *client = open_client(ctx), *other = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, client, name, cached(HOUR_MS));
    struct bid first, second;

    bid_queue(&first, other, name, options(LONG_MS, HF_FOREVER), 1);
    bid_queue(&second, client, name, cached(HOUR_MS), 2);
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    EXPECT(HF_OK, hf_lock_release(bid_join_lock(&first), &ctx->err));
    EXPECT(HF_OK, hf_lock_release(bid_join_lock(&second), &ctx->err));
    CHECK(first.order < second.order);
}

/* The call is lost: the renewal tells it. */
static void c20_lost_call_costs_a_renewal(struct ctx *ctx)
{
    hf_client *client = open_fault(ctx, "drop_wakes=*"), *other = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, client, name, cached(1500));
    struct bid bid;

    bid_queue(&bid, other, name, options(LONG_MS, HF_FOREVER), 1);
    await_renewal(lock);
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    EXPECT(HF_OK, hf_lock_release(bid_join_lock(&bid), &ctx->err));
    leave_idle(ctx, client, name, cached(1500));
    EXPECT(HF_OK, hf_lock_release(TAKE(ctx, other, name, options(LONG_MS, AWAIT_MS)), &ctx->err));
}

static void c20_calls_that_come_twice_change_nothing(struct ctx *ctx)
{
    hf_client *client = open_fault(ctx, "dup_wakes=*"), *other = open_fault(ctx, "dup_wakes=*");
    const char *name = name_of(ctx, "a");
    uint64_t last = 0;

    for (int i = 0; i < 10; i++) {
        hf_lock *lock = TAKE(ctx, i % 2 == 0 ? client : other, name, cached(HOUR_MS));
        CHECK(generation_of(lock) > last);
        last = generation_of(lock);
        EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    }
}

/* What was not answered may have been applied: the lock is given back, and nothing of it is used again. */
static void c20_lost_answers_leave_nothing(struct ctx *ctx)
{
    static const char *const losses[] = {"lose=attempt:1", "lose=release:1", "lose=renew:1"};
    hf_client *other = open_client(ctx);

    for (int i = 0; i < 3; i++) {
        hf_client *client = open_fault(ctx, losses[i]);
        const char *name = name_of(ctx, losses[i]);
        leave_idle(ctx, client, name, cached(1500));
        leave_idle(ctx, client, name, cached(1500));
        hf_lock *lock = TAKE(ctx, other, name, options(LONG_MS, AWAIT_MS));
        EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    }
}

static void c20_unused_lock_goes_back(struct ctx *ctx)
{
    hf_client *client = open_client(ctx), *other = open_client(ctx);
    const char *name = name_of(ctx, "a");

    leave_idle(ctx, client, name, cached(SHORT_MS));
    await_free(other, name);
}

static void c20_other_terms_are_another_bid(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_options opt = cached(LONG_MS);

    leave_idle(ctx, client, name, cached(HOUR_MS));
    opt.note = "another";
    hf_lock *lock = TAKE(ctx, client, name, opt);
    struct found found = look_at(client, name);
    CHECK(found.ttl_ms == LONG_MS && strcmp(found.note, "another") == 0);
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
}

static void c20_close_releases_idle_locks(struct ctx *ctx)
{
    hf_client *client = open_client(ctx), *other = open_client(ctx);
    char suffix[8];
    const char *names[20];

    for (int i = 0; i < 20; i++) {
        snprintf(suffix, sizeof suffix, "%d", i);
        names[i] = name_of(ctx, suffix);
        leave_idle(ctx, client, names[i], cached(HOUR_MS));
    }
    close_client(ctx, client);
    for (int i = 0; i < 20; i++)
        EXPECT(HF_OK, probe(other, names[i]));
}

static void c20_value_is_never_written_by_the_next(struct ctx *ctx)
{
    hf_client *client = open_client(ctx), *other = open_client(ctx);
    const char *name = name_of(ctx, "a");

    leave_idle(ctx, client, name, cached(HOUR_MS));
    hf_lock *lock = TAKE(ctx, client, name, cached(HOUR_MS));
    EXPECT(HF_OK, hf_lock_set_value(lock, "x", 1, &ctx->err));
    EXPECT(HF_OK,
           hf_lock_release(lock, &ctx->err)); /* for good: whoever opened it ends in the store */
    await_free(other, name);
    char buf[HF_VALUE_MAX];
    size_t len;
    int doubt;
    lock = TAKE(ctx, other, name, options(LONG_MS, 0));
    EXPECT(HF_OK, hf_lock_value(lock, buf, sizeof buf, &len, &doubt, &ctx->err));
    CHECK(len == 1 && buf[0] == 'x' && doubt == 0);
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
}

static void c20_at_least_keeps_it_closed(struct ctx *ctx)
{
    hf_client *client = open_client(ctx), *other = open_client(ctx);
    const char *name = name_of(ctx, "a");
    uint64_t token = leave_idle(ctx, client, name, cached(HOUR_MS));
    hf_lock *lock = TAKE(ctx, client, name, cached(HOUR_MS));

    CHECK(generation_of(lock) > token);
    EXPECT(HF_OK, hf_lock_release_after(lock, HOUR_MS, &ctx->err));
    CHECK(look_at(other, name).place == HF_PLACE_LINGERING);
    EXPECT(HF_OK, hf_break(other, name, HF_NTS, look_at(other, name).ticket, 1, &ctx->err));
}

/* A broken idle lock is nobody's any more, and is not handed out. */
static void c20_broken_lock_is_not_used_again(struct ctx *ctx)
{
    hf_client *client = open_client(ctx), *other = open_client(ctx);
    const char *name = name_of(ctx, "a");
    uint64_t token = leave_idle(ctx, client, name, cached(HOUR_MS));

    EXPECT(HF_OK, hf_break(other, name, HF_NTS, look_at(other, name).ticket, 1, &ctx->err));
    hf_lock *lock = TAKE(ctx, other, name, options(LONG_MS, AWAIT_MS));
    CHECK(generation_of(lock) > token + 1000); /* all that its client may have used */
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
}

static void c20_ends_at_max_hold(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_options opt = cached(HOUR_MS);

    leave_idle(ctx, client, name, opt);
    opt.max_hold_ms = 50;
    hf_lock *lock = TAKE(ctx, client, name, opt);
    await_lost(lock);
    CHECK(hf_lock_cause(lock) == HF_CAUSE_MAX_HOLD);
    EXPECT(HF_STALE, hf_lock_release(lock, &ctx->err));
}

static void leave_idle_and_stay(struct ctx *ctx, int fd, void *arg)
{
    hf_client *client = open_client(ctx);

    leave_idle(ctx, client, arg, cached(1000));
    leave_idle(ctx, client, arg, cached(1000));
    CHECK(write(fd, "1", 1) == 1);
    for (;;)
        pause();
}

static void c20_crash_costs_one_lease(struct ctx *ctx)
{
    const char *name = name_of(ctx, "a");
    struct actor actor = actor_start(ctx, leave_idle_and_stay, (void *)name);
    char byte;

    CHECK(read(actor.fd, &byte, 1) == 1);
    actor_kill(&actor);
    hf_client *client = open_client(ctx);
    int64_t since_ms = now_ms();
    hf_lock *lock = TAKE(ctx, client, name, options(LONG_MS, AWAIT_MS));
    CHECK(now_ms() - since_ms < AWAIT_MS);
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
}

/* Each of them in its turn and alone; what the resource sees only rises. */
struct crowd {
    struct ctx *ctx;
    hf_client *client;
    const char *name;
    uint64_t *last;
    int *inside;
    unsigned owner;
};

static void *work_in_crowd(void *arg)
{
    struct crowd *crowd = arg;
    hf_options opt = cached(LONG_MS);
    hf_error err;

    opt.owner = crowd->owner;
    for (int i = 0; i < 40; i++) {
        hf_lock *lock;
        EXPECT(HF_OK, hf_acquire(crowd->client, crowd->name, HF_NTS, &opt, &lock, &err));
        CHECK(__atomic_add_fetch(crowd->inside, 1, __ATOMIC_SEQ_CST) == 1);
        uint64_t token = generation_of(lock);
        CHECK(token > *crowd->last);
        *crowd->last = token;
        CHECK(__atomic_sub_fetch(crowd->inside, 1, __ATOMIC_SEQ_CST) == 0);
        EXPECT(HF_OK, hf_lock_release(lock, &err));
    }
    return NULL;
}

static void c20_one_at_a_time_and_in_order(struct ctx *ctx)
{
    hf_client *clients[2] = {open_client(ctx), open_client(ctx)};
    struct crowd crowds[4];
    pthread_t threads[4];
    uint64_t last = 0;
    int inside = 0;

    for (unsigned i = 0; i < 4; i++) {
        crowds[i] = (struct crowd){ctx, clients[i % 2], name_of(ctx, "a"), &last, &inside, 100 + i};
        CHECK(pthread_create(&threads[i], NULL, work_in_crowd, &crowds[i]) == 0);
    }
    for (unsigned i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    for (unsigned i = 0; i < 2; i++)
        close_client(ctx, clients[i]);
}

static void c20_bad_options_are_refused(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_options opt = cached(HF_NEVER);
    hf_lock *lock;

    EXPECT(HF_INVALID, hf_acquire(client, name, HF_NTS, &opt, &lock, &ctx->err));
    opt = cached(LONG_MS);
    opt.mode = HF_SHARED;
    EXPECT(HF_INVALID, hf_acquire(client, name, HF_NTS, &opt, &lock, &ctx->err));
    lock = TAKE(ctx, client, name, cached(LONG_MS));
    EXPECT(HF_UNSUPPORTED, hf_lock_detach(lock, &ctx->err));
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    close_client(ctx, client);
}

#define CACHE HF_CAN_CACHE

const struct conformance_case cases_cached[] = {
    CASE(CACHE, c20_token_rises_locally),
    CASE(CACHE, c20_idle_lock_shows_as_cached),
    CASE(CACHE, c20_waiter_gets_idle_lock),
    CASE(CACHE, c20_no_wait_gets_idle_lock),
    CASE(CACHE, c20_no_wait_is_refused_while_it_is_used),
    CASE(CACHE, c20_nobody_overtakes_a_waiter),
    CASE(CACHE, c20_lost_call_costs_a_renewal),
    CASE(CACHE, c20_calls_that_come_twice_change_nothing),
    CASE(CACHE, c20_lost_answers_leave_nothing),
    CASE(CACHE, c20_unused_lock_goes_back),
    CASE(CACHE, c20_other_terms_are_another_bid),
    CASE(CACHE, c20_close_releases_idle_locks),
    CASE(CACHE | HF_CAN_VALUE, c20_value_is_never_written_by_the_next),
    CASE(CACHE | HF_CAN_AT_LEAST, c20_at_least_keeps_it_closed),
    CASE(CACHE | HF_CAN_BREAK, c20_broken_lock_is_not_used_again),
    CASE(CACHE, c20_ends_at_max_hold),
    CASE(CACHE | HF_CAN_PROCESS, c20_crash_costs_one_lease),
    CASE(CACHE, c20_one_at_a_time_and_in_order),
    CASE(CACHE, c20_bad_options_are_refused),
    {0},
};
