/* C9, readers and writers, and C1 for limits. */
#include <stdatomic.h>

#include "harness.h"

static void c9_readers_enter_together(struct ctx *ctx)
{
    hf_client *one = open_client(ctx), *other = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *locks[4];

    for (size_t i = 0; i < 4; i++)
        locks[i] = TAKE(ctx, i % 2 ? one : other, name, shared(LONG_MS, 0));
    CHECK(count_place(one, name, HF_PLACE_INSIDE) == 4);
    for (size_t i = 0; i < 4; i++)
        EXPECT(HF_OK, hf_lock_release(locks[i], &ctx->err));
}

static void c9_writer_keeps_readers_and_writers_out(struct ctx *ctx)
{
    hf_client *one = open_client(ctx), *other = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *writer = TAKE(ctx, one, name, options(LONG_MS, 0));

    EXPECT(HF_BUSY, probe_shared(other, name));
    EXPECT(HF_BUSY, probe(other, name));
    EXPECT(HF_OK, hf_lock_release(writer, &ctx->err));
    EXPECT(HF_OK, probe_shared(other, name));
}

static void c9_one_reader_keeps_writers_out(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *first = TAKE(ctx, client, name, shared(LONG_MS, 0));
    hf_lock *second = TAKE(ctx, client, name, shared(LONG_MS, 0));

    EXPECT(HF_BUSY, probe(client, name));
    EXPECT(HF_OK, hf_lock_release(first, &ctx->err));
    EXPECT(HF_BUSY, probe(client, name));
    EXPECT(HF_OK, hf_lock_release(second, &ctx->err));
    EXPECT(HF_OK, probe(client, name));
}

static void c9_waiting_writer_stops_readers_who_come_later(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *reader = TAKE(ctx, client, name, shared(LONG_MS, 0));
    struct bid writer, late[2];

    bid_queue(&writer, client, name, options(LONG_MS, HF_FOREVER), 1);
    bid_queue(&late[0], client, name, shared(LONG_MS, HF_FOREVER), 2);
    bid_queue(&late[1], client, name, shared(LONG_MS, HF_FOREVER), 3);
    EXPECT(HF_OK, hf_lock_release(reader, &ctx->err));
    hf_lock *lock = bid_join_lock(&writer);
    CHECK(!bid_is_done(&late[0]) && !bid_is_done(&late[1]));
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    /* Both come in, although the first has not left. */
    hf_lock *locks[2] = {bid_join_lock(&late[0]), bid_join_lock(&late[1])};
    CHECK(count_place(client, name, HF_PLACE_INSIDE) == 2);
    EXPECT(HF_OK, hf_lock_release(locks[0], &ctx->err));
    EXPECT(HF_OK, hf_lock_release(locks[1], &ctx->err));
}

static void c9_readers_enter_when_the_writer_before_them_gives_up(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *reader = TAKE(ctx, client, name, shared(LONG_MS, 0));
    hf_options opt = options(LONG_MS, HF_FOREVER);
    struct bid writer, late;

    EXPECT(HF_OK, hf_cancel_new(&opt.cancel));
    bid_queue(&writer, client, name, opt, 1);
    bid_queue(&late, client, name, shared(LONG_MS, HF_FOREVER), 2);
    hf_cancel_fire(opt.cancel);
    EXPECT(HF_CANCELLED, bid_join(&writer));
    EXPECT(HF_OK, hf_lock_release(bid_join_lock(&late), &ctx->err));
    EXPECT(HF_OK, hf_lock_release(reader, &ctx->err));
    hf_cancel_free(opt.cancel);
}

struct stream {
    struct ctx ctx;
    hf_client *client;
    const char *name;
    hf_mode mode;
    _Atomic bool *stop;
    _Atomic unsigned *rounds;
    pthread_t thread;
};

