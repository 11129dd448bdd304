/* What the verbs of the command share: options from one table, output for people and for scripts,
 * and exit statuses.
 *
 * A verb is a file cmd_<verb>.c that ends in a const struct cli_verb, and a line in the table of
 * main.c. Its option table makes the parsing, `--help`, the man page's list and the completions. */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <stdbool.h>
#include <stdio.h>

#include "holdfast.h"

/* Exit statuses besides those of hf_code_exit_status(). */
enum {
    EXIT_NOT_OBTAINED = 1,
    EXIT_USAGE = 64,
    EXIT_STORE = 69,
    EXIT_OUTCOME_UNKNOWN = 75,
    EXIT_LOCK_LOST = 80,
    EXIT_CANNOT_EXECUTE = 126,
    EXIT_NO_SUCH_COMMAND = 127,
};

/* The global options, set before the verb runs. */
struct cli {
    const char *url; /* -u, HOLDFAST_URL, the config file, or NULL: the embedded default */
    bool json;
    bool quiet;
    bool color; /* stdout is a terminal and NO_COLOR is not set, or --color */
};

enum cli_kind {
    CLI_FLAG,     /* bool: set to true */
    CLI_UNFLAG,   /* bool: set to false (-x after -s) */
    CLI_TEXT,     /* const char * */
    CLI_NUMBER,   /* int64_t, within min and max */
    CLI_DURATION, /* int64_t, milliseconds */
    CLI_SIGNAL,   /* int: TERM, SIGTERM or 15 */
    CLI_CHOICE,   /* int: index into `choices`, "a|b|c" */
};

struct cli_option {
    char short_name;       /* 0: none */
    const char *long_name; /* without "--" */
    enum cli_kind kind;
    void *value;          /* where it goes; the verb's own static presets are the defaults */
    const char *argument; /* "DUR", "N", ...; NULL for flags */
    const char *choices;  /* CLI_CHOICE */
    int64_t min, max;     /* CLI_NUMBER */
    const char *help;     /* one line */
};

struct cli_verb {
    const char *name;
    const char *operands;             /* "NAME -- COMMAND [ARG...]" */
    const char *summary;              /* one line */
    const struct cli_option *options; /* ends with long_name NULL; the global ones are added */
    bool operands_end_options;        /* like flock: the first operand ends the options */
    int (*run)(struct cli *cli, int argc, char **argv); /* operands only; gives the exit status */
};

extern const struct cli_verb cli_verb_run, cli_verb_lock, cli_verb_unlock, cli_verb_renew,
    cli_verb_ls, cli_verb_show, cli_verb_break, cli_verb_check, cli_verb_setup, cli_verb_gc,
    cli_verb_doctor, cli_verb_stores, cli_verb_bench;

/* One sentence on stderr, "holdfast: ...", control characters escaped; gives back `status`. */
int cli_fail(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same from a library error: text and exit status. */
int cli_fail_error(const hf_error *err);

/* Opens cli->url. On failure prints the sentence and gives the exit status, else 0. */
int cli_open(const struct cli *cli, hf_client **ret_client);

/* Bytes for a terminal or a table: control, non-UTF-8 and bidirectional ones as %XX. */
void cli_print_name(FILE *out, const char *bytes, size_t len);

/* A JSON string with quotes. What is not UTF-8 is written as %XX of its bytes and '%' as %25, so
 * that every name has one spelling that can be read back. */
void cli_print_json_string(FILE *out, const char *bytes, size_t len);

/* "3m 20s", for people. */
void cli_print_duration(FILE *out, int64_t ms);

/* Parsers that print their own sentence and return false. */
bool cli_parse_duration(const char *what, const char *text, int64_t *ret_ms);
bool cli_parse_signal(const char *what, const char *text, int *ret_signal);

#endif
