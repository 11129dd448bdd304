/* Descriptors: eventfd, timerfd, epoll, and poll and read and write on them. Numbers begin at FIRST
 * and are never used again in a seed, so what is used after it was closed is noticed. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "world.h"

#define FIRST     1000
#define FILES_MAX 16384
#define WATCH_MAX 256 /* in one epoll set */

enum kind { CLOSED, EVENT, TIMER, EPOLL };

struct watch {
    int fd;
    uint32_t events; /* 0 but for EPOLLET: told once, or lent */
    epoll_data_t data;
    uint64_t seen; /* EPOLLET: the writes that were told of */
};

struct file {
    enum kind kind;
    struct process *process;
    uint64_t count;  /* what a read gives; 0: not readable */
    uint64_t writes; /* so far */
    uint64_t armed;  /* TIMER: the number of the last setting */
    struct watch *watches;
    size_t watch_count;
};

static struct {
    struct file files[FILES_MAX];
    int count;
} all;

static bool is_ours(int fd)
{
    return fd >= FIRST && fd < FIRST + all.count;
}

static struct file *file_of(int fd, const char *what)
{
    if (!is_ours(fd))
        sim_fail("%s: there is no descriptor %d", what, fd);
    struct file *f = &all.files[fd - FIRST];
    if (f->kind == CLOSED)
        sim_fail("%s: descriptor %d is closed", what, fd);
    if (sim.self != NULL && sim.self->process->is_child)
        sim_fail("C13: a forked child calls %s", what);
    if (sim.self != NULL && f->process != sim.self->process)
        sim_fail("%s: descriptor %d belongs to p%d", what, fd, f->process->number);
    return f;
}

static int new_file(enum kind kind)
{
    if (all.count == FILES_MAX)
        sim_fail("too many descriptors");
    struct file *f = &all.files[all.count++];
    f->kind = kind;
    f->process = sim.self->process;
    return FIRST + all.count - 1;
}

bool sim_is_readable(int fd)
{
    return is_ours(fd) && all.files[fd - FIRST].count > 0;
}

void sim_check_files(void)
{
    for (int i = 0; i < all.count; i++) {
        const struct file *f = &all.files[i];
        if (f->kind != CLOSED && !f->process->dead)
            sim_fail("p%d leaves descriptor %d open", f->process->number, FIRST + i);
    }
}

/* Who waits. ----------------------------------------------------------------------------------- */
struct listening { /* what a fiber that waits has given to sim_block() */
    const struct file *set;
    const struct pollfd *fds;
    nfds_t count;
};

static bool watch_is_ready(const struct watch *w)
{
    const struct file *f = &all.files[w->fd - FIRST];

    if (!(w->events & EPOLLIN) || f->kind == CLOSED || f->count == 0)
        return false;
    return !(w->events & EPOLLET) || f->writes > w->seen;
}

static bool is_ready(const struct listening *l)
{
    for (size_t i = 0; l->set != NULL && i < l->set->watch_count; i++) {
        if (watch_is_ready(&l->set->watches[i]))
            return true;
    }
    for (nfds_t i = 0; i < l->count; i++) {
        if (l->fds[i].fd >= 0 && (l->fds[i].events & POLLIN) && sim_is_readable(l->fds[i].fd))
            return true;
    }
    return false;
}

static void wake_if_ready(struct fiber *fiber, void *process)
{
    if (fiber->process == process && is_ready(fiber->object))
        sim_wake(fiber);
}

static void changed(const struct file *f)
{
    if (!f->process->dead)
        sim_each_waiting(SIM_FILES, wake_if_ready, f->process);
}

static int64_t end_of(int timeout_ms)
{
    return timeout_ms < 0 ? SIM_NEVER : sim.now_ns + timeout_ms * SIM_MS;
}

/* A signal may end the wait of a thread of the program; the library's take none. */
static bool is_interrupted(void)
{
    if (sim.self->of_library || random_below(&sim.order, 1000) >= (uint64_t)sim.spurious_permille)
        return false;
    sim_sleep((int64_t)random_below(&sim.order, 20 * SIM_MS));
    errno = EINTR;
    return true;
}

/* eventfd, timerfd. ---------------------------------------------------------------------------- */
static void add(struct file *f, uint64_t n)
{
    f->count += n;
    f->writes++;
    changed(f);
}

void sim_raise(int fd)
{
    add(&all.files[fd - FIRST], 1);
}

int __wrap_eventfd(unsigned initial, int flags);
int __wrap_eventfd(unsigned initial, int flags)
{
    (void)flags;
    int fd = new_file(EVENT);
    all.files[fd - FIRST].count = initial;
    return fd;
}

int __wrap_eventfd_write(int fd, eventfd_t n);
int __wrap_eventfd_write(int fd, eventfd_t n)
{
    add(file_of(fd, "eventfd_write"), n);
    sim_pause();
    return 0;
}

int __wrap_eventfd_read(int fd, eventfd_t *ret_n);
int __wrap_eventfd_read(int fd, eventfd_t *ret_n)
{
    struct file *f = file_of(fd, "eventfd_read");

    if (f->count == 0) {
        errno = EAGAIN;
        return -1;
    }
    *ret_n = f->count;
    f->count = 0;
    return 0;
}

ssize_t __real_read(int fd, void *buf, size_t size);
ssize_t __wrap_read(int fd, void *buf, size_t size);
ssize_t __wrap_read(int fd, void *buf, size_t size)
{
    if (!is_ours(fd))
        return __real_read(fd, buf, size);
    sim_pause();
    eventfd_t n;
    if (size < sizeof n || __wrap_eventfd_read(fd, &n) < 0)
        return -1;
    memcpy(buf, &n, sizeof n);
    return sizeof n;
}

