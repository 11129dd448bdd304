/* holdfast ls: what is held or waited for, one lock a line; or who waits for whom in a circle. */
#include <string.h>

#include "cli.h"
#include "cycles.h"
#include "entry.h"
#include "locks_table.h"

#include "base/banned.h"

static int64_t older_than_ms;
static const char *prefix;
static bool fail, cycles;

static const struct cli_option options[] = {
    {0, "older-than", CLI_DURATION, &older_than_ms, "DUR", NULL, 0, 0,
     "only locks that have been held for at least this long"},
    {0, "fail", CLI_FLAG, &fail, NULL, NULL, 0, 0,
     "exit with status 1 if there is anything to list"},
    {0, "cycles", CLI_FLAG, &cycles, NULL, NULL, 0, 0,
     "only deadlocks: who waits for each other in a circle"},
    {0, "prefix", CLI_TEXT, &prefix, "TEXT", NULL, 0, 0, "only names that begin with TEXT"},
    {0},
};

static int print_rows(const struct cli *cli, const hf_view *view)
{
    struct locks_table table;

    if (hf_view_count(view) == 0)
        return 0;
    if (!locks_table_init(&table, older_than_ms == 0))
        return EXIT_MACHINE;
    for (size_t i = 0; i < hf_view_count(view);) {
        struct cli_span span = cli_span_at(view, i);
        locks_table_add(&table, &span);
        i += span.count;
    }
    return cli_table_print(&table.table, cli, 0, 0);
}

static int print_json(const hf_view *view)
{
    struct cli_json json = {.out = stdout};

    for (size_t i = 0; i < hf_view_count(view);) {
        struct cli_span span = cli_span_at(view, i);
        const hf_entry *first = hf_view_entry(view, i);
        cli_json_lock(&json, first->name, first->name_len, &span, older_than_ms == 0);
        i += span.count;
    }
    return 0;
}

static void print_cycle(const struct cli_wait *steps, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const hf_entry *holds = steps[i].holds, *waits = steps[i].waits;
        fputs(i == 0 ? "deadlock: " : "          ", stdout);
        cli_print_who(stdout, waits);
        fputs(" holds '", stdout);
        cli_print_name(stdout, holds->name, holds->name_len);
        fputs("' and waits for '", stdout);
        cli_print_name(stdout, waits->name, waits->name_len);
        fputs("' since ", stdout);
        cli_print_duration(stdout, waits->age_ms);
        putchar('\n');
    }
}

static void print_json_cycle(const struct cli_wait *steps, size_t count)
{
    struct cli_json json = {.out = stdout};

    cli_json_open(&json, NULL, '{');
    cli_json_open(&json, "cycle", '[');
    for (size_t i = 0; i < count; i++) {
        const hf_entry *holds = steps[i].holds, *waits = steps[i].waits;
        cli_json_open(&json, NULL, '{');
        cli_json_bytes(&json, "holds", holds->name, holds->name_len);
        cli_json_entry(&json, "holder", holds);
        cli_json_bytes(&json, "waits_for", waits->name, waits->name_len);
        cli_json_entry(&json, "waiter", waits);
        cli_json_close(&json, '}');
    }
    cli_json_close(&json, ']');
    cli_json_close(&json, '}');
    cli_json_end(&json);
}

struct told {
    bool json;
    size_t cycles;
};

static void tell_cycle(const struct cli_wait *steps, size_t count, void *ctx)
{
    struct told *told = ctx;

    told->cycles++;
    if (told->json)
        print_json_cycle(steps, count);
    else
        print_cycle(steps, count);
}

/* Two looks, one after the other: see cli_find_cycles(). */
static int list_cycles(const struct cli *cli, hf_client *client, const hf_query *query,
                       const hf_view *first, size_t *ret_count)
{
    struct told told = {.json = cli->json};
    hf_error err = {0};
    hf_view *again;
    int status = 0;

    if (hf_inspect(client, query, &again, &err) != HF_OK)
        return cli_fail_error(&err);
    if (!cli_find_cycles(first, again, tell_cycle, &told))
        status = cli_fail(EXIT_MACHINE, "out of memory");
    hf_view_free(again);
    *ret_count = told.cycles;
    return status;
}

static int list(const struct cli *cli, hf_client *client)
{
    hf_query query = {.size = sizeof query,
                      .prefix = prefix,
                      .prefix_len = prefix != NULL ? strlen(prefix) : 0,
                      .older_than_ms = older_than_ms};
    hf_error err = {0};
    hf_view *view;

    if (hf_inspect(client, &query, &view, &err) != HF_OK)
        return cli_fail_error(&err);
    size_t count = hf_view_count(view);
    int status = cycles      ? list_cycles(cli, client, &query, view, &count)
                 : cli->json ? print_json(view)
                             : print_rows(cli, view);
    if (status == 0 && fail && count > 0)
        status = EXIT_NOT_OBTAINED;
    hf_view_free(view);
    return status;
}

static int run(struct cli *cli, int argc, char **argv)
{
    hf_client *client;

    (void)argv;
    if (!cli_check_operands(&cli_verb_ls, argc, 0))
        return EXIT_USAGE;
    if (cycles && older_than_ms > 0)
        return cli_fail_usage("ls", "--cycles needs the waiters too, --older-than leaves them out");
    int status = cli_open(cli, &client);
    if (status != 0)
        return status;
    status = list(cli, client);
    hf_close(client);
    return status;
}

const struct cli_verb cli_verb_ls = {
    .name = "ls",
    .operands = "",
    .summary = "List the locks that are held or waited for.",
    .options = options,
    .run = run,
};