static void *flow(void *arg)
{
    struct stream *s = arg;

    while (!*s->stop) {
        hf_options opt = options(LONG_MS, HF_FOREVER);
        opt.mode = s->mode;
        hf_lock *lock = TAKE(&s->ctx, s->client, s->name, opt);
        ++*s->rounds;
        EXPECT(HF_OK, hf_lock_release(lock, NULL));
    }
    return NULL;
}

/* Three threads that never let go for long, and one of the other mode that wants in five times. */
static void neither_starves(struct ctx *ctx, hf_mode many, hf_mode one)
{
    _Atomic bool stop = false;
    _Atomic unsigned rounds = 0;
    hf_client *client = open_client(ctx);
    struct stream streams[3];

    for (size_t i = 0; i < 3; i++) {
        streams[i] = (struct stream){.client = client,
                                     .name = name_of(ctx, "a"),
                                     .mode = many,
                                     .stop = &stop,
                                     .rounds = &rounds};
        CHECK(pthread_create(&streams[i].thread, NULL, flow, &streams[i]) == 0);
    }
    int64_t began_ms = now_ms();
    while (rounds < 3) {
        CHECK(now_ms() - began_ms < AWAIT_MS);
        await_age(now_ms(), 1);
    }
    for (int i = 0; i < 5; i++) {
        hf_options opt = options(LONG_MS, HF_FOREVER);
        opt.mode = one;
        hf_lock *lock = TAKE(ctx, client, streams[0].name, opt);
        EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    }
    stop = true;
    for (size_t i = 0; i < 3; i++)
        CHECK(pthread_join(streams[i].thread, NULL) == 0);
}

static void c9_writer_does_not_starve_among_readers(struct ctx *ctx)
{
    neither_starves(ctx, HF_SHARED, HF_EXCLUSIVE);
}

static void c9_reader_does_not_starve_among_writers(struct ctx *ctx)
{
    neither_starves(ctx, HF_EXCLUSIVE, HF_SHARED);
}

static hf_options limited(uint32_t limit, int64_t wait_ms)
{
    hf_options opt = shared(LONG_MS, wait_ms);

    opt.limit = limit;
    return opt;
}

static int probe_limit(hf_client *client, const char *name, uint32_t limit)
{
    hf_options opt = limited(limit, 0);
    hf_lock *lock;
    int r = hf_acquire(client, name, HF_NTS, &opt, &lock, NULL);

    return r != 0 ? r : hf_lock_release(lock, NULL);
}

static void c1_limit_is_kept_to_the_last_place(struct ctx *ctx)
{
    hf_client *one = open_client(ctx), *other = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *locks[3];

    for (size_t i = 0; i < 3; i++)
        locks[i] = TAKE(ctx, i % 2 ? one : other, name, limited(3, 0));
    EXPECT(HF_BUSY, probe_limit(one, name, 3));
    EXPECT(HF_OK, hf_lock_release(locks[0], &ctx->err));
    EXPECT(HF_OK, probe_limit(one, name, 3));
    EXPECT(HF_OK, hf_lock_release(locks[1], &ctx->err));
    EXPECT(HF_OK, hf_lock_release(locks[2], &ctx->err));
}

static void c1_smallest_limit_counts(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *first = TAKE(ctx, client, name, limited(5, 0));
    hf_lock *second = TAKE(ctx, client, name, limited(5, 0));

    EXPECT(HF_BUSY, probe_limit(client, name, 2));
    EXPECT(HF_OK, probe_limit(client, name, 3));
    EXPECT(HF_OK, hf_lock_release(second, &ctx->err));
    second = TAKE(ctx, client, name, limited(2, 0));
    EXPECT(HF_BUSY, probe_limit(client, name, 5));
    EXPECT(HF_BUSY, probe_shared(client, name));
    EXPECT(HF_OK, hf_lock_release(first, &ctx->err));
    EXPECT(HF_OK, hf_lock_release(second, &ctx->err));
}

