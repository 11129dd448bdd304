/* What the clients of one memory:// URL share: rooms, one for each name, and the boxes for wake-ups.
 * Everything but joining needs space->mutex. */
#ifndef HF_STORES_MEMORY_SPACE_H
#define HF_STORES_MEMORY_SPACE_H

#include <pthread.h>

#include "base_heap.h"
#include "base_table.h"
#include "stores_store.h"

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

/* One holder, waiter or tombstone. */
struct member {
    struct hf__entry entry; /* `who` is unused: client and note say it */
    struct member *prev, *next;
    struct crowd *crowd;       /* that it is in; NULL: none */
    struct hf__link by_ticket; /* of a crowd: in space->by_ticket */
    struct hf__timer due;      /* of a crowd: in its heap, by until_ms */
    uint64_t loaded;           /* the last window it was in */
    struct client *client;
    char note[];
};

struct members {
    struct member *first, *last; /* in the order in which they came */
};

/* Members of whom an operation looks only at those that it is about, and whose time is over. */
struct crowd {
    struct members members;
    size_t count;
    struct hf__heap due;
};

/* One entry of a trail. */
struct step {
    struct step *next;
    hf_trail_kind kind;
    int64_t wall_ms, span_ms;
    struct hf__ticket ticket;
    uint64_t generation;
    hf_mode mode;
    struct client *client;
    const char *cause; /* behind the note */
    char note[];
};

/* One name. */
struct room {
    struct hf__link link;
    uint64_t generation;     /* the last one given */
    struct hf__value *value; /* NULL: no holder has opened it yet */
    struct members few;      /* the rest of those inside or lingering, and the retired */
    struct crowd sharers;    /* inside or lingering, with one limit */
    uint32_t sharers_limit;
    struct crowd queue;
    struct step *first_step, **last_step; /* its trail */
    size_t steps, ends;                   /* all of them; but for the grants */
    int64_t touched_ms;
    struct room *older, *newer; /* all rooms, by touched_ms */
    size_t name_len;
    char name[];
};

struct space {
    struct space *next;
    unsigned clients;
    pthread_mutex_t mutex;
    uint64_t seed;
    struct hf__table rooms;
    struct hf__table by_ticket; /* all who are in a crowd */
    struct room *oldest, *newest;
    uint64_t generation; /* the highest of those that rooms which are gone had given (C4) */
    uint64_t windows;    /* counted; see window.c, of which these are the arrays */
    struct hf__entry *entries;
    struct member **members;
    size_t capacity;
    char name[];
};

/* Joins the space of this name, making it if it is not there. It lasts until the process ends, like
 * the locks in it; when its last client leaves, the rooms in which nobody is are given up. NULL: no
 * memory. */
struct space *hf__space_join(const char *name, const struct hf_env *env);
void hf__space_leave(struct space *space);

struct room *hf__space_find(const struct space *space, const char *name, size_t len);
struct room *hf__space_get(struct space *space, const char *name, size_t len); /* NULL: no memory */

/* Somebody was in this room now. */
void hf__space_touch(struct space *space, struct room *room, int64_t now_ms);

/* The oldest room that was not touched since then; NULL if there is none. */
struct room *hf__space_untouched(const struct space *space, int64_t since_ms);

/* It has a value, and so stays although nobody is in it. */
bool hf__room_has_value(const struct room *room);

bool hf__room_is_empty(const struct room *room);

/* Nobody is in it. */
void hf__space_remove(struct space *space, struct room *room);

struct client *hf__client_new(const struct hf__who *self);
void hf__client_unref(struct client *client);

/* Puts a wake-up into the box. Without memory it is lost, which costs time only. */
void hf__client_call(struct client *client, const struct hf__ticket *ticket, uint64_t generation);

struct member *hf__member_new(struct client *client, const char *note); /* NULL: no memory */
void hf__member_free(struct member *member);                            /* NULL is fine */

#endif
