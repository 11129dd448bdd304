/* A cancel is an eventfd that is never read: once written it stays readable, from anywhere. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core_client.h"

#include "base_banned.h"

int hf_cancel_new(hf_cancel **ret_cancel)
{
    if (ret_cancel == NULL)
        return HF_INVALID;
    hf_cancel *cancel = malloc(sizeof *cancel);
    if (cancel == NULL)
        return HF_NO_MEMORY;
    cancel->pid = getpid();
    cancel->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (cancel->fd < 0) {
        free(cancel);
        return HF_SYSTEM;
    }
    *ret_cancel = cancel;
    return 0;
}

void hf_cancel_fire(hf_cancel *cancel)
{
    /* A forked child has the descriptor too, and the signal handler, but nothing to cancel. */
    if (cancel == NULL || cancel->pid != getpid())
        return;
    int saved = errno; /* a signal handler must not change it */
    int cancel_state = hf__forbid_cancel();
    uint64_t one = 1;
    ssize_t n = write(cancel->fd, &one, sizeof one);

    (void)n; /* it can only fail when it is full, and then it has been fired */
    hf__allow_cancel(cancel_state);
    errno = saved;
}

bool hf__cancel_fired(const hf_cancel *cancel)
{
    struct pollfd p = {.fd = cancel->fd, .events = POLLIN};

    return poll(&p, 1, 0) > 0;
}

void hf_cancel_free(hf_cancel *cancel)
{
    if (cancel == NULL)
        return;
    int cancel_state = hf__forbid_cancel();
    close(cancel->fd);
    hf__allow_cancel(cancel_state);
    free(cancel);
}
