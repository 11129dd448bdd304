/* holdfast, the command: a table of verbs.
 *
 * `holdfast [options] VERB [options] [operands]`. The options of every verb may stand on either
 * side of it. Nothing is done at start that the verb does not need: `holdfast run` must cost hardly
 * more than the command it runs. To add a verb, write cmd_<verb>.c and add a line to the table. */
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "base/url.h"
#include "cli.h"

#include "base/banned.h"

static const struct cli_verb *const verbs[] = {
    &cli_verb_run,    &cli_verb_elect,  &cli_verb_lock,  &cli_verb_unlock, &cli_verb_renew,
    &cli_verb_ls,     &cli_verb_show,   &cli_verb_value, &cli_verb_watch,  &cli_verb_top,
    &cli_verb_log,    &cli_verb_break,  &cli_verb_check, &cli_verb_setup,  &cli_verb_gc,
    &cli_verb_doctor, &cli_verb_stores, &cli_verb_bench, &cli_verb_serve,
};

/* For the completions; not shown to anybody. */
static const struct cli_verb *const hidden[] = {&cli_verb_names, &cli_verb_tickets,
                                                &cli_verb_schemes};

#define VERB_COUNT (sizeof verbs / sizeof verbs[0])

enum when { AUTO, ALWAYS, NEVER };

struct globals {
    char *url;
    bool json, quiet, help, version;
    int color; /* enum when */
};

/* The name "" stands for the command itself. */
static const struct cli_verb no_verb = {.name = "", .operands = "", .operands_end_options = true};

static const struct cli_verb *find_verb(const char *name)
{
    for (size_t i = 0; i < VERB_COUNT; i++) {
        if (strcmp(verbs[i]->name, name) == 0)
            return verbs[i];
    }
    for (size_t i = 0; i < sizeof hidden / sizeof hidden[0]; i++) {
        if (strcmp(hidden[i]->name, name) == 0)
            return hidden[i];
    }
    return NULL;
}

static const char *verb_name_at(const void *ctx, size_t i)
{
    (void)ctx;
    return i < VERB_COUNT ? verbs[i]->name : NULL;
}

static int fail_unknown_verb(const char *name)
{
    const char *near = cli_nearest(name, verb_name_at, NULL);

    if (near != NULL)
        return cli_fail_usage("", "there is no verb '%s'; did you mean '%s'?", name, near);
    return cli_fail_usage("", "there is no verb '%s'", name);
}

static void print_overview(const struct cli_option *globals)
{
    printf("usage: holdfast [options] VERB [options] [operands]\n"
           "Distributed locks for programs, scripts and cron jobs.\n\nverbs:\n");
    for (size_t i = 0; i < VERB_COUNT; i++)
        printf("  %-9s%s\n", verbs[i]->name, verbs[i]->summary);
    printf("  %-9s%s\n", "help", "Explain a verb: holdfast help VERB.");
    cli_print_table("options of every verb:", globals);
    printf("\nSee also holdfast(1) and holdfast(7).\n");
}

static int help(const char *name, const struct cli_option *globals)
{
    if (name == NULL) {
        print_overview(globals);
        return cli_finish(0);
    }
    const struct cli_verb *verb = find_verb(name);
    if (verb == NULL)
        return fail_unknown_verb(name);
    cli_print_help(verb, globals);
    return cli_finish(0);
}

/* For the completions: the verbs, or the options of one. */
static int list_options(const char *name, const struct cli_option *globals)
{
    const struct cli_verb *verb = name != NULL ? find_verb(name) : NULL;

    if (name != NULL && verb == NULL)
        return fail_unknown_verb(name);
    if (verb != NULL)
        cli_print_options(verb, globals);
    for (size_t i = 0; verb == NULL && i < VERB_COUNT; i++)
        printf("%s\t%s\n", verbs[i]->name, verbs[i]->summary);
    return cli_finish(0);
}

static int print_version(void)
{
    printf("holdfast %s\n", hf_version());
    return cli_finish(0);
}

