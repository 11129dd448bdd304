/* holdfast break NAME --ticket T: takes a lock away from somebody. By ticket, so that what is
 * broken is the holder that was seen, not the one that came after it; and it says whom it hit. */
#include <string.h>
#include <strings.h>

#include "cli.h"
#include "entry.h"

#include "base/banned.h"

static const char *ticket, *ticket_file;
static char whole[HF_TICKET_SIZE];
static bool now;

static const struct cli_option options[] = {
    {0, "ticket", CLI_TEXT, &ticket, "T", NULL, 0, 0,
     "the ticket of the holder, or its first digits; see 'show'"},
    {0, "ticket-file", CLI_TEXT, &ticket_file, "FILE", NULL, 0, 0,
     "a file whose first line is the ticket; -: standard input"},
    {0, "now", CLI_FLAG, &now, NULL, NULL, 0, 0,
     "do not wait for the lease to end; the holder may still work"},
    {0},
};

static void tell(const char *name, const hf_entry *was, const hf_entry *is)
{
    fputs("broken: ", stdout);
    if (was != NULL)
        cli_print_who(stdout, was);
    else
        cli_print_text(stdout, ticket);
    if (was != NULL && was->place == HF_PLACE_WAITING) {
        puts(" has lost its place in the queue; if it still wants the lock, it goes to the end");
        return;
    }
    fputs(" no longer holds '", stdout);
    cli_print_name(stdout, name, strlen(name));
    putchar('\'');
    if (is != NULL) {
        fputs("; it stays closed for ", stdout);
        cli_print_duration(stdout, is->remaining_ms);
    }
    putchar('\n');
}

static void tell_json(const char *name, const hf_entry *was, const hf_entry *is)
{
    struct cli_json json = {.out = stdout};

    cli_json_open(&json, NULL, '{');
    cli_json_bytes(&json, "name", name, strlen(name));
    cli_json_text(&json, "ticket", ticket);
    cli_json_bool(&json, "now", now);
    cli_json_number(&json, "closed_ms", is != NULL ? is->remaining_ms : 0);
    if (was != NULL)
        cli_json_entry(&json, "was", was);
    else
        cli_json_null(&json, "was");
    cli_json_close(&json, '}');
    cli_json_end(&json);
}

/* It was broken, whatever can be told about it. */
static void report(const struct cli *cli, hf_client *client, const char *name,
                   const hf_view *before)
{
    const hf_entry *was = cli_find_ticket(before, ticket), *is = NULL;
    hf_view *after = NULL;

    if (cli_look(client, name, &after) == 0)
        is = cli_find_ticket(after, ticket);
    if (cli->json)
        tell_json(name, was, is);
    else if (!cli->quiet)
        tell(name, was, is);
    hf_view_free(after);
}

/* A prefix will do if it is that of one holder or waiter only: what is broken is what was seen. */
static int find_whole_ticket(const hf_view *view)
{
    size_t len = strlen(ticket), count = 0;
    const hf_entry *e, *found = NULL;

    if (len == HF_TICKET_SIZE - 1)
        return 0;
    for (size_t i = 0; (e = hf_view_entry(view, i)) != NULL; i++) {
        if (strncasecmp(e->ticket, ticket, len) == 0) {
            found = e;
            count++;
        }
    }
    if (count > 1)
        return cli_fail_usage("break", "%zu tickets begin with '%s'; write more of it", count,
                              ticket);
    if (count == 0)
        return cli_fail(EXIT_NOT_OBTAINED, "no ticket begins with '%s'", ticket);
    memcpy(whole, found->ticket, sizeof whole);
    ticket = whole;
    return 0;
}

static int break_it(const struct cli *cli, hf_client *client, const char *name)
{
    hf_error err = {0};
    hf_view *before = NULL;
    int status = cli_look(client, name, &before);

    if (status == 0)
        status = find_whole_ticket(before);
    if (status != 0) {
        hf_view_free(before);
        return status;
    }
    if (hf_break(client, name, HF_NTS, ticket, now, &err) == HF_OK)
        report(cli, client, name, before);
    else
        status = cli_fail_error(&err);
    hf_view_free(before);
    return status;
}

static int run(struct cli *cli, int argc, char **argv)
{
    hf_client *client;

    if (!cli_check_operands(&cli_verb_break, argc, 1) || !cli_check_name("break", argv[0]) ||
        !cli_take_ticket_prefix("break", &ticket, ticket_file))
        return EXIT_USAGE;
    int status = cli_open(cli, &client);
    if (status != 0)
        return status;
    status = break_it(cli, client, argv[0]);
    hf_close(client);
    return status;
}

const struct cli_verb cli_verb_break = {
    .name = "break",
    .operands = "NAME --ticket T",
    .summary = "Take a lock away from its holder, or remove a waiter.",
    .options = options,
    .run = run,
};
