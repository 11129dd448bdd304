/* See screen.h. Signals come by a descriptor, so that there is no moment in which one would end the
 * program and leave the terminal as we have made it. */
#include "screen.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "cli.h"

#include "base/banned.h"

#define ENTER "\033[?1049h\033[?25l\033[?7l" /* second screen, no cursor, cut lines */
#define LEAVE "\033[?7h\033[?25h\033[?1049l"

static void take_terminal(const struct screen *screen)
{
    struct termios raw = screen->before;

    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    fputs(ENTER, stdout);
    fflush(stdout);
}

static void give_terminal(const struct screen *screen)
{
    fputs(LEAVE, stdout);
    fflush(stdout);
    tcsetattr(STDIN_FILENO, TCSANOW, &screen->before);
}

int screen_open(struct screen *ret_screen)
{
    static const int watched[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGTSTP, SIGWINCH};
    sigset_t set;

    sigemptyset(&set);
    for (size_t i = 0; i < sizeof watched / sizeof watched[0]; i++)
        sigaddset(&set, watched[i]);
    if (tcgetattr(STDIN_FILENO, &ret_screen->before) != 0)
        return cli_fail(EXIT_MACHINE, "cannot use the terminal: %s", strerror(errno));
    ret_screen->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (ret_screen->signal_fd < 0)
        return cli_fail(EXIT_MACHINE, "cannot watch for signals: %s", strerror(errno));
    sigprocmask(SIG_BLOCK, &set, &ret_screen->mask_before);
    take_terminal(ret_screen);
    return 0;
}

void screen_close(struct screen *screen)
{
    give_terminal(screen);
    close(screen->signal_fd);
    sigprocmask(SIG_SETMASK, &screen->mask_before, NULL);
}

void screen_begin(void)
{
    fputs("\033[H\033[J", stdout);
}

static struct winsize measure(void)
{
    struct winsize size = {0};

    ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
    return size;
}

size_t screen_lines(void)
{
    size_t lines = measure().ws_row;

    return lines > 0 ? lines : 24;
}

size_t screen_columns(void)
{
    size_t columns = measure().ws_col;

    return columns > 0 ? columns : 80;
}

/* 0, or SCREEN_END. */
static int take_signal(struct screen *screen)
{
    struct signalfd_siginfo info;

    if (read(screen->signal_fd, &info, sizeof info) != sizeof info || info.ssi_signo == SIGWINCH)
        return 0;
    if (info.ssi_signo != SIGTSTP)
        return SCREEN_END;
    give_terminal(screen);
    raise(SIGSTOP);
    take_terminal(screen); /* somebody said CONT */
    return 0;
}

int screen_key(struct screen *screen, int fd, int64_t wait_ms)
{
    struct pollfd fds[] = {
        {STDIN_FILENO, POLLIN, 0}, {screen->signal_fd, POLLIN, 0}, {fd, POLLIN, 0}};
    unsigned char key;

    if (poll(fds, 3, wait_ms < INT32_MAX ? (int)wait_ms : INT32_MAX) <= 0)
        return 0;
    if (fds[1].revents != 0)
        return take_signal(screen);
    if (fds[0].revents == 0)
        return 0;
    return read(STDIN_FILENO, &key, 1) == 1 ? key : SCREEN_END;
}
