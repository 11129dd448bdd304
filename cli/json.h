/* JSON for scripts: one object a line on stdout. Keys are ours; the writer puts the commas. */
#ifndef CLI_JSON_H
#define CLI_JSON_H

#include "cli.h"

struct cli_json {
    FILE *out;
    bool comma; /* the next value needs one before it */
};

/* '{' or '['; `key` NULL at the outermost and inside an array. */
void cli_json_open(struct cli_json *json, const char *key, char bracket);

/* '}' or ']'. */
void cli_json_close(struct cli_json *json, char bracket);

/* A name, note or other bytes of strangers: see cli_print_json_string(). */
void cli_json_bytes(struct cli_json *json, const char *key, const char *bytes, size_t len);

/* Our own prose; NULL is written as null. */
void cli_json_text(struct cli_json *json, const char *key, const char *text);

void cli_json_number(struct cli_json *json, const char *key, int64_t number);
void cli_json_bool(struct cli_json *json, const char *key, bool value);
void cli_json_null(struct cli_json *json, const char *key);

/* A span in milliseconds, null for HF_NEVER. */
void cli_json_span(struct cli_json *json, const char *key, int64_t ms);

/* A 64-bit generation as a string, since many readers of JSON round numbers; 0 as null. */
void cli_json_generation(struct cli_json *json, const char *key, uint64_t generation);

/* Ends the line after the outermost object. */
void cli_json_end(struct cli_json *json);

#endif
