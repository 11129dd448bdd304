/* Numbers, durations, signals and choices of the command line. Strict: what is not wholly a value
 * is refused with an example of what would be one. */
#include "value.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/url.h"

#include "base/banned.h"

static bool read_number(const char *text, int64_t *ret_number)
{
    char *end;

    if (!isdigit((unsigned char)text[0]) && !(text[0] == '-' && isdigit((unsigned char)text[1])))
        return false;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    if (errno != 0 || *end != '\0')
        return false;
    *ret_number = number;
    return true;
}

static bool set_number(const char *verb, const struct cli_option *option, const char *text)
{
    int64_t number;

    if (!read_number(text, &number) || number < option->min || number > option->max) {
        cli_fail_usage(verb, "'--%s' takes a number from %" PRId64 " to %" PRId64 ", not '%s'",
                       option->long_name, option->min, option->max, text);
        return false;
    }
    *(int64_t *)option->value = number;
    return true;
}

static bool set_duration(const char *verb, const struct cli_option *option, const char *text)
{
    char least[32], most[32];
    int64_t ms;

    if (!hf__parse_duration(text, &ms)) {
        cli_fail_usage(
            verb,
            "'--%s' takes a duration such as 250ms, 30s, 5m or 1h30m, at most a year, not '%s'",
            option->long_name, text);
        return false;
    }
    if ((option->min != 0 || option->max != 0) && (ms < option->min || ms > option->max)) {
        hf__format_duration(option->min, least, sizeof least);
        hf__format_duration(option->max, most, sizeof most);
        cli_fail_usage(verb, "'--%s' takes a duration from %s to %s, not '%s'", option->long_name,
                       least, most, text);
        return false;
    }
    *(int64_t *)option->value = ms;
    return true;
}

/* Those that somebody may want to send, by their names without SIG; not every C library has a list. */
static const struct {
    const char *name;
    int number;
} signals[] = {
    {"HUP", SIGHUP},       {"INT", SIGINT},   {"QUIT", SIGQUIT},   {"ILL", SIGILL},
    {"TRAP", SIGTRAP},     {"ABRT", SIGABRT}, {"BUS", SIGBUS},     {"FPE", SIGFPE},
    {"KILL", SIGKILL},     {"USR1", SIGUSR1}, {"SEGV", SIGSEGV},   {"USR2", SIGUSR2},
    {"PIPE", SIGPIPE},     {"ALRM", SIGALRM}, {"TERM", SIGTERM},   {"STKFLT", SIGSTKFLT},
    {"CHLD", SIGCHLD},     {"CONT", SIGCONT}, {"STOP", SIGSTOP},   {"TSTP", SIGTSTP},
    {"TTIN", SIGTTIN},     {"TTOU", SIGTTOU}, {"URG", SIGURG},     {"XCPU", SIGXCPU},
    {"XFSZ", SIGXFSZ},     {"PROF", SIGPROF}, {"POLL", SIGPOLL},   {"PWR", SIGPWR},
    {"VTALRM", SIGVTALRM}, {"SYS", SIGSYS},   {"WINCH", SIGWINCH},
};

static bool find_signal(const char *text, int *ret_signal)
{
    int64_t number;

    if (read_number(text, &number)) {
        *ret_signal = (int)number;
        return number >= 1 && number <= SIGRTMAX;
    }
    if (strncasecmp(text, "SIG", 3) == 0)
        text += 3;
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        if (strcasecmp(signals[i].name, text) == 0) {
            *ret_signal = signals[i].number;
            return true;
        }
    }
    return false;
}

static bool set_signal(const char *verb, const struct cli_option *option, const char *text)
{
    int number;

    if (!find_signal(text, &number)) {
        cli_fail_usage(verb, "'--%s' takes a signal such as TERM or 15, not '%s'",
                       option->long_name, text);
        return false;
    }
    *(int *)option->value = number;
    return true;
}

static bool set_choice(const char *verb, const struct cli_option *option, const char *text)
{
    const char *at = option->choices;

    for (int i = 0; at != NULL; i++) {
        size_t len = strcspn(at, "|");
        if (strlen(text) == len && memcmp(at, text, len) == 0) {
            *(int *)option->value = i;
            return true;
        }
        at = at[len] == '|' ? at + len + 1 : NULL;
    }
    cli_fail_usage(verb, "'--%s' takes one of %s, not '%s'", option->long_name, option->choices,
                   text);
    return false;
}

static bool set_url(const struct cli_option *option, char *text)
{
    char *copy = cli_take_url(text);

    if (copy == NULL) {
        cli_fail(EXIT_MACHINE, "out of memory");
        return false;
    }
    free(*(char **)option->value);
    *(char **)option->value = copy;
    return true;
}

static bool add_url(const char *verb, const struct cli_option *option, char *text)
{
    struct cli_urls *urls = option->value;

    if (urls->count == CLI_URLS_MAX) {
        cli_fail_usage(verb, "'--%s' is given more than %d times", option->long_name, CLI_URLS_MAX);
        return false;
    }
    urls->urls[urls->count] = cli_take_url(text);
    if (urls->urls[urls->count++] != NULL)
        return true;
    cli_fail(EXIT_MACHINE, "out of memory");
    return false;
}

static bool add_name(const char *verb, const struct cli_option *option, const char *name)
{
    struct cli_names *names = option->value;

    if (names->count == sizeof names->names / sizeof names->names[0]) {
        cli_fail_usage(verb, "'--%s' is given more than %zu times", option->long_name,
                       names->count);
        return false;
    }
    if (!cli_check_name(verb, name))
        return false;
    names->names[names->count++] = name;
    return true;
}

bool cli_set_value(const char *verb, const struct cli_option *option, char *argument)
{
    switch (option->kind) {
    case CLI_FLAG:
    case CLI_UNFLAG:
        *(bool *)option->value = option->kind == CLI_FLAG;
        return true;
    case CLI_TEXT:
        *(const char **)option->value = argument;
        return true;
    case CLI_NAMES:
        return add_name(verb, option, argument);
    case CLI_NUMBER:
        return set_number(verb, option, argument);
    case CLI_DURATION:
        return set_duration(verb, option, argument);
    case CLI_SIGNAL:
        return set_signal(verb, option, argument);
    case CLI_CHOICE:
        return set_choice(verb, option, argument);
    case CLI_URL:
        return set_url(option, argument);
    case CLI_URLS:
        return add_url(verb, option, argument);
    }
    return false;
}

bool cli_parse_duration(const char *what, const char *text, int64_t *ret_ms)
{
    if (hf__parse_duration(text, ret_ms))
        return true;
    cli_fail(EXIT_USAGE,
             "%s takes a duration such as 250ms, 30s, 5m or 1h30m, at most a year, not '%s'", what,
             text);
    return false;
}

bool cli_parse_signal(const char *what, const char *text, int *ret_signal)
{
    if (find_signal(text, ret_signal))
        return true;
    cli_fail(EXIT_USAGE, "%s takes a signal such as TERM or 15, not '%s'", what, text);
    return false;
}
