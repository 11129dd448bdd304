/* See guard.h. fork() without exec: it needs no file to be found, and it holds nothing of ours,
 * because the first thing it does is to close every descriptor. It is forked before the library has
 * threads. */
#include "guard.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "signals.h"

#include "util/banned.h"

/* One message in the pipe. */
struct order {
    pid_t group;
    int64_t kill_at_ns;
};

enum { PIPE_FD = 0, TIMER_FD = 1 };

static void set_timer(int64_t when_ns)
{
    struct itimerspec spec = {0};

    if (when_ns != INT64_MAX) {
        spec.it_value.tv_sec = when_ns / 1000000000;
        spec.it_value.tv_nsec = when_ns % 1000000000;
    }
    timerfd_settime(TIMER_FD, TFD_TIMER_ABSTIME, &spec, NULL);
}

static void watch(void)
{
    struct order order = {0, INT64_MAX};

    for (;;) {
        struct pollfd fds[] = {{PIPE_FD, POLLIN, 0}, {TIMER_FD, POLLIN, 0}};
        if (poll(fds, 2, -1) < 0)
            continue;
        if (fds[0].revents) {
            /* What was said comes before the moment that has passed: it may move it. */
            if (read(PIPE_FD, &order, sizeof order) != sizeof order)
                break;
            set_timer(order.kill_at_ns);
        } else if (fds[1].revents) {
            break;
        }
    }
    if (order.group > 0)
        kill(-order.group, SIGKILL);
}

static void __attribute__((noreturn)) be_guard(int pipe_fd)
{
    setsid();
    prctl(PR_SET_NAME, "holdfast-guard");
    if (chdir("/") < 0 || dup2(pipe_fd, PIPE_FD) < 0)
        _exit(71);
    close_range(1, ~0U, 0);
    if (timerfd_create(CLOCK_BOOTTIME, 0) != TIMER_FD)
        _exit(71);
    watch();
    _exit(0);
}

int guard_start(struct guard *ret_guard)
{
    int ends[2];
    sigset_t old;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return errno;
    /* Its mask stays full: nothing but SIGKILL can end it. */
    signals_block_all(&old);
    pid_t pid = fork();
    if (pid == 0)
        be_guard(ends[0]);
    int fork_errno = errno;
    sigprocmask(SIG_SETMASK, &old, NULL);
    close(ends[0]);
    if (pid < 0) {
        close(ends[1]);
        return fork_errno;
    }
    /* A wrapper must not hang on a guard that was stopped. */
    fcntl(ends[1], F_SETFL, O_NONBLOCK);
    *ret_guard = (struct guard){ends[1], pid};
    return 0;
}

bool guard_tell(int fd, pid_t group, int64_t kill_at_ns)
{
    struct order order = {.group = group, .kill_at_ns = kill_at_ns};

    return write(fd, &order, sizeof order) == sizeof order;
}

void guard_end(struct guard *guard)
{
    if (guard->pid == 0)
        return;
    /* Killed before the pipe closes, or it would kill once more, by a number that may be another
     * group's by now. If somebody has killed it, it was reaped, and its number is not ours
     * either. */
    if (waitpid(guard->pid, NULL, WNOHANG) == 0) {
        kill(guard->pid, SIGKILL);
        while (waitpid(guard->pid, NULL, 0) < 0 && errno == EINTR)
            continue;
    }
    close(guard->fd);
    *guard = (struct guard){-1, 0};
}
