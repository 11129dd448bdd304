/* See signals.h. The handler touches what follows and nothing else: flags, one eventfd, and one
 * function that is fixed before the first handler is installed. This is the command's only mutable
 * state that is not on a stack; a signal handler has no other way to reach anything. */
#include "signals.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/banned.h"

enum part { ENDING, PASSED, STOPPING, CHILDREN, IGNORED };

static const struct {
    int signal;
    enum part part;
} table[] = {
    {SIGINT, ENDING},    {SIGTERM, ENDING},   {SIGHUP, ENDING},   {SIGQUIT, ENDING},
    {SIGUSR1, ENDING},   {SIGUSR2, ENDING},   {SIGCONT, PASSED},  {SIGWINCH, PASSED},
    {SIGTSTP, STOPPING}, {SIGCHLD, CHILDREN}, {SIGPIPE, IGNORED}, {SIGTTOU, IGNORED},
    {SIGXFSZ, IGNORED},
};
enum { COUNT = sizeof table / sizeof table[0] };

static struct {
    volatile sig_atomic_t came[COUNT];
    int event_fd;
    signals_ending *volatile ending;
    void *arg;
    struct sigaction inherited[COUNT];
    sigset_t inherited_mask;
} caught = {.event_fd = -1};

static int index_of(int sig)
{
    for (int i = 0; i < COUNT; i++)
        if (table[i].signal == sig)
            return i;
    return -1;
}

static void note(int sig)
{
    int saved_errno = errno;
    int i = index_of(sig);
    uint64_t one = 1;

    caught.came[i] = 1;
    signals_ending *ending = caught.ending;
    if (table[i].part == ENDING && ending)
        ending(caught.arg);
    /* It can only fail when it is already readable. */
    ssize_t written = write(caught.event_fd, &one, sizeof one);
    (void)written;
    errno = saved_errno;
}

static void install(int i, void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};

    sigfillset(&action.sa_mask);
    sigaction(table[i].signal, &action, NULL);
}

static bool was_ignored(int i)
{
    return caught.inherited[i].sa_handler == SIG_IGN;
}

int signals_catch(signals_ending *ending, void *arg)
{
    sigset_t ours;

    caught.event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (caught.event_fd < 0)
        return -errno;
    caught.arg = arg;
    caught.ending = ending;
    sigemptyset(&ours);
    for (int i = 0; i < COUNT; i++) {
        sigaction(table[i].signal, NULL, &caught.inherited[i]);
        sigaddset(&ours, table[i].signal);
        if (table[i].part == IGNORED)
            install(i, SIG_IGN);
        else if (table[i].part == CHILDREN || table[i].part == PASSED ||
                 (table[i].part == ENDING && !was_ignored(i)))
            install(i, note);
    }
    /* A parent that left CHLD or TERM blocked must not make us deaf. */
    sigprocmask(SIG_UNBLOCK, &ours, &caught.inherited_mask);
    return caught.event_fd;
}

void signals_catch_stop(void)
{
    int i = index_of(SIGTSTP);

    if (!was_ignored(i))
        install(i, note);
}

void signals_forget_ending(void)
{
    caught.ending = NULL;
}

void signals_take(sigset_t *ret_came)
{
    uint64_t count;
    ssize_t got = read(caught.event_fd, &count, sizeof count);
    (void)got;

    sigemptyset(ret_came);
    for (int i = 0; i < COUNT; i++) {
        if (caught.came[i]) {
            caught.came[i] = 0;
            sigaddset(ret_came, table[i].signal);
        }
    }
}

int signals_first_ending(void)
{
    for (int i = 0; i < COUNT; i++)
        if (table[i].part == ENDING && caught.came[i])
            return table[i].signal;
    return 0;
}

bool signals_stop_self(int sig)
{
    int cont = index_of(SIGCONT);
    struct sigaction by_default = {.sa_handler = SIG_DFL}, ours;

    caught.came[cont] = 0;
    sigaction(sig, &by_default, &ours);
    raise(sig);
    sigaction(sig, &ours, NULL);
    bool continued = caught.came[cont];
    caught.came[cont] = 0;
    return continued;
}

void signals_block_all(sigset_t *ret_old)
{
    sigset_t all;

    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, ret_old);
}

void signals_restore(void)
{
    for (int i = 0; i < COUNT; i++)
        sigaction(table[i].signal, &caught.inherited[i], NULL);
    sigprocmask(SIG_SETMASK, &caught.inherited_mask, NULL);
}
