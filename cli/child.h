/* The command that runs under a lock: one process, leader of a process group of its own, and what
 * becomes of the group. Knows nothing of locks.
 *
 * "Gone" means the whole group: a background process that stays in it counts, as a process that
 * inherited the descriptor does for flock(1). A process that leaves the group (setsid, a job of an
 * interactive shell) does not count, but child_signal_all() still reaches it, because we are the
 * reaper of every orphan among our descendants. */
#ifndef CLI_CHILD_H
#define CLI_CHILD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct child_plan {
    char *const *argv;
    char *const *envp;
    int terminal_fd; /* hand this terminal to the group before exec; -1: none */
    int guard_fd;    /* tell this guard of the group before exec (guard.h); -1: none */
};

struct child {
    pid_t pid;       /* also its process group */
    bool ended;      /* the leader has ended; the group may go on */
    int wait_status; /* once ended */
    int stop_signal; /* it was stopped by this one; 0: it runs */
    int64_t born_ns; /* CLOCK_BOOTTIME just before its start */
};

/* Starts it, with a death signal so that it does not outlive us, and signals as we inherited them
 * (signals_catch() comes first). Only from the main thread: the death signal belongs to the thread.
 * 0, or the errno of what failed; then nothing runs. */
int child_start(const struct child_plan *plan, struct child *ret_child);

/* Takes every child that has ended or stopped, ours or an orphan's. */
void child_reap(struct child *child);

/* Nobody is left in the group. Meaningful once child->ended. */
bool child_group_gone(const struct child *child);

/* To the whole group. What is stopped is continued after a signal that ends. */
void child_signal(const struct child *child, int sig);

/* To the whole group and to every other descendant of ours that began after the command did (we may
 * have children from before, by exec), but not to `spared`. */
void child_signal_all(const struct child *child, int sig, pid_t spared);

/* Whether such a descendant lives outside the group. */
bool child_has_strays(const struct child *child, pid_t spared);

#endif
