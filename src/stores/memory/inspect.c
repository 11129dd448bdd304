/* Showing what is in a space: the rooms that are asked for, sorted by name, each as it would be after
 * a sweep. With 100,000 names that takes a while, in which others want to renew: the space is locked
 * only to copy the names, and then some rooms at a time. Nobody is called meanwhile. */
#include <stdlib.h>
#include <string.h>

#include "stores/memory/memory.h"
#include "stores/memory/names.h"
#include "stores/search.h"

#include "base/banned.h"

#define ROOMS_AT_ONCE 64

/* One entry, copied, with a reference to its client. */
struct seen {
    struct hf__entry entry;
    struct client *client;
    const struct name *name;
    char note[HF_NOTE_MAX + 1];
};

struct page {
    struct seen *seen;
    size_t count, capacity;
};

static bool has_members(const struct room *room)
{
    return !hf__room_is_empty(room);
}

static bool add_member(struct page *page, const struct name *name, const struct member *m,
                       int64_t now_ms)
{
    struct hf__entry e = m->entry;

    if (!hf__search_settle(&e, now_ms))
        return true;
    if (page->count == page->capacity) {
        size_t capacity = page->capacity < 64 ? 64 : 2 * page->capacity;
        struct seen *seen = realloc(page->seen, capacity * sizeof *seen);
        if (seen == NULL)
            return false;
        page->seen = seen;
        page->capacity = capacity;
    }
    struct seen *s = &page->seen[page->count++];
    e.since_ms = now_ms - e.since_ms; /* as spans from now */
    if (e.until_ms != HF__NEVER)
        e.until_ms -= now_ms;
    *s = (struct seen){.entry = e, .client = m->client, .name = name};
    memcpy(s->note, m->note, strlen(m->note) + 1);
    m->client->refs++;
    return true;
}

static bool add_members(struct page *page, const struct name *name, const struct members *members,
                        int64_t now_ms)
{
    for (const struct member *m = members->first; m != NULL; m = m->next) {
        if (!add_member(page, name, m, now_ms))
            return false;
    }
    return true;
}

static bool add_everybody(struct page *page, const struct name *name, const struct room *room,
                          int64_t now_ms)
{
    return add_members(page, name, &room->few, now_ms) &&
           add_members(page, name, &room->sharers.members, now_ms) &&
           add_members(page, name, &room->queue.members, now_ms);
}

static int read_page(struct memory *m, struct name *const *names, size_t count, struct page *page)
{
    bool room_for_all = true;

    pthread_mutex_lock(&m->space->mutex);
    int64_t now_ms = hf__now_ns(m->base.host->env) / HF__NS_PER_MS;
    for (size_t i = 0; i < count; i++) {
        struct room *room = hf__space_find(m->space, names[i]->bytes, names[i]->len);
        room_for_all =
            room_for_all && (room == NULL || add_everybody(page, names[i], room, now_ms));
    }
    pthread_mutex_unlock(&m->space->mutex);
    return room_for_all ? 0 : HF_NO_MEMORY;
}

static int show_page(const struct page *page, const struct hf__search *search)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < page->count; i++) {
        struct seen *s = &page->seen[i];
        struct hf__who who = s->client->self;

        if (!hf__search_is_old_enough(search, &s->entry))
            continue;
        who.note = s->note;
        s->entry.who = &who;
        r = search->found(search->ctx, s->name->bytes, s->name->len, &s->entry);
    }
    return r;
}

static void clear_page(struct memory *m, struct page *page)
{
    pthread_mutex_lock(&m->space->mutex);
    for (size_t i = 0; i < page->count; i++)
        hf__client_unref(page->seen[i].client);
    pthread_mutex_unlock(&m->space->mutex);
    page->count = 0;
}

int hf__memory_inspect(struct hf__store *store, const struct hf__search *search,
                       int64_t deadline_ns, hf_error *err)
{
    struct memory *m = (struct memory *)store;
    struct names names = {.search = search, .wanted = has_members};
    struct page page = {0};

    (void)deadline_ns;
    hf__memory_find_names(m, &names);
    int r = names.no_memory ? HF_NO_MEMORY : 0;
    for (size_t i = 0; r == 0 && i < names.count; i += ROOMS_AT_ONCE) {
        size_t left = names.count - i;
        r = read_page(m, names.all + i, left < ROOMS_AT_ONCE ? left : ROOMS_AT_ONCE, &page);
        if (r == 0)
            r = show_page(&page, search);
        clear_page(m, &page);
    }
    hf__memory_free_names(&names);
    free(page.seen);
    return r == HF_NO_MEMORY ? hf__fail(err, r, NULL) : r;
}
