/* A store against the doorman: see walk.h.
 *
 * For stores whose clock a test can set. Waiters must be told to ask again after a minute
 * (poll=60s), so that the doorman's own advice is seen. */
#ifndef TESTS_LIB_STORE_WALK_H
#define TESTS_LIB_STORE_WALK_H

#include "lib/walk.h"

struct store_walk {
    struct walk base;
    void (*set_clock)(void *ctx, int64_t now_us);
    void *ctx;
    struct hf__host host;
    hf_error err;
    struct hf__store *first, *second;
};

/* `set_clock` makes it the store's time. */
void store_walk_init(struct store_walk *w, void (*set_clock)(void *ctx, int64_t now_us), void *ctx);

/* A store, opened without a client. */
struct hf__store *store_walk_open(struct store_walk *w, const struct hf__store_type *type,
                                  const char *url);

/* So many operations, each through one or the other of two stores on the same data. */
void store_walk(struct store_walk *w, struct hf__store *first, struct hf__store *second,
                unsigned operations);

int64_t store_walk_soon(void); /* a deadline */

#endif
