/* The threads that talk to one store: a few, however many requests there are. What they are given they do in the order
 * in which it came, and post it back to the loop. A store that hangs holds up nobody but those who ask for it. */
#ifndef SERVE_WORKERS_H
#define SERVE_WORKERS_H

#include <stddef.h>

#include "loop.h"

#define WORKERS_MAX   4
#define WORKERS_QUEUE 1024 /* jobs that may wait; more are refused */

struct job {
    struct posted posted; /* `posted.run` is called on the loop when it is done */
    void (*work)(struct job *job);
    struct job *next;
};

struct workers {
    struct loop *loop;
    pthread_mutex_t mutex;
    pthread_cond_t news;
    struct job *first, **last; /* under the mutex, as all that follows */
    size_t waiting, idle, started;
    bool ending;
    pthread_t threads[WORKERS_MAX];
};

void workers_init(struct workers *workers, struct loop *loop);

/* Does what is still to be done, and joins the threads. */
void workers_clear(struct workers *workers);

/* False: there are too many already, or no thread can be had. Nothing follows then. */
bool workers_give(struct workers *workers, struct job *job);

#endif
