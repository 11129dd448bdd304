/* C21: what becomes of grants and bids is written down by clients that ask for it, and by nobody else; the last
 * so many of each name stay. */
#include <unistd.h>

#include "harness.h"

#define KEPT 6 /* as keep() asks for */

static hf_client *keep(struct ctx *ctx)
{
    return open_with(ctx, "history=6");
}

static hf_trail *read_trail(struct ctx *ctx, hf_client *client, const char *name)
{
    hf_history_query query = {.size = sizeof query, .name = name, .name_len = HF_NTS};
    hf_trail *trail;

    EXPECT(HF_OK, hf_history(client, &query, &trail, &ctx->err));
    return trail;
}

/* The trail of this name has these kinds, in this order; to be freed. */
static hf_trail *expect_trail(struct ctx *ctx, hf_client *client, const char *name,
                              const char *kinds)
{
    hf_trail *trail = read_trail(ctx, client, name);
    char got[400] = "";
    const hf_trail_entry *e;

    for (size_t i = 0; (e = hf_trail_entry_at(trail, i)) != NULL; i++) {
        size_t used = strlen(got);
        snprintf(got + used, sizeof got - used, "%s%s", used > 0 ? " " : "",
                 hf_trail_kind_name(e->kind));
    }
    if (strcmp(got, kinds) != 0)
        fail_at(__FILE__, __LINE__, "the trail is '%s', not '%s'", got, kinds);
    return trail;
}

static void c21_grant_and_release_are_written(struct ctx *ctx)
{
    hf_client *client = keep(ctx), *reader = open_client(ctx);
    const char *name = name_of(ctx, "a");
    hf_options opt = options(LONG_MS, 0);
    char ticket[HF_TICKET_SIZE];

    opt.note = "why";
    hf_lock *lock = TAKE(ctx, client, name, opt);
    uint64_t generation = ctx->can & HF_CAN_TOKEN ? generation_of(lock) : 0;
    snprintf(ticket, sizeof ticket, "%s", hf_lock_ticket(lock));
    await_age(now_ms(), 30);
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));

    hf_trail *trail = expect_trail(ctx, reader, name, "granted released");
    for (size_t i = 0; i < 2; i++) {
        const hf_trail_entry *e = hf_trail_entry_at(trail, i);
        CHECK(e->name_len == strlen(name) && memcmp(e->name, name, e->name_len) == 0);
        CHECK(strcmp(e->ticket, ticket) == 0);
        CHECK(e->generation == generation);
        CHECK(e->mode == HF_EXCLUSIVE);
        CHECK(strcmp(e->note, "why") == 0);
        CHECK(e->pid == getpid());
        CHECK(e->host[0] != '\0' && e->user[0] != '\0' && e->program[0] != '\0');
        CHECK(e->cause[0] == '\0');
    }
    CHECK(hf_trail_entry_at(trail, 1)->held_ms >= 20);
    CHECK(hf_trail_entry_at(trail, 0)->at_ms <= hf_trail_entry_at(trail, 1)->at_ms);
    CHECK(hf_trail_entry_at(trail, 2) == NULL);
    hf_trail_free(trail);
}

static void c21_hand_over_is_written(struct ctx *ctx)
{
    hf_client *client = keep(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, client, name, options(LONG_MS, 0));
    struct bid bid;

    bid_queue(&bid, client, name, options(LONG_MS, HF_FOREVER), 1);
    await_age(now_ms(), 30);
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    EXPECT(HF_OK, hf_lock_release(bid_join_lock(&bid), &ctx->err));
    hf_trail *trail = expect_trail(ctx, client, name, "granted released granted released");
    CHECK(hf_trail_entry_at(trail, 2)->waited_ms >= 20);
    hf_trail_free(trail);
}

