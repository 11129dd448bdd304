/* What the verbs of the command share: options from one table, output for people and for scripts,
 * and exit statuses.
 *
 * A verb is a file cmd_<verb>.c that ends in a const struct cli_verb, and a line in the table of
 * main.c. Its option table makes the parsing, `--help`, the man page's list and the completions. */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/resource.h>

#include "holdfast.h"

/* Exit statuses besides those of hf_code_exit_status(). */
enum {
    EXIT_NOT_OBTAINED = 1,
    EXIT_USAGE = 64,
    EXIT_STORE = 69,
    EXIT_MACHINE = 71, /* out of memory, or the output could not be written */
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
    bool color;          /* stdout is a terminal and NO_COLOR is not set, or --color=always */
    struct rlimit cores; /* as we inherited it, for the command; we leave no core file ourselves */
};

enum cli_kind {
    CLI_FLAG,     /* bool: set to true */
    CLI_UNFLAG,   /* bool: set to false (-x after -s) */
    CLI_TEXT,     /* const char * */
    CLI_NAMES,    /* struct cli_names: may be given several times */
    CLI_NUMBER,   /* int64_t, within min and max */
    CLI_DURATION, /* int64_t, milliseconds; within min and max unless both are 0 */
    CLI_SIGNAL,   /* int: TERM, SIGTERM or 15 */
    CLI_CHOICE,   /* int: index into `choices`, "a|b|c" */
    CLI_URL,      /* const char *: copied, and a password in it wiped from the command line */
    CLI_URLS,     /* struct cli_urls: the same, several times, and "ID=URL" */
};

struct cli_names {
    const char *names[HF_TOGETHER_MAX];
    size_t count;
};

#define CLI_URLS_MAX 32
struct cli_urls {
    char *urls[CLI_URLS_MAX];
    size_t count;
};

struct cli_option {
    char short_name;       /* 0: none */
    const char *long_name; /* without "--" */
    enum cli_kind kind;
    void *value;          /* where it goes; the verb's own static presets are the defaults */
    const char *argument; /* "DUR", "N", ...; NULL for flags */
    const char *choices;  /* CLI_CHOICE */
    int64_t min, max;     /* CLI_NUMBER, CLI_DURATION */
    const char *help;     /* one line; NULL: a second spelling of another option, not listed */
};

struct cli_verb {
    const char *name;
    const char *operands;             /* "NAME [--] COMMAND [ARG...]"; "" for none */
    const char *summary;              /* one line */
    const struct cli_option *options; /* ends with long_name NULL; the global ones are added */
    bool operands_end_options;        /* like flock: the first operand ends the options */
    bool no_store;                    /* needs no URL, so none is looked for */
    int (*run)(struct cli *cli, int argc, char **argv); /* operands only; gives the exit status */
};

extern const struct cli_verb cli_verb_run, cli_verb_lock, cli_verb_unlock, cli_verb_renew,
    cli_verb_ls, cli_verb_show, cli_verb_break, cli_verb_check, cli_verb_setup, cli_verb_gc,
    cli_verb_doctor, cli_verb_stores, cli_verb_bench, cli_verb_elect, cli_verb_value,
    cli_verb_watch, cli_verb_top, cli_verb_serve, cli_verb_log, cli_verb_names, cli_verb_tickets,
    cli_verb_schemes;

/* output.c ----------------------------------------------------------------- */

