/* ptydrive COMMAND [ARG...] < SCRIPT: runs a command on a terminal of its own and talks to it, as a
 * person would. The script has one step a line:
 *
 *   send TEXT          type it; \r \n \e \\ and \xHH are understood
 *   expect SECS TEXT   wait until it appears after what was last expected
 *   never TEXT         it must not have appeared anywhere by the end
 *   end SECS STATUS    the command must end by itself, with this status
 *
 * Exits 0 if every step succeeded; otherwise says which did not, shows the screen, and exits 1. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SCREEN_MAX = 1 << 20, NEVER_MAX = 16, LINE_MAX_LEN = 4096 };

struct drive {
    int fd;
    pid_t pid;
    char screen[SCREEN_MAX];
    size_t len, seen;
    char *never[NEVER_MAX];
    size_t nevers;
};

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int digit(char c)
{
    return isdigit((unsigned char)c) ? c - '0' : tolower((unsigned char)c) - 'a' + 10;
}

static size_t unescape(const char *text, char *out)
{
    size_t len = 0;

    for (; *text; text++) {
        if (*text != '\\' || !text[1]) {
            out[len++] = *text;
            continue;
        }
        text++;
        if (*text == 'x' && isxdigit((unsigned char)text[1]) && isxdigit((unsigned char)text[2])) {
            out[len++] = (char)(digit(text[1]) * 16 + digit(text[2]));
            text += 2;
        } else {
            out[len++] = *text == 'r' ? '\r' : *text == 'n' ? '\n' : *text == 'e' ? 27 : *text;
        }
    }
    return len;
}

/* Reads what has come, waiting until `deadline`. False: nothing came, or the terminal is closed. */
static bool take(struct drive *d, double deadline)
{
    struct pollfd fd = {d->fd, POLLIN, 0};
    int wait_ms = (int)((deadline - now()) * 1000);

    if (d->len + 1 >= SCREEN_MAX || poll(&fd, 1, wait_ms > 0 ? wait_ms : 0) <= 0)
        return false;
    ssize_t got = read(d->fd, d->screen + d->len, SCREEN_MAX - 1 - d->len);
    if (got <= 0)
        return false;
    for (ssize_t i = 0; i < got; i++)
        if (d->screen[d->len + (size_t)i] == '\0')
            d->screen[d->len + (size_t)i] = ' ';
    d->len += (size_t)got;
    d->screen[d->len] = '\0';
    return true;
}

static bool expect(struct drive *d, double secs, const char *text)
{
    double deadline = now() + secs;

    for (;;) {
        const char *at = strstr(d->screen + d->seen, text);
        if (at) {
            d->seen = (size_t)(at - d->screen) + strlen(text);
            return true;
        }
        if (!take(d, deadline))
            return false;
    }
}

static bool end(struct drive *d, double secs, int wanted)
{
    double deadline = now() + secs;
    int status;

    while (waitpid(d->pid, &status, WNOHANG) == 0) {
        if (now() > deadline)
            return false;
        /* It may wait for us to read what it writes. */
        take(d, now() + 0.02);
    }
    d->pid = 0;
    while (take(d, now()))
        continue;
    return (WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status)) == wanted;
}

static bool send_text(struct drive *d, const char *text)
{
    char bytes[LINE_MAX_LEN];
    size_t len = unescape(text, bytes);

    return write(d->fd, bytes, len) == (ssize_t)len;
}

static bool step(struct drive *d, char *line)
{
    char *rest = line + strcspn(line, " ");
    char text[LINE_MAX_LEN];

    if (*rest)
        *rest++ = '\0';
    if (strcmp(line, "send") == 0)
        return send_text(d, rest);
    if (strcmp(line, "never") == 0 && d->nevers < NEVER_MAX) {
        d->never[d->nevers++] = strdup(rest);
        return true;
    }
    double secs = strtod(rest, &rest);
    rest += *rest == ' ';
    if (strcmp(line, "end") == 0)
        return end(d, secs, (int)strtol(rest, NULL, 10));
    if (strcmp(line, "expect") != 0)
        return false;
    text[unescape(rest, text)] = '\0';
    return expect(d, secs, text);
}

static bool follow(struct drive *d)
{
    char line[LINE_MAX_LEN], copy[LINE_MAX_LEN];

    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = '\0';
        if (line[0] == '\0' || line[0] == '#')
            continue;
        snprintf(copy, sizeof copy, "%s", line);
        if (!step(d, line)) {
            printf("ptydrive: failed at: %s\n", copy);
            return false;
        }
    }
    for (size_t i = 0; i < d->nevers; i++) {
        if (strstr(d->screen, d->never[i])) {
            printf("ptydrive: appeared: %s\n", d->never[i]);
            return false;
        }
    }
    return true;
}

int main(int argc, char **argv)
{
    static struct drive d;
    struct winsize size = {.ws_row = 24, .ws_col = 200};

    if (argc < 2)
        return 64;
    d.pid = forkpty(&d.fd, NULL, NULL, &size);
    if (d.pid < 0)
        return 71;
    if (d.pid == 0) {
        /* As after a login, whatever the test was started with. */
        for (int sig = 1; sig < NSIG; sig++)
            signal(sig, SIG_DFL);
        execvp(argv[1], argv + 1);
        _exit(127);
    }
    fcntl(d.fd, F_SETFD, FD_CLOEXEC);
    bool ok = follow(&d);
    if (!ok)
        printf("ptydrive: the screen:\n%s\n", d.screen);
    if (d.pid > 0) {
        kill(-d.pid, SIGHUP);
        close(d.fd);
        kill(d.pid, SIGKILL);
        waitpid(d.pid, NULL, 0);
    }
    return ok ? 0 : 1;
}
