/* The guardian of `run --guard`: a process that outlives the wrapper and kills the command's group
 * with SIGKILL when the wrapper dies (its end of the pipe closes), or when the moment passes that
 * the wrapper last gave, because it was stopped or starved and could not do it itself. */
#ifndef CLI_GUARD_H
#define CLI_GUARD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct guard {
    int fd;    /* our end; -1: no guard */
    pid_t pid; /* 0: no guard */
};

/* Starts one; before there are threads. It has a session of its own, no descriptor but the pipe,
 * and ignores signals. 0 or an errno. */
int guard_start(struct guard *ret_guard);

/* Says which group to watch and until when (CLOCK_BOOTTIME; INT64_MAX: no such moment).
 * Async-signal- safe. False: the guard is not there; errno is set. */
bool guard_tell(int fd, pid_t group, int64_t kill_at_ns);

/* Dismisses it, nothing is killed, and waits for its end. Fine without a guard. */
void guard_end(struct guard *guard);

#endif
