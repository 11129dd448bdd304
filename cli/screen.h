/* A terminal that a program has for itself for a while: the second screen, keys as they are typed. */
#ifndef CLI_SCREEN_H
#define CLI_SCREEN_H

#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <termios.h>

struct screen {
    struct termios before;
    sigset_t mask_before;
    int signal_fd;
};

enum { SCREEN_END = -1 }; /* instead of a key: a signal says so, or the terminal is gone */

/* Standard input and output are a terminal. 0, or an exit status after a sentence. */
int screen_open(struct screen *ret_screen);
void screen_close(struct screen *screen); /* everything is as it was before */

/* What is printed from now on is a new picture; lines that are too long are cut by the terminal. */
void screen_begin(void);
size_t screen_lines(void);
size_t screen_columns(void);

/* The next key, 0 when the time is over, the terminal has another size or `fd` is readable, or SCREEN_END. Ctrl-Z stops the
 * program with the terminal as it was. */
int screen_key(struct screen *screen, int fd, int64_t wait_ms);

#endif
