/* The wrapper's side of the guard: see guard.h. fork() without exec: it needs no file to be found,
 * and what the command inherits is in its hands already. It is forked before the library has threads
 * and before the store is opened, so that its start costs a second processor's time only. */
#include "guard.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guard_inside.h"
#include "signals.h"

#include "base/banned.h"

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
        guard_be(ends[1], state, plan);
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
        guard_poke(guard->fd);
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
