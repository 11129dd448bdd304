/* The command line, parsed by tables.
 *
 * Why not getopt_long: the table also makes --help, the completions and the check of the man pages,
 * and every mistake gets one sentence that says what would be right. Short options may be clustered
 * (-sn, -w5), long ones take --name=value or --name value and are never abbreviated, since a script
 * would break on the next option that begins alike. */
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "value.h"

#include "base/banned.h"

struct parser {
    const struct cli_verb *verb;
    const struct cli_option *globals;
    int argc, at; /* argv[at] is looked at */
    char **argv;
    int operands; /* so many were moved to the front */
    bool help;    /* --help was seen: nothing after it counts */
};

static bool takes_argument(const struct cli_option *option)
{
    return option->kind != CLI_FLAG && option->kind != CLI_UNFLAG;
}

/* Walks the verb's options, then the global ones. */
static const struct cli_option *option_at(const struct parser *p, size_t i)
{
    const struct cli_option *tables[] = {p->verb->options, p->globals};

    for (size_t t = 0; t < 2; t++) {
        for (const struct cli_option *o = tables[t]; o != NULL && o->long_name != NULL; o++) {
            if (i-- == 0)
                return o;
        }
    }
    return NULL;
}

static const struct cli_option *find_short(const struct parser *p, char name)
{
    const struct cli_option *o;

    for (size_t i = 0; (o = option_at(p, i)) != NULL; i++) {
        if (o->short_name == name)
            return o;
    }
    return NULL;
}

static const struct cli_option *find_long(const struct parser *p, const char *name, size_t len)
{
    const struct cli_option *o;

    for (size_t i = 0; (o = option_at(p, i)) != NULL; i++) {
        if (strlen(o->long_name) == len && memcmp(o->long_name, name, len) == 0)
            return o;
    }
    return NULL;
}

static const char *long_name_at(const void *ctx, size_t i)
{
    const struct cli_option *o = option_at(ctx, i);

    return o != NULL ? o->long_name : NULL;
}

static bool fail_unknown(const struct parser *p, const char *name, size_t len)
{
    char word[64];

    snprintf(word, sizeof word, "%.*s", (int)(len < sizeof word ? len : sizeof word), name);
    const char *near = cli_nearest(word, long_name_at, p);
    if (near != NULL)
        cli_fail_usage(p->verb->name, "there is no option '--%s'; did you mean '--%s'?", word,
                       near);
    else
        cli_fail_usage(p->verb->name, "there is no option '--%s'", word);
    return false;
}

static bool apply(struct parser *p, const struct cli_option *option, char *argument)
{
    if (strcmp(option->long_name, "help") == 0)
        p->help = true;
    return cli_set_value(p->verb->name, option, argument);
}

/* The argument of an option that stands in the next word. */
static bool next_word(struct parser *p, const struct cli_option *option, char **ret_word)
{
    if (p->at + 1 >= p->argc) {
        cli_fail_usage(p->verb->name, "'--%s' needs a value: --%s %s", option->long_name,
                       option->long_name, option->argument);
        return false;
    }
    *ret_word = p->argv[++p->at];
    return true;
}

static bool parse_long(struct parser *p, char *text)
{
    char *value = strchr(text, '=');
    size_t len = value != NULL ? (size_t)(value - text) : strlen(text);
    const struct cli_option *option = find_long(p, text, len);

    if (option == NULL)
        return fail_unknown(p, text, len);
    if (value != NULL)
        value++;
    if (!takes_argument(option) && value != NULL) {
        cli_fail_usage(p->verb->name, "'--%s' takes no value", option->long_name);
        return false;
    }
    if (takes_argument(option) && value == NULL && !next_word(p, option, &value))
        return false;
    return apply(p, option, value);
}

/* A cluster: flags, and at its end perhaps one with a value, in the same word or in the next. */
static bool parse_short(struct parser *p, char *text)
{
    for (; *text != '\0' && !p->help; text++) {
        const struct cli_option *option = find_short(p, *text);
        if (option == NULL) {
            cli_fail_usage(p->verb->name, "there is no option '-%c'", *text);
            return false;
        }
        if (!takes_argument(option)) {
            if (!apply(p, option, NULL))
                return false;
            continue;
        }
        char *value = text + 1;
        if (*value == '\0' && !next_word(p, option, &value))
            return false;
        return apply(p, option, value);
    }
    return true;
}

static void take_operand(struct parser *p)
{
    p->argv[p->operands++] = p->argv[p->at];
}

static void take_the_rest(struct parser *p)
{
    for (p->at++; p->at < p->argc; p->at++)
        take_operand(p);
}

int cli_parse_options(const struct cli_verb *verb, const struct cli_option *globals, int argc,
                      char **argv)
{
    struct parser p = {.verb = verb, .globals = globals, .argc = argc, .argv = argv};

    for (; p.at < argc && !p.help; p.at++) {
        char *word = argv[p.at];
        bool ok = true;
        if (word[0] != '-' || word[1] == '\0') {
            take_operand(&p);
            if (verb->operands_end_options)
                take_the_rest(&p);
        } else if (strcmp(word, "--") == 0) {
            take_the_rest(&p);
        } else if (word[1] == '-') {
            ok = parse_long(&p, word + 2);
        } else {
            ok = parse_short(&p, word + 1);
        }
        if (!ok)
            return -1;
    }
    argv[p.operands] = NULL;
    return p.operands;
}
