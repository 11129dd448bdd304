/* The keeper: the one thread that sleeps on time.
 *
 * It waits for the earliest timer, a call from the store or a cancel, and never does anything that
 * could block: round trips are the hand's, callbacks the herald's. So a lock is declared lost
 * on time whatever hangs. Each lock has one timer, set to the next moment something is due by its
 * duty. */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/client.h"
#include "util/banned.h"

enum tag { TAG_TIMER, TAG_KICK, TAG_WAKE, TAG_CANCEL };

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Renewals are rounded down to a 24th of the lease, so that locks taken at different times are
 * renewed together. A grant that is not claimed yet is claimed after a 16th of its lease: soon, but
 * one that is released before saves the round trip. One that never expires is looked at now and
 * then, to learn that it was broken. */
static int64_t renewal_due(const hf_lock *lock)
{
    const struct hf__bidder *b = &lock->bidder;

    if (lock->job_wanted || (lock->by_hand && b->claimed))
        return INT64_MAX;
    if (lock->failures > 0) /* also if it was not due: somebody had a reason to ask */
        return lock->retry_ns;
    if (!b->claimed) {
        int64_t claim_ns = b->known_ns + b->lease_ms * HF__NS_PER_MS / 16;
        return claim_ns > lock->retry_ns ? claim_ns : lock->retry_ns;
    }
    int64_t lease_ms = b->lease_ms == HF__NEVER ? 3 * hf__own_lease_ms(0) : b->lease_ms;
    int64_t due_ns = hf__lease_renew_ns(b->sent_ns, lease_ms);
    due_ns -= due_ns % (lease_ms * HF__NS_PER_MS / 24);
    return due_ns > lock->retry_ns ? due_ns : lock->retry_ns;
}

static int64_t next_moment(const hf_lock *lock)
{
    const struct hf__bidder *b = &lock->bidder;
    int64_t when_ns = INT64_MAX;

    switch (lock->duty) {
    case HF__NO_DUTY:
        break;
    case HF__HELP_WAITING:
        when_ns = earlier(lock->waiter->until_ns, lock->waiter->ask_ns);
        when_ns = earlier(when_ns, lock->waiter->sign_ns);
        break;
    case HF__KEEP:
        if (b->phase != HF__HOLDING)
            break;
        when_ns = earlier(b->deadline_ns, lock->max_hold_ns);
        when_ns = earlier(when_ns, renewal_due(lock));
        if (!lock->risk_told)
            when_ns = earlier(when_ns, hf__lease_at_risk_ns(b->sent_ns, b->lease_ms));
        break;
    case HF__UNDO:
        when_ns = lock->job_wanted ? INT64_MAX : lock->retry_ns;
        break;
    }
    return when_ns;
}

void hf__keeper_schedule(hf_lock *lock)
{
    hf_client *client = lock->client;
    int64_t when_ns = next_moment(lock);

    hf__hand_heed(lock);
    if (when_ns == INT64_MAX) {
        hf__heap_remove(&client->timers, &lock->timer);
        return;
    }
    hf__heap_set(&client->timers, &lock->timer, when_ns);
    /* A timer that is set too early only costs one look; so it is never moved back. */
    if (client->keeper_runs && when_ns < client->armed_ns) {
        client->armed_ns = when_ns;
        client->env->timer_set(client->env->ctx, client->timer_fd, when_ns);
    }
}

void hf__keeper_forget(hf_lock *lock)
{
    lock->duty = HF__NO_DUTY;
    hf__heap_remove(&lock->client->timers, &lock->timer);
    hf__hand_forget(lock);
}

static void help_waiting(hf_lock *lock, int64_t now_ns)
{
    struct hf__waiter *w = lock->waiter;

    if (now_ns >= w->until_ns) {
        w->until_ns = INT64_MAX;
        hf__wait_tell(lock, HF__NEWS_TIMEOUT);
    }
    if (now_ns >= w->ask_ns) {
        w->ask_ns = INT64_MAX;
        hf__wait_tell(lock, HF__NEWS_ASK);
    }
    if (now_ns >= w->sign_ns) {
        w->sign_ns = INT64_MAX;
        hf__hand_push(lock);
    }
}

static void keep(hf_lock *lock, int64_t now_ns)
{
    if (!hf__lock_holds(lock, now_ns)) {
        hf__lock_tell_lost(lock);
        return;
    }
    if (!lock->risk_told &&
        now_ns >= hf__lease_at_risk_ns(lock->bidder.sent_ns, lock->bidder.lease_ms)) {
        lock->risk_told = true;
        if (lock->on_at_risk != NULL) {
            lock->call_risk = true;
            hf__herald_push(lock);
        }
    }
    if (now_ns >= renewal_due(lock))
        hf__hand_push(lock);
}

