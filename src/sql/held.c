/* The list of bids that hold or wait: finding one, claiming it, hearing from it, and the tickets
 * that must not come back. See hold.h; every function here wants the mutex held. */
#include "sql/held.h"

#include <stdlib.h>
#include <sys/epoll.h>

#include "base/thread.h"

#include "base/banned.h"

struct hf__held *hf__held_find(struct hf__hold *hold, const struct hf__ticket *ticket)
{
    struct hf__held *h = hold->first;

    while (h != NULL && !hf__ticket_equal(&h->ticket, ticket))
        h = h->next;
    return h;
}

void hf__held_put_in(struct hf__hold *hold, struct hf__held *h)
{
    h->next = hold->first;
    hold->first = h;
}

void hf__held_take_out(struct hf__hold *hold, struct hf__held *h)
{
    struct hf__held **at = &hold->first;

    while (*at != h)
        at = &(*at)->next;
    *at = h->next;
}

/* One event each time: where a child that was forked has a copy of the connection, the kernel would
 * go on telling of one that is closed here. */
void hf__held_hear(struct hf__hold *hold, struct hf__held *h)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT, .data.ptr = h};
    int fd = h->state == HF__HELD_DEAD ? -1 : hold->type->fd(h);
    int how = h->polled ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;

    h->polled = fd >= 0 && epoll_ctl(hold->epoll_fd, how, fd, &event) == 0;
}

void hf__held_stop_hearing(struct hf__hold *hold, struct hf__held *h)
{
    int fd = h->polled ? hold->type->fd(h) : -1;

    if (fd >= 0)
        epoll_ctl(hold->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
    h->polled = false;
}

bool hf__held_claim(struct hf__hold *hold, const struct hf__ticket *ticket, int64_t deadline_ns,
                    struct hf__held **ret_held)
{
    struct hf__held *h;

    while ((h = hf__held_find(hold, ticket)) != NULL && h->busy) {
        if (!hf__cond_wait(&hold->idle_one, &hold->mutex, hold->env, deadline_ns))
            return false;
    }
    if (h != NULL) {
        hf__held_stop_hearing(hold, h);
        h->busy = true;
    }
    *ret_held = h;
    return true;
}

void hf__held_unclaim(struct hf__hold *hold, struct hf__held *h)
{
    h->busy = false;
    hf__held_hear(hold, h);
    pthread_cond_broadcast(&hold->idle_one);
}

bool hf__held_is_retired(const struct hf__hold *hold, const struct hf__ticket *ticket)
{
    int64_t now_ns = hf__now_ns(hold->env);

    for (size_t i = 0; i < hold->retired_count; i++) {
        if (hold->retired[i].until_ns > now_ns &&
            hf__ticket_equal(&hold->retired[i].ticket, ticket))
            return true;
    }
    return false;
}

static void forget_old(struct hf__hold *hold, int64_t now_ns)
{
    size_t kept = 0;

    for (size_t i = 0; i < hold->retired_count; i++) {
        if (hold->retired[i].until_ns > now_ns)
            hold->retired[kept++] = hold->retired[i];
    }
    hold->retired_count = kept;
}

int hf__held_retire(struct hf__hold *hold, const struct hf__ticket *ticket, int64_t retire_ms,
                    hf_error *err)
{
    int64_t now_ns = hf__now_ns(hold->env);

    forget_old(hold, now_ns);
    if (hold->retired_count == HF__RETIRED_MAX)
        return hf__fail(err, HF_FULL, "%s: too many bids were given up at once", hold->type->store);
    if (hold->retired_count == hold->retired_capacity) {
        size_t capacity = hold->retired_capacity * 2 + 16;
        struct hf__retired_ticket *grown = realloc(hold->retired, capacity * sizeof *grown);
        if (grown == NULL)
            return hf__fail(err, HF_NO_MEMORY, NULL);
        hold->retired = grown;
        hold->retired_capacity = capacity;
    }
    hold->retired[hold->retired_count++] = (struct hf__retired_ticket){
        .ticket = *ticket, .until_ns = hf__moment_after(now_ns, retire_ms)};
    return 0;
}
