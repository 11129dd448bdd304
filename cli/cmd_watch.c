/* holdfast watch NAME: a line for each change of a lock, the first at once. A store that is away is told
 * and waited for: whoever watches wants to know what it says when it is back. Only if the first look
 * fails, the URL is more likely wrong than the store gone, and it ends. */
#include <inttypes.h>
#include <string.h>

#include "cli.h"
#include "entry.h"

#include "base/banned.h"

static int64_t interval_ms = HF_WATCH_DEFAULT_MS, count;
static bool with_value;

static const struct cli_option options[] = {
    {0, "interval", CLI_DURATION, &interval_ms, "DUR", NULL, 10, 3600000,
     "how often to look at the store (1s)"},
    {0, "count", CLI_NUMBER, &count, "N", NULL, 1, INT64_MAX, "end after N lines"},
    {0, "value", CLI_FLAG, &with_value, NULL, NULL, 0, 0,
     "with the value that the holder has written, and a line when it changes"},
    {0},
};

/* Of the present holder: whoever connects to what another one has written there finds nobody. */
static void print_value(FILE *out, const hf_view *view)
{
    const void *bytes;
    size_t len;
    uint64_t generation;

    if (hf_view_value(view, &bytes, &len, &generation, NULL) != HF_OK ||
        !cli_value_is_live(view, generation))
        return;
    fputs("; value ", out);
    cli_print_json_string(out, bytes, len);
}

static void json_value(struct cli_json *json, const hf_view *view)
{
    const void *bytes;
    size_t len;
    uint64_t generation;
    int doubt;

    if (hf_view_value(view, &bytes, &len, &generation, &doubt) != HF_OK)
        return;
    if (generation != 0)
        cli_json_bytes(json, "value", bytes, len);
    else
        cli_json_null(json, "value");
    cli_json_bool(json, "live", cli_value_is_live(view, generation));
    cli_json_bool(json, "doubt", doubt);
}

static void print_text(const hf_view *view)
{
    const hf_entry *holder = NULL, *e;
    size_t waiting = 0;
    char now[32];

    for (size_t i = 0; (e = hf_view_entry(view, i)) != NULL; i++) {
        waiting += e->place == HF_PLACE_WAITING;
        if (holder == NULL && e->place == HF_PLACE_INSIDE)
            holder = e;
    }
    cli_format_moment(0, now, sizeof now);
    printf("%s  ", now);
    if (!cli_print_holder(stdout, view))
        fputs("free", stdout);
    if (holder != NULL && holder->generation != 0)
        printf(", token %" PRIu64, holder->generation);
    if (waiting > 0)
        printf("; %zu wait%s", waiting, waiting == 1 ? "s" : "");
    print_value(stdout, view);
    putchar('\n');
}

static void print_view(const struct cli *cli, const char *name, const hf_view *view)
{
    struct cli_json json = {.out = stdout};
    struct cli_span all = {.view = view, .count = hf_view_count(view)};

    if (!cli->json) {
        print_text(view);
        return;
    }
    cli_json_open(&json, NULL, '{');
    cli_json_lock_fields(&json, name, strlen(name), &all, true);
    json_value(&json, view);
    cli_json_close(&json, '}');
    cli_json_end(&json);
}

static void print_error(const struct cli *cli, const char *name, const hf_error *err)
{
    struct cli_json json = {.out = stdout};

    if (!cli->json) {
        cli_fail(0, "%s; still watching", err->text);
        return;
    }
    cli_json_open(&json, NULL, '{');
    cli_json_bytes(&json, "name", name, strlen(name));
    cli_json_text(&json, "error", hf_code_name(err->code));
    cli_json_text(&json, "text", err->text);
    cli_json_close(&json, '}');
    cli_json_end(&json);
}

/* Until nobody reads, or enough was told; otherwise it ends by a signal. */
static int follow(const struct cli *cli, const char *name, hf_watch *watch)
{
    bool first = true, away = false;

    for (int64_t lines = 0; count == 0 || lines < count;) {
        hf_error err = {0};
        hf_view *view;
        if (hf_watch_next(watch, HF_FOREVER, &view, &err) == HF_OK) {
            print_view(cli, name, view);
            hf_view_free(view);
            lines++;
            away = first = false;
        } else if (first || !err.retriable) {
            return cli_fail_error(&err);
        } else if (!away) { /* once, however long it lasts */
            print_error(cli, name, &err);
            away = true;
        }
        int status = cli_finish(0);
        if (status != 0)
            return status;
    }
    return 0;
}

static int run(struct cli *cli, int argc, char **argv)
{
    hf_client *client;
    hf_watch *watch;
    hf_error err = {0};

    if (!cli_check_operands(&cli_verb_watch, argc, 1) || !cli_check_name("watch", argv[0]))
        return EXIT_USAGE;
    int status = cli_open(cli, &client);
    if (status != 0)
        return status;
    hf_query query = {
        .size = sizeof query, .name = argv[0], .name_len = strlen(argv[0]), .value = with_value};
    if (hf_watch_new(client, &query, interval_ms, &watch, &err) == HF_OK) {
        status = follow(cli, argv[0], watch);
        hf_watch_free(watch);
    } else {
        status = cli_fail_error(&err);
    }
    hf_close(client);
    return status;
}

const struct cli_verb cli_verb_watch = {
    .name = "watch",
    .operands = "NAME",
    .summary = "Print a line whenever the holder or the queue of a lock changes.",
    .options = options,
    .run = run,
};
