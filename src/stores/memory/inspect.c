/* Showing what is in a space: the matching rooms sorted by name, each as it would be after a
 * sweep. */
#include <stdlib.h>
#include <string.h>

#include "stores/look.h"
#include "stores/memory/memory.h"
#include "util/bytes.h"

#include "util/banned.h"

struct selection {
    const struct hf__look *look;
    struct room **rooms;
    size_t count, capacity;
};

static void select_room(struct hf__link *link, void *ctx)
{
    struct selection *s = ctx;
    struct room *room = (struct room *)link;

    if (hf__look_wants(s->look, room->name, room->name_len) && s->count < s->capacity)
        s->rooms[s->count++] = room;
}

static int by_name(const void *a, const void *b)
{
    const struct room *x = *(struct room *const *)a, *y = *(struct room *const *)b;

    return hf__bytes_order(x->name, x->name_len, y->name, y->name_len);
}

/* As a span from now. */
static int show(const struct room *room, const struct hf__entry *e, const struct hf__look *look,
                int64_t now_ms)
{
    const struct caller *caller = e->who;
    struct hf__entry copy = *e;

    if (!hf__look_settle(&copy, now_ms))
        return 0;
    copy.since_ms = now_ms - e->since_ms;
    if (!hf__look_is_old_enough(look, &copy))
        return 0;
    struct hf__who who = caller->client->self;
    who.note = caller->note;
    copy.who = &who;
    if (copy.until_ms != HF__NEVER)
        copy.until_ms -= now_ms;
    return look->found(look->ctx, room->name, room->name_len, &copy);
}

static int show_room(const struct room *room, const struct hf__look *look, int64_t now_ms)
{
    int r = 0;

    for (int waiting = 0; waiting < 2; waiting++) { /* those inside first */
        for (size_t i = 0; r == 0 && i < room->record.count; i++) {
            const struct hf__entry *e = &room->record.entries[i];
            if ((e->place == HF__WAITING) == (waiting == 1))
                r = show(room, e, look, now_ms);
        }
    }
    return r;
}

int hf__memory_inspect(struct hf__store *store, const struct hf__look *look, int64_t deadline_ns,
                       hf_error *err)
{
    struct memory *m = (struct memory *)store;
    struct selection s = {.look = look};
    int r = 0;

    (void)deadline_ns;
    pthread_mutex_lock(&m->space->mutex);
    s.capacity = look->name != NULL ? 1 : m->space->rooms.count;
    s.rooms = malloc((s.capacity + 1) * sizeof *s.rooms);
    if (s.rooms == NULL) {
        r = hf__fail(err, HF_NO_MEMORY, NULL);
    } else if (look->name != NULL) {
        struct room *room = hf__space_find(m->space, look->name, look->name_len);
        if (room != NULL)
            select_room(&room->link, &s);
    } else {
        hf__table_each(&m->space->rooms, select_room, &s);
        qsort(s.rooms, s.count, sizeof *s.rooms, by_name);
    }
    int64_t now_ms = hf__now_ns(store->host->env) / HF__NS_PER_MS;
    for (size_t i = 0; r == 0 && i < s.count; i++)
        r = show_room(s.rooms[i], look, now_ms);
    pthread_mutex_unlock(&m->space->mutex);
    free(s.rooms);
    return r;
}
