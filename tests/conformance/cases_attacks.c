/* Names and notes that attack what handles them (tests/lib/attacks.txt) are names and notes like any: they
 * lock, exclude, are shown, found and broken as they are, and nothing else than themselves is touched. */
#include <unistd.h>

#include "harness.h"
#include "lib/attacks.h"

struct stage {
    hf_client *client, *other;
    struct attack attacks[ATTACKS_MAX];
    size_t count;
    struct name {
        char bytes[HF_NAME_MAX];
        size_t len;
    } names[ATTACKS_MAX];
    hf_lock *locks[ATTACKS_MAX], *plain;
};

static struct name make_name(const struct ctx *ctx, const char *tail, size_t tail_len)
{
    struct name n = {.len = strlen(ctx->prefix)};

    memcpy(n.bytes, ctx->prefix, n.len);
    CHECK(n.len + tail_len <= sizeof n.bytes);
    memcpy(n.bytes + n.len, tail, tail_len);
    n.len += tail_len;
    return n;
}

/* Everybody's strings at hand, and a bystander whose lock is held all the time. */
static struct stage *set_stage(struct ctx *ctx)
{
    static struct stage s;

    s.count = read_attacks(s.attacks);
    CHECK(s.count > 80);
    for (size_t i = 0; i < s.count; i++)
        s.names[i] = make_name(ctx, s.attacks[i].bytes, s.attacks[i].len);
    s.client = open_client(ctx);
    s.other = open_client(ctx);
    s.plain = TAKE(ctx, s.client, name_of(ctx, "plain"), options(LONG_MS, 0));
    return &s;
}

static hf_lock *take(struct ctx *ctx, struct stage *s, size_t i)
{
    hf_options opt = options(LONG_MS, 0);
    hf_lock *lock = NULL;

    opt.note = s->attacks[i].bytes; /* up to a NUL in it */
    EXPECT(HF_OK,
           hf_acquire(s->client, s->names[i].bytes, s->names[i].len, &opt, &lock, &ctx->err));
    return lock;
}

static hf_view *look(struct ctx *ctx, hf_client *client, const struct name *n, bool prefix)
{
    hf_query query = {.size = sizeof query};
    hf_view *view;

    if (prefix) {
        query.prefix = n->bytes;
        query.prefix_len = n->len;
    } else {
        query.name = n->bytes;
        query.name_len = n->len;
    }
    EXPECT(HF_OK, hf_inspect(client, &query, &view, &ctx->err));
    return view;
}

static bool begins_with(const struct name *n, const struct name *prefix)
{
    return n->len >= prefix->len && memcmp(n->bytes, prefix->bytes, prefix->len) == 0;
}

static void release_all(struct ctx *ctx, struct stage *s)
{
    for (size_t i = 0; i < s->count; i++) {
        if (s->locks[i] != NULL)
            EXPECT(HF_OK, hf_lock_release(s->locks[i], &ctx->err));
    }
    CHECK(hf_lock_state(s->plain) == HF_STATE_HELD);
    EXPECT(HF_OK, hf_lock_release(s->plain, &ctx->err));
}

/* By its name each is found alone; with all names that begin so, it and those. */
static void check_found(struct ctx *ctx, struct stage *s, size_t i)
{
    const struct name *n = &s->names[i];
    size_t begin_so = 0;

    for (size_t k = 0; k < s->count; k++)
        begin_so += begins_with(&s->names[k], n);
    hf_view *view = look(ctx, s->other, n, false);
    CHECK(hf_view_count(view) == 1);
    const hf_entry *e = hf_view_entry(view, 0);
    CHECK(e->name_len == n->len && memcmp(e->name, n->bytes, n->len) == 0);
    CHECK(e->name[n->len] == '\0' && strcmp(e->note, s->attacks[i].bytes) == 0);
    hf_view_free(view);
    view = look(ctx, s->other, n, true);
    CHECK(hf_view_count(view) == begin_so);
    hf_view_free(view);
}

