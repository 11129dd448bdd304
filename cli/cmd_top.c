/* holdfast top: the locks of a store, looked at again and again.
 *
 * On a terminal it has the screen until `q`, and one key chooses the order; anywhere else, and with
 * --once, it prints one table. It rests at least four times as long as a look has taken: a store that
 * is slow because it has much to do is not asked more for it. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/env.h"
#include "base/url.h"
#include "cli.h"
#include "locks_table.h"
#include "screen.h"

#include "base/banned.h"

#define REST 4 /* of each look, at least so many times its length */

enum order { BY_AGE, BY_NAME, BY_LEFT, BY_WAITING };
#define ORDERS "age|name|left|waiting"

static int64_t interval_ms = 1000, older_than_ms;
static const char *prefix;
static bool once;
static int order = BY_AGE;

static const struct cli_option options[] = {
    {0, "interval", CLI_DURATION, &interval_ms, "DUR", NULL, 100, 3600000,
     "how often to look at the store (1s)"},
    {0, "once", CLI_FLAG, &once, NULL, NULL, 0, 0, "print one table and end"},
    {0, "sort", CLI_CHOICE, &order, "KEY", ORDERS, 0, 0,
     "what comes first: the longest held (age), by name, the least time left, the longest queue"},
    {0, "older-than", CLI_DURATION, &older_than_ms, "DUR", NULL, 0, 0,
     "only locks that have been held for at least this long"},
    {0, "prefix", CLI_TEXT, &prefix, "TEXT", NULL, 0, 0, "only names that begin with TEXT"},
    {0},
};

/* The locks of a view, in the chosen order. */
struct sorted {
    hf_view *view;
    struct cli_span *locks;
    size_t count, waiting;
};

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

static int compare(const void *left, const void *right)
{
    const struct cli_span *x = left, *y = right;
    const hf_entry *a = holder_of(x), *b = holder_of(y);
    int by = 0;

    switch ((enum order)order) {
    case BY_AGE:
        by = by_number(b->age_ms, a->age_ms);
        break;
    case BY_LEFT:
        by = by_number(left_of(a), left_of(b));
        break;
    case BY_WAITING:
        by = by_number((int64_t)cli_span_count(y, HF_PLACE_WAITING),
                       (int64_t)cli_span_count(x, HF_PLACE_WAITING));
        break;
    case BY_NAME:
        break;
    }
    return by != 0
               ? by
               : by_number((int64_t)x->first, (int64_t)y->first); /* the view has them by name */
}

static void clear_sorted(struct sorted *sorted)
{
    hf_view_free(sorted->view);
    free(sorted->locks);
    *sorted = (struct sorted){0};
}

static int look(hf_client *client, struct sorted *ret, hf_error *err)
{
    hf_query query = {.size = sizeof query,
                      .prefix = prefix,
                      .prefix_len = prefix != NULL ? strlen(prefix) : 0,
                      .older_than_ms = older_than_ms};
    int r = hf_inspect(client, &query, &ret->view, err);

    if (r < 0)
        return r;
    ret->locks = calloc(hf_view_count(ret->view) + 1, sizeof *ret->locks);
    if (ret->locks == NULL) {
        snprintf(err->text, sizeof err->text, "out of memory");
        return err->code = HF_NO_MEMORY;
    }
    for (size_t i = 0; i < hf_view_count(ret->view); ret->count++) {
        struct cli_span *lock = &ret->locks[ret->count];
        *lock = cli_span_at(ret->view, i);
        ret->waiting += cli_span_count(lock, HF_PLACE_WAITING);
        i += lock->count;
    }
    qsort(ret->locks, ret->count, sizeof *ret->locks, compare);
    return HF_OK;
}

static int print_table(const struct cli *cli, const struct sorted *sorted, size_t rows)
{
    struct locks_table table;

    if (sorted->count == 0)
        return 0;
    if (!locks_table_init(&table, older_than_ms == 0))
        return EXIT_MACHINE;
    for (size_t i = 0; i < sorted->count && i < rows; i++)
        locks_table_add(&table, &sorted->locks[i]);
    return cli_table_print(&table.table, cli, 0, 0);
}

