/* What a verb checks before its first request: operands, names, tickets, and the store's door.
 * Wrong input is found here, before a store is opened, so that it leaves nothing behind. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/secret.h"
#include "cli.h"
#include "core/registry.h"

#include "base/banned.h"

/* Whoever is used to flock(1) expects that root and a user who name the same lock exclude each other:
 * told once, when the user's own store is made. */
static void tell_of_own_store(const struct cli *cli)
{
    char *url = NULL;

    if (cli->url != NULL || cli->quiet || geteuid() == 0 || !isatty(STDERR_FILENO) ||
        hf__embedded_url(&url, NULL) != HF_OK)
        return;
    const char *path = strchr(url, ':') + 1;
    if (access(path, F_OK) != 0)
        fprintf(
            stderr,
            "holdfast: your locks are in %s; other users have their own. To share them, name one "
            "file for all: -u 'sqlite:/path/locks.db?group=NAME'\n",
            path);
    free(url);
}

int cli_open(const struct cli *cli, hf_client **ret_client)
{
    static const hf_client_options options = {.size = sizeof options, .program = "holdfast"};
    hf_error err = {0};

    /* A limit on the size of files becomes an error of the store, which has a sentence. */
    signal(SIGXFSZ, SIG_IGN);
    tell_of_own_store(cli);
    if (hf_open(cli->url, &options, ret_client, &err) != HF_OK)
        return cli_fail_error(&err);
    return 0;
}

int cli_refuse_process_store(void)
{
    return cli_fail(EXIT_USAGE,
                    "this store's locks exclude nobody outside this process; use another store");
}

bool cli_check_operands(const struct cli_verb *verb, int argc, int wanted)
{
    if (argc == wanted)
        return true;
    if (argc < wanted)
        cli_fail_usage(verb->name, "'%s' needs %s", verb->name, verb->operands);
    else
        cli_fail_usage(verb->name, "there are too many operands");
    return false;
}

bool cli_check_name(const char *verb, const char *name)
{
    size_t len = strlen(name);

    if (len >= 1 && len <= HF_NAME_MAX)
        return true;
    cli_fail_usage(verb, "a lock's name has 1 to %d bytes, this one has %zu", HF_NAME_MAX, len);
    return false;
}

#define PREFIX_LEAST 4

static bool is_ticket(const char *text, bool prefix)
{
    size_t len = strlen(text);

    return strspn(text, "0123456789abcdefABCDEF") == len && len < HF_TICKET_SIZE &&
           len >= (prefix ? PREFIX_LEAST : HF_TICKET_SIZE - 1);
}

/* What stands in a file is not shown: it may be the wrong one. */
static bool read_ticket(const char *verb, const char *file, bool prefix, const char **ticket)
{
    struct hf__secret_source from = {.file = file, .file_name = "--ticket-file"};
    hf_error err = {0};
    char *text;

    if (strcmp(file, "-") == 0)
        from.stream = stdin;
    if (hf__secret_read(&from, &text, &err) != HF_OK) {
        cli_fail_usage(verb, "%s", err.text);
        return false;
    }
    *ticket = text; /* until the end */
    if (is_ticket(text, prefix))
        return true;
    cli_fail_usage(verb, "a ticket has 32 hexadecimal digits, the first line of '%s' has not",
                   file);
    return false;
}

static bool take_ticket(const char *verb, const char *file, bool prefix, const char **ticket)
{
    if (*ticket != NULL && file != NULL) {
        cli_fail_usage(verb, "choose one of --ticket and --ticket-file");
        return false;
    }
    if (file != NULL)
        return read_ticket(verb, file, prefix, ticket);
    if (*ticket == NULL) {
        cli_fail_usage(
            verb, "'%s' needs --ticket or --ticket-file, as 'lock' printed it or 'show' tells it",
            verb);
        return false;
    }
    if (is_ticket(*ticket, prefix))
        return true;
    cli_fail_usage(verb, "a ticket has 32 hexadecimal digits, not '%s'%s", *ticket,
                   prefix ? "; the first four will do if no other begins like them" : "");
    return false;
}

bool cli_take_ticket(const char *verb, const char **ticket, const char *file)
{
    return take_ticket(verb, file, false, ticket);
}

bool cli_take_ticket_prefix(const char *verb, const char **ticket, const char *file)
{
    return take_ticket(verb, file, true, ticket);
}
