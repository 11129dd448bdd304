/* What is answered: a status, and a text that was written somewhere else than on the loop, mostly. */
#ifndef SERVE_REPLY_H
#define SERVE_REPLY_H

#include "cli/json.h"
#include "holdfast.h"

struct reply {
    unsigned status;  /* of HTTP; 0: there is none yet */
    const char *type; /* Content-Type; static */
    char *text;       /* to be freed; NULL: `fixed` */
    const char *fixed;
    size_t len;
};

#define REPLY_JSON "application/json"

/* Begins a JSON text in `writer`. False: out of memory, and the reply says so. */
struct reply_writer {
    struct cli_json json;
    struct reply *reply;
};
bool reply_begin(struct reply *reply, unsigned status, struct reply_writer *writer);

/* Ends it. */
void reply_end(struct reply_writer *writer);

/* The object of an error, as it stands in replies and in streams, with its key. */
void reply_json_error(struct cli_json *json, const char *key, const hf_error *err);

/* {"error": ...} with the status of HTTP that belongs to the code. */
void reply_error(struct reply *reply, const hf_error *err);

/* The same for what only the server refuses, with a status of its own. */
void reply_refuse(struct reply *reply, unsigned status, int code, const char *text);

/* The status of HTTP for an error of the library. */
unsigned reply_status_of(int code);

void reply_clear(struct reply *reply);

#endif
