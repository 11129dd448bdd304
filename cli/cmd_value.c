/* holdfast value NAME: what is kept beside a lock. Exit status 1 if that is nothing, or, with --live, if it
 * was not written by whoever holds the lock now. */
#include <string.h>

#include "cli.h"
#include "entry.h"

#include "base/banned.h"

static struct {
    bool live;
} given;

static const struct cli_option options[] = {
    {0, "live", CLI_FLAG, &given.live, NULL, NULL, 0, 0,
     "only if the present holder has written it"},
    {0},
};

struct value {
    const void *bytes;
    size_t len;
    uint64_t generation;
    int doubt;
    bool live;
};

static void print_json(const char *name, const struct value *v)
{
    struct cli_json json = {.out = stdout};

    cli_json_open(&json, NULL, '{');
    cli_json_bytes(&json, "name", name, strlen(name));
    if (v->generation != 0)
        cli_json_bytes(&json, "value", v->bytes, v->len);
    else
        cli_json_null(&json, "value");
    cli_json_generation(&json, "generation", v->generation);
    cli_json_bool(&json, "live", v->live);
    cli_json_bool(&json, "doubt", v->doubt);
    cli_json_close(&json, '}');
    cli_json_end(&json);
}

static int print(const struct cli *cli, const char *name, const struct value *v)
{
    bool there = v->len > 0 && (v->live || !given.live);

    if (cli->json) {
        print_json(name, v);
        return there ? 0 : EXIT_NOT_OBTAINED;
    }
    if (!there && cli->quiet)
        return EXIT_NOT_OBTAINED;
    if (!there && v->len == 0)
        return cli_fail(EXIT_NOT_OBTAINED, "'%s' has no value", name);
    if (!there)
        return cli_fail(EXIT_NOT_OBTAINED, "nobody who holds '%s' has written its value", name);
    fwrite(v->bytes, 1, v->len, stdout);
    putchar('\n');
    if (v->doubt && !cli->quiet)
        cli_fail(0, "the value of '%s' is in doubt: a holder that had opened it vanished", name);
    return 0;
}

static int run(struct cli *cli, int argc, char **argv)
{
    hf_query query = {.size = sizeof query, .name_len = HF_NTS, .value = 1};
    struct value v = {0};
    hf_client *client;
    hf_view *view;
    hf_error err = {0};

    if (!cli_check_operands(&cli_verb_value, argc, 1) || !cli_check_name("value", argv[0]))
        return EXIT_USAGE;
    int status = cli_open(cli, &client);
    if (status != 0)
        return status;
    query.name = argv[0];
    if (hf_inspect(client, &query, &view, &err) == HF_OK) {
        hf_view_value(view, &v.bytes, &v.len, &v.generation, &v.doubt);
        v.live = cli_value_is_live(view, v.generation);
        status = print(cli, argv[0], &v);
        hf_view_free(view);
    } else {
        status = cli_fail_error(&err);
    }
    hf_close(client);
    return status;
}

const struct cli_verb cli_verb_value = {
    .name = "value",
    .operands = "NAME",
    .summary = "Print what is kept beside a lock.",
    .options = options,
    .run = run,
};
