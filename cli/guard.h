/* The guard of `run`: a process between the wrapper and the command.
 *
 *   wrapper (the lock, the terminal, signals) -- guard -- command -- whatever it starts
 *
 * It starts the command and is the reaper of every orphan among the command's descendants, so that
 * all of them stay below it whatever they do. It kills them all with SIGKILL
 *   - when the wrapper dies (its end of the socket closes), or
 *   - when the moment passes that the wrapper last gave, because the wrapper was stopped or starved
 *     and could not do it itself.
 * If the guard itself is killed, the command dies with it, and the wrapper is the reaper of the
 * rest. Without a guard (--no-guard) the wrapper starts the command: child.h. */
#ifndef CLI_GUARD_H
#define CLI_GUARD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "child.h"

struct guard_state; /* in memory that both processes see */

struct guard {
    int fd;    /* our end; readable when there is something for guard_look(); -1: no guard */
    pid_t pid; /* 0: no guard */
    struct guard_state *state;
    unsigned seen; /* changes of the command's state */
};

/* Starts one, which waits for guard_run(); before there are threads, and before anything is opened
 * that the command must not inherit. It leaves our process group and hears no signal. Of `plan` it
 * takes all but the environment, which is not known before there is a token. 0 or an errno. */
int guard_start(struct guard *ret_guard, const struct child_plan *plan);

/* Lets it start the command; `lend_terminal` says whether the plan's terminal is the command's.
 * Afterwards the guard has no descriptor but its own three. 0, or the errno of what failed; ECHILD:
 * the guard was killed before the command ran. */
int guard_run(struct guard *guard, char *const *envp, bool lend_terminal, struct child *ret_child);

/* Brings `child` up to date. Fine without a guard, and after its death. */
void guard_look(struct guard *guard, struct child *child);

/* When it has to kill unless it hears of a later moment (CLOCK_BOOTTIME; INT64_MAX: never). */
void guard_set_deadline(struct guard *guard, int64_t kill_at_ns);

/* Ends it; nothing is killed. guard_clear() waits for its end. Both are fine without a guard. */
void guard_dismiss(struct guard *guard);
void guard_clear(struct guard *guard);

#endif
