/* A lock that stays when the command ends: it lives in the store, and its ticket is all that is
 * left. */
#include "adopted_lock.h"

#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "json.h"

#include "base/banned.h"

int cli_adopt(const struct cli *cli, const char *name, const char *ticket, hf_client **ret_client,
              hf_lock **ret_lock)
{
    hf_options options = {.size = sizeof options, .by_hand = 1, .ttl_ms = HF_TTL_DEFAULT_MS};
    hf_error err = {0};
    char shown[CLI_NAME_SHOWN];
    int status = cli_open(cli, ret_client);

    if (status != 0)
        return status;
    int code = hf_adopt(*ret_client, name, HF_NTS, ticket, &options, ret_lock, &err);
    if (code == HF_OK)
        return 0;
    if (code == HF_STALE)
        status = cli_fail(EXIT_NOT_OBTAINED, "'%s' is not, or no longer, held by this ticket",
                          hf__printable(name, strlen(name), shown, sizeof shown));
    else
        status = cli_fail_error(&err);
    hf_close(*ret_client);
    return status;
}

static void print_json(const hf_lock *lock, const char *sequencer, int64_t remaining_ms,
                       const char *until)
{
    struct cli_json json = {.out = stdout};
    uint64_t generation = 0;
    size_t len;
    const char *name = hf_lock_name(lock, &len);

    hf_lock_generation(lock, &generation);
    cli_json_open(&json, NULL, '{');
    cli_json_bytes(&json, "name", name, len);
    cli_json_text(&json, "ticket", hf_lock_ticket(lock));
    cli_json_generation(&json, "generation", generation);
    cli_json_text(&json, "sequencer", sequencer);
    cli_json_span(&json, "remaining_ms", remaining_ms == INT64_MAX ? HF_NEVER : remaining_ms);
    cli_json_text(&json, "until", until);
    cli_json_close(&json, '}');
    cli_json_end(&json);
}

static void print_lines(const hf_lock *lock, const char *sequencer, int64_t remaining_ms,
                        const char *until)
{
    printf("sequencer  %s\n", sequencer != NULL ? sequencer : "-");
    printf("ticket     %s\n", hf_lock_ticket(lock));
    if (until == NULL) {
        puts("until      it is unlocked or broken; it never expires");
        return;
    }
    printf("until      %s, for ", until);
    cli_print_duration(stdout, remaining_ms);
    putchar('\n');
}

int cli_print_grant(const struct cli *cli, const hf_lock *lock)
{
    char text[HF_SEQUENCER_MAX], when[32];
    int64_t remaining_ms = hf_lock_remaining_ms(lock);
    const char *sequencer = hf_lock_sequencer(lock, text, sizeof text) == HF_OK ? text : NULL;
    const char *until = NULL;

    if (remaining_ms != INT64_MAX) {
        cli_format_moment(remaining_ms, when, sizeof when);
        until = when;
    }
    if (cli->json)
        print_json(lock, sequencer, remaining_ms, until);
    else if (cli->quiet)
        puts(hf_lock_ticket(lock));
    else
        print_lines(lock, sequencer, remaining_ms, until);
    return cli_finish(0);
}
