/* What the programs of the laboratory write down: one JSON object a line, with the time of
 * CLOCK_MONOTONIC in ns. All of them append to one file, each line by one write(), so a program that
 * is killed leaves whole lines, and the order is that of the machine. */
#ifndef TESTS_LAB_HISTORY_H
#define TESTS_LAB_HISTORY_H

#include <stdint.h>

int history_open(const char *path); /* a descriptor to append to, or -1 */

/* By the kernel: a clock that was put off for the library (see clock_shim.c) is not believed. */
int64_t history_now_ns(void);

/* {"t":<at_ns>,"pid":<this process>,"w":"<who>","e":"<event>"<more>}; `more` is empty or begins with a
 * comma. Safe in a signal handler and in a forked child. */
void history_add(int fd, int64_t at_ns, const char *who, const char *event, const char *more, ...)
    __attribute__((format(printf, 5, 6)));

#endif
