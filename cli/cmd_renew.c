/* holdfast renew NAME --ticket T: restarts the lease of what `lock` took. */
#include "adopted_lock.h"
#include "cli.h"

#include "base/banned.h"

static const char *ticket, *ticket_file;

static const struct cli_option options[] = {
    {0, "ticket", CLI_TEXT, &ticket, "T", NULL, 0, 0, "the ticket that 'lock' printed"},
    {0, "ticket-file", CLI_TEXT, &ticket_file, "FILE", NULL, 0, 0,
     "a file whose first line is the ticket; -: standard input"},
    {0},
};

/* Taking it over has restarted the lease; letting go of the handle leaves it in the store. */
static int leave(const struct cli *cli, hf_lock *lock)
{
    hf_error err = {0};
    int status = cli_print_grant(cli, lock);

    if (hf_lock_detach(lock, &err) == HF_OK)
        return status;
    hf_lock_release(lock, NULL); /* it is lost: only the handle is left to be freed */
    return cli_fail_error(&err);
}

static int run(struct cli *cli, int argc, char **argv)
{
    hf_client *client;
    hf_lock *lock;

    if (!cli_check_operands(&cli_verb_renew, argc, 1) || !cli_check_name("renew", argv[0]) ||
        !cli_take_ticket("renew", &ticket, ticket_file))
        return EXIT_USAGE;
    int status = cli_adopt(cli, argv[0], ticket, &client, &lock);
    if (status != 0)
        return status;
    status = leave(cli, lock);
    hf_close(client);
    return status;
}

const struct cli_verb cli_verb_renew = {
    .name = "renew",
    .operands = "NAME --ticket T",
    .summary = "Restart the lease of a lock that 'lock' took.",
    .options = options,
    .run = run,
};
