/* Closing: everybody who waits is told, what is held goes back, and nothing of the library runs
 * afterwards (C5, C7). */
#include <dirent.h>

#include "harness.h"

static void c5_close_ends_every_wait(struct ctx *ctx)
{
    hf_client *client = open_client(ctx), *other = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, other, name, options(LONG_MS, 0));
    struct bid bids[4], stays;

    for (size_t i = 0; i < 4; i++)
        bid_queue(&bids[i], client, name, options(LONG_MS, HF_FOREVER), i + 1);
    bid_queue(&stays, other, name, options(LONG_MS, HF_FOREVER), 5);
    close_client(ctx, client);
    for (size_t i = 0; i < 4; i++)
        EXPECT(HF_CLOSED, bid_join(&bids[i]));
    /* Nothing is left of the four. */
    CHECK(count_place(other, name, HF_PLACE_WAITING) == in_queue(other, 1));
    CHECK(!bid_is_done(&stays));
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    EXPECT(HF_OK, hf_lock_release(bid_join_lock(&stays), &ctx->err));
}

static void close_while_waiting(size_t position, void *client)
{
    (void)position;
    hf_close(client);
}

static void close_when_told(int level, const char *clause, const char *text, void *client)
{
    (void)level, (void)clause, (void)text;
    hf_close(client);
}

/* It would wait for the call that it is in. */
static void c5_close_in_a_callback_does_nothing(struct ctx *ctx)
{
    hf_client *client = open_client(ctx), *other = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, other, name, options(LONG_MS, 0)), *none;
    hf_options opt = options(LONG_MS, 100);

    opt.on_wait = close_while_waiting;
    opt.arg = client;
    EXPECT(HF_TIMEOUT, hf_acquire(client, name, HF_NTS, &opt, &none, &ctx->err));
    EXPECT(HF_OK, hf_diagnose(client, close_when_told, client, &ctx->err));
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    EXPECT(HF_OK, probe(client, name));
}

static void c2_close_gives_back_what_is_held(struct ctx *ctx)
{
    hf_client *client = open_client(ctx), *other = open_client(ctx);
    hf_lock *leased = TAKE(ctx, client, name_of(ctx, "leased"), options(LONG_MS, 0));
    hf_lock *second = TAKE(ctx, client, name_of(ctx, "second"), options(LONG_MS, 0));

    close_client(ctx, client);
    EXPECT(HF_OK, probe(other, name_of(ctx, "leased")));
    EXPECT(HF_OK, probe(other, name_of(ctx, "second")));
    /* The handles are good for the questions and for being given back. */
    CHECK(hf_lock_state(leased) == HF_STATE_LOST);
    CHECK(hf_lock_cause(leased) == HF_CAUSE_CLOSED);
    CHECK(hf_lock_remaining_ms(leased) == 0);
    EXPECT(HF_CLOSED, hf_lock_renew(leased, &ctx->err));
    EXPECT(HF_CLOSED, hf_lock_release(leased, &ctx->err));
    EXPECT(HF_CLOSED, hf_lock_release(second, &ctx->err));
}

static void c8_close_leaves_no_lock_delay(struct ctx *ctx)
{
    hf_client *client = open_client(ctx), *other = open_client(ctx);
    hf_options opt = options(LONG_MS, 0);

    opt.lock_delay_ms = HF_DELAY_MAX_MS;
    hf_lock *lock = TAKE(ctx, client, name_of(ctx, "a"), opt);
    close_client(ctx, client);
    EXPECT(HF_OK, probe(other, name_of(ctx, "a")));
    EXPECT(HF_CLOSED, hf_lock_release(lock, &ctx->err));
}

static size_t count_entries(const char *path)
{
    DIR *dir = opendir(path);
    size_t count = 0;

    CHECK(dir != NULL);
    while (readdir(dir) != NULL)
        count++;
    closedir(dir);
    return count;
}

static void use_it(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_options opt = options(LONG_MS, HF_FOREVER);
    struct bid bid;

    hf_lock *lock = TAKE(ctx, client, name, options(1500, 0));
    CHECK(hf_lock_fd(lock) >= 0);
    EXPECT(HF_OK, hf_cancel_new(&opt.cancel));
    bid_queue(&bid, client, name, opt, 1);
    if (ctx->can & HF_CAN_LEASE)
        await_renewal(lock); /* which starts a thread */
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    EXPECT(HF_OK, hf_lock_release(bid_join_lock(&bid), &ctx->err));
    hf_cancel_free(opt.cancel);
    close_client(ctx, client);
}

static void c13_close_leaves_no_thread_and_no_descriptor(struct ctx *ctx)
{
    use_it(ctx); /* what libraries make once for the process is there from now on */
    size_t threads = count_entries("/proc/self/task"), fds = count_entries("/proc/self/fd");

    for (int i = 0; i < 3; i++)
        use_it(ctx);
    CHECK(count_entries("/proc/self/task") <= threads);
    CHECK(count_entries("/proc/self/fd") <= fds);
}

static void c13_client_starts_no_thread_before_the_first_acquire(struct ctx *ctx)
{
    size_t threads = count_entries("/proc/self/task");
    hf_client *client = open_client(ctx);
    hf_view *view;

    EXPECT(HF_OK, hf_inspect(client, NULL, &view, &ctx->err));
    hf_view_free(view);
    /* The sanitizer starts a thread of its own with the first of a library. */
    CHECK(count_entries("/proc/self/task") <= threads + UNDER_TSAN);
}

static void c1_setup_and_diagnosis_do_no_harm(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    hf_lock *lock = TAKE(ctx, client, name_of(ctx, "a"), options(LONG_MS, 0));

    EXPECT(HF_OK, hf_setup(client, &ctx->err));
    EXPECT(HF_OK, hf_setup(client, &ctx->err));
    EXPECT(HF_OK, hf_lock_renew(lock, &ctx->err));
    EXPECT(HF_BUSY, probe(client, name_of(ctx, "a")));
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
}

const struct conformance_case cases_close[] = {
    CASE(0, c5_close_ends_every_wait),
    CASE(0, c5_close_in_a_callback_does_nothing),
    CASE(0, c2_close_gives_back_what_is_held),
    CASE(HF_CAN_DELAY, c8_close_leaves_no_lock_delay),
    CASE(0, c13_close_leaves_no_thread_and_no_descriptor),
    CASE(0, c13_client_starts_no_thread_before_the_first_acquire),
    CASE(0, c1_setup_and_diagnosis_do_no_harm),
    {0},
};
