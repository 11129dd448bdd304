/* Many locks, one thread: bids are started, and an event loop is told how they end.
 *
 *     epoll memory://example        or any other URL
 *
 * A real loop has descriptors of its own beside the client's. */
#define _POSIX_C_SOURCE 200809L
#include <holdfast.h>
#include <stdio.h>
#include <sys/epoll.h>

enum { BIDS = 20 };

static int released; /* how many are through */

static void on_event(const hf_event *e)
{
    if (e->kind == HF_EVENT_ACQUIRED) { /* the turn of number e->tag: work, then give it back */
        printf("bid %d: inside\n", (int)e->tag);
        hf_release_start(e->lock, e->tag, NULL);
    } else if (e->kind == HF_EVENT_RELEASED) {
        released++;
    } else {
        fprintf(stderr, "bid %d: %s\n", (int)e->tag,
                e->kind == HF_EVENT_LOST ? hf_cause_text(e->cause) : e->err.text);
    }
}

int main(int argc, char **argv)
{
    hf_client *client;
    hf_error err;
    if (hf_open(argc > 1 ? argv[1] : NULL, NULL, &client, &err) != HF_OK)
        return fprintf(stderr, "%s\n", err.text), 1;
    for (int i = 1; i <= BIDS; i++) /* all for one lock: they take turns */
        if (hf_acquire_start(client, "printer", HF_NTS, NULL, (uint64_t)i, &err) != HF_OK)
            return fprintf(stderr, "%s\n", err.text), 1;

    int loop = epoll_create1(EPOLL_CLOEXEC), fd = hf_event_fd(client);
    struct epoll_event ready = {.events = EPOLLIN};
    if (loop < 0 || fd < 0 || epoll_ctl(loop, EPOLL_CTL_ADD, fd, &ready) != 0)
        return perror("epoll"), 1;
    while (released < BIDS && epoll_wait(loop, &ready, 1, -1) >= 0) {
        hf_event event = {.size = sizeof event};
        while (hf_event_next(client, 0, &event) == HF_OK)
            on_event(&event);
    }
    hf_close(client);
    printf("%d took turns\n", released);
    return 0;
}
