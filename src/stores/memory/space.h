/* What the clients of one memory:// URL share: a record per name, and the boxes for wake-ups.
 * Everything but opening and closing needs space->mutex. */
#ifndef HF_STORES_MEMORY_SPACE_H
#define HF_STORES_MEMORY_SPACE_H

#include <pthread.h>

#include "stores/store.h"
#include "util/table.h"

/* One name. */
struct room {
    struct hf__link link;
    struct hf__record record;
    int64_t touched_ms;
    struct room *next_idle; /* while purging */
    size_t name_len;
    char name[];
};

struct space {
    struct space *next;
    unsigned clients;
    pthread_mutex_t mutex;
    uint64_t seed;
    struct hf__table rooms;
    char name[];
};

struct wake {
    struct wake *next;
    struct hf__ticket ticket;
    uint64_t generation;
};

/* A client: who it is, and its box. It lives as long as one of its bids is remembered. */
struct client {
    unsigned refs;
    int fd; /* readable when the box is not empty; -1: nobody listens */
    struct wake *first, **last;
    struct hf__who self;
    char text[];
};

/* Who made a bid: what the doorman carries as `who`. */
struct caller {
    struct client *client;
    char note[];
};

/* Joins the space of this name, making it if it is not there. It lasts until the process ends, like
 * the locks in it. NULL: no memory. */
struct space *hf__space_join(const char *name, const struct hf_env *env);

struct room *hf__space_find(const struct space *space, const char *name, size_t len);
struct room *hf__space_get(struct space *space, const char *name, size_t len); /* NULL: no memory */

/* Room for one more entry. False: no memory. */
bool hf__room_reserve(struct room *room);

/* After an operation: calls those who were let in, other than `asker` (NULL: everybody), and
 * forgets those who are gone. */
void hf__room_settle(struct room *room, const struct hf__ticket *asker);

/* Removes rooms that are empty and were not touched since then; gives their number. */
uint64_t hf__space_purge(struct space *space, int64_t untouched_since_ms, struct hf__moment at);

struct client *hf__client_new(const struct hf__who *self);
void hf__client_unref(struct client *client);

struct caller *hf__caller_new(struct client *client, const char *note);
void hf__caller_free(struct caller *caller); /* NULL is fine */

#endif
