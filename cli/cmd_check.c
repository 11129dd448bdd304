/* holdfast check SEQUENCER: whether that very grant is live now. 0 current, 1 stale. */
#include <string.h>

#include "cli.h"
#include "json.h"

#include "base/banned.h"

static int tell(const struct cli *cli, const char *sequencer, bool current)
{
    struct cli_json json = {.out = stdout};

    if (cli->json) {
        cli_json_open(&json, NULL, '{');
        cli_json_text(&json, "sequencer", sequencer);
        cli_json_bool(&json, "current", current);
        cli_json_close(&json, '}');
        cli_json_end(&json);
    } else if (!cli->quiet) {
        puts(current ? "current" : "stale");
    }
    return current ? 0 : EXIT_NOT_OBTAINED;
}

static int run(struct cli *cli, int argc, char **argv)
{
    hf_error err = {0};
    hf_client *client;

    if (!cli_check_operands(&cli_verb_check, argc, 1))
        return EXIT_USAGE;
    int status = cli_open(cli, &client);
    if (status != 0)
        return status;
    int code = hf_check(client, argv[0], &err);
    if (code == HF_OK || code == HF_STALE)
        status = tell(cli, argv[0], code == HF_OK);
    else
        status = cli_fail_error(&err);
    hf_close(client);
    return status;
}

const struct cli_verb cli_verb_check = {
    .name = "check",
    .operands = "SEQUENCER",
    .summary = "Check whether the grant behind a sequencer is still current.",
    .run = run,
};
