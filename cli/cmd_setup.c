/* holdfast setup: creates what the store needs, or prints it for somebody who may. */
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "core/registry.h"
#include "json.h"

#include "base/banned.h"

static bool print;

static const struct cli_option options[] = {
    {0, "print", CLI_FLAG, &print, NULL, NULL, 0, 0, "only print what would be created"},
    {0},
};

static int print_setup(const struct cli *cli)
{
    struct cli_json json = {.out = stdout};
    const char *store;
    char *text;
    hf_error err = {0};

    if (hf__setup_text(cli->url, &store, &text, &err) != HF_OK)
        return cli_fail_error(&err);
    if (cli->json) {
        cli_json_open(&json, NULL, '{');
        cli_json_text(&json, "store", store);
        cli_json_text(&json, "ddl", text);
        cli_json_close(&json, '}');
        cli_json_end(&json);
    } else if (text != NULL) {
        printf("%s%s", text, text[strlen(text) - 1] == '\n' ? "" : "\n");
    } else {
        printf("# %s needs nothing\n", store);
    }
    free(text);
    return 0;
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
    .summary = "Create the tables or directories that the store needs.",
    .options = options,
    .run = run,
};
