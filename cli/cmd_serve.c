/* holdfast serve: starts the server, a program of its own, so that everybody else's commands need neither its
 * libraries nor its size. The options are checked here; the URLs go to it by a file in memory, because a command
 * line can be seen by everybody. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "serve_options.h"

#include "base/banned.h"

#define PROGRAM   "holdfast-serve"
#define WORDS_MAX (HF_TOGETHER_MAX + 32)

struct words {
    char *list[WORDS_MAX + 1]; /* ends with NULL */
    size_t count;
    bool failed;
};

static void add(struct words *words, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(struct words *words, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    if (words->count == WORDS_MAX || vasprintf(&words->list[words->count], format, args) < 0)
        words->failed = true;
    else
        words->count++;
    va_end(args);
}

/* An option as it was given, or would have been. */
static void add_option(struct words *words, const struct cli_option *o)
{
    const struct cli_names *names = o->value;

    switch (o->kind) {
    case CLI_FLAG:
        if (*(bool *)o->value)
            add(words, "--%s", o->long_name);
        break;
    case CLI_TEXT:
        if (*(const char **)o->value != NULL)
            add(words, "--%s=%s", o->long_name, *(const char **)o->value);
        break;
    case CLI_NAMES:
        for (size_t i = 0; i < names->count; i++)
            add(words, "--%s=%s", o->long_name, names->names[i]);
        break;
    case CLI_NUMBER:
        add(words, "--%s=%" PRId64, o->long_name, *(int64_t *)o->value);
        break;
    case CLI_DURATION:
        add(words, "--%s=%" PRId64 "ms", o->long_name, *(int64_t *)o->value);
        break;
    default: /* the URLs */
        break;
    }
}

/* A descriptor of a file in memory with the URLs, which the server inherits; negative: there is none. */
static int write_urls(const struct cli_urls *urls, const char *preset)
{
    int fd = memfd_create("urls", 0);
    FILE *file = fd >= 0 ? fdopen(dup(fd), "w") : NULL;

    if (file == NULL || fchmod(fd, 0600) != 0)
        return -1;
    for (size_t i = 0; i < urls->count; i++)
        fprintf(file, "%s\n", urls->urls[i]);
    if (urls->count == 0)
        fprintf(file, "%s\n", preset);
    return fclose(file) == 0 ? fd : -1;
}

static void add_urls(struct words *words, const struct cli *cli)
{
    const struct cli_serve *given = &cli_serve_given;

    if (given->urls.count == 0 && (given->url_file != NULL || cli->url == NULL))
        return;
    int fd = write_urls(&given->urls, cli->url);
    if (fd < 0)
        words->failed = true;
    add(words, "--url-file=/proc/self/fd/%d", fd);
}

/* In the tree it is where HOLDFAST_LIBEXEC says. */
static int execute(struct words *words)
{
    const char *dir = secure_getenv("HOLDFAST_LIBEXEC");
    char *path;

    if (words->failed || asprintf(&path, "%s/" PROGRAM, dir != NULL ? dir : SERVE_DIR) < 0)
        return cli_fail(EXIT_MACHINE, "out of memory");
    execv(path, words->list);
    int error = errno;
    if (error == ENOENT)
        cli_fail(EXIT_STORE,
                 "the server is not installed: there is no %s; it is in the package " PROGRAM
                 ", and in a build that finds libmicrohttpd and jansson",
                 path);
    else
        cli_fail(EXIT_STORE, "cannot start %s: %s", path, strerror(error));
    free(path);
    return EXIT_STORE;
}

static int run(struct cli *cli, int argc, char **argv)
{
    struct words words = {0};

    (void)argv;
    if (!cli_check_operands(&cli_verb_serve, argc, 0))
        return EXIT_USAGE;
    if (cli_serve_given.urls.count > 0 && cli_serve_given.url_file != NULL)
        return cli_fail_usage("serve", "choose one of -u and --url-file");
    add(&words, "%s", PROGRAM);
    for (const struct cli_option *o = cli_serve_options; o->long_name != NULL; o++)
        add_option(&words, o);
    if (cli->quiet)
        add(&words, "--quiet");
    add_urls(&words, cli);
    int status = execute(&words);
    for (size_t i = 0; i < words.count; i++)
        free(words.list[i]);
    return status;
}

const struct cli_verb cli_verb_serve = {
    .name = "serve",
    .operands = "",
    .summary = CLI_SERVE_SUMMARY,
    .options = cli_serve_options,
    .run = run,
};
