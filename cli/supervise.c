/* See supervise.h. One loop: take the signals that came, look at the lock, at the children, pass
 * the signals on; then sleep until something happens or the next moment of the leash comes. The
 * order matters: no child ends unseen after its signal was taken, and after we were stopped the
 * lock is judged before anything is passed on that lets the command run again. The timer is on
 * CLOCK_BOOTTIME, which poll()'s own timeout is not: it also runs out while the machine sleeps. */
#include "supervise.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "base/env.h"
#include "signals.h"

#include "base/banned.h"

/* Orphans of the group become our children and tell of their end. A process of the group whose
 * parent lives outside of it does not, so that we look. */
#define GROUP_POLL_NS (100 * HF__NS_PER_MS)
/* How often to look at a lock that has no descriptor to poll. */
#define LOCK_POLL_NS (100 * HF__NS_PER_MS)
/* What has left the group is found by a pass over all processes: again, until it is dead. */
#define KILL_AGAIN_NS (10 * HF__NS_PER_MS)
/* The same, when there is something among it that we may not kill: it ends when it ends. */
#define WAIT_FOR_NS (1000 * HF__NS_PER_MS)

static int64_t now_ns(void)
{
    return hf__now_ns(&hf__system_env);
}

static void tell(struct supervise *s, enum supervise_event event)
{
    s->lock.tell(s->lock.ctx, event, s->leash);
}

static struct leash_view look(struct supervise *s)
{
    struct leash_view view = {0};

    s->lock.look(s->lock.ctx, &view);
    return view;
}

static void mind_the_lock(struct supervise *s)
{
    struct leash_view view = look(s);

    switch (leash_step(s->leash, now_ns(), &view)) {
    case LEASH_GO_ON:
        break;
    case LEASH_TELL:
        tell(s, SUPERVISE_LOST);
        break;
    case LEASH_SEND_SIGNAL:
        child_signal_all(s->child, s->signal);
        tell(s, SUPERVISE_SIGNALLED);
        break;
    case LEASH_SEND_KILL:
        child_signal_all(s->child, SIGKILL);
        s->untouchable = child_untouchable(s->child);
        s->leash->told = view.cause != HF_CAUSE_NONE;
        tell(s, s->untouchable != 0 ? SUPERVISE_RUNS_ON : SUPERVISE_KILLED);
        return;
    }
    if (s->leash->stage != LEASH_KILLED)
        return;
    child_signal_all(s->child, SIGKILL);
    if (s->untouchable != 0 && view.cause != HF_CAUSE_NONE && !s->leash->told) {
        s->leash->told = true;
        tell(s, SUPERVISE_RUNS_ON);
    }
}

static bool asks_for_terminal(int sig)
{
    return sig == SIGTSTP || sig == SIGTTIN || sig == SIGTTOU;
}

static void resume(struct supervise *s)
{
    terminal_lend(s->terminal, s->child->pid);
    s->child->stop_signal = 0;
    child_signal(s->child, SIGCONT);
}

/* The command was stopped. With a terminal that is what its user, or the shell's rules, did to a
 * job, and the shell waits for us to stop as well. Without one, somebody stopped the command alone:
 * we stay awake and keep the lock for it. */
static void follow_stop(struct supervise *s)
{
    int sig = s->child->stop_signal;

    /* It is about to be killed; that must not wait for `fg`. */
    if (s->leash->stage != LEASH_HOLDING && s->leash->policy == LEASH_KILL)
        return;
    if (s->terminal->fd < 0 || !(s->terminal->lent || asks_for_terminal(sig)))
        return;
    if (sig != SIGTSTP && !s->terminal->lent && terminal_is_ours(s->terminal)) {
        /* It had not asked for the terminal before, or the job came to the foreground since. */
        resume(s);
        return;
    }
    terminal_take(s->terminal);
    tell(s, SUPERVISE_STOPPING);
    bool stopped = signals_stop_self(asks_for_terminal(sig) ? sig : SIGTSTP);

    if (stopped)
        s->lock.verify(s->lock.ctx);
    mind_the_lock(s);
    if (s->leash->stage == LEASH_KILLED)
        return;
    /* Nobody could ever continue a job of an orphaned group: tell it as the kernel would. */
    if (!stopped && sig != SIGTSTP && sig != SIGSTOP)
        kill(-s->child->pid, SIGHUP);
    resume(s);
}