static void c1_hostile_names_and_notes_are_like_any(struct ctx *ctx)
{
    struct stage *s = set_stage(ctx);
    hf_lock *none;

    for (size_t i = 0; i < s->count; i++)
        s->locks[i] = take(ctx, s, i);
    for (size_t i = 0; i < s->count; i++) {
        hf_options opt = options(LONG_MS, 0);
        size_t len;
        check_found(ctx, s, i);
        EXPECT(HF_BUSY,
               hf_acquire(s->other, s->names[i].bytes, s->names[i].len, &opt, &none, &ctx->err));
        const char *name = hf_lock_name(s->locks[i], &len);
        CHECK(len == s->names[i].len && memcmp(name, s->names[i].bytes, len) == 0);
    }
    release_all(ctx, s);
}

static void await_gone(struct ctx *ctx, struct stage *s, const struct name *n)
{
    for (int64_t end_ms = now_ms() + AWAIT_MS;;) {
        hf_view *view = look(ctx, s->other, n, false);
        size_t count = hf_view_count(view);
        hf_view_free(view);
        if (count == 0)
            return;
        CHECK(now_ms() < end_ms);
        usleep(2000);
    }
}

/* Every third one is broken by its ticket, and not one more. */
static void c2_breaking_a_hostile_name_breaks_it_alone(struct ctx *ctx)
{
    struct stage *s = set_stage(ctx);

    for (size_t i = 0; i < s->count; i++)
        s->locks[i] = take(ctx, s, i);
    for (size_t i = 0; i < s->count; i += 3) {
        const struct name *n = &s->names[i];
        EXPECT(HF_OK,
               hf_break(s->other, n->bytes, n->len, hf_lock_ticket(s->locks[i]), 1, &ctx->err));
        await_gone(ctx, s, n);
        hf_lock_release(s->locks[i], &ctx->err); /* perhaps it has not heard yet */
        s->locks[i] = NULL;
    }
    struct name all = make_name(ctx, "", 0);
    hf_view *view = look(ctx, s->other, &all, true);
    CHECK(hf_view_count(view) == s->count - (s->count + 2) / 3 + 1); /* and the bystander */
    hf_view_free(view);
    release_all(ctx, s);
}

/* A ticket that was guessed, and one of another lock, release and break nothing. */
static void c2_foreign_tickets_break_nothing(struct ctx *ctx)
{
    static const char *const guesses[] = {"00000000000000000000000000000000",
                                          "ffffffffffffffffffffffffffffffff"};
    static const char *const none[] = {"", "x", "' OR '1'='1",
                                       "00000000-0000-0000-0000-000000000000",
                                       "000000000000000000000000000000000"};
    hf_client *client = open_client(ctx), *other = open_client(ctx);
    const char *a = name_of(ctx, "a"), *b = name_of(ctx, "b");
    hf_lock *lock = TAKE(ctx, client, a, options(LONG_MS, 0));
    hf_lock *bystander = TAKE(ctx, client, b, options(LONG_MS, 0));

    for (int now = 0; now < 2; now++) {
        for (size_t i = 0; i < sizeof guesses / sizeof guesses[0]; i++)
            EXPECT(HF_NOT_FOUND, hf_break(other, a, HF_NTS, guesses[i], now, &ctx->err));
        for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
            EXPECT(HF_INVALID, hf_break(other, a, HF_NTS, none[i], now, &ctx->err));
        EXPECT(HF_NOT_FOUND, hf_break(other, a, HF_NTS, hf_lock_ticket(bystander), now, &ctx->err));
    }
    EXPECT(HF_OK, hf_lock_renew(lock, &ctx->err));
    EXPECT(HF_OK, hf_lock_renew(bystander, &ctx->err));
    CHECK(probe(other, a) == HF_BUSY && probe(other, b) == HF_BUSY);
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    EXPECT(HF_OK, hf_lock_release(bystander, &ctx->err));
}

const struct conformance_case cases_attacks[] = {
    /* Where a lock is a connection these are many. */
    CASE_ALONE(0, c1_hostile_names_and_notes_are_like_any),
    CASE_ALONE(HF_CAN_BREAK, c2_breaking_a_hostile_name_breaks_it_alone),
    CASE(HF_CAN_BREAK, c2_foreign_tickets_break_nothing),
    {0},
};
