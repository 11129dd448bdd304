/* See wakes.h. One descriptor of ours is polled: an epoll set with that of the inner store and a
 * timer for the wake-ups that are held back. When there is no room for one it is passed on at once:
 * a fault that did not happen is better than one that nobody asked for.
 *
 * All of this is allowed to a store. Wake-ups are hints: who waits asks again by itself in any
 * case, and believes only the answer. */
#include "stores/fault/wakes.h"

#include <sys/epoll.h>
#include <unistd.h>

#include "base/banned.h"

int hf__fault_wakes_init(struct hf__fault_wakes *wakes, struct hf__fault_plan *plan,
                         struct hf__store *inner)
{
    wakes->plan = plan;
    wakes->inner = inner;
    wakes->epoll_fd = wakes->timer_fd = -1;
    return pthread_mutex_init(&wakes->mutex, NULL) == 0 ? 0 : HF_SYSTEM;
}

void hf__fault_wakes_clear(struct hf__fault_wakes *wakes)
{
    if (wakes->timer_fd >= 0)
        close(wakes->timer_fd);
    if (wakes->epoll_fd >= 0)
        close(wakes->epoll_fd);
    pthread_mutex_destroy(&wakes->mutex);
}

static const struct hf_env *env_of(struct hf__fault_wakes *wakes)
{
    return wakes->inner->host->env;
}

/* With the mutex held. */
static void set_timer(struct hf__fault_wakes *wakes)
{
    int64_t first_ns = INT64_MAX;

    for (size_t i = 0; i < wakes->pending_count; i++) {
        if (wakes->pending[i].when_ns < first_ns)
            first_ns = wakes->pending[i].when_ns;
    }
    env_of(wakes)->timer_set(env_of(wakes)->ctx, wakes->timer_fd, first_ns);
}

static bool hold_back(struct hf__fault_wakes *wakes, const struct hf__ticket *ticket,
                      uint64_t generation, int64_t ms)
{
    bool room = false;

    pthread_mutex_lock(&wakes->mutex);
    if (wakes->timer_fd >= 0 && wakes->pending_count < HF__FAULT_WAKES_MAX) {
        struct hf__fault_wakes_pending *p = &wakes->pending[wakes->pending_count++];
        *p = (struct hf__fault_wakes_pending){.when_ns =
                                                  hf__now_ns(env_of(wakes)) + ms * HF__NS_PER_MS,
                                              .everybody = ticket == NULL,
                                              .generation = generation};
        if (ticket != NULL)
            p->ticket = *ticket;
        set_timer(wakes);
        room = true;
    }
    pthread_mutex_unlock(&wakes->mutex);
    return room;
}

/* A ticket that newer ones have pushed out of the ring counts as told for the first time. */
void hf__fault_wakes_queued(struct hf__fault_wakes *wakes, const struct hf__ticket *ticket,
                            uint64_t generation)
{
    uint64_t before = 0; /* what this ticket was told last; 0: nothing */
    size_t i = 0;

    pthread_mutex_lock(&wakes->mutex);
    while (i < HF__FAULT_WAKES_MAX && !hf__ticket_equal(&wakes->told[i].ticket, ticket))
        i++;
    if (i < HF__FAULT_WAKES_MAX) {
        before = wakes->told[i].generation;
    } else {
        i = wakes->told_next++ % HF__FAULT_WAKES_MAX;
        wakes->told[i].ticket = *ticket;
    }
    wakes->told[i].generation = generation;
    pthread_mutex_unlock(&wakes->mutex);
    if (before != 0 &&
        hf__fault_plan_next(wakes->plan, HF__FAULT_OP_QUEUED).act == HF__FAULT_ACT_STALE)
        hold_back(wakes, ticket, before, 0);
}

static bool watch(int epoll_fd, int fd)
{
    struct epoll_event event = {.events = EPOLLIN};

    return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

int hf__fault_wakes_fd(struct hf__fault_wakes *wakes)
{
    const struct hf__store_type *type = wakes->inner->type;
    int inner_fd = type->wake_fd != NULL ? type->wake_fd(wakes->inner) : -1;

    if (inner_fd < 0)
        return inner_fd;
    pthread_mutex_lock(&wakes->mutex);
    wakes->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    wakes->timer_fd = env_of(wakes)->timer_open(env_of(wakes)->ctx);
    bool ready = wakes->epoll_fd >= 0 && wakes->timer_fd >= 0 && watch(wakes->epoll_fd, inner_fd) &&
                 watch(wakes->epoll_fd, wakes->timer_fd);
    pthread_mutex_unlock(&wakes->mutex);
    return ready ? wakes->epoll_fd : -1; /* the store inside was asked: it is not asked again */
}

/* Takes one that is due. One at a time, so that the receiver is called without the mutex. */
static bool take_due(struct hf__fault_wakes *wakes, struct hf__fault_wakes_pending *ret)
{
    int64_t now_ns = hf__now_ns(env_of(wakes));
    bool found = false;

    pthread_mutex_lock(&wakes->mutex);
    for (size_t i = 0; i < wakes->pending_count && !found; i++) {
        if (wakes->pending[i].when_ns > now_ns)
            continue;
        *ret = wakes->pending[i];
        wakes->pending[i] = wakes->pending[--wakes->pending_count];
        found = true;
    }
    if (!found)
        set_timer(wakes);
    pthread_mutex_unlock(&wakes->mutex);
    return found;
}

/* Where a wake-up of the inner store goes, if the plan lets it. */
struct receiver {
    struct hf__fault_wakes *wakes;
    hf__wake_sink *sink;
    void *ctx;
};

static void pass_or_disturb(void *ctx, const struct hf__ticket *ticket, uint64_t generation)
{
    struct receiver *to = ctx;
    struct hf__fault_order order = hf__fault_plan_next(to->wakes->plan, HF__FAULT_OP_WAKE);

    if (order.act == HF__FAULT_ACT_DROP)
        return;
    if (order.act == HF__FAULT_ACT_DEFER && hold_back(to->wakes, ticket, generation, order.ms))
        return;
    to->sink(to->ctx, ticket, generation);
    if (order.act == HF__FAULT_ACT_DUP)
        to->sink(to->ctx, ticket, generation);
}

void hf__fault_wakes_pass(struct hf__fault_wakes *wakes, hf__wake_sink *sink, void *ctx)
{
    struct receiver to = {wakes, sink, ctx};
    struct hf__fault_wakes_pending due;
    uint64_t fired;

    if (wakes->epoll_fd < 0)
        return;
    ssize_t n = read(wakes->timer_fd, &fired, sizeof fired);
    (void)n; /* it only makes the timer unreadable; what is due is seen by the clock */
    while (take_due(wakes, &due))
        sink(ctx, due.everybody ? NULL : &due.ticket, due.generation);
    wakes->inner->type->wake(wakes->inner, pass_or_disturb, &to);
}