static void c21_loss_is_written_when_it_is_noticed(struct ctx *ctx)
{
    hf_client *client = keep(ctx);
    const char *name = name_of(ctx, "a");
    hf_options opt = options(SHORT_MS, 0);

    opt.by_hand = 1;
    hf_lock *lock = TAKE(ctx, client, name, opt);
    await_lost(lock);
    await_free(client, name);
    EXPECT(HF_OK, probe(client, name));
    EXPECT(HF_STALE, hf_lock_release(lock, &ctx->err));
    /* On a busy machine a lease as short as this may be over before its holder knows of it. */
    hf_trail *trail = read_trail(ctx, client, name);
    size_t count = hf_trail_count(trail);
    CHECK(count >= 4 && count % 2 == 0);
    CHECK(hf_trail_entry_at(trail, count - 1)->kind == HF_TRAIL_RELEASED);
    for (size_t i = 0; i + 2 < count; i += 2) {
        const hf_trail_entry *granted = hf_trail_entry_at(trail, i);
        const hf_trail_entry *lost = hf_trail_entry_at(trail, i + 1);
        CHECK(granted->kind == HF_TRAIL_GRANTED && lost->kind == HF_TRAIL_LOST);
        CHECK(strcmp(lost->cause, "expired") == 0 && lost->held_ms >= SHORT_MS / 2);
        CHECK(strcmp(lost->ticket, granted->ticket) == 0);
    }
    hf_trail_free(trail);
}

static void c21_break_says_who_did_it(struct ctx *ctx)
{
    hf_client *client = keep(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, client, name, options(2000, 0));
    char me[40];

    EXPECT(HF_OK, hf_break(client, name, HF_NTS, hf_lock_ticket(lock), 1, &ctx->err));
    await_lost(lock);
    EXPECT(HF_STALE, hf_lock_release(lock, &ctx->err));
    hf_trail *trail = expect_trail(ctx, client, name, "granted broken");
    snprintf(me, sizeof me, ", pid %ld, ", (long)getpid());
    CHECK(strstr(hf_trail_entry_at(trail, 1)->cause, me) != NULL);
    hf_trail_free(trail);
}

static void c21_bid_that_gave_up_is_written(struct ctx *ctx)
{
    hf_client *client = keep(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, client, name, options(LONG_MS, 0)), *none;
    hf_options opt = options(LONG_MS, 100);

    EXPECT(HF_TIMEOUT, hf_acquire(client, name, HF_NTS, &opt, &none, &ctx->err));
    EXPECT(HF_BUSY, probe(client, name)); /* who does not wait leaves nothing */
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    hf_trail *trail = expect_trail(ctx, client, name, "granted withdrawn released");
    CHECK(hf_trail_entry_at(trail, 1)->generation == 0);
    CHECK(hf_trail_entry_at(trail, 1)->waited_ms >= 50);
    hf_trail_free(trail);
}

static void c21_only_the_last_stay(struct ctx *ctx)
{
    hf_client *client = keep(ctx);
    const char *name = name_of(ctx, "a");

    for (int i = 0; i < 8 * KEPT; i++)
        EXPECT(HF_OK, probe(client, name));
    hf_trail *trail = read_trail(ctx, client, name);
    size_t count = hf_trail_count(trail), bids = 0;
    for (size_t i = 0; i < count; i++)
        bids += hf_trail_entry_at(trail, i)->kind == HF_TRAIL_RELEASED;
    CHECK(count == 2 * bids && bids >= KEPT && bids <= 2 * KEPT);
    hf_trail_free(trail);
}

static void c21_nothing_is_written_without_the_option(struct ctx *ctx)
{
    hf_client *client = open_client(ctx), *writer = keep(ctx);
    const char *name = name_of(ctx, "a");
    hf_lock *lock = TAKE(ctx, client, name, options(LONG_MS, 0)), *none;
    hf_options opt = options(LONG_MS, 100);

    EXPECT(HF_TIMEOUT, hf_acquire(client, name, HF_NTS, &opt, &none, &ctx->err));
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    hf_trail_free(expect_trail(ctx, client, name, ""));
    EXPECT(HF_OK, probe(writer, name)); /* both share the lock */
    EXPECT(HF_OK, probe(client, name));
    hf_trail_free(expect_trail(ctx, client, name, "granted released"));
}

static size_t held_at(struct ctx *ctx, hf_client *client, const char *name, int64_t at_ms,
                      char ticket[HF_TICKET_SIZE])
{
    hf_history_query query = {
        .size = sizeof query, .name = name, .name_len = HF_NTS, .at_ms = at_ms};
    hf_trail *trail;

    EXPECT(HF_OK, hf_history(client, &query, &trail, &ctx->err));
    size_t count = hf_trail_count(trail);
    if (count > 0)
        snprintf(ticket, HF_TICKET_SIZE, "%s", hf_trail_entry_at(trail, 0)->ticket);
    hf_trail_free(trail);
    return count;
}

