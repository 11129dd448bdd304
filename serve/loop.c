/* See loop.h. */
#include "loop.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/banned.h"

static void clear_wake(struct source *source, uint32_t events)
{
    uint64_t count;

    (void)events;
    ssize_t got = read(source->fd, &count, sizeof count);
    (void)got;
}

int loop_init(struct loop *loop)
{
    *loop = (struct loop){.epoll_fd = epoll_create1(EPOLL_CLOEXEC),
                          .event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
                          .wake.ready = clear_wake,
                          .mutex = PTHREAD_MUTEX_INITIALIZER};
    loop->last = &loop->first;
    if (loop->epoll_fd < 0 || loop->event_fd < 0)
        return -1;
    return loop_add(loop, &loop->wake, loop->event_fd, EPOLLIN);
}

void loop_clear(struct loop *loop)
{
    close(loop->event_fd);
    close(loop->epoll_fd);
    pthread_mutex_destroy(&loop->mutex);
}

int loop_add(struct loop *loop, struct source *source, int fd, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = source};

    if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0)
        return -1;
    source->fd = fd;
    return 0;
}

void loop_remove(struct loop *loop, struct source *source)
{
    if (source->fd == 0)
        return;
    epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, source->fd, NULL);
    source->fd = 0;
    for (int i = 0; i < loop->batch_count; i++) {
        if (loop->batch[i].data.ptr == source)
            loop->batch[i].data.ptr = NULL;
    }
}

void loop_post(struct loop *loop, struct posted *posted)
{
    uint64_t one = 1;

    posted->next = NULL;
    pthread_mutex_lock(&loop->mutex);
    bool was_empty = loop->first == NULL;
    *loop->last = posted;
    loop->last = &posted->next;
    pthread_mutex_unlock(&loop->mutex);
    if (was_empty) {
        ssize_t put = write(loop->event_fd, &one, sizeof one);
        (void)put; /* full is awake, too */
    }
}

static void run_posted(struct loop *loop)
{
    pthread_mutex_lock(&loop->mutex);
    struct posted *posted = loop->first, *next;
    loop->first = NULL;
    loop->last = &loop->first;
    pthread_mutex_unlock(&loop->mutex);
    for (; posted != NULL; posted = next) {
        next = posted->next;
        posted->run(posted);
    }
}

void loop_turn(struct loop *loop, int timeout_ms)
{
    int count = epoll_wait(loop->epoll_fd, loop->batch, LOOP_BATCH, timeout_ms);

    loop->batch_count = count > 0 ? count : 0;
    for (int i = 0; i < loop->batch_count; i++) {
        struct source *source = loop->batch[i].data.ptr;
        if (source != NULL)
            source->ready(source, loop->batch[i].events);
    }
    loop->batch_count = 0;
    run_posted(loop);
}

int64_t loop_now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}
