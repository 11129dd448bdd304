/* See keeper.h. */
#include "core_keeper.h"

#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core_cache.h"
#include "core_started.h"

#include "base_banned.h"

#define EVENTS         64 /* taken at once */
#define BLIND_PAUSE_MS 10 /* the program has closed our descriptors */
#define LIMIT_SLACK_MS 50
#define LIMIT_MAX_MS   5000 /* what is scheduled during a sleep is told by a descriptor, too */

enum tag { TAG_TIMER, TAG_KICK, TAG_WAKE, TAG_CANCEL };

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* What is due when. ---------------------------------------------------------------------------- */

/* Renewals are rounded down to a 24th of the lease, so that locks taken at different times are
 * renewed together. A grant that is not claimed yet is claimed after a 16th of its lease: soon, but
 * one that is released before saves the round trip. One that never expires is looked at now and
 * then, to learn that it was broken. */
static int64_t renewal_due(const hf_lock *lock)
{
    const struct hf__bidder *b = &lock->bidder;

    if (lock->job != HF__JOB_NONE || (lock->by_hand && b->claimed))
        return INT64_MAX;
    if (lock->failures > 0) /* also if it was not due: somebody had a reason to ask */
        return lock->retry_ns;
    if (!b->claimed)
        return b->known_ns + b->lease_ms * HF__NS_PER_MS / 16;
    int64_t lease_ms = b->lease_ms == HF__NEVER ? 3 * hf__own_lease_ms(HF__NEVER) : b->lease_ms;
    int64_t due_ns = hf__lease_renew_ns(b->sent_ns, lease_ms);
    return due_ns - due_ns % (lease_ms * HF__NS_PER_MS / 24);
}

/* A waiter may hold already: its caller is in a callback, or has not been woken yet. Then it is kept
 * like any other grant. */
static int64_t care_due(const hf_lock *lock)
{
    if (lock->bidder.phase == HF__PHASE_HOLDING)
        return renewal_due(lock);
    bool queues = lock->duty == HF__DUTY_WAIT && lock->bidder.phase == HF__PHASE_WAITING;
    return queues && lock->job == HF__JOB_NONE ? lock->waiter->sign_ns : INT64_MAX;
}

static int64_t next_moment(const hf_lock *lock)
{
    const struct hf__bidder *b = &lock->bidder;
    int64_t when_ns = INT64_MAX;

    switch (lock->duty) {
    case HF__DUTY_NONE:
        break;
    case HF__DUTY_WAIT:
        when_ns = earlier(lock->waiter->until_ns, lock->waiter->ask_ns);
        when_ns = earlier(when_ns, care_due(lock));
        break;
    case HF__DUTY_KEEP:
        if (lock->is_idle && (lock->called || b->wanted || b->phase != HF__PHASE_HOLDING)) {
            when_ns = 0;
            break;
        }
        if (b->phase != HF__PHASE_HOLDING) {
            bool untold = lock->call_lost && lock->call_turn.slot == 0;
            when_ns = untold ? lock->retry_ns : INT64_MAX;
            break;
        }
        when_ns = earlier(b->deadline_ns, lock->max_hold_ns);
        when_ns = earlier(when_ns, care_due(lock));
        if (!lock->risk_told)
            when_ns = earlier(when_ns, hf__lease_at_risk_ns(b->sent_ns, b->lease_ms));
        break;
    case HF__DUTY_UNDO:
        when_ns = lock->job != HF__JOB_NONE ? INT64_MAX : lock->retry_ns;
        break;
    }
    return when_ns;
}

void hf__keeper_schedule(hf_lock *lock)
{
    hf_client *client = lock->client;
    struct hf__keeper *keeper = &client->keeper;
    int64_t when_ns = next_moment(lock);

    if (when_ns == INT64_MAX) {
        hf__heap_remove(&keeper->timers, &lock->timer);
        return;
    }
    hf__heap_set(&keeper->timers, &lock->timer, when_ns);
    /* A timer that is set too early only costs one look; so it is never moved back. */
    if (keeper->runs && when_ns < keeper->armed_ns) {
        keeper->armed_ns = when_ns;
        client->env->timer_set(client->env->ctx, keeper->timer_fd, when_ns);
    }
}

