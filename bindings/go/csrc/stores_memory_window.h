/* The part of a room that an operation can need, as the doorman's record.
 *
 * The few, the first who wait, those whose time is over, and the one the operation is about. So an
 * operation costs the same however long the queue is, and however many share. */
#ifndef HF_STORES_MEMORY_WINDOW_H
#define HF_STORES_MEMORY_WINDOW_H

#include "stores_memory_space.h"

struct window {
    struct space *space;
    struct room *room;
    const struct hf__ticket *ticket; /* whom the operation is about; NULL: nobody */
    struct member *newcomer;         /* for an entry that the doorman may add; NULL: it adds none */
    int64_t now_ms;
    int64_t history;                /* 0: no trail */
    const struct hf__operation *op; /* for the trail, as are the next two */
    struct hf__moment at;
    const struct hf__who *self;
    size_t
        waiters; /* how many of the queue's first are in it: raise it when the doorman wants MORE */
    struct hf__record record; /* its entries stand beside space->members */
};

/* Loads the window; the doorman may then be applied to window->record. False: no memory. */
bool hf__window_load(struct window *window);

/* Writes back what the doorman has changed, and calls those who were let in, other than the one the
 * operation is about if `skip_asker`. True: the newcomer was taken in. */
bool hf__window_save(struct window *window, bool skip_asker);

/* Where the ticket stands in the queue, from 1; 0: too far behind to be counted. */
size_t hf__window_position(const struct window *window);

#endif
