/* Names are 1 to 512 arbitrary bytes, and no two different names ever meet (C1). */
#include "harness.h"

struct name {
    char bytes[HF_NAME_MAX];
    size_t len;
};

static struct name make_name(struct ctx *ctx, const char *tail, size_t tail_len)
{
    struct name n = {.len = strlen(ctx->prefix)};

    memcpy(n.bytes, ctx->prefix, n.len);
    CHECK(n.len + tail_len <= sizeof n.bytes);
    memcpy(n.bytes + n.len, tail, tail_len);
    n.len += tail_len;
    return n;
}

static hf_lock *take_name(struct ctx *ctx, hf_client *client, const struct name *n)
{
    hf_options opt = options(LONG_MS, 0);
    hf_lock *lock = NULL;

    EXPECT(HF_OK, hf_acquire(client, n->bytes, n->len, &opt, &lock, &ctx->err));
    return lock;
}

/* The store shows this name, and this one only, for it. */
static void check_shown(struct ctx *ctx, hf_client *client, const struct name *n)
{
    hf_query query = {.size = sizeof query, .name = n->bytes, .name_len = n->len};
    hf_view *view;

    EXPECT(HF_OK, hf_inspect(client, &query, &view, &ctx->err));
    CHECK(hf_view_count(view) == 1);
    const hf_entry *e = hf_view_entry(view, 0);
    CHECK(e->name_len == n->len && memcmp(e->name, n->bytes, n->len) == 0);
    CHECK(e->name[n->len] == '\0');
    CHECK(hf_view_entry(view, 1) == NULL);
    hf_view_free(view);
}

/* Takes all of them at once; each must be free for its first taker and busy for the second. */
static void hold_all(struct ctx *ctx, const struct name *names, size_t count)
{
    hf_client *client = open_client(ctx), *other = open_client(ctx);
    hf_lock **locks = calloc(count, sizeof(hf_lock *)), *none;

    CHECK(locks != NULL);
    for (size_t i = 0; i < count; i++)
        locks[i] = take_name(ctx, client, &names[i]);
    for (size_t i = 0; i < count; i++) {
        hf_options opt = options(LONG_MS, 0);
        size_t len;
        check_shown(ctx, other, &names[i]);
        EXPECT(HF_BUSY, hf_acquire(other, names[i].bytes, names[i].len, &opt, &none, &ctx->err));
        CHECK(memcmp(hf_lock_name(locks[i], &len), names[i].bytes, names[i].len) == 0);
        CHECK(len == names[i].len);
    }
    for (size_t i = 0; i < count; i++)
        EXPECT(HF_OK, hf_lock_release(locks[i], &ctx->err));
    free(locks);
}

#define TEXT(text)            \
    {                         \
        text, sizeof text - 1 \
    }
static void c1_twins_do_not_meet(struct ctx *ctx)
{
    static const struct {
        const char *text;
        size_t len;
    } twins[] = {
        TEXT("Invoice"),
        TEXT("invoice"),
        TEXT("INVOICE"),
        TEXT("invoice "),
        TEXT("invoice  "),
        TEXT(" invoice"),
        TEXT("invoice\0"),
        TEXT("invoice\0\0"),
        TEXT("invoice/"),
        TEXT("invoic"),
        TEXT("\xc3\xa9"),
        TEXT("e\xcc\x81"),
        TEXT("stra\xc3\x9f"
             "e"),
        TEXT("strasse"),
        TEXT("\xef\xac\x81"),
        TEXT("fi"),
        TEXT("1"),
        TEXT("01"),
        TEXT("1.0"),
        TEXT("0x1"),
    };
    struct name names[sizeof twins / sizeof twins[0]];

    for (size_t i = 0; i < sizeof twins / sizeof twins[0]; i++)
        names[i] = make_name(ctx, twins[i].text, twins[i].len);
    hold_all(ctx, names, sizeof twins / sizeof twins[0]);
}

