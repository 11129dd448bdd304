/* See status.h. */
#include "status.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "entry.h"

#include "base/banned.h"

static void write_command(struct cli_json *json, const struct status *status)
{
    bool exited = status->ended && WIFEXITED(status->wait_status);
    bool killed = status->ended && WIFSIGNALED(status->wait_status);

    cli_json_bool(json, "started", status->started);
    if (exited)
        cli_json_number(json, "exit", WEXITSTATUS(status->wait_status));
    else
        cli_json_null(json, "exit");
    if (killed)
        cli_json_number(json, "signal", WTERMSIG(status->wait_status));
    else
        cli_json_null(json, "signal");
}

static void write_object(FILE *out, const struct status *status)
{
    struct cli_json json = {.out = out};

    cli_json_open(&json, NULL, '{');
    cli_json_bytes(&json, "name", status->name, strlen(status->name));
    cli_json_bool(&json, "obtained", status->obtained);
    cli_json_number(&json, "waited_ms", status->waited_ms);
    cli_json_number(&json, "held_ms", status->held_ms);
    cli_json_generation(&json, "generation", status->generation);
    cli_json_text(&json, "lost", status->lost ? cli_cause_word(status->cause) : NULL);
    cli_json_text(&json, "error", status->error[0] != '\0' ? status->error : NULL);
    cli_json_text(&json, "release",
                  status->obtained ? (status->release ? hf_code_name(status->release) : "HF_OK")
                                   : NULL);
    if (status->may_hold_ms != 0)
        cli_json_number(&json, "may_hold_ms", status->may_hold_ms);
    else
        cli_json_null(&json, "may_hold_ms");
    write_command(&json, status);
    cli_json_number(&json, "status", status->status);
    cli_json_text(&json, "status_of", status->of_command ? "command" : "holdfast");
    cli_json_close(&json, '}');
    cli_json_end(&json);
}

bool status_write(int fd, const struct status *status)
{
    char *line = NULL;
    size_t len;
    FILE *out = open_memstream(&line, &len);

    if (!out)
        return false;
    write_object(out, status);
    bool ok = fclose(out) == 0;
    for (size_t at = 0; ok && at < len;) {
        ssize_t written = write(fd, line + at, len - at);
        if (written > 0)
            at += (size_t)written;
        else if (errno != EINTR)
            ok = false;
    }
    free(line);
    return ok;
}

void status_notice(const char *format, ...)
{
    struct pollfd ready = {STDERR_FILENO, POLLOUT, 0};
    char text[1024], *line = NULL;
    size_t len;
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    FILE *out = open_memstream(&line, &len);
    if (!out)
        return;
    fputs("holdfast: ", out);
    cli_print_text(out, text);
    fputc('\n', out);
    if (fclose(out) == 0 && poll(&ready, 1, 0) == 1 && (ready.revents & POLLOUT)) {
        ssize_t written = write(STDERR_FILENO, line, len);
        (void)written;
    }
    free(line);
}
