/* holdfast stores [NAME]: which stores this installation knows, what each can do, and why one
 * cannot be used. */
#include <stdlib.h>
#include <string.h>

#include "capability.h"
#include "cli.h"
#include "json.h"

#include "base/banned.h"

struct listing {
    const struct cli *cli;
    const char *only; /* NULL: all */
    bool found;
};

static void print_json_schemes(struct cli_json *json, const char *schemes)
{
    char *list = strdup(schemes), *rest = list, *scheme;

    cli_json_open(json, "schemes", '[');
    while (rest != NULL && (scheme = strsep(&rest, " ")) != NULL)
        cli_json_text(json, NULL, scheme);
    cli_json_close(json, ']');
    free(list);
}

/* "name=default  help" */
static void print_json_option(struct cli_json *json, char *line)
{
    char *help = strstr(line, "  "), *preset = strchr(line, '=');

    if (help == NULL || preset == NULL || preset > help)
        return;
    *preset++ = '\0';
    *help = '\0';
    cli_json_open(json, NULL, '{');
    cli_json_text(json, "name", line);
    cli_json_text(json, "default", preset[0] != '\0' ? preset : NULL);
    cli_json_text(json, "help", help + 2);
    cli_json_close(json, '}');
}

static void print_json_options(struct cli_json *json, const char *options)
{
    char *list = strdup(options != NULL ? options : ""), *rest = list, *line;

    cli_json_open(json, "options", '[');
    while (rest != NULL && (line = strsep(&rest, "\n")) != NULL)
        print_json_option(json, line);
    cli_json_close(json, ']');
    free(list);
}

static void print_json(const hf_store_info *info)
{
    struct cli_json json = {.out = stdout};

    cli_json_open(&json, NULL, '{');
    cli_json_text(&json, "name", info->name);
    print_json_schemes(&json, info->schemes);
    cli_json_text(&json, "summary", info->summary);
    cli_json_bool(&json, "usable", info->missing == NULL);
    cli_json_text(&json, "missing", info->missing);
    if (info->capabilities != 0 || info->missing != NULL)
        cli_json_capabilities(&json, "capabilities", info->capabilities);
    else
        cli_json_null(&json, "capabilities"); /* those of the store behind it */
    print_json_options(&json, info->options);
    cli_json_close(&json, '}');
    cli_json_end(&json);
}

static void print_capabilities(const char *title, uint32_t wanted)
{
    const struct cli_capability *c;

    if (wanted == 0)
        return;
    printf("  %-9s", title);
    for (size_t i = 0; (c = cli_capability_at(i)) != NULL; i++) {
        if (wanted & c->bit)
            printf(" %s", c->name);
    }
    putchar('\n');
}

static uint32_t all_capabilities(void)
{
    const struct cli_capability *c;
    uint32_t all = 0;

    for (size_t i = 0; (c = cli_capability_at(i)) != NULL; i++)
        all |= c->bit;
    return all;
}

/* The library gives one option a line. */
static void print_options(const char *options)
{
    while (options != NULL && *options != '\0') {
        size_t len = strcspn(options, "\n");
        printf("  %-9s %.*s\n", "option", (int)len, options);
        options += len + (options[len] == '\n');
    }
}

static void print_store(const struct listing *listing, const hf_store_info *info)
{
    const struct cli *cli = listing->cli;

    printf("%s%s%s  %s  %s\n", cli_paint(cli, PAINT_BOLD), info->name, cli_paint(cli, PAINT_NONE),
           info->schemes, info->summary);
    if (info->missing != NULL)
        printf("  %s%-9s %s%s\n", cli_paint(cli, PAINT_YELLOW), "missing", info->missing,
               cli_paint(cli, PAINT_NONE));
    print_capabilities("can", info->capabilities);
    if (info->missing == NULL && info->capabilities == 0)
        puts("  can       what the store behind it can");
    else if (info->missing == NULL)
        print_capabilities("cannot", all_capabilities() & ~info->capabilities);
    if (listing->only != NULL)
        print_options(info->options);
}

/* Whether `wanted` is the store's name or one of its schemes: "rediss" of "redis: rediss:". */
static bool is_called(const hf_store_info *info, const char *wanted)
{
    size_t len = strlen(wanted);

    if (strcmp(wanted, info->name) == 0)
        return true;
    for (const char *s = info->schemes; *s != '\0'; s += strspn(s, " ")) {
        size_t n = strcspn(s, " ");
        if (n == len + 1 && memcmp(s, wanted, len) == 0)
            return true;
        s += n;
    }
    return false;
}

static void found(const hf_store_info *info, void *arg)
{
    struct listing *listing = arg;

    if (listing->only != NULL && !is_called(info, listing->only))
        return;
    listing->found = true;
    if (listing->cli->json)
        print_json(info);
    else
        print_store(listing, info);
}

static int run(struct cli *cli, int argc, char **argv)
{
    struct listing listing = {.cli = cli, .only = argc > 0 ? argv[0] : NULL};

    if (argc > 1)
        return cli_fail_usage("stores", "there are too many operands");
    int code = hf_stores(found, &listing);
    if (code != HF_OK)
        return cli_fail(hf_code_exit_status(code), "%s", hf_code_text(code));
    if (listing.only != NULL && !listing.found)
        return cli_fail(EXIT_STORE, "there is no store '%s'; 'holdfast stores' lists them",
                        listing.only);
    return 0;
}

const struct cli_verb cli_verb_stores = {
    .name = "stores",
    .operands = "[STORE]",
    .summary = "List the stores, what each can do, and why one is missing.",
    .no_store = true,
    .run = run,
};
