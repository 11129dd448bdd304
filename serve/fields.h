/* The body of a request: one JSON object, whose fields are known. */
#ifndef SERVE_FIELDS_H
#define SERVE_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "holdfast.h"

enum field_kind {
    FIELD_TEXT,   /* char *, to be freed; needs `value` to be NULL before */
    FIELD_NUMBER, /* int64_t from min to max */
    FIELD_SPAN,   /* the same in milliseconds, and null for -1: never, or for ever */
    FIELD_FLAG,   /* bool */
    FIELD_CHOICE, /* int: index into `choices`, "a|b" */
};

struct field {
    const char *name; /* NULL ends the list */
    enum field_kind kind;
    void *value; /* left alone if the field is not there */
    int64_t min, max;
    const char *choices;
    bool required;
};

/* An empty body is an empty object. HF_INVALID with a sentence: it is not JSON, not an object, or has a field that is not
 * known or not what it should be. HF_NO_MEMORY. */
int fields_read(const char *body, size_t len, const struct field *fields, hf_error *err);

#endif
