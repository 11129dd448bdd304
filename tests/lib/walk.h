/* A store against the doorman: random operations go through both, on the same made-up clock, and
 * every answer and, now and then, every entry must be the same.
 *
 * For stores whose clock a test can set: `set_clock` makes the store's time w->now_us. Waiters must
 * be told to ask again after a minute (poll=60s), so that the doorman's own advice is seen. */
#ifndef TESTS_LIB_WALK_H
#define TESTS_LIB_WALK_H

#include "lib/random.h"
#include "stores/store.h"

#define WALK_TICKETS  14
#define WALK_CAPACITY 64

struct walk {
    void (*set_clock)(struct walk *w);
    void *ctx;
    int64_t now_us;
    bool quiet; /* two bidders, mostly plain bids that are released: for stores with a short way */
    struct hf__host host;
    struct hf__who who;
    hf_error err;
    /* What was seen so far. */
    unsigned let_in, went_back, queued;
    /* Its own. */
    struct hf__store *first;
    struct random random;
    unsigned lock;
    char name[32];
    struct hf__record record;
    struct hf__entry entries[WALK_CAPACITY];
    struct hf__ticket tickets[WALK_TICKETS];
    uint64_t known[WALK_TICKETS]; /* a generation this ticket was told of, perhaps an old one */
};

void walk_init(struct walk *w, void (*set_clock)(struct walk *w), void *ctx);

/* A store, opened without a client. */
struct hf__store *walk_open(struct walk *w, const struct hf__store_type *type, const char *url);

/* So many operations, each through one or the other of two stores on the same data. */
void walk(struct walk *w, struct hf__store *first, struct hf__store *second, unsigned operations);

int64_t walk_soon(void); /* a deadline */

#endif
