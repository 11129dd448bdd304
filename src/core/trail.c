/* Reading the trail of a store: collected in whatever order it comes, sorted, cut to the newest. */
#include "core/trail.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/abi_struct.h"
#include "core/client.h"

#include "base/banned.h"

/* One allocation for name, host, user, program, note and cause, each with its NUL. */
static char *pack_texts(const struct hf__trail_entry *from, hf_trail_entry *to)
{
    const struct hf__who *who = from->who;
    const char *texts[] = {who->host, who->user, who->program, who->note, from->cause};
    const char **places[] = {&to->host, &to->user, &to->program, &to->note, &to->cause};
    size_t size = from->name_len + 1, count = sizeof texts / sizeof texts[0];

    for (size_t i = 0; i < count; i++)
        size += strlen(texts[i]) + 1;
    char *block = malloc(size), *at = block;
    if (block == NULL)
        return NULL;
    memcpy(at, from->name, from->name_len);
    at[from->name_len] = '\0';
    to->name = at;
    to->name_len = from->name_len;
    at += from->name_len + 1;
    for (size_t i = 0; i < count; i++) {
        size_t len = strlen(texts[i]) + 1;
        memcpy(at, texts[i], len);
        *places[i] = at;
        at += len;
    }
    return block;
}

static bool grow(hf_trail *trail)
{
    if (trail->count < trail->capacity)
        return true;
    size_t capacity = trail->capacity == 0 ? 64 : 2 * trail->capacity;
    void *items = realloc(trail->items, capacity * sizeof *trail->items);
    if (items == NULL)
        return false;
    trail->items = items;
    trail->capacity = capacity;
    return true;
}

static int add(hf_trail *trail, const struct hf__trail_entry *e, uint64_t nth)
{
    bool waited = e->kind == HF_TRAIL_GRANTED || e->generation == 0;

    if (!grow(trail))
        return HF_NO_MEMORY;
    struct hf__trail_item *item = &trail->items[trail->count];
    *item = (struct hf__trail_item){.nth = nth,
                                    .entry = {.kind = e->kind,
                                              .at_ms = e->at_ms,
                                              .mode = e->mode,
                                              .generation = e->generation,
                                              .held_ms = waited ? 0 : e->span_ms,
                                              .waited_ms = waited ? e->span_ms : 0,
                                              .pid = e->who->pid}};
    hf__ticket_format(&e->ticket, item->entry.ticket);
    if (pack_texts(e, &item->entry) == NULL)
        return HF_NO_MEMORY;
    trail->count++;
    return 0;
}

int hf__trail_add(hf_trail *trail, const struct hf__trail_entry *e)
{
    trail->came += 2;
    return add(trail, e, trail->came + 1);
}

int hf__trail_add_grant(hf_trail *trail, const struct hf__trail_entry *end)
{
    struct hf__trail_entry grant = *end;

    grant.kind = HF_TRAIL_GRANTED;
    grant.at_ms -= grant.span_ms;
    grant.span_ms = 0;
    grant.cause = "";
    trail->came += 2;
    return add(trail, &grant, trail->came);
}

void hf__trail_drop(hf_trail *trail, size_t i)
{
    free((char *)trail->items[i].entry.name);
    trail->count--;
    memmove(&trail->items[i], &trail->items[i + 1], (trail->count - i) * sizeof *trail->items);
}

void hf__trail_clear(hf_trail *trail)
{
    for (size_t i = 0; i < trail->count; i++)
        free((char *)trail->items[i].entry.name);
    free(trail->items);
}

static int by_time(const void *a, const void *b)
{
    const struct hf__trail_item *x = a, *y = b;

    if (x->entry.at_ms != y->entry.at_ms)
        return x->entry.at_ms < y->entry.at_ms ? -1 : 1;
    return x->nth < y->nth ? -1 : x->nth > y->nth;
}

/* Sorted, and only the newest. */
static void settle(hf_trail *trail)
{
    if (trail->count > 1)
        qsort(trail->items, trail->count, sizeof *trail->items, by_time);
    size_t over = trail->count > trail->limit ? trail->count - trail->limit : 0;
    for (size_t i = 0; i < over; i++)
        free((char *)trail->items[i].entry.name);
    trail->count -= over;
    if (over > 0)
        memmove(trail->items, trail->items + over, trail->count * sizeof *trail->items);
}

static bool is_between(const hf_trail *trail, int64_t at_ms)
{
    return at_ms >= trail->query.since_ms &&
           (trail->query.until_ms == 0 || at_ms < trail->query.until_ms);
}

static bool ends_grant(hf_trail_kind kind, uint64_t generation)
{
    return kind != HF_TRAIL_GRANTED && generation != 0;
}

/* An end that is too late tells of a grant that may not be. */
static int add_between(void *ctx, const struct hf__trail_entry *e)
{
    hf_trail *trail = ctx;

    if (trail->count >= 2 * trail->limit)
        settle(trail);
    if (is_between(trail, e->at_ms))
        return hf__trail_add(trail, e);
    if (ends_grant(e->kind, e->generation) && is_between(trail, e->at_ms - e->span_ms))
        return hf__trail_add_grant(trail, e);
    return 0;
}