/* A descriptor wakes whoever sleeps here. But a program may close what is not its own, and a sleep
 * that is under way then would never end: so none lasts much longer than it should. */
int hf__keeper_limit_ms(const hf_client *client, int64_t until_ns)
{
    int64_t left_ms = LIMIT_MAX_MS;

    if (until_ns != INT64_MAX)
        left_ms = (until_ns - hf__now_ns(client->env)) / HF__NS_PER_MS + LIMIT_SLACK_MS;
    return left_ms < LIMIT_SLACK_MS ? LIMIT_SLACK_MS
           : left_ms > LIMIT_MAX_MS ? LIMIT_MAX_MS
                                    : (int)left_ms;
}

/* Doing it. ------------------------------------------------------------------------------------ */
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
    if (now_ns >= care_due(lock))
        hf__renewer_push(lock);
}

static void keep(hf_lock *lock, int64_t now_ns)
{
    if (lock->is_idle && hf__cache_let_go(lock, now_ns, now_ns >= care_due(lock)))
        return;
    if (!hf__lock_holds(lock, now_ns)) { /* and it was told, if there was a thread for it */
        if (lock->call_lost)
            hf__notifier_push(lock);
        return;
    }
    if (now_ns >= care_due(lock))
        hf__renewer_push(lock);
    if (lock->risk_told ||
        now_ns < hf__lease_at_risk_ns(lock->bidder.sent_ns, lock->bidder.lease_ms))
        return;
    lock->risk_told = true;
    if (lock->client->meter != NULL)
        hf__raise(&lock->client->meter->seen.at_risk);
    hf__lock_log_danger(lock, HF_LOG_AT_RISK, "a renewal is overdue");
    hf__tell_event(lock, HF__TELL_AT_RISK);
    if (lock->on_at_risk != NULL) {
        lock->call_risk = true;
        hf__notifier_push(lock);
    }
    if (lock->job == HF__JOB_QUEUED) /* still, behind a call that hangs */
        hf__workers_help(&lock->client->renewer);
}

/* Gives the next moment. */
static int64_t tick(hf_client *client)
{
    struct hf__keeper *keeper = &client->keeper;
    int64_t now_ns = hf__now_ns(client->env);
    struct hf__timer *timer;

    while ((timer = hf__heap_first(&keeper->timers)) != NULL && timer->when_ns <= now_ns) {
        hf_lock *lock = (hf_lock *)((char *)timer - offsetof(hf_lock, timer));
        hf__lock_ref(lock);
        if (lock->duty == HF__DUTY_WAIT)
            help_waiting(lock, now_ns);
        else if (lock->duty == HF__DUTY_KEEP)
            keep(lock, now_ns);
        else if (lock->duty == HF__DUTY_UNDO)
            hf__withdrawer_push(lock);
        hf__keeper_schedule(lock);
        hf__lock_unref(lock);
    }
    /* What is set already, and comes first, stays. */
    int64_t next_ns = timer != NULL ? timer->when_ns : INT64_MAX;
    if (keeper->armed_ns <= now_ns || keeper->armed_ns > next_ns) {
        keeper->armed_ns = next_ns;
        client->env->timer_set(client->env->ctx, keeper->timer_fd, next_ns);
    }
    return next_ns;
}

static void tell_cancelled(hf_client *client)
{
    hf__lock_client(client);
    for (hf_lock *lock = client->on_duty; lock != NULL; lock = lock->next) {
        const struct hf__waiter *w = lock->waiter;
        if (w != NULL && w->cancel != NULL && hf__cancel_fired(w->cancel))
            hf__wait_tell(lock, HF__NEWS_CANCEL);
    }
    hf__unlock_client(client);
}