static void c21_who_held_then(struct ctx *ctx)
{
    hf_client *client = keep(ctx);
    const char *name = name_of(ctx, "a");
    char first[HF_TICKET_SIZE], found[HF_TICKET_SIZE];
    hf_lock *lock = TAKE(ctx, client, name, options(LONG_MS, 0));

    snprintf(first, sizeof first, "%s", hf_lock_ticket(lock));
    await_age(now_ms(), 20);
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    await_age(now_ms(), 20);
    hf_trail *trail = expect_trail(ctx, client, name, "granted released");
    int64_t granted_ms = hf_trail_entry_at(trail, 0)->at_ms;
    int64_t released_ms = hf_trail_entry_at(trail, 1)->at_ms;
    hf_trail_free(trail);
    CHECK(held_at(ctx, client, name, granted_ms - 1, found) == 0);
    CHECK(held_at(ctx, client, name, released_ms - 1, found) == 1 && strcmp(found, first) == 0);
    CHECK(held_at(ctx, client, name, released_ms, found) == 0);

    /* Now, and later, though others have filled the trail meanwhile. */
    lock = TAKE(ctx, client, name, options(LONG_MS, 0));
    snprintf(first, sizeof first, "%s", hf_lock_ticket(lock));
    CHECK(held_at(ctx, client, name, INT64_MAX, found) == 1 && strcmp(found, first) == 0);
    for (int i = 0; i < KEPT; i++) {
        hf_options opt = options(LONG_MS, 1);
        hf_lock *none;
        EXPECT(HF_TIMEOUT, hf_acquire(client, name, HF_NTS, &opt, &none, &ctx->err));
    }
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    trail = read_trail(ctx, client, name);
    const hf_trail_entry *last = hf_trail_entry_at(trail, hf_trail_count(trail) - 1);
    CHECK(last->kind == HF_TRAIL_RELEASED && hf_trail_entry_at(trail, 0)->kind == HF_TRAIL_GRANTED);
    int64_t at_ms = last->at_ms - 1;
    hf_trail_free(trail);
    CHECK(held_at(ctx, client, name, at_ms, found) == 1 && strcmp(found, first) == 0);
}

static void c21_readers_are_held_together(struct ctx *ctx)
{
    hf_client *client = keep(ctx);
    const char *name = name_of(ctx, "a");
    char found[HF_TICKET_SIZE];
    hf_lock *one = TAKE(ctx, client, name, shared(LONG_MS, 0));
    hf_lock *two = TAKE(ctx, client, name, shared(LONG_MS, 0));

    await_age(now_ms(), 20);
    EXPECT(HF_OK, hf_lock_release(one, &ctx->err));
    EXPECT(HF_OK, hf_lock_release(two, &ctx->err));
    hf_trail *trail = expect_trail(ctx, client, name, "granted granted released released");
    int64_t at_ms = hf_trail_entry_at(trail, 2)->at_ms - 1;
    CHECK(hf_trail_entry_at(trail, 0)->mode == HF_SHARED);
    hf_trail_free(trail);
    CHECK(held_at(ctx, client, name, at_ms, found) == 2);
}

static void c21_time_prefix_and_limit_choose(struct ctx *ctx)
{
    hf_client *client = keep(ctx);
    const char *a = name_of(ctx, "a"), *b = name_of(ctx, "b");
    hf_history_query query = {.size = sizeof query, .prefix = ctx->prefix, .prefix_len = HF_NTS};
    hf_trail *trail;

    EXPECT(HF_OK, probe(client, a));
    await_age(now_ms(), 20);
    EXPECT(HF_OK, probe(client, b));
    EXPECT(HF_OK, hf_history(client, &query, &trail, &ctx->err));
    CHECK(hf_trail_count(trail) == 4);
    query.since_ms = hf_trail_entry_at(trail, 2)->at_ms;
    CHECK(strcmp(hf_trail_entry_at(trail, 1)->name, a) == 0);
    CHECK(strcmp(hf_trail_entry_at(trail, 2)->name, b) == 0);
    hf_trail_free(trail);
    EXPECT(HF_OK, hf_history(client, &query, &trail, &ctx->err));
    CHECK(hf_trail_count(trail) == 2 && strcmp(hf_trail_entry_at(trail, 0)->name, b) == 0);
    hf_trail_free(trail);
    query.until_ms = query.since_ms;
    query.since_ms = 0;
    EXPECT(HF_OK, hf_history(client, &query, &trail, &ctx->err));
    CHECK(hf_trail_count(trail) == 2 && strcmp(hf_trail_entry_at(trail, 0)->name, a) == 0);
    hf_trail_free(trail);
    query.until_ms = 0;
    query.limit = 1;
    EXPECT(HF_OK, hf_history(client, &query, &trail, &ctx->err));
    CHECK(hf_trail_count(trail) == 1 && strcmp(hf_trail_entry_at(trail, 0)->name, b) == 0 &&
          hf_trail_entry_at(trail, 0)->kind == HF_TRAIL_RELEASED);
    hf_trail_free(trail);
}

