/* Watching: the last state is given, "nobody" is one, and a store that does not answer is an error (C18). */
#include <poll.h>

#include "harness.h"

#define INTERVAL_MS 50

static hf_watch *watch(struct ctx *ctx, hf_client *client, const char *name, int64_t interval_ms)
{
    hf_query query = {.size = sizeof query, .name = name, .name_len = HF_NTS};
    hf_watch *watch;

    EXPECT(HF_OK, hf_watch_new(client, &query, interval_ms, &watch, &ctx->err));
    return watch;
}

/* The next view must show so many inside and waiting; those before it, which may be skipped, must not. */
static void await_view(struct ctx *ctx, hf_watch *watch, size_t inside, size_t waiting)
{
    size_t counts[3];
    const hf_entry *e;

    do {
        hf_view *view;
        EXPECT(HF_OK, hf_watch_next(watch, AWAIT_MS, &view, &ctx->err));
        memset(counts, 0, sizeof counts);
        for (size_t i = 0; (e = hf_view_entry(view, i)) != NULL; i++)
            counts[e->place]++;
        hf_view_free(view);
    } while (counts[HF_PLACE_INSIDE] != inside || counts[HF_PLACE_WAITING] != waiting);
}

static void c18_every_last_state_is_given(struct ctx *ctx)
{
    hf_client *client = open_client(ctx), *other = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_watch *w = watch(ctx, client, name, INTERVAL_MS);
    struct bid bid;

    await_view(ctx, w, 0, 0); /* nobody, and that it is told at all */
    hf_lock *lock = TAKE(ctx, other, name, options(LONG_MS, 0));
    await_view(ctx, w, 1, 0);
    bid_queue(&bid, other, name, options(LONG_MS, HF_FOREVER), 1);
    if (in_queue(other, 1) == 1)
        await_view(ctx, w, 1, 1);
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    EXPECT(HF_OK, hf_lock_release(bid_join_lock(&bid), &ctx->err));
    await_view(ctx, w, 0, 0);
    hf_watch_free(w);
}

/* The next holder is another one, though there is one as before. */
static void c18_another_holder_is_another_state(struct ctx *ctx)
{
    hf_client *client = open_client(ctx), *other = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, other, name, options(LONG_MS, 0));
    hf_watch *w = watch(ctx, client, name, INTERVAL_MS);

    await_view(ctx, w, 1, 0);
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    lock = TAKE(ctx, other, name, options(LONG_MS, 0));
    await_view(ctx, w, 1, 0);
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    hf_watch_free(w);
}

static void c18_what_stays_as_it_is_is_not_told(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, client, name, options(1000, 0));
    hf_watch *w = watch(ctx, client, name, INTERVAL_MS);
    hf_view *view;

    await_view(ctx, w, 1, 0);
    await_renewal(lock); /* which changes the lease, and no more */
    EXPECT(HF_TIMEOUT, hf_watch_next(w, 4 * INTERVAL_MS, &view, &ctx->err));
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    hf_watch_free(w);
}

static void c18_store_that_is_away_is_an_error(struct ctx *ctx)
{
    hf_client *client = open_fault(ctx, "fail=inspect:2-3");
    const char *name = name_of(ctx, "a");
    hf_watch *w = watch(ctx, client, name, INTERVAL_MS);
    hf_view *view;

    await_view(ctx, w, 0, 0);
    EXPECT(HF_UNAVAILABLE, hf_watch_next(w, HF_FOREVER, &view, &ctx->err));
    EXPECT(HF_UNAVAILABLE, hf_watch_next(w, HF_FOREVER, &view, &ctx->err));
    await_view(ctx, w, 0, 0); /* the same, but nobody could know */
    hf_watch_free(w);
}

static void c18_descriptor_says_when_to_look(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    hf_watch *w = watch(ctx, client, name_of(ctx, "a"), INTERVAL_MS);
    struct pollfd fd = {.fd = hf_watch_fd(w), .events = POLLIN};
    hf_view *view;

    CHECK(poll(&fd, 1, 0) == 1);
    EXPECT(HF_OK, hf_watch_next(w, 0, &view, &ctx->err));
    hf_view_free(view);
    CHECK(poll(&fd, 1, AWAIT_MS) == 1);
    EXPECT(HF_TIMEOUT, hf_watch_next(w, 0, &view, &ctx->err));
    CHECK(poll(&fd, 1, AWAIT_MS) == 1);
    hf_watch_free(w);
}

struct sleeper {
    hf_watch *watch;
    int code;
};

static void *sleep_in_watch(void *arg)
{
    struct sleeper *sleeper = arg;
    hf_view *view;

    sleeper->code = hf_watch_next(sleeper->watch, HF_FOREVER, &view, NULL);
    return NULL;
}

static void c18_close_ends_a_watch(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    struct sleeper sleeper = {.watch = watch(ctx, client, name_of(ctx, "a"), 3600000)};
    struct pollfd fd = {.fd = hf_watch_fd(sleeper.watch), .events = POLLIN};
    pthread_t thread;
    hf_view *view;

    await_view(ctx, sleeper.watch, 0, 0);
    CHECK(pthread_create(&thread, NULL, sleep_in_watch, &sleeper) == 0);
    close_client(ctx, client);
    pthread_join(thread, NULL);
    EXPECT(HF_CLOSED, sleeper.code);
    CHECK(poll(&fd, 1, 0) == 1);
    EXPECT(HF_CLOSED, hf_watch_next(sleeper.watch, HF_FOREVER, &view, &ctx->err));
    hf_watch_free(sleeper.watch);
}

static void c18_bad_watches_are_refused(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    hf_query query = {.size = sizeof query, .name = "", .name_len = HF_NTS};
    hf_view *view;
    hf_watch *w;

    EXPECT(HF_INVALID, hf_watch_new(client, &query, 0, &w, &ctx->err));
    query.name = NULL;
    EXPECT(HF_INVALID, hf_watch_new(client, &query, -1, &w, &ctx->err));
    EXPECT(HF_INVALID, hf_watch_new(client, &query, 0, NULL, &ctx->err));
    EXPECT(HF_OK, hf_watch_new(client, NULL, 0, &w, &ctx->err));
    EXPECT(HF_INVALID, hf_watch_next(w, -2, &view, &ctx->err));
    EXPECT(HF_INVALID, hf_watch_next(w, 0, NULL, &ctx->err));
    hf_watch_free(w);
    hf_watch_free(NULL);
}

const struct conformance_case cases_watch[] = {
    CASE(0, c18_every_last_state_is_given),
    CASE(0, c18_another_holder_is_another_state),
    CASE(HF_CAN_LEASE, c18_what_stays_as_it_is_is_not_told),
    CASE(0, c18_store_that_is_away_is_an_error),
    CASE(0, c18_descriptor_says_when_to_look),
    CASE(0, c18_close_ends_a_watch),
    CASE(0, c18_bad_watches_are_refused),
    {0},
};
