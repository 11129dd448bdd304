/* A JSON writer for our own objects. */
#include "json.h"

#include <inttypes.h>

#include "base/banned.h"

static void begin(struct cli_json *json, const char *key)
{
    if (json->comma)
        putc(',', json->out);
    json->comma = true;
    if (key != NULL)
        fprintf(json->out, "\"%s\":", key);
}

void cli_json_open(struct cli_json *json, const char *key, char bracket)
{
    begin(json, key);
    putc(bracket, json->out);
    json->comma = false;
}

void cli_json_close(struct cli_json *json, char bracket)
{
    putc(bracket, json->out);
    json->comma = true;
}

void cli_json_bytes(struct cli_json *json, const char *key, const char *bytes, size_t len)
{
    begin(json, key);
    cli_print_json_string(json->out, bytes, len);
}

void cli_json_text(struct cli_json *json, const char *key, const char *text)
{
    begin(json, key);
    if (text != NULL)
        cli_print_json_text(json->out, text);
    else
        fputs("null", json->out);
}

void cli_json_number(struct cli_json *json, const char *key, int64_t number)
{
    begin(json, key);
    fprintf(json->out, "%" PRId64, number);
}

void cli_json_bool(struct cli_json *json, const char *key, bool value)
{
    begin(json, key);
    fputs(value ? "true" : "false", json->out);
}

void cli_json_null(struct cli_json *json, const char *key)
{
    cli_json_text(json, key, NULL);
}

void cli_json_span(struct cli_json *json, const char *key, int64_t ms)
{
    if (ms == HF_NEVER)
        cli_json_null(json, key);
    else
        cli_json_number(json, key, ms);
}

void cli_json_generation(struct cli_json *json, const char *key, uint64_t generation)
{
    begin(json, key);
    if (generation != 0)
        fprintf(json->out, "\"%" PRIu64 "\"", generation);
    else
        fputs("null", json->out);
}

void cli_json_end(struct cli_json *json)
{
    putc('\n', json->out);
    json->comma = false;
}