static void c1_every_byte_makes_a_name_of_its_own(struct ctx *ctx)
{
    struct name names[256];

    for (size_t i = 0; i < 256; i++)
        names[i] = make_name(ctx, &(char){(char)i}, 1);
    hold_all(ctx, names, 256);
}

static void c1_longest_names_differ_in_their_last_byte(struct ctx *ctx)
{
    struct name names[3];
    char tail[HF_NAME_MAX];
    size_t tail_len = HF_NAME_MAX - strlen(ctx->prefix);

    memset(tail, 0xff, sizeof tail);
    for (size_t i = 0; i < 3; i++) {
        tail[tail_len - 1] = (char)i;
        names[i] = make_name(ctx, tail, tail_len);
    }
    hold_all(ctx, names, 3);
}

static void c1_many_names_do_not_meet(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    hf_lock *locks[600];
    char text[16];

    /* Among so many, names hashed to 16 bits would meet almost surely. */
    for (size_t i = 0; i < 600; i++) {
        snprintf(text, sizeof text, "%zu", i);
        struct name n = make_name(ctx, text, strlen(text));
        locks[i] = take_name(ctx, client, &n);
    }
    for (size_t i = 0; i < 600; i++)
        EXPECT(HF_OK, hf_lock_release(locks[i], &ctx->err));
}

static void c1_names_out_of_bounds_are_refused(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    hf_options opt = options(LONG_MS, 0);
    char *big = malloc(65536 + 1);
    hf_lock *none;

    CHECK(big != NULL);
    memset(big, 'x', 65536);
    big[65536] = '\0';
    EXPECT(HF_INVALID, hf_acquire(client, "", 0, &opt, &none, &ctx->err));
    EXPECT(HF_INVALID, hf_acquire(client, "", HF_NTS, &opt, &none, &ctx->err));
    EXPECT(HF_INVALID, hf_acquire(client, NULL, 3, &opt, &none, &ctx->err));
    EXPECT(HF_INVALID, hf_acquire(client, big, HF_NAME_MAX + 1, &opt, &none, &ctx->err));
    EXPECT(HF_INVALID, hf_acquire(client, big, 65536, &opt, &none, &ctx->err));
    EXPECT(HF_INVALID, hf_acquire(client, big, HF_NTS, &opt, &none, &ctx->err));
    EXPECT(HF_INVALID, hf_break(client, big, 65536, big, 0, &ctx->err));
    free(big);
}

static void c1_prefix_means_itself_not_a_pattern(struct ctx *ctx)
{
    static const char *const prefixes[] = {"%", "_", "*", "?", "[", "\\", "a%", "\xff"};
    hf_client *client = open_client(ctx);
    struct name plain = make_name(ctx, "abc", 3);
    hf_lock *lock = take_name(ctx, client, &plain);

    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
        struct name n = make_name(ctx, prefixes[i], strlen(prefixes[i]));
        struct name longer = make_name(ctx, prefixes[i], strlen(prefixes[i]));
        longer.bytes[longer.len++] = 'z';
        hf_query query = {.size = sizeof query, .prefix = n.bytes, .prefix_len = n.len};
        hf_lock *other = take_name(ctx, client, &longer);
        hf_view *view;
        EXPECT(HF_OK, hf_inspect(client, &query, &view, &ctx->err));
        CHECK(hf_view_count(view) == 1);
        CHECK(memcmp(hf_view_entry(view, 0)->name, longer.bytes, longer.len) == 0);
        hf_view_free(view);
        EXPECT(HF_OK, hf_lock_release(other, &ctx->err));
    }
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
}

