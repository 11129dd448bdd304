/* C15: a value beside the lock, which only the holder writes. */
#include "harness.h"

struct value {
    char text[HF_VALUE_MAX + 1];
    size_t len;
    int doubt;
};

static struct value read_value(struct ctx *ctx, hf_lock *lock)
{
    struct value v = {.doubt = -1};

    EXPECT(HF_OK, hf_lock_value(lock, v.text, HF_VALUE_MAX, &v.len, &v.doubt, &ctx->err));
    return v;
}

static void check_value(struct ctx *ctx, hf_lock *lock, const char *text, int doubt)
{
    struct value v = read_value(ctx, lock);

    if (strcmp(v.text, text) != 0 || v.len != strlen(text) || v.doubt != doubt)
        fail_at(__FILE__, __LINE__, "wanted '%s' with doubt %d, but it is '%s' with doubt %d", text,
                doubt, v.text, v.doubt);
}

static int write_text(struct ctx *ctx, hf_lock *lock, const char *text)
{
    return hf_lock_set_value(lock, text, strlen(text), &ctx->err);
}

/* The case ends, and nothing of it is to stay. */
static void forget(struct ctx *ctx, hf_client *client, const char *name)
{
    hf_lock *lock = TAKE(ctx, client, name, options(LONG_MS, HF_FOREVER));

    EXPECT(HF_OK, hf_lock_set_value(lock, NULL, 0, &ctx->err));
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
}

/* A holder whose lease runs out without a word. */
static hf_lock *take_to_vanish(struct ctx *ctx, hf_client *client, const char *name)
{
    hf_options opt = options(1000, 0);

    opt.by_hand = 1;
    return TAKE(ctx, client, name, opt);
}

static void c15_value_passes_from_holder_to_holder(struct ctx *ctx)
{
    hf_client *client = open_client(ctx), *other = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, client, name, options(LONG_MS, 0));

    check_value(ctx, lock, "", 0);
    EXPECT(HF_OK, write_text(ctx, lock, "one"));
    check_value(ctx, lock, "one", 0);
    EXPECT(HF_OK, write_text(ctx, lock, "two"));
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    lock = TAKE(ctx, other, name, options(LONG_MS, 0));
    check_value(ctx, lock, "two", 0);
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    lock = TAKE(ctx, client, name, options(LONG_MS, 0));
    check_value(ctx, lock, "two", 0); /* whoever only reads, and says so, changes nothing */
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    forget(ctx, client, name);
}

static void c15_any_bytes(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, client, name, options(LONG_MS, 0));
    unsigned char bytes[HF_VALUE_MAX + 1], got[HF_VALUE_MAX];
    size_t len = 0;

    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)i;
    EXPECT(HF_OK, hf_lock_set_value(lock, bytes, HF_VALUE_MAX, &ctx->err));
    EXPECT(HF_OK, hf_lock_value(lock, got, sizeof got, &len, NULL, &ctx->err));
    CHECK(len == HF_VALUE_MAX && memcmp(got, bytes, len) == 0);
    EXPECT(HF_INVALID, hf_lock_set_value(lock, bytes, sizeof bytes, &ctx->err));
    EXPECT(HF_INVALID, hf_lock_value(lock, got, 10, &len, NULL, &ctx->err));
    EXPECT(HF_OK, hf_lock_set_value(lock, "\0\xff'", 3, &ctx->err));
    EXPECT(HF_OK, hf_lock_value(lock, got, sizeof got, &len, NULL, &ctx->err));
    CHECK(len == 3 && memcmp(got, "\0\xff'", 3) == 0);
    EXPECT(HF_OK, hf_lock_set_value(lock, NULL, 0, &ctx->err));
    EXPECT(HF_OK, hf_lock_value(lock, got, sizeof got, &len, NULL, &ctx->err));
    CHECK(len == 0);
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
}

