/* The locks of a view as `top` shows them: in an order, and those that a filter leaves. */
#ifndef CLI_TOP_LIST_H
#define CLI_TOP_LIST_H

#include "entry.h"

enum top_order { TOP_BY_AGE, TOP_BY_NAME, TOP_BY_LEFT, TOP_BY_WAITING };

struct top_list {
    hf_view *view; /* its own */
    struct cli_span *locks, *shown;
    size_t count, shown_count;
    size_t waiting; /* of those that are shown */
};

/* Takes over the view. False: out of memory, and the view is freed. */
bool top_list_take(struct top_list *list, hf_view *view);
void top_list_clear(struct top_list *list);

/* What is shown, and in which order: names with this in them; "": all. */
void top_list_arrange(struct top_list *list, enum top_order order, const char *filter);

/* The first rows of it, cut to so many columns; 0: as wide as they like. Gives an exit status. */
int top_list_print(const struct top_list *list, const struct cli *cli, bool with_waiters,
                   size_t rows, size_t columns);
void top_list_print_json(const struct top_list *list, bool with_waiters);

#endif
