/* holdfast setup: creates what the store needs, or prints it for somebody who may. */
#include <string.h>

#include "cli.h"
#include "core/url.h"
#include "json.h"

#include "util/banned.h"

static bool print;

static const struct cli_option options[] = {
    {0, "print", CLI_FLAG, &print, NULL, NULL, 0, 0, "only print what would be created"},
    {0},
};

/* Looking for the store of a scheme among those of the installation. */
struct search {
    const char *scheme;
    size_t len;
    bool found, json;
};

/* Whether "sqlite:" is among "redis:// rediss://". */
static bool has_scheme(const char *schemes, const char *scheme, size_t len)
{
    while (*schemes != '\0') {
        size_t n = strcspn(schemes, ":/, ");
        if (n == len && memcmp(schemes, scheme, len) == 0)
            return true;
        schemes += n + strcspn(schemes + n, " ,");
        schemes += strspn(schemes, " ,");
    }
    return false;
}

static void print_ddl(const hf_store_info *info, void *arg)
{
    struct search *search = arg;
    struct cli_json json = {.out = stdout};

    if (search->found || !has_scheme(info->schemes, search->scheme, search->len))
        return;
    search->found = true;
    if (search->json) {
        cli_json_open(&json, NULL, '{');
        cli_json_text(&json, "store", info->name);
        cli_json_text(&json, "ddl", info->ddl);
        cli_json_close(&json, '}');
        cli_json_end(&json);
    } else if (info->ddl != NULL) {
        printf("%s%s", info->ddl, info->ddl[strlen(info->ddl) - 1] == '\n' ? "" : "\n");
    } else {
        printf("# %s needs nothing\n", info->name);
    }
}

/* Asks for the whole scheme, then without its first wrapper: trace+sqlite is sqlite. */
static int print_setup(const struct cli *cli)
{
    struct search search = {.scheme = cli->url != NULL ? cli->url : "sqlite", .json = cli->json};
    const char *plus;

    for (;;) {
        search.len = strcspn(search.scheme, ":");
        hf_stores(print_ddl, &search);
        plus = memchr(search.scheme, '+', search.len);
        if (search.found || plus == NULL)
            break;
        search.scheme = plus + 1;
    }
    if (search.found)
        return 0;
    return cli_fail(EXIT_STORE, "there is no store for '%.*s:'; see 'holdfast stores'",
                    (int)search.len, search.scheme);
}

static void tell(const struct cli *cli)
{
    struct cli_json json = {.out = stdout};
    char url[512];

    hf__url_redact(cli->url != NULL ? cli->url : "the embedded store", url, sizeof url);
    if (cli->json) {
        cli_json_open(&json, NULL, '{');
        cli_json_text(&json, "url", cli->url != NULL ? url : NULL);
        cli_json_bool(&json, "ready", true);
        cli_json_close(&json, '}');
        cli_json_end(&json);
    } else if (!cli->quiet) {
        cli_print_text(stdout, url);
        puts(" is ready");
    }
}

static int run(struct cli *cli, int argc, char **argv)
{
    hf_error err = {0};
    hf_client *client;

    (void)argv;
    if (!cli_check_operands(&cli_verb_setup, argc, 0))
        return EXIT_USAGE;
    if (print)
        return print_setup(cli);
    int status = cli_open(cli, &client);
    if (status != 0)
        return status;
    if (hf_setup(client, &err) == HF_OK)
        tell(cli);
    else
        status = cli_fail_error(&err);
    hf_close(client);
    return status;
}

const struct cli_verb cli_verb_setup = {
    .name = "setup",
    .operands = "",
    .summary = "Create what the store needs.",
    .options = options,
    .run = run,
};