static void tick(hf_client *client)
{
    int64_t now_ns = hf__now_ns(client->env);
    struct hf__timer *timer;

    while ((timer = hf__heap_first(&client->timers)) != NULL && timer->when_ns <= now_ns) {
        hf_lock *lock = (hf_lock *)((char *)timer - offsetof(hf_lock, timer));
        if (lock->duty == HF__HELP_WAITING)
            help_waiting(lock, now_ns);
        else if (lock->duty == HF__KEEP)
            keep(lock, now_ns);
        else if (lock->duty == HF__UNDO)
            hf__hand_push(lock);
        hf__keeper_schedule(lock);
    }
    /* What is set already, and comes first, stays. */
    int64_t next_ns = timer != NULL ? timer->when_ns : INT64_MAX;
    if (client->armed_ns > now_ns && client->armed_ns <= next_ns)
        return;
    client->armed_ns = next_ns;
    client->env->timer_set(client->env->ctx, client->timer_fd, next_ns);
}

static void tell_if_cancelled(struct hf__link *link, void *ctx)
{
    hf_lock *lock = (hf_lock *)((char *)link - offsetof(hf_lock, by_ticket));

    (void)ctx;
    if (lock->waiter->cancel != NULL && hf__cancel_fired(lock->waiter->cancel))
        hf__wait_tell(lock, HF__NEWS_CANCEL);
}

static void drain(int fd)
{
    uint64_t count;
    ssize_t n = read(fd, &count, sizeof count);

    (void)n;
}

static void handle(hf_client *client, enum tag tag)
{
    if (tag == TAG_TIMER) {
        drain(client->timer_fd);
    } else if (tag == TAG_KICK) {
        drain(client->kick_fd);
    } else if (tag == TAG_WAKE) {
        hf__ear_serve(client);
    } else {
        hf__lock_client(client);
        hf__table_each(&client->waiting, tell_if_cancelled, NULL);
        hf__unlock_client(client);
    }
}

static void *run(void *arg)
{
    hf_client *client = arg;
    struct epoll_event events[8];

    for (;;) {
        hf__lock_client(client);
        tick(client);
        bool stop = client->stop;
        hf__unlock_client(client);
        if (stop)
            return NULL;
        int n = epoll_wait(client->epoll_fd, events, 8, -1);
        for (int i = 0; i < n; i++)
            handle(client, events[i].data.u32);
    }
}

static int watch(hf_client *client, int fd, enum tag tag, uint32_t how)
{
    struct epoll_event event = {.events = EPOLLIN | how, .data.u32 = tag};

    return epoll_ctl(client->epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

int hf__keeper_watch(hf_client *client, hf_cancel *cancel)
{
    /* Once for each time it is fired: it stays readable for ever. */
    if (watch(client, cancel->fd, TAG_CANCEL, EPOLLET) < 0 && errno != EEXIST)
        return HF_SYSTEM;
    return 0;
}

static void close_fds(hf_client *client)
{
    int *fds[] = {&client->epoll_fd, &client->timer_fd, &client->kick_fd};

    for (size_t i = 0; i < 3; i++) {
        if (*fds[i] >= 0)
            close(*fds[i]);
        *fds[i] = -1;
    }
}

int hf__keeper_start(hf_client *client, hf_error *err)
{
    if (client->keeper_runs)
        return 0;
    client->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    client->timer_fd = client->env->timer_open(client->env->ctx);
    client->kick_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (client->epoll_fd < 0 || client->timer_fd < 0 || client->kick_fd < 0 ||
        watch(client, client->timer_fd, TAG_TIMER, 0) < 0 ||
        watch(client, client->kick_fd, TAG_KICK, 0) < 0 ||
        hf__thread_start(&client->keeper, 256 * 1024, run, client) < 0) {
        close_fds(client);
        return hf__fail_errno(err, HF_SYSTEM, "the keeper's thread cannot be started");
    }
    client->keeper_runs = true;
    return 0;
}

int hf__keeper_hear(hf_client *client)
{
    return watch(client, client->wake_fd, TAG_WAKE, 0);
}

int hf__keeper_lend(hf_client *client, bool lent)
{
    /* Errors are reported whatever is asked for: if lent, once at most. */
    struct epoll_event event = {.events = lent ? EPOLLONESHOT : EPOLLIN, .data.u32 = TAG_WAKE};

    return epoll_ctl(client->epoll_fd, EPOLL_CTL_MOD, client->wake_fd, &event);
}

void hf__keeper_stop(hf_client *client)
{
    if (!client->keeper_runs)
        return;
    hf__lock_client(client);
    client->stop = true;
    hf__unlock_client(client);

    uint64_t one = 1;
    ssize_t n = write(client->kick_fd, &one, sizeof one);
    (void)n;
    pthread_join(client->keeper, NULL);
    client->keeper_runs = false;
    close_fds(client);
}
