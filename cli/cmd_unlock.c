/* holdfast unlock NAME --ticket T: gives back what `lock` took. */
#include "adopted_lock.h"
#include "cli.h"
#include "json.h"

#include <string.h>

#include "base/banned.h"

static const char *ticket, *ticket_file;

static const struct cli_option options[] = {
    {0, "ticket", CLI_TEXT, &ticket, "T", NULL, 0, 0, "the ticket that 'lock' printed"},
    {0, "ticket-file", CLI_TEXT, &ticket_file, "FILE", NULL, 0, 0,
     "a file whose first line is the ticket; -: standard input"},
    {0},
};

static void tell(const char *name)
{
    struct cli_json json = {.out = stdout};

    cli_json_open(&json, NULL, '{');
    cli_json_bytes(&json, "name", name, strlen(name));
    cli_json_text(&json, "ticket", ticket);
    cli_json_bool(&json, "released", true);
    cli_json_close(&json, '}');
    cli_json_end(&json);
}

static int run(struct cli *cli, int argc, char **argv)
{
    hf_error err = {0};
    hf_client *client;
    hf_lock *lock;

    if (!cli_check_operands(&cli_verb_unlock, argc, 1) || !cli_check_name("unlock", argv[0]) ||
        !cli_take_ticket("unlock", &ticket, ticket_file))
        return EXIT_USAGE;
    int status = cli_adopt(cli, argv[0], ticket, &client, &lock);
    if (status != 0)
        return status;
    if (hf_lock_release(lock, &err) != HF_OK)
        status = cli_fail_error(&err);
    else if (cli->json)
        tell(argv[0]);
    hf_close(client);
    return status;
}

const struct cli_verb cli_verb_unlock = {
    .name = "unlock",
    .operands = "NAME --ticket T",
    .summary = "Release a lock that 'lock' took.",
    .options = options,
    .run = run,
};