static void c21_odd_names_and_notes_come_back_as_they_are(struct ctx *ctx)
{
    static const char *const odd[] = {"'; DROP TABLE holdfast_history; --",
                                      "a\\b",
                                      "%s%n \"x\"",
                                      "\001\033[31m\xff\xfe",
                                      "\xe4\xbd\xa0\xe5\xa5\xbd",
                                      "$(reboot)`id`",
                                      " line\nbreak\r\t"};
    hf_client *client = keep(ctx);

    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        const char *name = name_of(ctx, odd[i]);
        hf_options opt = options(LONG_MS, 0);
        opt.note = odd[i];
        EXPECT(HF_OK, hf_lock_release(TAKE(ctx, client, name, opt), &ctx->err));
        hf_trail *trail = expect_trail(ctx, client, name, "granted released");
        CHECK(strcmp(hf_trail_entry_at(trail, 1)->name, name) == 0);
        CHECK(strcmp(hf_trail_entry_at(trail, 1)->note, odd[i]) == 0);
        hf_trail_free(trail);
    }
}

static void c21_bad_questions_are_refused(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    hf_history_query query = {.size = sizeof query, .at_ms = 1, .since_ms = 1};
    hf_trail *trail;

    EXPECT(HF_INVALID, hf_history(client, NULL, NULL, &ctx->err));
    EXPECT(HF_INVALID, hf_history(client, &query, &trail, &ctx->err));
    query = (hf_history_query){.size = sizeof query, .limit = HF_TRAIL_MAX + 1};
    EXPECT(HF_INVALID, hf_history(client, &query, &trail, &ctx->err));
    query = (hf_history_query){.size = sizeof query, .since_ms = -1};
    EXPECT(HF_INVALID, hf_history(client, &query, &trail, &ctx->err));
    query = (hf_history_query){.size = sizeof query, .name = ""};
    EXPECT(HF_INVALID, hf_history(client, &query, &trail, &ctx->err));
    CHECK(hf_trail_entry_at(NULL, 0) == NULL && hf_trail_count(NULL) == 0);
    hf_trail_free(NULL);
}

const struct conformance_case cases_history[] = {
    CASE(HF_CAN_HISTORY, c21_grant_and_release_are_written),
    CASE(HF_CAN_HISTORY | HF_CAN_QUEUE, c21_hand_over_is_written),
    CASE(HF_CAN_HISTORY | HF_CAN_LEASE, c21_loss_is_written_when_it_is_noticed),
    CASE(HF_CAN_HISTORY | HF_CAN_BREAK, c21_break_says_who_did_it),
    CASE(HF_CAN_HISTORY | HF_CAN_QUEUE, c21_bid_that_gave_up_is_written),
    CASE(HF_CAN_HISTORY, c21_only_the_last_stay),
    CASE(HF_CAN_HISTORY, c21_nothing_is_written_without_the_option),
    CASE(HF_CAN_HISTORY | HF_CAN_QUEUE, c21_who_held_then),
    CASE(HF_CAN_HISTORY | HF_CAN_SHARE, c21_readers_are_held_together),
    CASE(HF_CAN_HISTORY, c21_time_prefix_and_limit_choose),
    CASE(HF_CAN_HISTORY, c21_odd_names_and_notes_come_back_as_they_are),
    CASE(HF_CAN_HISTORY, c21_bad_questions_are_refused),
    {0},
};
