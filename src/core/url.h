/* Store URLs and their options.
 *
 * scheme:rest?option=value&...  with percent-escapes. A store declares its options in one table,
 * from which they are parsed and checked, listed by `holdfast stores` and documented in
 * holdfast(7). */
#ifndef HF_CORE_URL_H
#define HF_CORE_URL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "holdfast.h"

enum hf__option_kind { HF__TEXT, HF__NUMBER, HF__DURATION, HF__SWITCH };

struct hf__option {
    const char *name;
    enum hf__option_kind kind;
    const char *preset; /* the default, as it would be written in a URL; NULL: none */
    int64_t min, max;   /* of NUMBER and DURATION (milliseconds); both 0: not checked */
    const char *help;   /* one line */
};

/* Options that every store takes (op_timeout, retain, ...). Ends with a NULL name, as all tables
 * do. */
extern const struct hf__option hf__common_options[];

struct hf__url {
    char *text;   /* as given, for opening an inner store; may hold a password: never print */
    char *scheme; /* lower case, without ':': "sqlite", "trace+sqlite" */
    char *user, *password; /* decoded; NULL if absent */
    char *host;            /* the authority without user info: "h1:1,h2:2"; "" if absent */
    char *path;            /* decoded; what follows the authority, or the scheme if there is none */
    struct hf__setting {
        char *name, *value;
    } * settings;
    size_t setting_count;
};

/* Errors: HF_INVALID with a sentence that says what to write instead, HF_NO_MEMORY. */
int hf__url_parse(const char *text, struct hf__url *ret_url, hf_error *err);
void hf__url_clear(struct hf__url *url);

/* The URL without its password, for messages. */
void hf__url_redact(const char *text, char *buf, size_t size);

/* Refuses options that are neither in `table` nor common, twice given, or out of range. */
int hf__url_check(const struct hf__url *url, const struct hf__option *table, hf_error *err);

/* The value of an option after hf__url_check(): as given, or its default. */
const char *hf__url_text(const struct hf__url *url, const struct hf__option *table,
                         const char *name);
int64_t hf__url_number(const struct hf__url *url, const struct hf__option *table, const char *name);
bool hf__url_switch(const struct hf__url *url, const struct hf__option *table, const char *name);

/* "250ms 30s 5m 2h 1d", bare numbers are seconds, fractions allowed; to milliseconds, rounded up.
 * False if it is not a duration or above a year. */
bool hf__parse_duration(const char *text, int64_t *ret_ms);

/* The shortest exact form: "1500ms", "30s", "2h". */
void hf__format_duration(int64_t ms, char *buf, size_t size);

#endif
