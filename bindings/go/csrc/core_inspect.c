/* Looking into a store: who holds, who waits, and whether a grant is still live. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base_sequencer.h"
#include "core_abi_struct.h"
#include "core_client.h"
#include "core_view.h"

#include "base_banned.h"

struct hf_view {
    atomic_uint refs;
    hf_entry *entries;
    size_t count, capacity;
    size_t position; /* while it is made: of the last waiter of this name */
    bool has_value;
    struct hf__value value;
};

/* One allocation a string set: name, host, user, program and note, each with its NUL. */
static char *pack_strings(const char *name, size_t name_len, const struct hf__who *who,
                          hf_entry *to)
{
    const char *texts[] = {who->host, who->user, who->program, who->note};
    const char **places[] = {&to->host, &to->user, &to->program, &to->note};
    size_t size = name_len + 1;

    for (size_t i = 0; i < 4; i++)
        size += strlen(texts[i]) + 1;
    char *block = malloc(size), *at = block;
    if (block == NULL)
        return NULL;
    memcpy(at, name, name_len);
    at[name_len] = '\0';
    to->name = at;
    to->name_len = name_len;
    at += name_len + 1;
    for (size_t i = 0; i < 4; i++) {
        size_t len = strlen(texts[i]) + 1;
        memcpy(at, texts[i], len);
        *places[i] = at;
        at += len;
    }
    return block;
}

static bool grow(hf_view *view)
{
    if (view->count < view->capacity)
        return true;
    size_t capacity = view->capacity == 0 ? 16 : 2 * view->capacity;
    hf_entry *entries = realloc(view->entries, capacity * sizeof *entries);
    if (entries == NULL)
        return false;
    view->entries = entries;
    view->capacity = capacity;
    return true;
}

static int64_t span(int64_t ms)
{
    return ms == HF__NEVER ? HF_NEVER : ms;
}

static int add(void *ctx, const char *name, size_t name_len, const struct hf__entry *e)
{
    hf_view *view = ctx;
    const struct hf__who *who = e->who;

    if (!grow(view))
        return HF_NO_MEMORY;
    const hf_entry *last = view->count > 0 ? &view->entries[view->count - 1] : NULL;
    if (last == NULL || last->name_len != name_len || memcmp(last->name, name, name_len) != 0)
        view->position = 0;

    hf_entry *to = &view->entries[view->count];
    *to = (hf_entry){.place = e->place == HF__PLACE_INSIDE      ? HF_PLACE_INSIDE
                              : e->place == HF__PLACE_LINGERING ? HF_PLACE_LINGERING
                                                                : HF_PLACE_WAITING,
                     .position = e->place == HF__PLACE_WAITING ? ++view->position : 0,
                     .mode = e->mode,
                     .limit = e->limit,
                     .generation = e->generation,
                     .ttl_ms = span(e->ttl_ms),
                     .lock_delay_ms = e->lock_delay_ms,
                     .age_ms = e->since_ms,
                     .remaining_ms = span(e->until_ms),
                     .claimed = e->claimed,
                     .cached = e->cached && e->place == HF__PLACE_INSIDE,
                     .pid = who->pid};
    hf__ticket_format(&e->ticket, to->ticket);
    if (pack_strings(name, name_len, who, to) == NULL)
        return HF_NO_MEMORY;
    view->count++;
    return 0;
}

int hf__copy_query(const hf_query *given, hf_query *ret, hf_error *err)
{
    static const struct hf__abi_struct type = {"hf_query", offsetof(hf_query, value),
                                               sizeof(hf_query)};

    *ret = (hf_query){0};
    int r = given != NULL ? hf__copy_abi_struct(&type, given, ret, err) : 0;
    if (r == 0 && ret->older_than_ms < 0)
        r = hf__fail(err, HF_INVALID, "older_than_ms is negative");
    if (r == 0 && ret->value != 0 && ret->name == NULL)
        r = hf__fail(err, HF_INVALID, "a value is of one lock: give its name");
    if (r == 0 && ret->name != NULL)
        r = hf__name_len(ret->name, ret->name_len, &ret->name_len, err);
    else
        ret->name_len = 0;
    if (ret->prefix == NULL)
        ret->prefix_len = 0;
    else if (ret->prefix_len == HF_NTS)
        ret->prefix_len = strlen(ret->prefix);
    return r;
}

static int look_at(hf_client *client, const struct hf__search *search, hf_error *err)
{
    int r = client->store->type->inspect(client->store, search, hf__op_deadline(client), err);

    if (r == HF_NO_MEMORY)
        hf__fail(err, r, NULL);
    if (r == HF_UNKNOWN) /* nothing was to be changed: there is no outcome to be known */
        r = hf__wrap(err, HF_UNAVAILABLE, "inspect");
    hf__after_call_unlocked(client);
    return r;
}

