/* holdfast gc: removes the records of locks that nobody has touched for long. */
#include <inttypes.h>

#include "cli.h"
#include "json.h"

#include "base/banned.h"

static int64_t retain_ms;

static const struct cli_option options[] = {
    {0, "retain", CLI_DURATION, &retain_ms, "DUR", NULL, 1, INT64_C(366) * 86400000,
     "keep locks used within this time (the store's own: 30d)"},
    {0},
};

static void tell(const struct cli *cli, uint64_t count)
{
    struct cli_json json = {.out = stdout};

    if (cli->json) {
        cli_json_open(&json, NULL, '{');
        cli_json_number(&json, "removed", (int64_t)count);
        cli_json_close(&json, '}');
        cli_json_end(&json);
    } else if (!cli->quiet) {
        printf("removed %" PRIu64 " idle record%s\n", count, count == 1 ? "" : "s");
    }
}

static int run(struct cli *cli, int argc, char **argv)
{
    hf_error err = {0};
    hf_client *client;
    uint64_t count = 0, removed = 1;

    (void)argv;
    if (!cli_check_operands(&cli_verb_gc, argc, 0))
        return EXIT_USAGE;
    int status = cli_open(cli, &client);
    if (status != 0)
        return status;
    for (; removed > 0 && status == 0; count += removed) {
        if (hf_purge(client, retain_ms, &removed, &err) != HF_OK) {
            removed = 0;
            status = cli_fail_error(&err);
        }
    }
    if (status == 0)
        tell(cli, count);
    hf_close(client);
    return status;
}

const struct cli_verb cli_verb_gc = {
    .name = "gc",
    .operands = "",
    .summary = "Remove the records of locks that nobody uses.",
    .options = options,
    .run = run,
};
