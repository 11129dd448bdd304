/* See store_walk.h. */
#include "lib/store_walk.h"

#include "base/url.h"
#include "lib/check.h"
#include "lib/operate.h"

int64_t store_walk_soon(void)
{
    return hf__now_ns(&hf__system_env) + 5000 * HF__NS_PER_MS;
}

static struct hf__answer ask(struct walk *base, const struct walk_request *q)
{
    struct store_walk *w = (struct store_walk *)base;
    struct hf__store *s = random_below(&base->random, 2) == 0 ? w->first : w->second;
    struct hf__answer a = {0};
    struct hf__value value = q->value;
    struct hf__renewal item = {.name = q->bid.name,
                               .name_len = q->bid.name_len,
                               .ticket = q->bid.ticket,
                               .generation = q->generation};
    int code;

    w->set_clock(w->ctx, base->now_us);
    if (q->kind == WALK_ATTEMPT)
        code = ask_store(s, op_attempt(&q->bid), store_walk_soon(), &a, &w->err);
    else if (q->kind == WALK_RELEASE)
        code = ask_store(s, op_release_used(&q->bid, q->number, q->at_least_ms, q->generation),
                         store_walk_soon(), &a, &w->err);
    else if (q->kind == WALK_WITHDRAW)
        code = ask_store(s, op_withdraw(&q->bid, q->number), store_walk_soon(), &a, &w->err);
    else if (q->kind == WALK_RENEW)
        code = s->type->renew(s, &item, 1, store_walk_soon(), &w->err);
    else if (q->kind == WALK_READ)
        code = ask_store(s, op_read(&q->bid, q->generation, &base->read), store_walk_soon(), &a,
                         &w->err);
    else if (q->kind == WALK_WRITE)
        code =
            ask_store(s, op_write(&q->bid, q->generation, &value), store_walk_soon(), &a, &w->err);
    else
        code = ask_store(s, op_break(&q->bid, q->number != 0), store_walk_soon(), &a, &w->err);
    if (code != 0)
        fail_msg("kind %d: %s", q->kind, w->err.text);
    return q->kind == WALK_RENEW ? item.answer : a;
}

struct comparison {
    struct walk *w;
    size_t shown;
};

static int compare_entry(void *ctx, const char *name, size_t name_len, const struct hf__entry *got)
{
    struct comparison *c = ctx;
    const struct hf__entry *e = hf__record_find(&c->w->record, &got->ticket);
    int64_t now_ms = c->w->now_us / 1000;

    (void)name, (void)name_len;
    assert_non_null(e);
    c->shown++;
    check_number("place", got->place, e->place);
    check_number("mode", got->mode, e->mode);
    check_number("limit", got->limit, e->limit);
    check_number("entry's generation", (int64_t)got->generation, (int64_t)e->generation);
    check_number("entry's claim", got->claimed, e->claimed);
    if (e->place == HF__PLACE_INSIDE)
        check_number("whether it is cached", got->cached, e->cached);
    check_number("since", got->since_ms, now_ms - e->since_ms);
    int64_t left_ms = e->until_ms == HF__NEVER ? HF__NEVER : e->until_ms - now_ms;
    if (left_ms > e->lease_ms && got->until_ms == e->lease_ms)
        left_ms =
            e->lease_ms; /* the clock went back: it may be shown as the next sweep leaves it */
    check_number("until", got->until_ms, left_ms);
    return 0;
}

static void compare_entries(struct walk *base)
{
    struct store_walk *w = (struct store_walk *)base;
    struct comparison c = {.w = base};
    struct hf__search search = {
        .name = base->name, .name_len = strlen(base->name), .found = compare_entry, .ctx = &c};
    size_t wanted = 0;

    for (size_t i = 0; i < base->record.count; i++) {
        enum hf__place place = base->record.entries[i].place;
        wanted +=
            place == HF__PLACE_INSIDE || place == HF__PLACE_WAITING || place == HF__PLACE_LINGERING;
    }
    if (w->first->type->inspect(w->first, &search, store_walk_soon(), &w->err) != 0)
        fail_msg("inspect: %s", w->err.text);
    check_number("entries", (int64_t)c.shown, (int64_t)wanted);
}

static const struct walk_type a_store = {
    .ask = ask, .compare_entries = compare_entries, .polls_ms = 60000};

void store_walk_init(struct store_walk *w, void (*set_clock)(void *ctx, int64_t now_us), void *ctx)
{
    *w = (struct store_walk){.set_clock = set_clock, .ctx = ctx};
    walk_init(&w->base, &a_store);
    w->host =
        (struct hf__host){.env = &hf__system_env, .self = &w->base.who, .op_timeout_ms = 5000};
}

struct hf__store *store_walk_open(struct store_walk *w, const struct hf__store_type *type,
                                  const char *text)
{
    struct hf__store *store = NULL;
    struct hf__url url;

    assert_int_equal(hf__url_parse(text, &url, &w->err), 0);
    if (hf__url_check(&url, type->options, &w->err) != 0 ||
        type->open(&url, &w->host, &store, &w->err) != 0)
        fail_msg("%s: %s", text, w->err.text);
    hf__url_clear(&url);
    return store;
}

void store_walk(struct store_walk *w, struct hf__store *first, struct hf__store *second,
                unsigned operations)
{
    w->first = first;
    w->second = second;
    w->base.can =
        first->type->capabilities & (HF_CAN_AT_LEAST | HF_CAN_VALUE | HF_CAN_WANTED | HF_CAN_CACHE);
    if (w->base.quiet)
        w->base.can = 0; /* plain bids only */
    walk(&w->base, operations);
}
