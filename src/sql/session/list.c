/* The list of bids that hold or wait: finding one, claiming it, hearing from it, and the tickets
 * that must not come back. See session.h; every function here wants the mutex held. */
#include "sql/session/list.h"

#include <stdlib.h>
#include <sys/epoll.h>

#include "base/thread.h"

#include "base/banned.h"

struct hf__session_lock *hf__session_find(struct hf__session_list *list,
                                          const struct hf__ticket *ticket)
{
    struct hf__session_lock *lock = list->first;

    while (lock != NULL && !hf__ticket_equal(&lock->ticket, ticket))
        lock = lock->next;
    return lock;
}

void hf__session_add(struct hf__session_list *list, struct hf__session_lock *lock)
{
    lock->next = list->first;
    list->first = lock;
}

void hf__session_remove(struct hf__session_list *list, struct hf__session_lock *lock)
{
    struct hf__session_lock **at = &list->first;

    while (*at != lock)
        at = &(*at)->next;
    *at = lock->next;
}

/* One event each time: where a child that was forked has a copy of the connection, the kernel would
 * go on telling of one that is closed here. */
void hf__session_hear(struct hf__session_list *list, struct hf__session_lock *lock)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT, .data.ptr = lock};
    int fd = lock->state == HF__SESSION_STATE_DEAD ? -1 : list->type->fd(lock);
    int how = lock->polled ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;

    lock->polled = fd >= 0 && epoll_ctl(list->epoll_fd, how, fd, &event) == 0;
}

void hf__session_stop_hearing(struct hf__session_list *list, struct hf__session_lock *lock)
{
    int fd = lock->polled ? list->type->fd(lock) : -1;

    if (fd >= 0)
        epoll_ctl(list->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
    lock->polled = false;
}

bool hf__session_claim(struct hf__session_list *list, const struct hf__ticket *ticket,
                       int64_t deadline_ns, struct hf__session_lock **ret_lock)
{
    struct hf__session_lock *lock;

    while ((lock = hf__session_find(list, ticket)) != NULL && lock->busy) {
        if (!hf__cond_wait(&list->idle_one, &list->mutex, list->env, deadline_ns))
            return false;
    }
    if (lock != NULL) {
        hf__session_stop_hearing(list, lock);
        lock->busy = true;
    }
    *ret_lock = lock;
    return true;
}

void hf__session_unclaim(struct hf__session_list *list, struct hf__session_lock *lock)
{
    lock->busy = false;
    hf__session_hear(list, lock);
    pthread_cond_broadcast(&list->idle_one);
}

bool hf__session_is_retired(const struct hf__session_list *list, const struct hf__ticket *ticket)
{
    int64_t now_ns = hf__now_ns(list->env);

    for (size_t i = 0; i < list->retired_count; i++) {
        if (list->retired[i].until_ns > now_ns &&
            hf__ticket_equal(&list->retired[i].ticket, ticket))
            return true;
    }
    return false;
}

static void forget_old(struct hf__session_list *list, int64_t now_ns)
{
    size_t kept = 0;

    for (size_t i = 0; i < list->retired_count; i++) {
        if (list->retired[i].until_ns > now_ns)
            list->retired[kept++] = list->retired[i];
    }
    list->retired_count = kept;
}

int hf__session_retire(struct hf__session_list *list, const struct hf__ticket *ticket,
                       int64_t retire_ms, hf_error *err)
{
    int64_t now_ns = hf__now_ns(list->env);

    forget_old(list, now_ns);
    if (list->retired_count == HF__RETIRED_MAX)
        return hf__fail(err, HF_FULL, "%s: too many bids were given up at once", list->type->store);
    if (list->retired_count == list->retired_capacity) {
        size_t capacity = list->retired_capacity * 2 + 16;
        struct hf__retired_ticket *grown = realloc(list->retired, capacity * sizeof *grown);
        if (grown == NULL)
            return hf__fail(err, HF_NO_MEMORY, NULL);
        list->retired = grown;
        list->retired_capacity = capacity;
    }
    list->retired[list->retired_count++] = (struct hf__retired_ticket){
        .ticket = *ticket, .until_ns = hf__moment_after(now_ns, retire_ms)};
    return 0;
}
