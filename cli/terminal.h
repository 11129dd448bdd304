/* The controlling terminal, lent to the command's process group as a shell lends it to a job. */
#ifndef CLI_TERMINAL_H
#define CLI_TERMINAL_H

#include <stdbool.h>
#include <sys/types.h>
#include <termios.h>

struct terminal {
    int fd;    /* -1: there is none */
    bool lent; /* the command's group has it */
    bool saved;
    struct termios settings; /* as they were before the command; if saved */
};

/* Opens the controlling terminal, if there is one. */
void terminal_open(struct terminal *ret_terminal);

/* There is one, and our own process group is in its foreground: it is ours to lend. */
bool terminal_is_ours(const struct terminal *terminal);

/* It is ours, and the command should have it from the start. Not if our output goes elsewhere: what
 * reads it (a pager in the same pipeline) may need the terminal itself. A command that uses it all
 * the same is stopped by the system (TTIN, TTOU), and gets it then. */
bool terminal_to_lend(const struct terminal *terminal);

/* Lends it to `group`, if it is ours. */
void terminal_lend(struct terminal *terminal, pid_t group);

/* Takes it back, if it is lent. */
void terminal_take(struct terminal *terminal);

/* Puts the settings back, for a command that was killed and could not do it itself. */
void terminal_mend(const struct terminal *terminal);

void terminal_close(struct terminal *terminal);

#endif
