/* Looking into a store: who holds, who waits, and whether a grant is still live. */
#include <stdlib.h>
#include <string.h>

#include "base/sequencer.h"
#include "core/abi_struct.h"
#include "core/client.h"

#include "base/banned.h"

struct hf_view {
    hf_entry *entries;
    size_t count, capacity;
    size_t position; /* while it is made: of the last waiter of this name */
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
                     .ttl_ms = e->ttl_ms == 0 ? HF_NEVER : e->ttl_ms,
                     .lock_delay_ms = e->lock_delay_ms,
                     .age_ms = e->since_ms,
                     .remaining_ms = span(e->until_ms),
                     .claimed = e->claimed,
                     .pid = who->pid};
    hf__ticket_format(&e->ticket, to->ticket);
    if (pack_strings(name, name_len, who, to) == NULL)
        return HF_NO_MEMORY;
    view->count++;
    return 0;
}

static int prepare_look(const hf_query *given, struct hf__search *search, hf_error *err)
{
    static const struct hf__abi_struct type = {"hf_query", sizeof(hf_query), sizeof(hf_query)};
    hf_query query = {0};
    int r = given != NULL ? hf__copy_abi_struct(&type, given, &query, err) : 0;

    if (r == 0 && query.older_than_ms < 0)
        r = hf__fail(err, HF_INVALID, "older_than_ms is negative");
    if (r == 0 && query.name != NULL)
        r = hf__name_len(query.name, query.name_len, &search->name_len, err);
    search->name = query.name;
    search->prefix = query.prefix;
    if (r == 0 && query.prefix != NULL)
        search->prefix_len = query.prefix_len == HF_NTS ? strlen(query.prefix) : query.prefix_len;
    search->older_than_ms = query.older_than_ms;
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

int hf_inspect(hf_client *client, const hf_query *query, hf_view **ret_view, hf_error *err)
{
    struct hf__visit visit;
    int r = ret_view == NULL ? hf__fail(err, HF_INVALID, "there is no place for the view")
                             : hf__enter(client, &visit, err);

    if (r < 0)
        return r;
    hf_view *view = calloc(1, sizeof *view);
    struct hf__search search = {.found = add, .ctx = view};
    r = view != NULL ? prepare_look(query, &search, err) : hf__fail(err, HF_NO_MEMORY, NULL);
    if (r == 0)
        r = look_at(client, &search, err);
    if (r < 0)
        hf_view_free(view);
    else
        *ret_view = view;
    hf__leave(client, &visit);
    return r;
}

size_t hf_view_count(const hf_view *view)
{
    return view != NULL ? view->count : 0;
}

const hf_entry *hf_view_entry(const hf_view *view, size_t i)
{
    return view != NULL && i < view->count ? &view->entries[i] : NULL;
}

void hf_view_free(hf_view *view)
{
    if (view == NULL)
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
    if (e->place == HF__PLACE_INSIDE && e->generation == check->sequencer->generation &&
        e->mode == check->sequencer->mode && (e->limit > 0) == check->sequencer->limited)
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