/* Its client is kept from hearing that the lock went on: only the store can refuse it. */
static void c15_stale_holder_cannot_write(struct ctx *ctx)
{
    hf_client *client = open_client(ctx), *other = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_options opt = options(LONG_MS, 0);

    opt.by_hand = 1;
    hf_lock *gone = TAKE(ctx, client, name, opt);
    EXPECT(HF_OK, write_text(ctx, gone, "old"));
    EXPECT(HF_OK, hf_break(other, name, HF_NTS, hf_lock_ticket(gone), 1, &ctx->err));
    hf_lock *lock = TAKE(ctx, other, name, options(LONG_MS, 0));
    EXPECT(HF_OK, write_text(ctx, lock, "new"));
    EXPECT(HF_LOST, write_text(ctx, gone, "old again"));
    CHECK(hf_lock_state(gone) == HF_STATE_LOST);
    EXPECT(HF_LOST, hf_lock_value(gone, NULL, 0, &(size_t){0}, NULL, &ctx->err));
    check_value(ctx, lock, "new", 0);
    EXPECT(HF_STALE, hf_lock_release(gone, &ctx->err));
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    forget(ctx, other, name);
}

/* It is overtaken by the next write of the same holder. */
static void c15_late_write_is_dropped(struct ctx *ctx)
{
    hf_client *client = open_fault(ctx, "late=write:1:600ms"), *plain = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, client, name, options(LONG_MS, 0));
    int64_t sent_ms = now_ms();

    EXPECT(HF_OK, write_text(ctx, lock, "one")); /* the second time it arrives at once */
    EXPECT(HF_OK, write_text(ctx, lock, "two"));
    await_age(sent_ms, 900);
    check_value(ctx, lock, "two", 0);
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    forget(ctx, plain, name);
}

/* It arrives when somebody else holds the lock. */
static void c15_write_after_the_lock_went_on_is_dropped(struct ctx *ctx)
{
    hf_client *client = open_fault(ctx, "late=write:1-2:600ms"), *other = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, client, name, options(LONG_MS, 0));
    int64_t sent_ms = now_ms();

    EXPECT(HF_UNKNOWN, write_text(ctx, lock, "old"));
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    lock = TAKE(ctx, other, name, options(LONG_MS, 0));
    EXPECT(HF_OK, write_text(ctx, lock, "new"));
    await_age(sent_ms, 900);
    check_value(ctx, lock, "new", 0);
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    forget(ctx, other, name);
}

static void c15_lost_reply_is_asked_again(struct ctx *ctx)
{
    hf_client *client = open_fault(ctx, "lose=write:1,read:1&fail=write:3");
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, client, name, options(LONG_MS, 0));

    EXPECT(HF_OK, write_text(ctx, lock, "one"));
    check_value(ctx, lock, "one", 0);
    EXPECT(HF_OK, write_text(ctx, lock, "two"));
    check_value(ctx, lock, "two", 0);
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    forget(ctx, client, name);
}

static void c15_vanished_holder_leaves_doubt(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *gone = take_to_vanish(ctx, client, name);

    EXPECT(HF_OK, write_text(ctx, gone, "half"));
    hf_lock *lock = TAKE(ctx, client, name, options(LONG_MS, HF_FOREVER));
    check_value(ctx, lock, "half", 1);
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    lock = TAKE(ctx, client, name, options(LONG_MS, 0));
    check_value(ctx, lock, "half", 1); /* until somebody writes it */
    EXPECT(HF_OK, write_text(ctx, lock, "whole"));
    check_value(ctx, lock, "whole", 0);
    EXPECT(HF_STALE, hf_lock_release(gone, &ctx->err));
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    forget(ctx, client, name);
}

static void c15_vanished_reader_of_the_value_leaves_doubt(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *gone = take_to_vanish(ctx, client, name);

    check_value(ctx, gone, "", 0);
    hf_lock *lock = TAKE(ctx, client, name, options(LONG_MS, HF_FOREVER));
    check_value(ctx, lock, "", 1);
    EXPECT(HF_STALE, hf_lock_release(gone, &ctx->err));
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    forget(ctx, client, name);
}

static void c15_holder_that_never_looked_leaves_none(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *gone = take_to_vanish(ctx, client, name);
    hf_lock *lock = TAKE(ctx, client, name, options(LONG_MS, HF_FOREVER));

    check_value(ctx, lock, "", 0);
    EXPECT(HF_STALE, hf_lock_release(gone, &ctx->err));
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
}

