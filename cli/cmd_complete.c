/* What the completions of the shells ask for, one word a line: holdfast __names, the locks that are
 * held or waited for; __tickets NAME, whose turn could be ended; __schemes, how a URL may begin.
 * Names with bytes that a line cannot hold are left out. */
#include <string.h>

#include "cli.h"
#include "entry.h"

#include "base/banned.h"

static bool is_one_line(const hf_entry *e)
{
    for (size_t i = 0; i < e->name_len; i++) {
        if ((unsigned char)e->name[i] < ' ' || e->name[i] == 0x7f)
            return false;
    }
    return true;
}

static int list_names(struct cli *cli, int argc, char **argv)
{
    hf_client *client;
    hf_view *view;

    (void)argv;
    if (!cli_check_operands(&cli_verb_names, argc, 0))
        return EXIT_USAGE;
    int status = cli_open(cli, &client);
    if (status != 0)
        return status;
    if (hf_inspect(client, NULL, &view, NULL) == HF_OK) {
        for (size_t i = 0; i < hf_view_count(view);) {
            struct cli_span span = cli_span_at(view, i);
            if (is_one_line(hf_view_entry(view, i)))
                puts(hf_view_entry(view, i)->name);
            i += span.count;
        }
        hf_view_free(view);
    }
    hf_close(client);
    return 0;
}

static int list_tickets(struct cli *cli, int argc, char **argv)
{
    hf_client *client;
    hf_view *view;

    if (!cli_check_operands(&cli_verb_tickets, argc, 1))
        return EXIT_USAGE;
    int status = cli_open(cli, &client);
    if (status != 0)
        return status;
    status = cli_look(client, argv[0], &view);
    if (status == 0) {
        for (size_t i = 0; i < hf_view_count(view); i++)
            puts(hf_view_entry(view, i)->ticket);
        hf_view_free(view);
    }
    hf_close(client);
    return status;
}

static void print_schemes(const hf_store_info *info, void *arg)
{
    (void)arg;
    if (info->missing != NULL)
        return;
    for (const char *s = info->schemes; *s != '\0'; s += strspn(s, " ")) {
        size_t n = strcspn(s, " ");
        printf("%.*s\n", (int)n, s);
        s += n;
    }
}

static int list_schemes(struct cli *cli, int argc, char **argv)
{
    (void)cli;
    (void)argv;
    if (!cli_check_operands(&cli_verb_schemes, argc, 0))
        return EXIT_USAGE;
    return hf_stores(print_schemes, NULL) == HF_OK ? 0 : EXIT_STORE;
}

const struct cli_verb cli_verb_names = {.name = "__names", .operands = "", .run = list_names};
const struct cli_verb cli_verb_tickets = {
    .name = "__tickets", .operands = "NAME", .run = list_tickets};
const struct cli_verb cli_verb_schemes = {
    .name = "__schemes", .operands = "", .no_store = true, .run = list_schemes};
