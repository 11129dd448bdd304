/* See names.h. */
#include "stores_memory_names.h"

#include <stdlib.h>

#include "base_bytes.h"
#include "stores_search.h"

#include "base_banned.h"

static void add_name(struct names *names, const char *bytes, size_t len)
{
    struct name *name = malloc(sizeof *name + len);

    if (name != NULL && names->count == names->capacity) {
        size_t capacity = names->capacity < 64 ? 64 : 2 * names->capacity;
        struct name **all = realloc(names->all, capacity * sizeof *all);
        if (all != NULL) {
            names->all = all;
            names->capacity = capacity;
        }
    }
    if (name == NULL || names->count == names->capacity) {
        free(name);
        names->no_memory = true;
        return;
    }
    name->len = len;
    memcpy(name->bytes, bytes, len);
    names->all[names->count++] = name;
}

static void add_room(struct hf__link *link, void *ctx)
{
    struct names *names = ctx;
    const struct room *room = (const struct room *)link;

    if (names->wanted(room) && hf__search_wants(names->search, room->name, room->name_len))
        add_name(names, room->name, room->name_len);
}

static int by_name(const void *a, const void *b)
{
    const struct name *x = *(struct name *const *)a, *y = *(struct name *const *)b;

    return hf__bytes_order(x->bytes, x->len, y->bytes, y->len);
}

void hf__memory_find_names(struct memory *m, struct names *names)
{
    const struct hf__search *search = names->search;

    pthread_mutex_lock(&m->space->mutex);
    if (search->name != NULL)
        add_name(names, search->name, search->name_len);
    else
        hf__table_each(&m->space->rooms, add_room, names);
    pthread_mutex_unlock(&m->space->mutex);
    if (names->count > 1)
        qsort(names->all, names->count, sizeof(*names->all), by_name);
}

void hf__memory_free_names(struct names *names)
{
    for (size_t i = 0; i < names->count; i++)
        free(names->all[i]);
    free(names->all);
}