ssize_t __real_write(int fd, const void *buf, size_t size);
ssize_t __wrap_write(int fd, const void *buf, size_t size);
ssize_t __wrap_write(int fd, const void *buf, size_t size)
{
    eventfd_t n;

    if (!is_ours(fd))
        return __real_write(fd, buf, size);
    memcpy(&n, buf, sizeof n);
    __wrap_eventfd_write(fd, n);
    return sizeof n;
}

int __real_close(int fd);
int __wrap_close(int fd);
int __wrap_close(int fd)
{
    if (!is_ours(fd))
        return __real_close(fd);
    file_of(fd, "close")->kind = CLOSED;
    return 0;
}

int __wrap_timerfd_create(int clock, int flags);
int __wrap_timerfd_create(int clock, int flags)
{
    (void)clock, (void)flags;
    return new_file(TIMER);
}

static void fire(void *arg, uint64_t armed)
{
    struct file *f = arg;

    if (f->kind == TIMER && f->armed == armed)
        add(f, 1);
}

int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *spec,
                           struct itimerspec *ret_before);
int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *spec,
                           struct itimerspec *ret_before)
{
    struct file *f = file_of(fd, "timerfd_settime");
    int64_t when_ns = (int64_t)spec->it_value.tv_sec * 1000000000 + spec->it_value.tv_nsec;

    if (ret_before != NULL || !(flags & TFD_TIMER_ABSTIME))
        sim_fail("timerfd_settime is not simulated in this form");
    f->armed++;
    f->count = 0;
    if (when_ns == 0)
        return 0;
    int64_t true_ns = sim_true_ns(f->process, when_ns);
    sim_at(true_ns > sim.now_ns ? true_ns : sim.now_ns, fire, f, f->armed);
    return 0;
}

/* poll, epoll. --------------------------------------------------------------------------------- */
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout_ms);
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
    struct listening l = {.fds = fds, .count = count};
    int n = 0;

    for (nfds_t i = 0; i < count; i++)
        file_of(fds[i].fd, "poll");
    sim_pause();
    if (timeout_ms != 0 && is_interrupted())
        return -1;
    if (!is_ready(&l) && timeout_ms != 0)
        sim_block(SIM_FILES, &l, end_of(timeout_ms));
    for (nfds_t i = 0; i < count; i++) {
        fds[i].revents = sim_is_readable(fds[i].fd) ? fds[i].events & POLLIN : 0;
        n += fds[i].revents != 0;
    }
    return n;
}

int __wrap_epoll_create1(int flags);
int __wrap_epoll_create1(int flags)
{
    (void)flags;
    int fd = new_file(EPOLL);
    all.files[fd - FIRST].watches = sim_alloc(WATCH_MAX * sizeof(struct watch));
    return fd;
}

static struct watch *find_watch(struct file *set, int fd)
{
    for (size_t i = 0; i < set->watch_count; i++) {
        if (set->watches[i].fd == fd)
            return &set->watches[i];
    }
    return NULL;
}

/* A descriptor that is closed leaves its sets by itself. */
static void drop_closed(struct file *set)
{
    for (size_t i = set->watch_count; i-- > 0;) {
        if (all.files[set->watches[i].fd - FIRST].kind == CLOSED)
            set->watches[i] = set->watches[--set->watch_count];
    }
}

int __wrap_epoll_ctl(int epfd, int op, int fd, struct epoll_event *event);
int __wrap_epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
    struct file *set = file_of(epfd, "epoll_ctl");

    file_of(fd, "epoll_ctl");
    drop_closed(set);
    struct watch *w = find_watch(set, fd);
    if (op == EPOLL_CTL_ADD ? w != NULL : w == NULL) {
        errno = op == EPOLL_CTL_ADD ? EEXIST : ENOENT;
        return -1;
    }
    if (op == EPOLL_CTL_DEL) {
        *w = set->watches[--set->watch_count];
        return 0;
    }
    if (w == NULL && set->watch_count == WATCH_MAX)
        sim_fail("too many descriptors in one epoll set");
    if (w == NULL)
        w = &set->watches[set->watch_count++];
    *w = (struct watch){.fd = fd, .events = event->events, .data = event->data};
    changed(set);
    sim_pause();
    return 0;
}

static int collect(struct file *set, struct epoll_event *events, int most)
{
    int n = 0;

    drop_closed(set);
    for (size_t i = 0; i < set->watch_count && n < most; i++) {
        struct watch *w = &set->watches[i];
        if (!watch_is_ready(w))
            continue;
        events[n].events = EPOLLIN;
        events[n++].data = w->data;
        w->seen = all.files[w->fd - FIRST].writes;
        if (w->events & EPOLLONESHOT)
            w->events = 0;
    }
    return n;
}

int __wrap_epoll_wait(int epfd, struct epoll_event *events, int most, int timeout_ms);
int __wrap_epoll_wait(int epfd, struct epoll_event *events, int most, int timeout_ms)
{
    struct file *set = file_of(epfd, "epoll_wait");
    struct listening l = {.set = set};

    sim_pause();
    if (timeout_ms != 0 && is_interrupted())
        return -1;
    int n = collect(set, events, most);
    if (n > 0 || timeout_ms == 0)
        return n;
    bool in_time = sim_block(SIM_FILES, &l, end_of(timeout_ms));
    return in_time ? collect(set, events, most) : 0;
}
