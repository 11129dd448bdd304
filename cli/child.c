/* See child.h. vfork() because the wrapper has the library's threads and maps a store: it costs the
 * same whatever we have mapped. The price is that the child's part may only make plain system
 * calls. We go on when the command runs or has failed to, and have the reason in our own memory. */
#include "child.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/env.h"
#include "descendants.h"
#include "signals.h"

#include "base/banned.h"

/* In the child, on the parent's memory, all signals blocked. Gives the errno of what failed. */
static int become_command(const struct child_plan *plan, pid_t parent)
{
    if (setpgid(0, 0) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
        return errno;
    /* The parent may have died before the death signal was set. */
    if (getppid() != parent)
        return ESRCH;
    /* Without the terminal it still runs: as a background job. */
    if (plan->terminal_fd >= 0)
        (void)tcsetpgrp(plan->terminal_fd, getpid());
    (void)setrlimit(RLIMIT_CORE, &plan->cores);
    signals_restore();
    execvpe(plan->argv[0], plan->argv, plan->envp);
    return errno;
}

/* The pid, or -1 and errno. The child does not return. */
static pid_t spawn(const struct child_plan *plan, volatile int *failed)
{
    pid_t parent = getpid();
    sigset_t old;

    signals_block_all(&old);
    pid_t pid = vfork();
    if (pid == 0) {
        *failed = become_command(plan, parent);
        _exit(127);
    }
    int vfork_errno = errno;
    sigprocmask(SIG_SETMASK, &old, NULL);
    errno = vfork_errno;
    return pid;
}

int child_start(const struct child_plan *plan, struct child *ret_child)
{
    int64_t born_ns = hf__now_ns(&hf__system_env);
    volatile int failed = 0; /* the child writes it: the memory is one */

    if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
        return errno;
    pid_t pid = spawn(plan, &failed);
    if (pid < 0)
        return errno;
    if (failed == 0)
        *ret_child = (struct child){.pid = pid, .born_ns = born_ns, .reaper = getpid()};
    else
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
            continue;
    return failed;
}

void child_reap(struct child *child)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED | WCONTINUED)) > 0) {
        if (pid == child->reaper && WIFSTOPPED(status))
            kill(pid, SIGCONT);
        else if (pid == child->reaper && !WIFCONTINUED(status))
            child->reaper = getpid();
        if (pid != child->pid)
            continue;
        child->stop_signal = WIFSTOPPED(status) ? WSTOPSIG(status) : 0;
        if (WIFEXITED(status) || WIFSIGNALED(status)) {
            child->ended = true;
            child->wait_status = status;
        }
    }
}

bool child_group_gone(const struct child *child)
{
    return kill(-child->pid, 0) < 0 && errno == ESRCH;
}

void child_signal(const struct child *child, int sig)
{
    /* A leader that has moved to another group is still the command. */
    if (kill(-child->pid, sig) < 0 && !child->ended)
        kill(child->pid, sig);
    if (child->stop_signal && sig != SIGCONT && sig != SIGTSTP && sig != SIGKILL)
        kill(-child->pid, SIGCONT);
}

static void signal_group(const struct child *child, int sig)
{
    /* An empty group's number may be somebody else's by now. */
    if (child->ended && child_group_gone(child))
        return;
    kill(-child->pid, sig);
    if (sig != SIGKILL)
        kill(-child->pid, SIGCONT);
}

static void signal_one(pid_t pid, void *arg)
{
    int sig = *(int *)arg;

    kill(pid, sig);
    if (sig != SIGKILL)
        kill(pid, SIGCONT);
}

/* All that came from the command but the group `but`, in no order. We may have children from before
 * the command, by exec: those are not meant. */
static void each(const struct child *child, pid_t but, void (*found)(pid_t pid, void *arg),
                 void *arg)
{
    descendants_each(&(struct descendants_search){.root = child->reaper,
                                                  .spared_group = but,
                                                  .since_ns = child->born_ns,
                                                  .found = found,
                                                  .arg = arg});
}

void child_signal_all(const struct child *child, int sig)
{
    /* The group first, in one step that no fork can slip through; then those who left it. */
    signal_group(child, sig);
    each(child, child->pid, signal_one, &sig);
}

static void note_one(pid_t pid, void *arg)
{
    *(pid_t *)arg = pid;
}

bool child_has_strays(const struct child *child)
{
    pid_t found = 0;

    each(child, child->pid, note_one, &found);
    return found != 0;
}

static void note_untouchable(pid_t pid, void *arg)
{
    if (kill(pid, 0) < 0 && errno == EPERM)
        *(pid_t *)arg = pid;
}

pid_t child_untouchable(const struct child *child)
{
    pid_t found = 0;

    each(child, 0, note_untouchable, &found);
    return found;
}
