/* See top_list.h. */
#include "top_list.h"

#include <stdlib.h>
#include <string.h>

#include "locks_table.h"

#include "base/banned.h"

static const hf_entry *holder_of(const struct cli_span *lock)
{
    return hf_view_entry(lock->view, lock->first);
}

static int by_number(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

/* What does not expire comes after what does. */
static int64_t left_of(const hf_entry *holder)
{
    return holder->remaining_ms == HF_NEVER ? INT64_MAX : holder->remaining_ms;
}

static int64_t waiting_of(const struct cli_span *lock)
{
    return (int64_t)cli_span_count(lock, HF_PLACE_WAITING);
}

static int compare(const void *left, const void *right, void *order)
{
    const struct cli_span *x = left, *y = right;
    const hf_entry *a = holder_of(x), *b = holder_of(y);
    int by = 0;

    switch (*(const enum top_order *)order) {
    case TOP_BY_AGE:
        by = by_number(b->age_ms, a->age_ms);
        break;
    case TOP_BY_LEFT:
        by = by_number(left_of(a), left_of(b));
        break;
    case TOP_BY_WAITING:
        by = by_number(waiting_of(y), waiting_of(x));
        break;
    case TOP_BY_NAME:
        break;
    }
    /* the view has them by name */
    return by != 0 ? by : by_number((int64_t)x->first, (int64_t)y->first);
}

bool top_list_take(struct top_list *list, hf_view *view)
{
    size_t entries = hf_view_count(view);

    *list = (struct top_list){.view = view};
    list->locks = calloc(entries + 1, sizeof *list->locks);
    list->shown = calloc(entries + 1, sizeof *list->shown);
    if (list->locks == NULL || list->shown == NULL) {
        top_list_clear(list);
        return false;
    }
    for (size_t i = 0; i < entries; i += list->locks[list->count++].count)
        list->locks[list->count] = cli_span_at(view, i);
    return true;
}

void top_list_clear(struct top_list *list)
{
    hf_view_free(list->view);
    free(list->locks);
    free(list->shown);
    *list = (struct top_list){0};
}

void top_list_arrange(struct top_list *list, enum top_order order, const char *filter)
{
    list->shown_count = list->waiting = 0;
    for (size_t i = 0; i < list->count; i++) {
        const struct cli_span *lock = &list->locks[i];
        const hf_entry *holder = holder_of(lock);
        if (memmem(holder->name, holder->name_len, filter, strlen(filter)) == NULL)
            continue;
        list->shown[list->shown_count++] = *lock;
        list->waiting += cli_span_count(lock, HF_PLACE_WAITING);
    }
    qsort_r(list->shown, list->shown_count, sizeof *list->shown, compare, &order);
}

int top_list_print(const struct top_list *list, const struct cli *cli, bool with_waiters,
                   size_t rows, size_t columns)
{
    struct locks_table table;

    if (list->shown_count == 0)
        return 0;
    if (!locks_table_init(&table, with_waiters))
        return EXIT_MACHINE;
    table.table.widest = columns * 2 / 5; /* no cell takes the place of all others */
    table.table.line = columns;
    for (size_t i = 0; i < list->shown_count && i < rows; i++)
        locks_table_add(&table, &list->shown[i]);
    return cli_table_print(&table.table, cli, 0, 0);
}

void top_list_print_json(const struct top_list *list, bool with_waiters)
{
    struct cli_json json = {.out = stdout};

    for (size_t i = 0; i < list->shown_count; i++) {
        const hf_entry *holder = holder_of(&list->shown[i]);
        cli_json_lock(&json, holder->name, holder->name_len, &list->shown[i], with_waiters);
    }
}