static int print_json(const struct sorted *sorted)
{
    struct cli_json json = {.out = stdout};

    for (size_t i = 0; i < sorted->count; i++) {
        const hf_entry *holder = holder_of(&sorted->locks[i]);
        cli_json_lock(&json, holder->name, holder->name_len, &sorted->locks[i], older_than_ms == 0);
    }
    return 0;
}

static int print_once(const struct cli *cli, hf_client *client)
{
    struct sorted sorted = {0};
    hf_error err = {0};
    int status = look(client, &sorted, &err) != HF_OK ? cli_fail_error(&err)
                 : cli->json                          ? print_json(&sorted)
                                                      : print_table(cli, &sorted, SIZE_MAX);

    clear_sorted(&sorted);
    return status;
}

/* The head says what one looks at, and when it was so. */
static void print_head(const struct cli *cli, const struct sorted *sorted, const hf_error *err)
{
    static const char *const orders[] = {"age", "name", "left", "waiting"};
    char now[32], store[256] = "the default store";

    cli_format_moment(0, now, sizeof now);
    if (cli->url != NULL)
        hf__url_redact(cli->url, store, sizeof store);
    printf("%sholdfast top%s  ", cli_paint(cli, PAINT_BOLD), cli_paint(cli, PAINT_NONE));
    cli_print_text(stdout, store);
    printf("  %s\n", now);
    if (err->code != HF_OK) { /* and no table: an old one would look as if it were true */
        fputs(cli_paint(cli, PAINT_RED), stdout);
        cli_print_text(stdout, err->text);
        printf("%s\n", cli_paint(cli, PAINT_NONE));
    } else {
        printf("%zu lock%s, %zu waiting; by %s  %s(a)ge (n)ame (l)eft (w)aiting (q)uit%s\n",
               sorted->count, sorted->count == 1 ? "" : "s", sorted->waiting, orders[order],
               cli_paint(cli, PAINT_DIM), cli_paint(cli, PAINT_NONE));
    }
    putchar('\n');
}

/* Four lines are not the table's: the head's three, and one that a terminal may need for itself. */
static int draw(const struct cli *cli, const struct sorted *sorted, const hf_error *err)
{
    size_t lines = screen_lines(), rows = lines > 6 ? lines - 5 : 1;

    screen_begin();
    print_head(cli, sorted, err);
    int status = err->code == HF_OK ? print_table(cli, sorted, rows) : 0;
    if (status == 0 && sorted->count > rows)
        printf("%s... and %zu more%s", cli_paint(cli, PAINT_DIM), sorted->count - rows,
               cli_paint(cli, PAINT_NONE));
    return cli_finish(status);
}

/* False: it is to end. */
static bool obey(int key)
{
    static const char keys[] = "anlw"; /* in the order of enum order */
    const char *at = key > 0 ? strchr(keys, key) : NULL;

    if (at != NULL)
        order = (int)(at - keys);
    return key != 'q' && key != SCREEN_END;
}

static int64_t now_ms(void)
{
    return hf__now_ns(&hf__system_env) / HF__NS_PER_MS;
}

static int live(const struct cli *cli, hf_client *client)
{
    struct screen screen;
    int status = screen_open(&screen);

    if (status != 0)
        return status;
    for (int key = 0; status == 0 && obey(key);) {
        struct sorted sorted = {0};
        hf_error err = {0};
        int64_t began_ms = now_ms();
        look(client, &sorted, &err);
        int64_t took_ms = now_ms() - began_ms;
        status = draw(cli, &sorted, &err);
        clear_sorted(&sorted);
        if (status == 0)
            key = screen_key(&screen, REST * took_ms > interval_ms ? REST * took_ms : interval_ms);
    }
    screen_close(&screen);
    return status;
}

static int run(struct cli *cli, int argc, char **argv)
{
    hf_client *client;

    (void)argv;
    if (!cli_check_operands(&cli_verb_top, argc, 0))
        return EXIT_USAGE;
    int status = cli_open(cli, &client);
    if (status != 0)
        return status;
    bool on_screen = !once && !cli->json && isatty(STDOUT_FILENO) && isatty(STDIN_FILENO);
    status = on_screen ? live(cli, client) : print_once(cli, client);
    hf_close(client);
    return status;
}

const struct cli_verb cli_verb_top = {
    .name = "top",
    .operands = "",
    .summary = "Show the locks of a store live, the longest held first.",
    .options = options,
    .run = run,
};