/* Asked after the entries: a value that has the token of a holder among them was written by it. */
static int look_at_value(hf_client *client, const struct hf__search *search, hf_view *view,
                         hf_error *err)
{
    struct hf__bid lock = {.name = search->name, .name_len = search->name_len};
    struct hf__operation op = {.kind = HF__OPERATION_READ, .bid = &lock, .value = &view->value};
    struct hf__answer answer = {0};

    if (!(client->store->capabilities & HF_CAN_VALUE))
        return hf__fail(err, HF_UNSUPPORTED, "%s keeps no values", client->store->type->name);
    int r = client->store->type->operate(client->store, &op, hf__op_deadline(client), &answer, err);
    if (r == HF_UNKNOWN)
        r = hf__wrap(err, HF_UNAVAILABLE, "read");
    hf__after_call_unlocked(client);
    view->has_value = r == 0;
    return r;
}

int hf__view_make(hf_client *client, const hf_query *query, hf_view **ret_view, hf_error *err)
{
    hf_view *view = calloc(1, sizeof *view);
    struct hf__search search = {.name = query->name,
                                .name_len = query->name_len,
                                .prefix = query->prefix,
                                .prefix_len = query->prefix_len,
                                .older_than_ms = query->older_than_ms,
                                .found = add,
                                .ctx = view};

    if (view == NULL)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    atomic_init(&view->refs, 1);
    int r = look_at(client, &search, err);
    if (r == 0 && query->value != 0)
        r = look_at_value(client, &search, view, err);
    if (r < 0)
        hf_view_free(view);
    else
        *ret_view = view;
    return r;
}

int hf_inspect(hf_client *client, const hf_query *query, hf_view **ret_view, hf_error *err)
{
    hf_query known;
    struct hf__visit visit;
    int r = ret_view == NULL ? hf__fail(err, HF_INVALID, "there is no place for the view")
                             : hf__enter(client, &visit, err);

    if (r < 0)
        return r;
    r = hf__copy_query(query, &known, err);
    if (r == 0)
        r = hf__view_make(client, &known, ret_view, err);
    hf__leave(client, &visit);
    return r;
}

hf_view *hf__view_ref(hf_view *view)
{
    atomic_fetch_add(&view->refs, 1);
    return view;
}

bool hf__views_are_alike(const hf_view *a, const hf_view *b)
{
    if (a->count != b->count || a->value.generation != b->value.generation ||
        a->value.order != b->value.order || a->value.doubt != b->value.doubt)
        return false;
    for (size_t i = 0; i < a->count; i++) {
        const hf_entry *x = &a->entries[i], *y = &b->entries[i];
        if (x->place != y->place || x->generation != y->generation || x->name_len != y->name_len ||
            memcmp(x->name, y->name, x->name_len) != 0 ||
            memcmp(x->ticket, y->ticket, sizeof x->ticket) != 0)
            return false;
    }
    return true;
}

size_t hf_view_count(const hf_view *view)
{
    return view != NULL ? view->count : 0;
}

const hf_entry *hf_view_entry(const hf_view *view, size_t i)
{
    return view != NULL && i < view->count ? &view->entries[i] : NULL;
}

int hf_view_value(const hf_view *view, const void **ret_value, size_t *ret_len,
                  uint64_t *ret_generation, int *ret_doubt)
{
    if (view == NULL || ret_value == NULL || ret_len == NULL)
        return HF_INVALID;
    if (!view->has_value)
        return HF_NOT_FOUND;
    *ret_value = view->value.bytes;
    *ret_len = view->value.len;
    if (ret_generation != NULL)
        *ret_generation = view->value.generation;
    if (ret_doubt != NULL)
        *ret_doubt = view->value.doubt;
    return 0;
}

void hf_view_free(hf_view *view)
{
    if (view == NULL || atomic_fetch_sub(&view->refs, 1) > 1)
        return;
    for (size_t i = 0; i < view->count; i++)
        free((char *)view->entries[i].name);
    free(view->entries);
    free(view);
}

struct check {
    const struct hf__sequencer *sequencer;
    bool live;
};

static int compare(void *ctx, const char *name, size_t name_len, const struct hf__entry *e)
{
    struct check *check = ctx;

    (void)name, (void)name_len;
    uint64_t after = check->sequencer->generation - e->generation;
    uint64_t its_own = e->cached ? HF__TOKENS_RESERVED : 0; /* the client has it, whoever of it */

    if (e->place == HF__PLACE_INSIDE && after <= its_own && e->mode == check->sequencer->mode &&
        (e->limit > 0) == check->sequencer->limited)
        check->live = true;
    return 0;
}

int hf_check(hf_client *client, const char *sequencer, hf_error *err)
{
    struct hf__sequencer parsed;
    struct check check = {.sequencer = &parsed};
    struct hf__search search = {.found = compare, .ctx = &check};
    struct hf__visit visit;
    int r = hf__enter(client, &visit, err);

    if (r < 0)
        return r;
    r = sequencer == NULL ? hf__fail(err, HF_INVALID, "there is no sequencer")
                          : hf__sequencer_parse(sequencer, &parsed, err);
    if (r == 0 && !(client->store->capabilities & HF_CAN_CHECK))
        r = hf__fail(err, HF_UNSUPPORTED, "%s has no sequencers", client->store->type->name);
    if (r == 0) {
        search.name = parsed.name;
        search.name_len = parsed.name_len;
        r = look_at(client, &search, err);
    }
    if (r == 0 && !check.live)
        r = hf__fail(err, HF_STALE, "the grant is over");
    hf__leave(client, &visit);
    return r;
}
