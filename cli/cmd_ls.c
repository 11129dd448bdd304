/* holdfast ls: what is held or waited for, one lock a line. */
#include <string.h>

#include "cli.h"
#include "entry.h"
#include "locks_table.h"

#include "base/banned.h"

static int64_t older_than_ms;
static const char *prefix;
static bool fail;

static const struct cli_option options[] = {
    {0, "older-than", CLI_DURATION, &older_than_ms, "DUR", NULL, 0, 0,
     "only locks that have been held for at least this long"},
    {0, "fail", CLI_FLAG, &fail, NULL, NULL, 0, 0,
     "exit with status 1 if there is anything to list"},
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
    int status = cli->json ? print_json(view) : print_rows(cli, view);
    if (status == 0 && fail && hf_view_count(view) > 0)
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