static int by_ticket(const void *a, const void *b)
{
    const struct hf__trail_item *x = a, *y = b;
    int order = strcmp(x->entry.ticket, y->entry.ticket);

    if (order == 0) /* the grant first, and of two the one that tells how long it waited */
        order = (x->entry.kind != HF_TRAIL_GRANTED) - (y->entry.kind != HF_TRAIL_GRANTED);
    if (order == 0 && x->entry.waited_ms != y->entry.waited_ms)
        order = x->entry.waited_ms > y->entry.waited_ms ? -1 : 1;
    return order;
}

static struct hf__trail_item *find_ticket(const hf_trail *trail, size_t count, const char *ticket)
{
    struct hf__trail_item key = {.entry = {.kind = HF_TRAIL_GRANTED, .waited_ms = INT64_MAX}};
    size_t low = 0;

    snprintf(key.entry.ticket, sizeof key.entry.ticket, "%s", ticket);
    for (size_t high = count; low < high;) {
        size_t middle = low + (high - low) / 2;
        if (by_ticket(&trail->items[middle], &key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    bool found = low < count && strcmp(trail->items[low].entry.ticket, ticket) == 0;
    return found ? &trail->items[low] : NULL;
}

/* An entry of ours as a store would tell it. */
static struct hf__trail_entry retell(const hf_trail_entry *e, struct hf__who *who)
{
    struct hf__trail_entry told = {.name = e->name,
                                   .name_len = e->name_len,
                                   .kind = e->kind,
                                   .at_ms = e->at_ms,
                                   .mode = e->mode,
                                   .generation = e->generation,
                                   .span_ms = e->held_ms,
                                   .who = who,
                                   .cause = ""};

    *who = (struct hf__who){
        .host = e->host, .user = e->user, .program = e->program, .note = e->note, .pid = e->pid};
    hf__ticket_parse(e->ticket, &told.ticket);
    return told;
}

/* The grants that nobody has written down: of the ends, and of those who hold now. */
static int add_grants(hf_trail *trail, const hf_trail *holders)
{
    bool at = trail->query.at_ms != 0;
    struct hf__who who;
    int r = 0;

    if (trail->count > 1)
        qsort(trail->items, trail->count, sizeof *trail->items, by_ticket);
    size_t count = trail->count;
    for (size_t i = 0; r == 0 && i < holders->count; i++) {
        const hf_trail_entry *e = &holders->items[i].entry;
        bool then = at ? e->at_ms <= trail->query.at_ms : is_between(trail, e->at_ms);
        struct hf__trail_entry told = retell(e, &who);
        if (then && find_ticket(trail, count, e->ticket) == NULL)
            r = hf__trail_add(trail, &told);
    }
    for (size_t i = 0; r == 0 && !at && i < count; i++) {
        const hf_trail_entry *e = &trail->items[i].entry;
        uint64_t nth = trail->items[i].nth;
        bool first = i == 0 || strcmp(trail->items[i - 1].entry.ticket, e->ticket) != 0;
        if (!first || !ends_grant(e->kind, e->generation) ||
            !is_between(trail, e->at_ms - e->held_ms))
            continue;
        struct hf__trail_entry told = retell(e, &who);
        r = hf__trail_add_grant(trail, &told);
        if (r == 0)
            trail->items[trail->count - 1].nth = nth - 1;
    }
    return r;
}

/* The same grant may have been told twice: by itself and by its end. Sorted by ticket. */
static void drop_doubles(hf_trail *trail)
{
    size_t kept = 0;

    if (trail->count > 1)
        qsort(trail->items, trail->count, sizeof *trail->items, by_ticket);
    for (size_t i = 0; i < trail->count; i++) {
        const hf_trail_entry *e = &trail->items[i].entry;
        bool again = kept > 0 && e->kind == HF_TRAIL_GRANTED &&
                     trail->items[kept - 1].entry.kind == HF_TRAIL_GRANTED &&
                     strcmp(trail->items[kept - 1].entry.ticket, e->ticket) == 0;
        if (again)
            free((char *)e->name);
        else
            trail->items[kept++] = trail->items[i];
    }
    trail->count = kept;
}

static int copy_query(const hf_history_query *given, hf_history_query *ret, hf_error *err)
{
    static const struct hf__abi_struct type = {"hf_history_query",
                                               offsetof(hf_history_query, limit) + sizeof(int64_t),
                                               sizeof(hf_history_query)};

    *ret = (hf_history_query){0};
    int r = given != NULL ? hf__copy_abi_struct(&type, given, ret, err) : 0;
    if (r == 0 && (ret->since_ms < 0 || ret->until_ms < 0 || ret->at_ms < 0))
        r = hf__fail(err, HF_INVALID, "a moment of a trail is not before 1970");
    if (r == 0 && ret->at_ms != 0 && (ret->since_ms != 0 || ret->until_ms != 0))
        r = hf__fail(err, HF_INVALID,
                     "ask for a moment (at_ms) or for a time (since_ms, until_ms)");
    if (r == 0 && (ret->limit < 0 || ret->limit > HF_TRAIL_MAX))
        r = hf__fail(err, HF_INVALID, "the limit of a trail is from 1 to %d", HF_TRAIL_MAX);
    if (r == 0 && ret->name != NULL)
        r = hf__name_len(ret->name, ret->name_len, &ret->name_len, err);
    if (ret->prefix == NULL)
        ret->prefix_len = 0;
    else if (ret->prefix_len == HF_NTS)
        ret->prefix_len = strlen(ret->prefix);
    return r;
}

struct holders {
    hf_trail trail;
    int64_t now_ms;
};

static int add_holder(void *ctx, const char *name, size_t name_len, const struct hf__entry *e)
{
    struct holders *holders = ctx;

    if (e->place != HF__PLACE_INSIDE)
        return 0;
    return hf__trail_add(&holders->trail,
                         &(struct hf__trail_entry){.name = name,
                                                   .name_len = name_len,
                                                   .kind = HF_TRAIL_GRANTED,
                                                   .at_ms = holders->now_ms - e->since_ms,
                                                   .mode = e->mode,
                                                   .ticket = e->ticket,
                                                   .generation = e->generation,
                                                   .who = e->who,
                                                   .cause = ""});
}

/* Who holds now is asked first: whoever ends meanwhile is in the trail then. */
static int ask(hf_client *client, hf_trail *trail, struct holders *holders, hf_error *err)
{
    const hf_history_query *query = &trail->query;
    bool all = query->at_ms != 0 || query->until_ms != 0;
    struct hf__search inside = {.name = query->name,
                                .name_len = query->name_len,
                                .prefix = query->prefix,
                                .prefix_len = query->prefix_len,
                                .found = add_holder,
                                .ctx = holders};
    struct hf__trail_search search = {.name = query->name,
                                      .name_len = query->name_len,
                                      .prefix = query->prefix,
                                      .prefix_len = query->prefix_len,
                                      .since_ms = query->since_ms,
                                      .limit = all ? 0 : trail->limit,
                                      .found = query->at_ms != 0 ? hf__trail_add_at : add_between,
                                      .ctx = trail};
    int64_t deadline_ns = hf__op_deadline(client);

    int r = client->store->type->inspect(client->store, &inside, deadline_ns, err);
    if (r == 0)
        r = client->store->type->trail(client->store, &search, deadline_ns, err);
    return r;
}

static int read_trail(hf_client *client, hf_trail *trail, hf_error *err)
{
    struct holders holders = {.now_ms = (int64_t)(client->env->wall_us(client->env->ctx) / 1000)};

    if (!(client->store->capabilities & HF_CAN_HISTORY))
        return hf__fail(err, HF_UNSUPPORTED, "%s keeps no history", client->store->type->name);
    int r = ask(client, trail, &holders, err);
    if (r == 0)
        r = add_grants(trail, &holders.trail);
    drop_doubles(trail);
    if (trail->query.at_ms != 0)
        hf__trail_settle_at(trail);
    settle(trail);
    hf__trail_clear(&holders.trail);
    if (r == HF_NO_MEMORY)
        hf__fail(err, r, NULL);
    if (r == HF_UNKNOWN) /* as for a look: there is no outcome */
        r = hf__wrap(err, HF_UNAVAILABLE, "history");
    hf__after_call_unlocked(client);
    return r;
}

int hf_history(hf_client *client, const hf_history_query *query, hf_trail **ret_trail,
               hf_error *err)
{
    struct hf__visit visit;
    int r = ret_trail == NULL ? hf__fail(err, HF_INVALID, "there is no place for the trail")
                              : hf__enter(client, &visit, err);

    if (r < 0)
        return r;
    hf_trail *trail = calloc(1, sizeof *trail);
    if (trail == NULL)
        r = hf__fail(err, HF_NO_MEMORY, NULL);
    if (r == 0)
        r = copy_query(query, &trail->query, err);
    if (r == 0) {
        trail->limit = trail->query.limit != 0 ? (size_t)trail->query.limit : HF_TRAIL_DEFAULT;
        r = read_trail(client, trail, err);
    }
    hf__leave(client, &visit);
    if (r < 0)
        hf_trail_free(trail);
    else
        *ret_trail = trail;
    return r;
}

size_t hf_trail_count(const hf_trail *trail)
{
    return trail != NULL ? trail->count : 0;
}

const hf_trail_entry *hf_trail_entry_at(const hf_trail *trail, size_t i)
{
    return trail != NULL && i < trail->count ? &trail->items[i].entry : NULL;
}

void hf_trail_free(hf_trail *trail)
{
    if (trail == NULL)
        return;
    hf__trail_clear(trail);
    free(trail);
}

const char *hf_trail_kind_name(hf_trail_kind kind)
{
    switch (kind) {
#define HF__X(id, value, name, text) \
    case id:                         \
        return name;
        HF_TRAIL_KINDS(HF__X)
#undef HF__X
    }
    return "";
}