static bool want_color(int when)
{
    const char *no_color = secure_getenv("NO_COLOR");

    if (when != AUTO)
        return when == ALWAYS;
    return isatty(STDOUT_FILENO) && (no_color == NULL || no_color[0] == '\0');
}

/* What a crash would write down has the password in it. 1 and not 0: a core that goes to a program
 * (core_pattern "|...") has no limit but this one. */
static void leave_no_core(struct rlimit *ret_before)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_CORE, &limit) != 0)
        limit = (struct rlimit){0};
    *ret_before = limit;
    limit.rlim_cur = limit.rlim_max < 1 ? limit.rlim_max : 1;
    setrlimit(RLIMIT_CORE, &limit);
}

static int run_verb(const struct cli_verb *verb, struct globals *g, int argc, char **argv)
{
    struct cli cli = {.json = g->json, .quiet = g->quiet, .color = want_color(g->color)};

    leave_no_core(&cli.cores);
    if (!verb->no_store && g->url == NULL) {
        int status = cli_find_url(&g->url);
        if (status != 0)
            return status;
    }
    if (g->url != NULL && hf__url_is_redacted(g->url))
        return cli_fail(EXIT_USAGE, "the URL has its password removed; write it whole, or use "
                                    "password_file");
    if (g->url != NULL && !cli_make_absolute(&g->url))
        return cli_fail(EXIT_MACHINE, "the URL is relative to a directory that is gone, or there "
                                      "is no memory left");
    cli.url = g->url;
    return cli_finish(verb->run(&cli, argc, argv));
}

static int run(struct globals *g, const struct cli_option *options, int argc, char **argv)
{
    int count = cli_parse_options(&no_verb, options, argc, argv);

    if (count < 0)
        return EXIT_USAGE;
    if (g->version)
        return print_version();
    if (g->help)
        return help(NULL, options);
    if (count == 0)
        return cli_fail_usage("", "a verb is missing, such as: holdfast run NAME -- COMMAND");
    if (strcmp(argv[0], "help") == 0 && count > 2)
        return cli_fail_usage("", "there are too many operands");
    if (strcmp(argv[0], "help") == 0)
        return help(count > 1 ? argv[1] : NULL, options);
    if (strcmp(argv[0], "__options") == 0)
        return list_options(count > 1 ? argv[1] : NULL, options);

    const struct cli_verb *verb = find_verb(argv[0]);
    if (verb == NULL)
        return fail_unknown_verb(argv[0]);
    int operands = cli_parse_options(verb, options, count - 1, argv + 1);
    if (operands < 0)
        return EXIT_USAGE;
    if (g->version)
        return print_version();
    if (g->help)
        return help(verb->name, options);
    return run_verb(verb, g, operands, argv + 1);
}

int main(int argc, char **argv)
{
    struct globals g = {.color = AUTO};
    const struct cli_option options[] = {
        {'u', "url", CLI_URL, &g.url, "URL", NULL, 0, 0,
         "the store, such as sqlite:/path/locks.db"},
        {0, "json", CLI_FLAG, &g.json, NULL, NULL, 0, 0, "write JSON, one object per line"},
        {0, "color", CLI_CHOICE, &g.color, "WHEN", "auto|always|never", 0, 0,
         "use colours: auto (on a terminal), always or never"},
        {'q', "quiet", CLI_FLAG, &g.quiet, NULL, NULL, 0, 0,
         "print nothing that the exit status tells already"},
        {'h', "help", CLI_FLAG, &g.help, NULL, NULL, 0, 0, "print this help"},
        {'V', "version", CLI_FLAG, &g.version, NULL, NULL, 0, 0, "print the version"},
        {0},
    };

    /* It takes the URL, and so the files it opens, from whoever calls it. */
    if (getauxval(AT_SECURE) != 0)
        return cli_fail(EXIT_USAGE, "it must not run setuid, setgid or with file capabilities");
    int status = run(&g, options, argc > 0 ? argc - 1 : 0, argv + 1);
    free(g.url);
    return status;
}