/* One sentence on stderr, "holdfast: ...", control characters escaped; gives back `status`. */
int cli_fail(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same for a wrong command line: adds "; see 'holdfast VERB --help'" and gives EXIT_USAGE. */
int cli_fail_usage(const char *verb, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same from a library error: text and exit status. If the outcome is unknown it says so, and
 * for how long the lock may be held. */
int cli_fail_error(const hf_error *err);

/* The moment in so many milliseconds, or before: "2026-11-15T10:20:30Z", by this machine's wall
 * clock. For people, never for a decision. 32 bytes hold any. */
void cli_format_moment(int64_t from_now_ms, char *buf, size_t size);

/* ", and the lock may be held for up to 5s", in whole seconds, or nothing if it cannot be held. */
void cli_describe_hold(int64_t may_hold_ms, char *buf, size_t size);

/* Writes out stdout. Gives `status`, or EXIT_MACHINE and a sentence if that failed. */
int cli_finish(int status);

/* A name as the library writes it in its sentences: hf__printable(). */
#define CLI_NAME_SHOWN (3 * HF_NAME_MAX + sizeof "...")
void cli_print_name(FILE *out, const char *bytes, size_t len);

/* The same for prose such as a note, where '%' and blanks stay as they are. */
void cli_print_text(FILE *out, const char *text);

/* A JSON string with quotes. What is not UTF-8 is written as %XX of its bytes and '%' as %25, so
 * that every name has one spelling that can be read back. */
void cli_print_json_string(FILE *out, const char *bytes, size_t len);

/* The same for our own prose: '%' stays as it is. */
void cli_print_json_text(FILE *out, const char *text);

/* "3m 20s", for people. */
void cli_print_duration(FILE *out, int64_t ms);

/* Colours, or nothing if cli->color is off. */
enum cli_paint { PAINT_NONE, PAINT_BOLD, PAINT_RED, PAINT_YELLOW, PAINT_GREEN, PAINT_DIM };
const char *cli_paint(const struct cli *cli, enum cli_paint paint); /* PAINT_NONE ends a colour */

/* store.c: before the first request ---------------------------------------- */

/* Opens cli->url. On failure prints the sentence and gives the exit status, else 0. */
int cli_open(const struct cli *cli, hf_client **ret_client);

/* The sentence about a store whose locks end with this process. */
int cli_refuse_process_store(void);

/* Whether it is a lock name. If not, prints a sentence with the verb's --help. */
bool cli_check_name(const char *verb, const char *name);

/* The ticket, given as such or by a file whose first line it is ("-": standard input), goes to
 * *ticket. False after a sentence. */
bool cli_take_ticket(const char *verb, const char **ticket, const char *file);

/* The same, but 4 digits or more from its beginning are enough. */
bool cli_take_ticket_prefix(const char *verb, const char **ticket, const char *file);

/* Whether there are exactly `wanted` operands; else prints the sentence. */
bool cli_check_operands(const struct cli_verb *verb, int argc, int wanted);

/* config.c ----------------------------------------------------------------- */

/* Where the URL comes from if there was no -u: HOLDFAST_URL, the config files, or NULL. `*ret_url`
 * is the caller's to free. 0, or an exit status after a sentence. */
int cli_find_url(char **ret_url);

/* A copy of a URL from the command line. A password in it is wiped from `argument`, since everybody
 * can see it with ps, and a warning is printed. NULL: out of memory. */
char *cli_take_url(char *argument);

/* Whether a file with URLs can be trusted: whoever can write it chooses the store, and whoever can read it has the
 * password of `url` (NULL: it is not known yet). 0, or an exit status after a sentence. */
int cli_check_rights(int fd, const char *path, const char *url);

/* absolute.c: files that a URL names relative to the working directory are named from the root, so
 * that it means the same after a `cd`. *url is replaced. False: it cannot be done. */
bool cli_make_absolute(char **url);

/* options.c ---------------------------------------------------------------- */

/* Parses argv[0] to argv[argc - 1] by the verb's table and `globals`, and moves the operands to its
 * front, with a NULL behind them. Gives their number, or -1 after a sentence. The `help` flag among
 * the globals, once set, ends the parsing. */
int cli_parse_options(const struct cli_verb *verb, const struct cli_option *globals, int argc,
                      char **argv);

/* Parsers that print their own sentence and return false. */
bool cli_parse_duration(const char *what, const char *text, int64_t *ret_ms);
bool cli_parse_signal(const char *what, const char *text, int *ret_signal);

/* Which word somebody may have meant who wrote `text`; NULL if none is near. `word` gives the words
 * one by one, then NULL. */
const char *cli_nearest(const char *text, const char *(*word)(const void *ctx, size_t i),
                        const void *ctx);

/* help.c ------------------------------------------------------------------- */
void cli_print_help(const struct cli_verb *verb, const struct cli_option *globals);
void cli_print_table(const char *title, const struct cli_option *options);

/* For completions: a line for each option, "--shared<TAB>-s<TAB>ARGUMENT<TAB>CHOICES<TAB>HELP"; "-"
 * stands for what is missing. */
void cli_print_options(const struct cli_verb *verb, const struct cli_option *globals);

#endif