static void pass_signals_on(struct supervise *s, const sigset_t *came)
{
    /* CONT last: it lets what was sent before it be heard. */
    static const int passed[] = {SIGWINCH, SIGUSR1, SIGUSR2, SIGHUP, SIGINT,
                                 SIGQUIT,  SIGTERM, SIGTSTP, SIGCONT};

    /* A shell's `fg` of a job that was stopped. */
    if (sigismember(came, SIGCONT))
        terminal_lend(s->terminal, s->child->pid);
    for (size_t i = 0; i < sizeof passed / sizeof passed[0]; i++)
        if (sigismember(came, passed[i]))
            child_signal(s->child, passed[i]);
}

static void pass_wanted_on(struct supervise *s)
{
    uint64_t count;

    if (s->wanted_fd >= 0 && read(s->wanted_fd, &count, sizeof count) == sizeof count)
        child_signal(s->child, s->wanted_signal);
}

static void keep_guard_informed(struct supervise *s)
{
    if (s->guard->fd < 0)
        return;
    struct leash_view view = look(s);
    guard_set_deadline(s->guard, leash_guard_ns(s->leash, now_ns(), &view));
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t next_look_ns(struct supervise *s)
{
    struct leash_view view = look(s);
    int64_t now = now_ns();
    int64_t next = leash_next_ns(s->leash, now, &view);

    if (s->child->ended)
        next = earlier(next, now + GROUP_POLL_NS);
    if (s->leash->stage == LEASH_KILLED)
        next = earlier(next, now + (s->untouchable != 0 ? WAIT_FOR_NS : KILL_AGAIN_NS));
    if (s->lock.lost_fd < 0)
        next = earlier(next, now + LOCK_POLL_NS);
    if (s->guard->fd >= 0 && s->ttl_ms != HF_NEVER)
        next = earlier(next, now + s->ttl_ms * HF__NS_PER_MS / 8);
    return next;
}

static void sleep_until(struct supervise *s, int timer_fd, int64_t when_ns)
{
    struct itimerspec spec = {0};
    /* A lock that is lost stays readable: once the leash knows, only its moments count. */
    bool known = s->leash->stage != LEASH_HOLDING || s->leash->told;
    struct pollfd fds[] = {
        {s->signal_fd, POLLIN, 0},
        {timer_fd, POLLIN, 0},
        {known ? -1 : s->lock.lost_fd, POLLIN, 0},
        {s->guard->fd, POLLIN, 0},
        {s->wanted_fd, POLLIN, 0},
    };

    if (when_ns != INT64_MAX) {
        spec.it_value.tv_sec = when_ns / 1000000000;
        spec.it_value.tv_nsec = when_ns % 1000000000;
    }
    timerfd_settime(timer_fd, TFD_TIMER_ABSTIME, &spec, NULL);
    poll(fds, 5, -1);
}

static bool is_over(struct supervise *s)
{
    child_reap(s->child);
    guard_look(s->guard, s->child);
    if (!s->child->ended || !child_group_gone(s->child))
        return false;
    /* On a loss those who left the group must end too: they also believe in the lock. */
    return s->leash->stage == LEASH_HOLDING || s->leash->policy != LEASH_KILL ||
           !child_has_strays(s->child);
}

int supervise(struct supervise *s)
{
    int timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);

    if (timer_fd < 0) {
        int failed = errno;
        child_signal_all(s->child, SIGKILL);
        return failed;
    }
    for (;;) {
        sigset_t came;
        signals_take(&came);
        mind_the_lock(s);
        if (is_over(s))
            break;
        if (s->child->stop_signal)
            follow_stop(s);
        pass_signals_on(s, &came);
        pass_wanted_on(s);
        keep_guard_informed(s);
        sleep_until(s, timer_fd, next_look_ns(s));
    }
    close(timer_fd);
    return 0;
}
