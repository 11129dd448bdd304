/* What a request asks for: the path, cut at its slashes and decoded, and the arguments behind '?'. A name is bytes, so
 * "%2F" and "%00" belong to it: nothing is decoded before it is cut. */
#ifndef SERVE_TARGET_H
#define SERVE_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TARGET_PARTS     6
#define TARGET_ARGUMENTS 8

struct bytes {
    const char *at; /* also ends in NUL */
    size_t len;
};

struct target {
    char *text; /* holds all of it */
    size_t part_count, argument_count;
    struct bytes parts[TARGET_PARTS];
    struct argument {
        struct bytes name, value;
    } arguments[TARGET_ARGUMENTS];
};

/* False: it is not a path of ours whatever it means (an escape that is none, too many parts, no memory). */
bool target_parse(const char *text, struct target *ret_target);
void target_clear(struct target *target);

/* The value of an argument, NULL if it is not there; the first if it is there twice. */
const struct bytes *target_argument(const struct target *target, const char *name);

bool bytes_are(const struct bytes *bytes, const char *text);

/* A decimal number of 0 to `max`, and nothing else. */
bool bytes_number(const struct bytes *bytes, int64_t max, int64_t *ret_number);

#endif
