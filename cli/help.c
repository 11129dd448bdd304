/* --help and the lists for the completions, from the option tables. */
#include <string.h>

#include "cli.h"

#include "base/banned.h"

#define HELP_COLUMN 30

static void print_option(const struct cli_option *o)
{
    int used;

    if (o->help == NULL)
        return;
    if (o->short_name != 0)
        used = printf("  -%c, --%s", o->short_name, o->long_name);
    else
        used = printf("      --%s", o->long_name);
    if (o->argument != NULL)
        used += printf(" %s", o->argument);
    printf("%*s%s\n", used < HELP_COLUMN - 1 ? HELP_COLUMN - used : 2, "", o->help);
}

void cli_print_table(const char *title, const struct cli_option *options)
{
    if (options == NULL || options->long_name == NULL)
        return;
    printf("\n%s\n", title);
    for (; options->long_name != NULL; options++)
        print_option(options);
}

void cli_print_help(const struct cli_verb *verb, const struct cli_option *globals)
{
    printf("usage: holdfast %s [options]%s%s\n%s\n", verb->name,
           verb->operands[0] != '\0' ? " " : "", verb->operands, verb->summary);
    cli_print_table("options:", verb->options);
    cli_print_table("options of every verb:", globals);
    printf("\nWrite durations as 250ms, 30s, 5m, 1h30m or 1d; a plain number is in seconds.\n"
           "See also holdfast-%s(1).\n",
           verb->name);
}

void cli_print_options(const struct cli_verb *verb, const struct cli_option *globals)
{
    const struct cli_option *tables[] = {verb->options, globals};

    for (size_t t = 0; t < 2; t++) {
        for (const struct cli_option *o = tables[t]; o != NULL && o->long_name != NULL; o++) {
            if (o->help == NULL)
                continue;
            const char dash[3] = {'-', o->short_name, '\0'};
            printf("--%s\t%s\t%s\t%s\t%s\n", o->long_name, dash,
                   o->argument != NULL ? o->argument : "-", o->choices != NULL ? o->choices : "-",
                   o->help);
        }
    }
}
