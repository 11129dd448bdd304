/* Store URLs and their options.
 *
 * scheme:rest?option=value&...  with percent-escapes. The rest is a path (sqlite:/var/locks.db), or
 * begins with "//" and an authority (memory://name, redis://user:password@h1:6379,h2:6379/0). There
 * are no fragments: '#' is a byte like others, and '+' is not a blank. A store declares its options
 * in one table, from which they are parsed and checked, listed by `holdfast stores` and documented
 * in holdfast(7). */
#ifndef HF_BASE_URL_H
#define HF_BASE_URL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/duration.h"
#include "holdfast.h"

#define HF__URL_MAX      4096  /* bytes in a URL */
#define HF__SETTINGS_MAX 64    /* options in a URL */
#define HF__HISTORY_MAX  10000 /* bids in the trail of a lock */

enum hf__option_kind { HF__OPTION_TEXT, HF__OPTION_NUMBER, HF__OPTION_DURATION, HF__OPTION_SWITCH };

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
    const struct hf__option *options; /* the table of its store, after hf__url_check() */
};

/* Errors: HF_INVALID with a sentence that says what to write instead, HF_NO_MEMORY. */
int hf__url_parse(const char *text, struct hf__url *ret_url, hf_error *err);
void hf__url_clear(struct hf__url *url);

/* Whether this host ("h", "h:port", "[address]", "[address]:port", "address") is this very machine, by
 * what is written: no name is looked up. */
bool hf__url_is_loopback(const char *host);

/* The URL without its password and the values of options that name a password, secret or token, for
 * messages: printable ASCII, cut with "..." to fit. Works on what is not a URL too, and then rather
 * hides too much. What says only where a password is (password_file, password_env) is shown. Gives
 * whether something was hidden. */
bool hf__url_redact(const char *text, char *buf, size_t size);

#define HF__URL_HIDDEN "***" /* what it writes instead */

/* Whether the secret of this URL has been hidden already, so that it opens no store. It may also be
 * the stars alone. */
bool hf__url_is_redacted(const char *url);

/* Whether the value of this option must not be shown. */
bool hf__option_is_secret(const char *name);

/* Refuses options that are neither in `table` nor common, twice given, or out of range. `table` may
 * be NULL; it must live as long as the URL. Errors: HF_INVALID. */
int hf__url_check(struct hf__url *url, const struct hf__option *table, hf_error *err);

/* The value of an option after hf__url_check(): as given, or its default; NULL, 0 or false if it
 * has none. A duration is a number of milliseconds. A switch is yes, true, on, 1 or no, false, off,
 * 0. The name must be in the table or common. */
const char *hf__url_text(const struct hf__url *url, const char *name);
int64_t hf__url_number(const struct hf__url *url, const char *name);
bool hf__url_switch(const struct hf__url *url, const char *name);

/* An option that is one of a few words. `*ret_value` stays as it is if the option is not given and
 * has no default. Errors: HF_INVALID names the words. */
struct hf__choice {
    const char *word; /* NULL ends the list */
    int value;
};
int hf__url_choose(const struct hf__url *url, const char *name, const struct hf__choice *choices,
                   int *ret_value, hf_error *err);

#endif
