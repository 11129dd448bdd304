/* What the command writes: sentences, names, durations, JSON strings.
 *
 * Names and notes come from strangers. Whatever could move the cursor, hide itself or turn the
 * writing direction is escaped wherever it is printed, on stderr too. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/duration.h"
#include "base/error.h"
#include "base/utf8.h"
#include "cli.h"

#include "base/banned.h"

#define SENTENCE_MAX 2048

static void print_escaped(FILE *out, const char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        fprintf(out, "%%%02X", (unsigned char)bytes[i]);
}

void cli_print_name(FILE *out, const char *bytes, size_t len)
{
    char shown[CLI_NAME_SHOWN];

    fputs(hf__printable(bytes, len, shown, sizeof shown), out);
}

void cli_print_text(FILE *out, const char *text)
{
    size_t left = strlen(text), n;
    uint32_t c = 0;

    for (; left > 0; text += n, left -= n) {
        n = hf__utf8_decode(text, left, &c);
        if (n > 0 && hf__utf8_is_visible(c)) {
            fwrite(text, 1, n, out);
            continue;
        }
        if (n == 0)
            n = 1;
        print_escaped(out, text, n);
    }
}

static void print_json_char(FILE *out, uint32_t c, const char *bytes, size_t n)
{
    if (c == '"' || c == '\\')
        fprintf(out, "\\%c", (char)c);
    else if (hf__utf8_is_visible(c))
        fwrite(bytes, 1, n, out);
    else if (c < 0x10000)
        fprintf(out, "\\u%04" PRIx32, c);
    else
        fprintf(out, "\\u%04" PRIx32 "\\u%04" PRIx32, 0xd800 + ((c - 0x10000) >> 10),
                0xdc00 + ((c - 0x10000) & 0x3ff));
}

static void print_json(FILE *out, const char *bytes, size_t len, bool escape_percent)
{
    uint32_t c = 0;
    size_t n;

    putc('"', out);
    for (size_t i = 0; i < len; i += n) {
        n = hf__utf8_decode(bytes + i, len - i, &c);
        if (n > 0 && !(c == '%' && escape_percent)) {
            print_json_char(out, c, bytes + i, n);
            continue;
        }
        if (n == 0)
            n = 1;
        print_escaped(out, bytes + i, n);
    }
    putc('"', out);
}

void cli_print_json_string(FILE *out, const char *bytes, size_t len)
{
    print_json(out, bytes, len, true);
}

void cli_print_json_text(FILE *out, const char *text)
{
    print_json(out, text, strlen(text), false);
}

/* The two largest units are enough for people. */
void cli_print_duration(FILE *out, int64_t ms)
{
    static const struct unit {
        int64_t ms;
        const char *name;
    } units[] = {{86400000, "d"}, {3600000, "h"}, {60000, "m"}, {1000, "s"}};

    if (ms < 1000) {
        fprintf(out, "%" PRId64 "ms", ms > 0 ? ms : 0);
        return;
    }
    if (ms < 10000 && ms % 1000 >= 100) {
        fprintf(out, "%" PRId64 ".%" PRId64 "s", ms / 1000, ms % 1000 / 100);
        return;
    }
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (ms < units[i].ms)
            continue;
        fprintf(out, "%" PRId64 "%s", ms / units[i].ms, units[i].name);
        ms %= units[i].ms;
        if (i + 1 < sizeof units / sizeof units[0] && ms >= units[i + 1].ms)
            fprintf(out, " %" PRId64 "%s", ms / units[i + 1].ms, units[i + 1].name);
        return;
    }
}

static void print_sentence(const char *text, const char *verb)
{
    /* One write for the whole line, so that the lines of several processes do not mix. */
    char *line = NULL;
    size_t len;
    FILE *out = open_memstream(&line, &len);

    if (out == NULL) {
        fprintf(stderr, "holdfast: out of memory\n");
        return;
    }
    fputs("holdfast: ", out);
    cli_print_text(out, text);
    if (verb != NULL)
        fprintf(out, "%s see 'holdfast %s%s--help'", text[strlen(text) - 1] == '?' ? "" : ";", verb,
                verb[0] != '\0' ? " " : "");
    putc('\n', out);
    if (fclose(out) == 0)
        fwrite(line, 1, len, stderr);
    free(line);
}

int cli_fail(int status, const char *format, ...)
{
    char text[SENTENCE_MAX];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    print_sentence(text, NULL);
    return status;
}

int cli_fail_usage(const char *verb, const char *format, ...)
{
    char text[SENTENCE_MAX];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    print_sentence(text, verb);
    return EXIT_USAGE;
}

void cli_format_moment(int64_t from_now_ms, char *buf, size_t size)
{
    time_t then = time(NULL) + (time_t)(from_now_ms / 1000);
    struct tm tm;

    if (gmtime_r(&then, &tm) == NULL || strftime(buf, size, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
        snprintf(buf, size, "?");
}

void cli_describe_hold(int64_t may_hold_ms, char *buf, size_t size)
{
    char limit[32];

    if (may_hold_ms == HF_NEVER) {
        snprintf(buf, size, ", and the lock may be held until it is broken");
    } else if (may_hold_ms > 0) {
        hf__format_duration((may_hold_ms + 999) / 1000 * 1000, limit, sizeof limit);
        snprintf(buf, size, ", and the lock may be held for up to %s", limit);
    } else {
        buf[0] = '\0';
    }
}

int cli_fail_error(const hf_error *err)
{
    const char *text = err->text[0] != '\0' ? err->text : hf_code_text(err->code);
    int status = hf_code_exit_status(err->code);
    char hold[80];

    if (err->code != HF_UNKNOWN)
        return cli_fail(status, "%s", text);
    cli_describe_hold(err->may_hold_ms, hold, sizeof hold);
    return cli_fail(status, "the outcome is not known%s: %s", hold, text);
}

int cli_finish(int status)
{
    if (status == EXIT_MACHINE) /* it was told */
        return status;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    return cli_fail(EXIT_MACHINE, "cannot write the output: %s", strerror(errno));
}

const char *cli_paint(const struct cli *cli, enum cli_paint paint)
{
    static const char *const codes[] = {"\033[0m",  "\033[1m",  "\033[31m",
                                        "\033[33m", "\033[32m", "\033[2m"};

    return cli->color ? codes[paint] : "";
}
