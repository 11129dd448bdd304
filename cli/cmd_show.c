/* holdfast show NAME: who is inside, with tickets, and who waits. Exit status 1 if the lock is
 * free, so that a script can ask. */
#include <inttypes.h>
#include <string.h>

#include "cli.h"
#include "entry.h"
#include "table.h"

#include "base/banned.h"

static void add_row(struct cli_table *table, const hf_entry *e)
{
    if (e->place == HF_PLACE_WAITING)
        fprintf(table->out, "waiting, place %zu", e->position);
    else
        fputs(e->place == HF_PLACE_INSIDE ? "inside" : "gone, keeps it closed", table->out);
    cli_table_next(table);
    cli_print_mode(table->out, e);
    cli_table_next(table);
    fputs(e->ticket, table->out);
    cli_table_next(table);
    if (e->generation != 0)
        fprintf(table->out, "%" PRIu64, e->generation);
    else
        putc('-', table->out);
    cli_table_next(table);
    cli_print_duration(table->out, e->age_ms);
    cli_table_next(table);
    cli_print_left(table->out, e);
    cli_table_next(table);
    cli_print_who(table->out, e);
    cli_table_next(table);
    cli_print_text(table->out, e->note);
    cli_table_next(table);
}

static int print_table(const struct cli *cli, const hf_view *view)
{
    static const char *const titles[] = {"PLACE", "MODE", "TICKET", "GENERATION", "FOR",
                                         "LEFT",  "WHO",  "NOTE",   NULL};
    struct cli_table table;
    const hf_entry *e;

    if (!cli_table_init(&table, titles))
        return EXIT_MACHINE;
    for (size_t i = 0; (e = hf_view_entry(view, i)) != NULL; i++)
        add_row(&table, e);
    return cli_table_print(&table, cli, 0, 0);
}

static int print(const struct cli *cli, const char *name, const hf_view *view)
{
    struct cli_json json = {.out = stdout};
    struct cli_span all = {.view = view, .count = hf_view_count(view)};
    int status = all.count > 0 ? 0 : EXIT_NOT_OBTAINED;

    if (cli->json) {
        cli_json_lock(&json, name, strlen(name), &all, true);
        return status;
    }
    if (cli->quiet)
        return status;
    if (all.count > 0)
        return print_table(cli, view);
    putchar('\'');
    cli_print_name(stdout, name, strlen(name));
    puts("' is free");
    return status;
}

static int run(struct cli *cli, int argc, char **argv)
{
    hf_client *client;
    hf_view *view;

    if (!cli_check_operands(&cli_verb_show, argc, 1) || !cli_check_name("show", argv[0]))
        return EXIT_USAGE;
    int status = cli_open(cli, &client);
    if (status != 0)
        return status;
    status = cli_look(client, argv[0], &view);
    if (status == 0) {
        status = print(cli, argv[0], view);
        hf_view_free(view);
    }
    hf_close(client);
    return status;
}

const struct cli_verb cli_verb_show = {
    .name = "show",
    .operands = "NAME",
    .summary = "Show who holds a lock and who waits for it.",
    .run = run,
};