static void c15_broken_holder_leaves_doubt(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *gone = TAKE(ctx, client, name, options(LONG_MS, 0));

    EXPECT(HF_OK, write_text(ctx, gone, "half"));
    EXPECT(HF_OK, hf_break(client, name, HF_NTS, hf_lock_ticket(gone), 1, &ctx->err));
    hf_lock *lock = TAKE(ctx, client, name, options(LONG_MS, HF_FOREVER));
    check_value(ctx, lock, "half", 1);
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    hf_lock_release(gone, &ctx->err);
    forget(ctx, client, name);
}

static void c15_readers_read_and_do_not_write(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, client, name, options(LONG_MS, 0));

    EXPECT(HF_OK, write_text(ctx, lock, "text"));
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    lock = TAKE(ctx, client, name, shared(LONG_MS, 0));
    check_value(ctx, lock, "text", 0);
    EXPECT(HF_INVALID, write_text(ctx, lock, "other"));
    check_value(ctx, lock, "text", 0);
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    forget(ctx, client, name);
}

static void c15_whoever_takes_it_over_writes_on(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_options opt = options(LONG_MS, 0);
    char ticket[HF_TICKET_SIZE];
    hf_lock *lock = TAKE(ctx, client, name, opt);

    for (int i = 0; i < 3; i++)
        EXPECT(HF_OK, write_text(ctx, lock, "before"));
    snprintf(ticket, sizeof ticket, "%s", hf_lock_ticket(lock));
    EXPECT(HF_OK, hf_lock_detach(lock, &ctx->err));
    EXPECT(HF_OK, hf_adopt(client, name, HF_NTS, ticket, &opt, &lock, &ctx->err));
    EXPECT(HF_OK, write_text(ctx, lock, "after"));
    check_value(ctx, lock, "after", 0);
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    forget(ctx, client, name);
}

static void c15_purge_keeps_a_value(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, client, name, options(LONG_MS, 0));

    EXPECT(HF_OK, write_text(ctx, lock, "kept"));
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    await_age(now_ms(), 5);
    EXPECT(HF_OK, hf_purge(client, 1, NULL, &ctx->err));
    lock = TAKE(ctx, client, name, options(LONG_MS, 0));
    check_value(ctx, lock, "kept", 0);
    EXPECT(HF_OK, write_text(ctx, lock, "and replaced"));
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    forget(ctx, client, name);
}

static void hold_and_write(struct ctx *ctx, int fd, void *arg)
{
    hf_client *client = open_client(ctx);
    hf_lock *lock = TAKE(ctx, client, arg, options(1000, HF_FOREVER));

    EXPECT(HF_OK, write_text(ctx, lock, "of another process"));
    say(fd, 'h');
    hear(fd, 'e');
}

static void c15_killed_holder_leaves_doubt(struct ctx *ctx)
{
    const char *name = name_of(ctx, "a");
    struct actor holder = actor_start(ctx, hold_and_write, (void *)name);
    hf_client *client = open_client(ctx);

    hear(holder.fd, 'h');
    actor_kill(&holder);
    hf_lock *lock = TAKE(ctx, client, name, options(LONG_MS, HF_FOREVER));
    check_value(ctx, lock, "of another process", 1);
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    forget(ctx, client, name);
}

#define VALUE HF_CAN_VALUE

const struct conformance_case cases_value[] = {
    CASE(VALUE, c15_value_passes_from_holder_to_holder),
    CASE(VALUE, c15_any_bytes),
    CASE(VALUE | HF_CAN_BREAK, c15_stale_holder_cannot_write),
    CASE(VALUE, c15_late_write_is_dropped),
    CASE(VALUE, c15_write_after_the_lock_went_on_is_dropped),
    CASE(VALUE, c15_lost_reply_is_asked_again),
    CASE(VALUE | HF_CAN_LEASE, c15_vanished_holder_leaves_doubt),
    CASE(VALUE | HF_CAN_LEASE, c15_vanished_reader_of_the_value_leaves_doubt),
    CASE(VALUE | HF_CAN_LEASE, c15_holder_that_never_looked_leaves_none),
    CASE(VALUE | HF_CAN_PROCESS, c15_killed_holder_leaves_doubt),
    CASE(VALUE | HF_CAN_BREAK, c15_broken_holder_leaves_doubt),
    CASE(VALUE | HF_CAN_SHARE, c15_readers_read_and_do_not_write),
    CASE(VALUE | HF_CAN_DETACH, c15_whoever_takes_it_over_writes_on),
    CASE(VALUE, c15_purge_keeps_a_value),
    {0},
};
