/* Several locks under one command: they are held while all of them are. See run.c. */
#include <sys/epoll.h>
#include <unistd.h>

#include "run_inside.h"

#include "base/banned.h"

int64_t run_remaining_ms(const struct run *r)
{
    int64_t least_ms = hf_lock_remaining_ms(r->lock);

    for (size_t i = 0; i < r->other_count; i++) {
        int64_t left_ms = hf_lock_remaining_ms(r->others[i]);
        least_ms = left_ms < least_ms ? left_ms : least_ms;
    }
    return least_ms;
}

hf_cause run_cause(const struct run *r)
{
    hf_cause cause = hf_lock_cause(r->lock);

    for (size_t i = 0; i < r->other_count && cause == HF_CAUSE_NONE; i++)
        cause = hf_lock_cause(r->others[i]);
    return cause;
}

void run_renew(struct run *r)
{
    hf_lock_renew(r->lock, NULL);
    for (size_t i = 0; i < r->other_count; i++)
        hf_lock_renew(r->others[i], NULL);
}

int run_acquire_all(struct run *r, const hf_options *options, hf_error *err)
{
    const struct cli_names *with = r->set->with;
    const char *names[HF_TOGETHER_MAX + 1] = {r->set->name};
    hf_lock *locks[HF_TOGETHER_MAX + 1];

    if (with->count == 0)
        return hf_acquire(r->client, r->set->name, HF_NTS, options, &r->lock, err);
    for (size_t i = 0; i < with->count; i++)
        names[i + 1] = with->names[i];
    int code = hf_acquire_all(r->client, names, NULL, with->count + 1, options, locks, err);
    if (code != HF_OK)
        return code;
    r->lock = locks[0];
    r->other_count = with->count;
    for (size_t i = 0; i < with->count; i++)
        r->others[i] = locks[i + 1];
    return HF_OK;
}

int run_lost_fd(struct run *r)
{
    struct epoll_event event = {.events = EPOLLIN};
    int fd = hf_lock_fd(r->lock);

    if (r->other_count == 0)
        return fd;
    r->lost_fd = epoll_create1(EPOLL_CLOEXEC);
    bool all = fd >= 0 && epoll_ctl(r->lost_fd, EPOLL_CTL_ADD, fd, &event) == 0;
    for (size_t i = 0; i < r->other_count; i++) {
        fd = hf_lock_fd(r->others[i]);
        all = fd >= 0 && epoll_ctl(r->lost_fd, EPOLL_CTL_ADD, fd, &event) == 0 && all;
    }
    return all ? r->lost_fd : -1;
}

/* The one that was named is told of; of the others only that something went wrong. */
int run_release_all(struct run *r, int64_t at_least_ms, hf_error *err)
{
    hf_error why;
    int code = hf_lock_release_after(r->lock, at_least_ms, err);

    for (size_t i = r->other_count; i-- > 0;) {
        int other = hf_lock_release_after(r->others[i], at_least_ms, &why);
        if (other == HF_OK || code != HF_OK)
            continue;
        code = other;
        *err = why;
    }
    return code;
}
