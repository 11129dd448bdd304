/* GET .../history: the trail that the store keeps, where clients write one (the URL option history=N). */
#include "cli/trail.h"
#include "routes.h"
#include "server.h"

#include "base/banned.h"

#define MOMENT_MAX_MS (INT64_C(253402300800) * 1000) /* the year 10000 */

/* The name that was asked for, or the prefix. */
static bool read_names(const struct target *target, hf_history_query *query)
{
    const struct bytes *name = target_argument(target, "name"),
                       *prefix = target_argument(target, "prefix");

    if (name != NULL && (prefix != NULL || name->len == 0 || name->len > HF_NAME_MAX))
        return false;
    if (name != NULL) {
        query->name = name->at;
        query->name_len = name->len;
    } else if (prefix != NULL && prefix->len > 0) {
        query->prefix = prefix->at;
        query->prefix_len = prefix->len;
    }
    return query->prefix_len <= HF_NAME_MAX;
}

static bool read_query(const struct target *target, hf_history_query *query)
{
    const struct {
        const char *name;
        int64_t max, *number;
    } numbers[] = {
        {"since_ms", MOMENT_MAX_MS, &query->since_ms},
        {"until_ms", MOMENT_MAX_MS, &query->until_ms},
        {"at_ms", MOMENT_MAX_MS, &query->at_ms},
        {"limit", HF_TRAIL_MAX, &query->limit},
    };

    *query = (hf_history_query){.size = sizeof *query};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        const struct bytes *given = target_argument(target, numbers[i].name);
        if (given != NULL && !bytes_number(given, numbers[i].max, numbers[i].number))
            return false;
    }
    return (query->at_ms == 0 || (query->since_ms == 0 && query->until_ms == 0)) &&
           read_names(target, query);
}

static void write_trail(struct reply *reply, const hf_trail *trail)
{
    struct reply_writer writer;
    const hf_trail_entry *e;

    if (!reply_begin(reply, 200, &writer))
        return;
    cli_json_open(&writer.json, NULL, '{');
    cli_json_open(&writer.json, "history", '[');
    for (size_t i = 0; (e = hf_trail_entry_at(trail, i)) != NULL; i++)
        cli_json_trail_entry(&writer.json, e);
    cli_json_close(&writer.json, ']');
    cli_json_close(&writer.json, '}');
    reply_end(&writer);
}

static void show_history(struct request *request)
{
    hf_history_query query;
    hf_error err = {0};
    hf_trail *trail;

    read_query(&request->target, &query);
    if (hf_history(request->store->client, &query, &trail, &err) != HF_OK) {
        reply_error(&request->reply, &err);
        return;
    }
    write_trail(&request->reply, trail);
    hf_trail_free(trail);
}

void history_read(struct request *request)
{
    hf_history_query query;

    if (read_query(&request->target, &query))
        request_work(request, show_history);
    else
        reply_refuse(&request->reply, 400, HF_INVALID,
                     "name or prefix have at most 512 bytes, since_ms and until_ms, or at_ms, are "
                     "milliseconds since 1970, and limit is at most 100000");
}
