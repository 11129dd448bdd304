/* holdfast top: the locks of a store, looked at again and again.
 *
 * On a terminal it has the screen until `q`; one key chooses the order, `/` begins a filter. Anywhere
 * else, and with --once, it prints one table. It rests at least four times as long as a look has taken: a
 * store that is slow because it has much to do is not asked more for it, whatever keys are pressed.
 * The looks are on a thread of their own, so that the keys work while a store does not answer. */
#include <string.h>
#include <unistd.h>

#include "base/env.h"
#include "base/url.h"
#include "base/utf8.h"
#include "cli.h"
#include "looker.h"
#include "screen.h"
#include "text.h"
#include "top_list.h"

#include "base/banned.h"

#define REST       4 /* of each look, at least so many times its length */
#define FILTER_MAX 64
#define SLOW_MS    2000 /* a look that takes longer is told of, each second */

#define ORDERS "age|name|left|waiting"

static int64_t interval_ms = 1000, older_than_ms;
static const char *prefix, *filter = "";
static bool once;
static int order = TOP_BY_AGE;

static const struct cli_option options[] = {
    {0, "interval", CLI_DURATION, &interval_ms, "DUR", NULL, 100, 3600000,
     "how often to look at the store (1s)"},
    {0, "once", CLI_FLAG, &once, NULL, NULL, 0, 0, "print one table and end"},
    {0, "sort", CLI_CHOICE, &order, "KEY", ORDERS, 0, 0,
     "what comes first: the longest held (age), by name, the least time left, the longest queue"},
    {0, "older-than", CLI_DURATION, &older_than_ms, "DUR", NULL, 0, 0,
     "only locks that have been held for at least this long"},
    {0, "prefix", CLI_TEXT, &prefix, "TEXT", NULL, 0, 0, "only names that begin with TEXT"},
    {0, "filter", CLI_TEXT, &filter, "TEXT", NULL, 0, 0, "only names with TEXT in them"},
    {0},
};

/* What stands on the screen, and what was typed. */
struct top {
    const struct cli *cli;
    struct looker looker;
    struct top_list list;
    hf_error err;
    bool seen; /* the list is one */
    char seen_at[32];
    int64_t asked_ms, next_ms; /* the look that is under way, or the next one */
    bool typing;
    char filter[FILTER_MAX];
};

static int64_t now_ms(void)
{
    return hf__now_ns(&hf__system_env) / HF__NS_PER_MS;
}

static bool with_waiters(void)
{
    return older_than_ms == 0;
}

static int fail_memory(hf_error *err)
{
    snprintf(err->text, sizeof err->text, "out of memory");
    return err->code = HF_NO_MEMORY;
}

static int print_once(const struct cli *cli, hf_client *client, const hf_query *query)
{
    struct top_list list = {0};
    hf_error err = {0};
    hf_view *view;

    if (hf_inspect(client, query, &view, &err) != HF_OK)
        return cli_fail_error(&err);
    if (!top_list_take(&list, view)) {
        fail_memory(&err);
        return cli_fail_error(&err);
    }
    int status = 0;
    top_list_arrange(&list, (enum top_order)order, filter);
    if (cli->json)
        top_list_print_json(&list, with_waiters());
    else
        status = top_list_print(&list, cli, with_waiters(), SIZE_MAX, 0);
    top_list_clear(&list);
    return status;
}

/* The screen. ---------------------------------------------------------------------------------- */
/* What does not fit into the line is left out: cut texts would say something else. */
static void print_if_it_fits(size_t *room, const struct cli *cli, enum cli_paint paint,
                             const char *text)
{
    size_t width = cli_width(text);

    if (width > *room)
        return;
    *room -= width;
    fputs(paint != PAINT_NONE ? cli_paint(cli, paint) : "", stdout);
    cli_print_text(stdout, text);
    fputs(paint != PAINT_NONE ? cli_paint(cli, PAINT_NONE) : "", stdout);
}

static void print_counts(const struct top *top, size_t room)
{
    static const char *const orders[] = {"age", "name", "left", "waiting"};
    const struct top_list *list = &top->list;
    char text[128], of[32] = "";

    if (list->shown_count < list->count)
        snprintf(of, sizeof of, " of %zu", list->count);
    snprintf(text, sizeof text, "%zu lock%s%s, %zu waiting; by %s", list->shown_count,
             list->shown_count == 1 ? "" : "s", of, list->waiting, orders[order]);
    print_if_it_fits(&room, top->cli, PAINT_NONE, text);
    if (top->typing || top->filter[0] != '\0') {
        snprintf(text, sizeof text, "  /%s%s", top->filter, top->typing ? "_" : "");
        print_if_it_fits(&room, top->cli, PAINT_BOLD, text);
    }
    print_if_it_fits(&room, top->cli, PAINT_DIM,
                     top->typing ? "  (Enter, Esc)"
                                 : "  (a)ge (n)ame (l)eft (w)aiting (/)filter (q)uit");
    putchar('\n');
}

