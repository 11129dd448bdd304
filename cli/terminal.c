/* See terminal.h. TTOU is ignored by then (signals.h), so that a process in the background may set
 * the foreground group. The settings are put back without waiting for output to drain: a terminal
 * held by Ctrl-S must not hold us. */
#include "terminal.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/banned.h"

void terminal_open(struct terminal *ret_terminal)
{
    *ret_terminal = (struct terminal){.fd = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY)};
    if (ret_terminal->fd >= 0)
        ret_terminal->saved = tcgetattr(ret_terminal->fd, &ret_terminal->settings) == 0;
}

bool terminal_is_ours(const struct terminal *terminal)
{
    return terminal->fd >= 0 && tcgetpgrp(terminal->fd) == getpgrp();
}

bool terminal_to_lend(const struct terminal *terminal)
{
    return terminal_is_ours(terminal) && isatty(STDOUT_FILENO);
}

void terminal_lend(struct terminal *terminal, pid_t group)
{
    if (terminal_is_ours(terminal))
        terminal->lent = tcsetpgrp(terminal->fd, group) == 0;
}

void terminal_take(struct terminal *terminal)
{
    if (terminal->lent)
        tcsetpgrp(terminal->fd, getpgrp());
    terminal->lent = false;
}

void terminal_mend(const struct terminal *terminal)
{
    if (terminal->saved)
        tcsetattr(terminal->fd, TCSANOW, &terminal->settings);
}

void terminal_close(struct terminal *terminal)
{
    if (terminal->fd >= 0)
        close(terminal->fd);
    terminal->fd = -1;
}