static void drain(int fd)
{
    uint64_t count;
    ssize_t n = read(fd, &count, sizeof count);

    (void)n;
}

/* Those that were cancelled are looked for once, however many cancels were fired. */
static void handle(hf_client *client, const struct epoll_event *events, int count)
{
    bool cancelled = false;

    for (int i = 0; i < count; i++) {
        enum tag tag = events[i].data.u32;
        if (tag == TAG_TIMER)
            drain(client->keeper.timer_fd);
        else if (tag == TAG_KICK)
            drain(client->keeper.kick_fd);
        else if (tag == TAG_WAKE)
            hf__wake_reader_serve(client);
        else
            cancelled = true;
    }
    if (cancelled)
        tell_cancelled(client);
}

static void *run(void *arg)
{
    hf_client *client = arg;
    struct epoll_event events[EVENTS];

    for (;;) {
        hf__lock_client(client);
        int limit_ms = hf__keeper_limit_ms(client, tick(client));
        bool stop = client->keeper.stop;
        hf__unlock_client(client);
        if (stop)
            return NULL;
        int n = epoll_wait(client->keeper.epoll_fd, events, EVENTS, limit_ms);
        if (n < 0 && errno != EINTR)
            poll(NULL, 0, BLIND_PAUSE_MS);
        handle(client, events, n);
    }
}

static int watch(hf_client *client, int fd, enum tag tag, uint32_t how)
{
    struct epoll_event event = {.events = EPOLLIN | how, .data.u32 = tag};

    return epoll_ctl(client->keeper.epoll_fd, EPOLL_CTL_ADD, fd, &event);
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
    int *fds[] = {&client->keeper.epoll_fd, &client->keeper.timer_fd, &client->keeper.kick_fd};

    for (size_t i = 0; i < 3; i++) {
        if (*fds[i] >= 0)
            close(*fds[i]);
        *fds[i] = -1;
    }
}

void hf__keeper_init(struct hf__keeper *keeper)
{
    keeper->epoll_fd = keeper->timer_fd = keeper->kick_fd = -1;
    keeper->armed_ns = INT64_MAX;
}

int hf__keeper_start(hf_client *client, hf_error *err)
{
    if (client->keeper.runs)
        return 0;
    client->keeper.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    client->keeper.timer_fd = client->env->timer_open(client->env->ctx);
    client->keeper.kick_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (client->keeper.epoll_fd < 0 || client->keeper.timer_fd < 0 || client->keeper.kick_fd < 0 ||
        watch(client, client->keeper.timer_fd, TAG_TIMER, 0) < 0 ||
        watch(client, client->keeper.kick_fd, TAG_KICK, 0) < 0 ||
        hf__thread_start(&client->keeper.thread, "hf-keeper", 256 * 1024, run, client) < 0) {
        close_fds(client);
        return hf__fail_errno(err, HF_SYSTEM, "the keeper's thread cannot be started");
    }
    client->keeper.runs = true;
    return 0;
}

int hf__keeper_read_wakes(hf_client *client)
{
    return watch(client, client->wake_reader.wake_fd, TAG_WAKE, 0);
}

int hf__keeper_lend_wakes(hf_client *client, bool lent)
{
    /* Errors are reported whatever is asked for: if lent, once at most. */
    struct epoll_event event = {.events = lent ? EPOLLONESHOT : EPOLLIN, .data.u32 = TAG_WAKE};

    return epoll_ctl(client->keeper.epoll_fd, EPOLL_CTL_MOD, client->wake_reader.wake_fd, &event);
}

void hf__keeper_stop(hf_client *client)
{
    if (!client->keeper.runs)
        return;
    hf__lock_client(client);
    client->keeper.stop = true;
    hf__unlock_client(client);

    uint64_t one = 1;
    ssize_t n = write(client->keeper.kick_fd, &one, sizeof one);
    (void)n;
    pthread_join(client->keeper.thread, NULL);
    client->keeper.runs = false;
    close_fds(client);
}
