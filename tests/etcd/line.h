/* A lock with a queue before it, for tests of who is let in next. */
#ifndef TESTS_ETCD_LINE_H
#define TESTS_ETCD_LINE_H

#include "etcd/live.h"

#define HELD_MS 60000

/* A holder of its own client, and two who wait, one behind the other. Clients that are there already
 * are used. */
struct line {
    hf_client *clients[3];
    hf_lock *held;
    uint64_t generation;
    struct waiter first, second;
};
void line_up(struct line *line, const char *name);
void release_all(struct line *line); /* first and second, in their turns */
void disperse(struct line *line);

/* A client that is not called: neither that it was let in, nor that its lock was broken. */
hf_client *open_deaf(void);

uint64_t generation_of(const hf_lock *lock);

/* For await(): whether who is shown first has claimed the lock. */
struct place {
    hf_client *client;
    const char *name;
};
int is_claimed(void *place);

#endif
