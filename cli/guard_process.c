/* The guard itself: see guard.h. It starts the command when it is told to, reaps, and kills. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/env.h"
#include "guard_inside.h"

#include "base/banned.h"

/* What the guard has open once the command runs. */
enum { SOCKET_FD, TIMER_FD, CHILDREN_FD };

/* Between two attempts to kill what is still there. Some may not be killed: then it is tried less
 * and less often. */
#define AGAIN_MS      5
#define AGAIN_MOST_MS 1000

struct guarding {
    int socket_fd, timer_fd, children_fd;
    struct guard_state *state;
    struct child child;
};

static void set_timer(const struct guarding *g)
{
    int64_t when_ns = atomic_load(&g->state->kill_at_ns);
    struct itimerspec spec = {0};

    if (when_ns != INT64_MAX) {
        spec.it_value.tv_sec = when_ns / 1000000000;
        spec.it_value.tv_nsec = when_ns % 1000000000;
    }
    timerfd_settime(g->timer_fd, TFD_TIMER_ABSTIME, &spec, NULL);
}

/* Notes the command's end before it is reaped: if we are killed in between, the wrapper finds
 * either the note or the dead process. */
static void note_end(struct guarding *g)
{
    siginfo_t info = {0};

    if (waitid(P_PID, (id_t)g->child.pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0 ||
        info.si_pid == 0)
        return;
    int status = info.si_code == CLD_EXITED ? (info.si_status & 0xff) << 8 : info.si_status;
    atomic_store(&g->state->wait_status, status);
}

/* Takes every child that has ended or stopped. False: there is none left, dead or alive, and so no
 * descendant of the command. */
static bool reap(struct guarding *g)
{
    struct signalfd_siginfo signal;
    int status;
    pid_t pid;

    ssize_t got = read(g->children_fd, &signal, sizeof signal);
    (void)got;
    note_end(g);
    while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED | WCONTINUED)) > 0) {
        if (pid != g->child.pid)
            continue;
        uint64_t stops = (atomic_load(&g->state->stops) >> 32) + 1;
        if (WIFEXITED(status) || WIFSIGNALED(status)) {
            g->child.ended = true;
            atomic_store(&g->state->wait_status, status);
            atomic_store(&g->state->ended, true);
        } else {
            atomic_store(&g->state->stops,
                         stops << 32 | (uint32_t)(WIFSTOPPED(status) ? WSTOPSIG(status) : 0));
        }
    }
    bool any = pid == 0 || errno != ECHILD;
    guard_poke(g->socket_fd);
    return any;
}

/* Until nothing is left. Whatever a descendant's parents did, it ends up below us. */
static void kill_all(struct guarding *g)
{
    int pause_ms = AGAIN_MS;

    while (reap(g)) {
        child_signal_all(&g->child, SIGKILL);
        struct pollfd ended = {g->children_fd, POLLIN, 0};
        if (poll(&ended, 1, pause_ms) == 0 && pause_ms < AGAIN_MOST_MS)
            pause_ms *= 2;
    }
}

/* The wrapper moves the moment on without a word: whether it has passed is looked at here. */
static bool deadline_has_passed(const struct guarding *g)
{
    uint64_t count;
    ssize_t got = read(g->timer_fd, &count, sizeof count);
    (void)got;

    if (atomic_load(&g->state->kill_at_ns) <= hf__now_ns(&hf__system_env))
        return true;
    set_timer(g);
    return false;
}

static void watch(struct guarding *g)
{
    char pokes[64];

    set_timer(g);
    for (;;) {
        struct pollfd fds[] = {
            {g->socket_fd, POLLIN, 0}, {g->timer_fd, POLLIN, 0}, {g->children_fd, POLLIN, 0}};
        if (poll(fds, 3, -1) < 0)
            continue;
        /* With the last of them gone there is nothing to guard, and nobody to wait for us. */
        if (fds[2].revents && !reap(g))
            return;
        if (fds[0].revents) {
            ssize_t got = recv(g->socket_fd, pokes, sizeof pokes, MSG_DONTWAIT);
            if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
                break;
            set_timer(g);
        }
        if (fds[1].revents && deadline_has_passed(g))
            kill_all(g);
    }
    kill_all(g);
}

static bool read_all(int fd, void *buf, size_t size)
{
    for (size_t at = 0; at < size;) {
        ssize_t got = recv(fd, (char *)buf + at, size - at, 0);
        if (got <= 0)
            return false;
        at += (size_t)got;
    }
    return true;
}

/* The environment from the socket, in one piece of memory; NULL: it did not come. It may be as
 * large as the system lets a command's be, since it is the wrapper's own. */
static char **read_environment(int fd, const struct order *order)
{
    char **envp = calloc(order->count + 1, sizeof *envp), *text = malloc(order->size + 1);

    if (envp == NULL || text == NULL || !read_all(fd, text, order->size))
        return NULL;
    for (size_t i = 0; i < order->count; i++) {
        envp[i] = text;
        text += strlen(text) + 1;
    }
    return envp;
}

/* Starts the command, and tells what became of it. False: it does not run. */
static bool start(struct guarding *g, const struct child_plan *plan)
{
    struct order order;
    struct child_plan ordered = *plan;

    /* No order comes if the lock was not obtained. */
    if (!read_all(g->socket_fd, &order, sizeof order))
        _exit(0);
    char **envp = read_environment(g->socket_fd, &order);
    if (!order.lend_terminal)
        ordered.terminal_fd = -1;
    ordered.envp = envp;
    int error = envp != NULL ? child_start(&ordered, &g->child) : ENOMEM;
    atomic_store(&g->state->pid, g->child.pid);
    atomic_store(&g->state->born_ns, g->child.born_ns);
    atomic_store(&g->state->start_error, error);
    guard_poke(g->socket_fd);
    return error == 0;
}

/* Kernels before 5.9 do not know the call, and musl never did. */
static void close_all_from(unsigned first)
{
    if (syscall(SYS_close_range, first, ~0U, 0) == 0)
        return;
    for (int fd = (int)sysconf(_SC_OPEN_MAX) - 1; fd >= (int)first; fd--)
        close(fd);
}

/* What the command inherited must not be kept open by us as well: whoever reads the other end of
 * its output waits for that. Nor its directory, which somebody may want to unmount. */
static void keep_only_ours(struct guarding *g)
{
    const int ours[] = {g->socket_fd, g->timer_fd, g->children_fd};

    /* None of them is below 3: those were filled before (run.c). */
    for (int i = 0; i < 3; i++)
        dup2(ours[i], i);
    close_all_from(3);
    int failed = chdir("/");
    (void)failed;
    *g = (struct guarding){SOCKET_FD, TIMER_FD, CHILDREN_FD, g->state, g->child};
}

void guard_be(int socket_fd, struct guard_state *state, const struct child_plan *plan)
{
    struct guarding g = {.socket_fd = socket_fd, .state = state};
    sigset_t children;

    /* Not in the wrapper's group: who kills that one must not kill us. But in its session, which
     * has the terminal. */
    setpgid(0, 0);
    prctl(PR_SET_NAME, "holdfast-guard");
    sigemptyset(&children);
    sigaddset(&children, SIGCHLD);
    g.children_fd = signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
    g.timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (g.children_fd < 0 || g.timer_fd < 0) {
        atomic_store(&state->start_error, errno);
        _exit(71);
    }
    if (!start(&g, plan))
        _exit(71);
    keep_only_ours(&g);
    watch(&g);
    _exit(0);
}
