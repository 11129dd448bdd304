/* holdfast log [NAME]: what became of grants and bids, from the trail that clients with history=N in their
 * URL leave in the store; or who held at a moment. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "moment.h"
#include "table.h"
#include "trail.h"

#include "base/banned.h"

static const char *since, *until, *at, *prefix;
static int64_t limit;

static const struct cli_option options[] = {
    {0, "since", CLI_TEXT, &since, "WHEN", NULL, 0, 0,
     "only from then on: 2h (ago), 03:12, 2026-11-15T03:12 (local), or with Z (UTC)"},
    {0, "until", CLI_TEXT, &until, "WHEN", NULL, 0, 0, "only before then"},
    {0, "at", CLI_TEXT, &at, "WHEN", NULL, 0, 0,
     "who held then; exit with status 1 if nobody is known to have"},
    {0, "prefix", CLI_TEXT, &prefix, "TEXT", NULL, 0, 0, "only names that begin with TEXT"},
    {0, "limit", CLI_NUMBER, &limit, "N", NULL, 1, HF_TRAIL_MAX,
     "only the newest N entries (1000)"},
    {0},
};

static void print_what(FILE *out, const hf_trail_entry *e)
{
    fputs(hf_trail_kind_name(e->kind), out);
    if (e->cause[0] == '\0')
        return;
    fputs(e->kind == HF_TRAIL_BROKEN ? " by " : ", ", out);
    cli_print_text(out, e->cause);
}

static void print_who(FILE *out, const hf_trail_entry *e)
{
    cli_print_text(out, e->user[0] != '\0' ? e->user : "?");
    putc('@', out);
    cli_print_text(out, e->host[0] != '\0' ? e->host : "?");
    fprintf(out, ", pid %" PRId64 ", ", e->pid);
    cli_print_text(out, e->program);
}

static void print_span(FILE *out, int64_t ms)
{
    if (ms > 0)
        cli_print_duration(out, ms);
    else
        putc('-', out);
}

static void add_row(struct cli_table *table, const hf_trail_entry *e)
{
    char when[40];

    cli_format_wall(e->at_ms, when, sizeof when);
    fputs(when, table->out);
    cli_table_next(table);
    cli_print_name(table->out, e->name, e->name_len);
    cli_table_next(table);
    print_what(table->out, e);
    cli_table_next(table);
    fputs(e->mode == HF_SHARED ? "shared" : "exclusive", table->out);
    cli_table_next(table);
    print_span(table->out, e->held_ms);
    cli_table_next(table);
    print_span(table->out, e->waited_ms);
    cli_table_next(table);
    if (e->generation != 0)
        fprintf(table->out, "%" PRIu64, e->generation);
    else
        putc('-', table->out);
    cli_table_next(table);
    print_who(table->out, e);
    cli_table_next(table);
    cli_print_text(table->out, e->note);
    cli_table_next(table);
}

static int print_table(const struct cli *cli, const hf_trail *trail)
{
    static const char *const titles[] = {"TIME",   "NAME",  "WHAT", "MODE", "HELD",
                                         "WAITED", "TOKEN", "WHO",  "NOTE", NULL};
    struct cli_table table;
    const hf_trail_entry *e;

    if (hf_trail_count(trail) == 0)
        return 0;
    if (!cli_table_init(&table, titles))
        return EXIT_MACHINE;
    for (size_t i = 0; (e = hf_trail_entry_at(trail, i)) != NULL; i++)
        add_row(&table, e);
    return cli_table_print(&table, cli, 0, 0);
}

static void print_object(const hf_trail_entry *e)
{
    struct cli_json json = {.out = stdout};

    cli_json_trail_entry(&json, e);
    cli_json_end(&json);
}

static int print(const struct cli *cli, const hf_trail *trail)
{
    const hf_trail_entry *e;
    int status = 0;

    for (size_t i = 0; cli->json && (e = hf_trail_entry_at(trail, i)) != NULL; i++)
        print_object(e);
    if (!cli->json && !cli->quiet)
        status = print_table(cli, trail);
    if (status == 0 && at != NULL && hf_trail_count(trail) == 0)
        status = cli->quiet || cli->json
                     ? EXIT_NOT_OBTAINED
                     : cli_fail(EXIT_NOT_OBTAINED, "nobody is known to have held it then; what "
                                                   "clients without history=N do is not "
                                                   "written down");
    return status;
}

static bool read_moments(hf_history_query *query)
{
    if (at != NULL && (since != NULL || until != NULL)) {
        cli_fail_usage("log", "--at is one moment: it does not go with --since or --until");
        return false;
    }
    return (since == NULL || cli_parse_moment("log", "--since", since, &query->since_ms)) &&
           (until == NULL || cli_parse_moment("log", "--until", until, &query->until_ms)) &&
           (at == NULL || cli_parse_moment("log", "--at", at, &query->at_ms));
}

static int run(struct cli *cli, int argc, char **argv)
{
    hf_history_query query = {
        .size = sizeof query, .prefix = prefix, .prefix_len = HF_NTS, .limit = limit};
    hf_error err = {0};
    hf_client *client;
    hf_trail *trail;

    if (argc > 1)
        return cli_fail_usage("log", "give one name, or none for all");
    if ((argc == 1 && !cli_check_name("log", argv[0])) || !read_moments(&query))
        return EXIT_USAGE;
    if (argc == 1) {
        query.name = argv[0];
        query.name_len = HF_NTS;
    }
    int status = cli_open(cli, &client);
    if (status != 0)
        return status;
    if (hf_history(client, &query, &trail, &err) == HF_OK) {
        status = print(cli, trail);
        hf_trail_free(trail);
    } else {
        status = cli_fail_error(&err);
    }
    hf_close(client);
    return status;
}

const struct cli_verb cli_verb_log = {
    .name = "log",
    .operands = "[NAME]",
    .summary = "Show who held locks when, if their clients write that down (history=N).",
    .options = options,
    .run = run,
};
