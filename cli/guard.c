/* See guard.h. fork() without exec: it needs no file to be found, and what the command inherits is
 * in its hands already. It is forked before the library has threads and before the store is opened,
 * so that its start costs a second processor's time only.
 *
 * The wrapper sends one message, the order to start, with the environment that holds the token.
 * Everything else is in shared memory, where nothing can be queued up or lost: a byte in the socket
 * only says "look". So a wrapper that is stopped for long misses nothing, and a guard that lags
 * holds up nobody. */
#include "guard.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "signals.h"
#include "util/env.h"

#include "util/banned.h"

struct guard_state {
    _Atomic int64_t kill_at_ns;
    _Atomic int start_error; /* -1: not started yet */
    _Atomic pid_t pid;       /* of the command, once started */
    _Atomic int64_t born_ns;
    _Atomic uint64_t stops; /* how often it was stopped or continued << 32, the signal or 0 */
    _Atomic int wait_status;
    _Atomic bool ended; /* as wait_status says */
};

/* The order to start. The environment follows: `count` strings, `size` bytes with their NULs. */
struct order {
    bool lend_terminal;
    size_t count, size;
};

/* What the guard has open once the command runs. */
enum { SOCKET_FD, TIMER_FD, CHILDREN_FD };

/* Between two attempts to kill what is still there. Some may not be killed: then it is tried less
 * and less often. */
#define AGAIN_MS      5
#define AGAIN_MOST_MS 1000

static void poke(int fd)
{
    /* If it does not fit there are others, which are as good. */
    send(fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* The guard's side -------------------------------------------------------------------------- */

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
    poke(g->socket_fd);
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
    poke(g->socket_fd);
    return error == 0;
}

/* What the command inherited must not be kept open by us as well: whoever reads the other end of
 * its output waits for that. Nor its directory, which somebody may want to unmount. */
static void keep_only_ours(struct guarding *g)
{
    const int ours[] = {g->socket_fd, g->timer_fd, g->children_fd};

    /* None of them is below 3: those were filled before (run.c). */
    for (int i = 0; i < 3; i++)
        dup2(ours[i], i);
    close_range(3, ~0U, 0);
    int failed = chdir("/");
    (void)failed;
    *g = (struct guarding){SOCKET_FD, TIMER_FD, CHILDREN_FD, g->state, g->child};
}

static void __attribute__((noreturn))
be_guard(int socket_fd, struct guard_state *state, const struct child_plan *plan)
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

/* The wrapper's side ------------------------------------------------------------------------ */

static struct guard_state *new_state(void)
{
    struct guard_state *state =
        mmap(NULL, sizeof *state, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (state == MAP_FAILED)
        return NULL;
    atomic_init(&state->kill_at_ns, INT64_MAX);
    atomic_init(&state->start_error, -1);
    return state;
}

int guard_start(struct guard *ret_guard, const struct child_plan *plan)
{
    struct guard_state *state = new_state();
    int ends[2];
    sigset_t old;

    if (state == NULL)
        return errno;
    /* Should it be killed, its orphans are ours. */
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0 ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) {
        int failed = errno;
        munmap(state, sizeof *state);
        return failed;
    }
    /* Its mask stays full: nothing but SIGKILL can end it. */
    signals_block_all(&old);
    pid_t pid = fork();
    if (pid == 0) {
        close(ends[0]);
        be_guard(ends[1], state, plan);
    }
    int failed = pid < 0 ? errno : 0;
    sigprocmask(SIG_SETMASK, &old, NULL);
    close(ends[1]);
    *ret_guard = (struct guard){.fd = ends[0], .pid = pid, .state = state};
    if (pid < 0) {
        ret_guard->pid = 0;
        guard_clear(ret_guard);
    }
    return failed;
}

static bool send_all(int fd, const void *buf, size_t size)
{
    for (size_t at = 0; at < size;) {
        ssize_t sent = send(fd, (const char *)buf + at, size - at, MSG_NOSIGNAL);
        if (sent < 0 && errno != EINTR)
            return false;
        at += sent > 0 ? (size_t)sent : 0;
    }
    return true;
}

static bool send_order(int fd, char *const *envp, bool lend_terminal)
{
    struct order order = {.lend_terminal = lend_terminal};

    for (; envp[order.count]; order.count++)
        order.size += strlen(envp[order.count]) + 1;
    char *message = malloc(sizeof order + order.size), *at = message;
    if (message == NULL)
        return false;
    at = (char *)memcpy(at, &order, sizeof order) + sizeof order;
    for (size_t i = 0; i < order.count; i++)
        at = (char *)memcpy(at, envp[i], strlen(envp[i]) + 1) + strlen(envp[i]) + 1;
    bool sent = send_all(fd, message, (size_t)(at - message));
    free(message);
    return sent;
}

int guard_run(struct guard *guard, char *const *envp, bool lend_terminal, struct child *ret_child)
{
    char poked;
    int error;

    if (!send_order(guard->fd, envp, lend_terminal))
        return errno == ENOMEM ? ENOMEM : ECHILD;
    while ((error = atomic_load(&guard->state->start_error)) < 0) {
        ssize_t got = recv(guard->fd, &poked, 1, 0);
        /* It was killed, and the command, if it was there, with it. */
        if (got == 0 || (got < 0 && errno != EINTR))
            return ECHILD;
    }
    if (error == 0)
        *ret_child = (struct child){.pid = atomic_load(&guard->state->pid),
                                    .born_ns = atomic_load(&guard->state->born_ns),
                                    .reaper = guard->pid};
    return error;
}

void guard_look(struct guard *guard, struct child *child)
{
    char pokes[64];

    if (guard->state == NULL)
        return;
    while (guard->fd >= 0) {
        ssize_t got = recv(guard->fd, pokes, sizeof pokes, MSG_DONTWAIT);
        if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
            close(guard->fd); /* it is dead, and would be readable for ever */
            guard->fd = -1;
        }
        if (got < (ssize_t)sizeof pokes)
            break;
    }
    uint64_t stops = atomic_load(&guard->state->stops);
    if ((unsigned)(stops >> 32) != guard->seen) {
        guard->seen = (unsigned)(stops >> 32);
        child->stop_signal = (int)(uint32_t)stops;
    }
    if (atomic_load(&guard->state->ended) && !child->ended) {
        child->ended = true;
        child->stop_signal = 0;
        child->wait_status = atomic_load(&guard->state->wait_status);
    }
}

void guard_set_deadline(struct guard *guard, int64_t kill_at_ns)
{
    if (guard->fd < 0)
        return;
    /* A later moment it finds by itself, when the earlier one has come; and the first, when it
     * starts to watch. */
    if (kill_at_ns < atomic_exchange(&guard->state->kill_at_ns, kill_at_ns) &&
        atomic_load(&guard->state->pid) != 0)
        poke(guard->fd);
}

void guard_dismiss(struct guard *guard)
{
    /* Killed before the socket closes, or it would kill. If somebody else has killed it, it may
     * have been reaped, and its number is not ours any more. */
    if (guard->pid != 0 && waitpid(guard->pid, NULL, WNOHANG) == 0)
        kill(guard->pid, SIGKILL);
    else
        guard->pid = 0;
}

void guard_clear(struct guard *guard)
{
    while (guard->pid != 0 && waitpid(guard->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    if (guard->fd >= 0)
        close(guard->fd);
    if (guard->state != NULL)
        munmap(guard->state, sizeof *guard->state);
    *guard = (struct guard){.fd = -1};
}