static void c1_view_is_sorted_and_tells_who(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    hf_query query = {
        .size = sizeof query, .prefix = ctx->prefix, .prefix_len = strlen(ctx->prefix)};
    hf_options opt = options(LONG_MS, 0);
    hf_lock *locks[3];
    hf_view *view;

    opt.note = "two\nlines and \xff";
    locks[0] = TAKE(ctx, client, name_of(ctx, "b"), opt);
    locks[1] = TAKE(ctx, client, name_of(ctx, "c"), options(LONG_MS, 0));
    locks[2] = TAKE(ctx, client, name_of(ctx, "a"), options(LONG_MS, 0));
    EXPECT(HF_OK, hf_inspect(client, &query, &view, &ctx->err));
    CHECK(hf_view_count(view) == 3);
    for (size_t i = 0; i < 3; i++) {
        const hf_entry *e = hf_view_entry(view, i);
        CHECK(e->name[e->name_len - 1] == "abc"[i]);
        CHECK(e->pid > 0 && e->host[0] != '\0' && e->program[0] != '\0');
        CHECK(e->ttl_ms == LONG_MS && e->mode == HF_EXCLUSIVE && e->position == 0);
        CHECK(!(ctx->can & HF_CAN_LEASE) || (e->remaining_ms > 0 && e->remaining_ms <= LONG_MS));
        CHECK(strcmp(e->note, i == 1 ? opt.note : "") == 0);
    }
    hf_view_free(view);
    for (size_t i = 0; i < 3; i++)
        EXPECT(HF_OK, hf_lock_release(locks[i], &ctx->err));
}

static void check_program(struct ctx *ctx, const hf_client_options *opt, const char *program)
{
    const char *name = name_of(ctx, "a");
    hf_query query = {.size = sizeof query, .name = name, .name_len = strlen(name)};
    hf_client *client;
    hf_view *view;

    EXPECT(HF_OK, hf_open(ctx->url, opt, &client, &ctx->err));
    hf_lock *lock = TAKE(ctx, client, name, options(LONG_MS, 0));
    EXPECT(HF_OK, hf_inspect(client, &query, &view, &ctx->err));
    CHECK(hf_view_count(view) == 1 && strcmp(hf_view_entry(view, 0)->program, program) == 0);
    hf_view_free(view);
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
    hf_close(client);
}

static void c1_holder_is_shown_by_the_name_it_gives(struct ctx *ctx)
{
    hf_client_options opt = {.size = sizeof opt};
    hf_client *client;

    check_program(ctx, NULL, "conformance");
    check_program(ctx, &opt, "conformance");
    opt.program = "night shift";
    check_program(ctx, &opt, "night shift");
    opt.size = 0;
    EXPECT(HF_INVALID, hf_open(ctx->url, &opt, &client, &ctx->err));
}

static void c1_notes_have_a_limit(struct ctx *ctx)
{
    hf_client *client = open_client(ctx);
    hf_options opt = options(LONG_MS, 0);
    char note[HF_NOTE_MAX + 2];
    hf_lock *lock;

    memset(note, 'n', sizeof note);
    note[HF_NOTE_MAX + 1] = '\0';
    opt.note = note;
    EXPECT(HF_INVALID, hf_acquire(client, name_of(ctx, "a"), HF_NTS, &opt, &lock, &ctx->err));
    note[HF_NOTE_MAX] = '\0';
    lock = TAKE(ctx, client, name_of(ctx, "a"), opt);
    CHECK(strcmp(look_at(client, name_of(ctx, "a")).note, note) == 0);
    EXPECT(HF_OK, hf_lock_release(lock, &ctx->err));
}

const struct conformance_case cases_names[] = {
    CASE(0, c1_twins_do_not_meet),
    /* Where a lock is a connection these are hundreds, and everybody else would starve. */
    CASE_ALONE(0, c1_every_byte_makes_a_name_of_its_own),
    CASE(0, c1_longest_names_differ_in_their_last_byte),
    CASE_ALONE(0, c1_many_names_do_not_meet),
    CASE(0, c1_names_out_of_bounds_are_refused),
    CASE(0, c1_prefix_means_itself_not_a_pattern),
    CASE(0, c1_view_is_sorted_and_tells_who),
    CASE(HF_CAN_BREAK, c1_holder_is_shown_by_the_name_it_gives),
    CASE(0, c1_notes_have_a_limit),
    {0},
};
