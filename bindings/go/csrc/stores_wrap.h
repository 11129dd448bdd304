/* What stores that wrap another store share: opening it and passing calls on.
 *
 * A wrapper's own structure begins with struct hf__wrapper. A function that a wrapper has nothing
 * to add to can go into its table as it is here; each also copes with an inner store that lacks
 * it. */
#ifndef HF_STORES_WRAP_H
#define HF_STORES_WRAP_H

#include "stores_store.h"

struct hf__wrapper {
    struct hf__store base;
    struct hf__store *inner;
};

/* Opens what follows "name+" in the URL, without the options of `own`, and fills in `w`.
 * Errors: HF_NO_MEMORY and those of the inner store. */
int hf__wrapper_open(struct hf__wrapper *w, const struct hf__store_type *type,
                     const struct hf__url *url, const struct hf__host *host, hf_error *err);

/* Fills in `w` around a store that is open already. */
void hf__wrapper_around(struct hf__wrapper *w, const struct hf__store_type *type,
                        struct hf__store *inner);

/* Closes the inner store; the wrapper frees itself. */
void hf__wrapper_close(struct hf__wrapper *w);

/* Takes over whether the inner store has lost its data. After each call. */
void hf__wrapper_sync(struct hf__wrapper *w);

int hf__wrapper_operate(struct hf__store *store, const struct hf__operation *op,
                        int64_t deadline_ns, struct hf__answer *ret_answer, hf_error *err);
int hf__wrapper_renew(struct hf__store *store, struct hf__renewal *items, size_t count,
                      int64_t deadline_ns, hf_error *err);
int hf__wrapper_inspect(struct hf__store *store, const struct hf__search *search,
                        int64_t deadline_ns, hf_error *err);
int hf__wrapper_trail(struct hf__store *store, const struct hf__trail_search *search,
                      int64_t deadline_ns, hf_error *err);
int hf__wrapper_upkeep(struct hf__store *store, enum hf__upkeep what, int64_t retain_ms,
                       int64_t deadline_ns, uint64_t *ret_count, hf_error *err);
int hf__wrapper_diagnose(struct hf__store *store, hf_finding_callback *found, void *arg,
                         int64_t deadline_ns, hf_error *err);
int hf__wrapper_wake_fd(struct hf__store *store);
void hf__wrapper_wake(struct hf__store *store, hf__wake_sink *sink, void *ctx);

#endif