/* The head says what one looks at, and when it was so. */
static void print_head(const struct top *top)
{
    const struct cli *cli = top->cli;
    int64_t waits_ms = top->looker.busy ? now_ms() - top->asked_ms : 0;
    size_t columns = screen_columns(), room = columns;
    char store[256] = "  the default store", late[40];

    if (cli->url != NULL)
        hf__url_redact(cli->url, store + 2, sizeof store - 2);
    print_if_it_fits(&room, cli, PAINT_BOLD, "holdfast top  ");
    print_if_it_fits(&room, cli, PAINT_NONE, top->seen_at);
    snprintf(late, sizeof late, "  no answer for %llds", (long long)waits_ms / 1000);
    if (waits_ms >= SLOW_MS)
        print_if_it_fits(&room, cli, PAINT_RED, late);
    print_if_it_fits(&room, cli, PAINT_NONE, store);
    putchar('\n');
    if (top->err.code != HF_OK) { /* and no table: an old one would look as if it were true */
        fputs(cli_paint(cli, PAINT_RED), stdout);
        cli_print_text(stdout, top->err.text);
        printf("%s\n", cli_paint(cli, PAINT_NONE));
    } else if (top->seen) {
        print_counts(top, columns);
    } else {
        puts("looking ...");
    }
    putchar('\n');
}

/* Four lines are not the table's: the head's three, and one that a terminal may need for itself. */
static int draw(const struct top *top)
{
    size_t lines = screen_lines(), rows = lines > 6 ? lines - 5 : 1;
    const struct top_list *list = &top->list;
    const struct cli *cli = top->cli;
    int status = 0;

    screen_begin();
    print_head(top);
    if (top->seen)
        status = top_list_print(list, cli, with_waiters(), rows, screen_columns());
    if (status == 0 && top->seen && list->shown_count > rows)
        printf("%s... and %zu more%s", cli_paint(cli, PAINT_DIM), list->shown_count - rows,
               cli_paint(cli, PAINT_NONE));
    return cli_finish(status);
}

/* Keys. ---------------------------------------------------------------------------------------- */
static void erase_last(char *text)
{
    size_t len = strlen(text);

    while (len > 0 && ((unsigned char)text[len - 1] & 0xc0) == 0x80)
        len--;
    text[len > 0 ? len - 1 : 0] = '\0';
}

static void type(struct top *top, int key)
{
    size_t len = strlen(top->filter);

    if (key == '\n' || key == '\r' || key == '\033') {
        top->typing = false;
        if (key == '\033')
            top->filter[0] = '\0';
    } else if (key == '\b' || key == 127) {
        erase_last(top->filter);
    } else if (key == 'U' - '@') {
        top->filter[0] = '\0';
    } else if (key >= ' ' && len + 1 < sizeof top->filter) {
        top->filter[len] = (char)key;
        top->filter[len + 1] = '\0';
    }
}

/* False: it is to end. */
static bool obey(struct top *top, int key)
{
    static const char keys[] = "anlw"; /* in the order of enum top_order */
    const char *at = key > 0 && !top->typing ? strchr(keys, key) : NULL;

    if (key == SCREEN_END || (key == 'q' && !top->typing))
        return false;
    if (top->typing && key > 0)
        type(top, key);
    else if (key == '/')
        top->typing = true;
    else if (at != NULL)
        order = (int)(at - keys);
    if (key > 0 && top->seen)
        top_list_arrange(&top->list, (enum top_order)order, top->filter);
    return true;
}

/* Looking. ------------------------------------------------------------------------------------- */
static void take_found(struct top *top)
{
    struct looker *looker = &top->looker;
    int64_t rest_ms = REST * looker->took_ms;

    top_list_clear(&top->list);
    top->err = looker->err;
    top->seen = looker->view != NULL && top_list_take(&top->list, looker->view);
    if (looker->view != NULL && !top->seen)
        fail_memory(&top->err);
    if (top->seen)
        top_list_arrange(&top->list, (enum top_order)order, top->filter);
    cli_format_moment(0, top->seen_at, sizeof top->seen_at);
    top->next_ms = now_ms() + (rest_ms > interval_ms ? rest_ms : interval_ms);
}

/* How long until there is something to do without a key. */
static int64_t look_when_due(struct top *top)
{
    int64_t at_ms = now_ms();

    if (looker_has_found(&top->looker))
        take_found(top);
    if (top->looker.busy)
        return 1000 - (at_ms - top->asked_ms) % 1000;
    if (at_ms < top->next_ms)
        return top->next_ms - at_ms;
    top->asked_ms = at_ms;
    looker_ask(&top->looker);
    return 1000;
}

static int live(struct top *top, hf_client *client, const hf_query *query)
{
    struct screen screen;
    int status = screen_open(&screen);

    if (status != 0)
        return status;
    if (!looker_start(&top->looker, client, query))
        status = EXIT_MACHINE;
    for (int key = 0; status == 0 && obey(top, key);) {
        int64_t wait_ms = look_when_due(top);
        status = draw(top);
        if (status == 0)
            key = screen_key(&screen, top->looker.found_fd, wait_ms);
    }
    screen_close(&screen);
    if (top->looker.busy) /* nothing is held, and the store may take its time */
        _exit(status);
    top_list_clear(&top->list);
    return status;
}

static int run(struct cli *cli, int argc, char **argv)
{
    static struct top top;
    hf_client *client;

    (void)argv;
    if (!cli_check_operands(&cli_verb_top, argc, 0))
        return EXIT_USAGE;
    if (strlen(filter) >= sizeof top.filter)
        return cli_fail_usage("top", "the filter is too long; at most %zu bytes",
                              sizeof top.filter - 1);
    int status = cli_open(cli, &client);
    if (status != 0)
        return status;
    hf_query query = {.size = sizeof query,
                      .prefix = prefix,
                      .prefix_len = prefix != NULL ? strlen(prefix) : 0,
                      .older_than_ms = older_than_ms};
    top.cli = cli;
    snprintf(top.filter, sizeof top.filter, "%s", filter);
    bool on_screen = !once && !cli->json && isatty(STDOUT_FILENO) && isatty(STDIN_FILENO);
    status = on_screen ? live(&top, client, &query) : print_once(cli, client, &query);
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
