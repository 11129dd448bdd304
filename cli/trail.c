/* See trail.h. */
#include "trail.h"

#include <string.h>

#include "cli.h"
#include "moment.h"

#include "base/banned.h"

static void json_span(struct cli_json *json, const char *key, bool has, int64_t ms)
{
    if (has)
        cli_json_number(json, key, ms);
    else
        cli_json_null(json, key);
}

void cli_json_trail_entry(struct cli_json *json, const hf_trail_entry *e)
{
    bool waited = e->kind == HF_TRAIL_GRANTED || e->generation == 0;
    char when[40];

    cli_format_utc(e->at_ms, when, sizeof when);
    cli_json_open(json, NULL, '{');
    cli_json_text(json, "at", when);
    cli_json_number(json, "at_ms", e->at_ms);
    cli_json_bytes(json, "name", e->name, e->name_len);
    cli_json_text(json, "what", hf_trail_kind_name(e->kind));
    cli_json_text(json, "mode", e->mode == HF_SHARED ? "shared" : "exclusive");
    cli_json_text(json, "ticket", e->ticket);
    cli_json_generation(json, "generation", e->generation);
    json_span(json, "held_ms", !waited, e->held_ms);
    json_span(json, "waited_ms", waited, e->waited_ms);
    cli_json_bytes(json, "host", e->host, strlen(e->host));
    cli_json_bytes(json, "user", e->user, strlen(e->user));
    cli_json_number(json, "pid", e->pid);
    cli_json_bytes(json, "program", e->program, strlen(e->program));
    cli_json_bytes(json, "note", e->note, strlen(e->note));
    if (e->cause[0] != '\0')
        cli_json_bytes(json, "cause", e->cause, strlen(e->cause));
    else
        cli_json_null(json, "cause");
    cli_json_close(json, '}');
}
