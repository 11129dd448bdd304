/* The command that runs under a lock: one process, leader of a process group of its own, and what
 * becomes of the group. Knows nothing of locks.
 *
 * "Gone" means the whole group: a background process that stays in it counts, as a process that
 * inherited the descriptor does for flock(1). A process that leaves the group (setsid, a job of an
 * interactive shell) does not count, but child_signal_all() still reaches it, because the process
 * that started the command (we, or the guard) is the reaper of every orphan among its descendants. */
#ifndef CLI_CHILD_H
#define CLI_CHILD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

struct child_plan {
    char *const *argv;
    char *const *envp;
    int terminal_fd;     /* hand this terminal to the group before exec; -1: none */
    struct rlimit cores; /* the command's limit on core files, which is not ours */
};

struct child {
    pid_t pid;       /* also its process group */
    bool ended;      /* the leader has ended; the group may go on */
    int wait_status; /* once ended */
    int stop_signal; /* it was stopped by this one; 0: it runs */
    int64_t born_ns; /* CLOCK_BOOTTIME just before its start */
    pid_t reaper;    /* who started it, and below whom all that came from it is: we, or the guard */
};

/* Starts it, with a death signal so that it does not outlive us, and signals as we inherited them
 * (signals_catch() comes first). Only from the main thread: the death signal belongs to the thread.
 * 0, or the errno of what failed; then nothing runs. */
int child_start(const struct child_plan *plan, struct child *ret_child);

/* Takes every child of ours that has ended or stopped. A guard that was stopped is continued; if it
 * has died, we are the reaper now. */
void child_reap(struct child *child);

/* Nobody is left in the group. Meaningful once child->ended. */
bool child_group_gone(const struct child *child);

/* To the whole group. What is stopped is continued after a signal that ends. */
void child_signal(const struct child *child, int sig);

/* To the whole group and to every other process that came from the command. */
void child_signal_all(const struct child *child, int sig);

/* Whether one of these lives outside the group. */
bool child_has_strays(const struct child *child);

/* One of them that we may not signal, such as a set-user-ID program; 0: there is none. */
pid_t child_untouchable(const struct child *child);

#endif