static void c1_limit_of_one_excludes_readers_without_a_limit(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *only = TAKE(ctx, client, name, limited(1, 0));

    EXPECT(HF_BUSY, probe_shared(client, name));
    EXPECT(HF_BUSY, probe(client, name));
    EXPECT(HF_OK, hf_lock_release(only, &ctx->err));
    EXPECT(HF_OK, probe_shared(client, name));
}

static void c1_writer_and_limit_exclude_each_other(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, client, name, options(LONG_MS, 0));

    EXPECT(HF_BUSY, probe_limit(client, name, 5));
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    lock = TAKE(ctx, client, name, limited(5, 0));
    EXPECT(HF_BUSY, probe(client, name));
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
}

struct semaphore {
    struct ctx ctx;
    hf_client *client;
    const char *name;
    _Atomic int *inside;
    pthread_t thread;
};

static void *pass_through(void *arg)
{
    struct semaphore *s = arg;

    for (int i = 0; i < 8; i++) {
        hf_lock *lock = TAKE(&s->ctx, s->client, s->name, limited(3, HF_FOREVER));
        CHECK(atomic_fetch_add(s->inside, 1) < 3);
        atomic_fetch_sub(s->inside, 1);
        EXPECT(HF_OK, hf_lock_release(lock, NULL));
    }
    return NULL;
}

static void c1_limit_holds_among_many_threads(struct ctx *ctx)
{
    hf_client *clients[2] = {open_client(ctx), open_client(ctx)};
    struct semaphore all[8];
    _Atomic int inside = 0;

    for (size_t i = 0; i < 8; i++) {
        all[i] = (struct semaphore){
            .client = clients[i % 2], .name = name_of(ctx, "a"), .inside = &inside};
        CHECK(pthread_create(&all[i].thread, NULL, pass_through, &all[i]) == 0);
    }
    for (size_t i = 0; i < 8; i++)
        CHECK(pthread_join(all[i].thread, NULL) == 0);
}

static void c1_place_of_a_vanished_holder_is_given_on(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_options opt = limited(2, 0);
    struct bid bid;

    opt.ttl_ms = SHORT_MS;
    opt.by_hand = 1;
    hf_lock *vanished = TAKE(ctx, client, name, opt);
    hf_lock *stays = TAKE(ctx, client, name, limited(2, 0));
    bid_start(&bid, client, name, limited(2, HF_FOREVER));
    hf_lock *lock = bid_join_lock(&bid);
    CHECK(hf_lock_state(vanished) == HF_STATE_LOST);
    CHECK(hf_lock_state(stays) == HF_STATE_HELD);
    EXPECT(HF_STALE, hf_lock_release(vanished, &ctx->err));
    EXPECT(HF_OK, hf_lock_release(stays, &ctx->err));
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
}

#define RW    HF_CAN_SHARE
#define QUEUE (HF_CAN_SHARE | HF_CAN_QUEUE)
#define LIMIT (HF_CAN_SHARE | HF_CAN_LIMIT)

const struct conformance_case cases_rw[] = {
    CASE(RW, c9_readers_enter_together),
    CASE(RW, c9_writer_keeps_readers_and_writers_out),
    CASE(RW, c9_one_reader_keeps_writers_out),
    CASE(QUEUE, c9_waiting_writer_stops_readers_who_come_later),
    CASE(QUEUE, c9_readers_enter_when_the_writer_before_them_gives_up),
    CASE(QUEUE, c9_writer_does_not_starve_among_readers),
    CASE(QUEUE, c9_reader_does_not_starve_among_writers),
    CASE(LIMIT, c1_limit_is_kept_to_the_last_place),
    CASE(LIMIT, c1_smallest_limit_counts),
    CASE(LIMIT, c1_limit_of_one_excludes_readers_without_a_limit),
    CASE(LIMIT, c1_writer_and_limit_exclude_each_other),
    CASE(LIMIT, c1_limit_holds_among_many_threads),
    CASE(LIMIT | HF_CAN_LEASE, c1_place_of_a_vanished_holder_is_given_on),
    {0},
};
