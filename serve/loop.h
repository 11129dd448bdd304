/* The one thread that owns everything in the server but what the workers are doing: it waits for descriptors, for
 * what other threads post, and for the next second.
 *
 *     workers --post--> loop --> requests, streams, bids, boards
 *                        ^
 *     sockets, events ---'
 *
 * Nothing here may block. Only loop_post() may be called on another thread. */
#ifndef SERVE_LOOP_H
#define SERVE_LOOP_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

/* A descriptor that is waited for. Lives inside of its owner; `fd` is 0 while it is not in use. */
struct source {
    int fd;
    void (*ready)(struct source *source, uint32_t events);
};

/* Something to be done on the loop's thread. Lives inside of what it is about. */
struct posted {
    struct posted *next;
    void (*run)(struct posted *posted);
};

#define LOOP_BATCH 64

struct loop {
    int epoll_fd, event_fd;
    struct source wake;
    struct epoll_event batch[LOOP_BATCH];
    int batch_count; /* entries of it that are still to be looked at */
    pthread_mutex_t mutex;
    struct posted *first, **last; /* under the mutex */
};

/* 0, or -1 with errno. */
int loop_init(struct loop *loop);
void loop_clear(struct loop *loop);

/* Waits for `events` on the descriptor. 0, or -1 with errno. */
int loop_add(struct loop *loop, struct source *source, int fd, uint32_t events);

/* No call of `ready` follows, even if the descriptor was ready in the present turn. */
void loop_remove(struct loop *loop, struct source *source);

/* From any thread. */
void loop_post(struct loop *loop, struct posted *posted);

/* One turn: waits for at most timeout_ms (-1: for ever) and serves what came. */
void loop_turn(struct loop *loop, int timeout_ms);

/* CLOCK_MONOTONIC, in milliseconds. */
int64_t loop_now_ms(void);

#endif
