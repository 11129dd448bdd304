/* The counters of a client, for hf_metrics_read(). A client that nobody counts has none, and passes by
 * at the price of one comparison.
 *
 * Counters are words that only rise, each by itself, so that they can be raised and read on any
 * thread. What happens to locks is counted where it happens, with the mutex held; calls of the store
 * are made without it, and counted by a store in front of the real one. */
#ifndef HF_CORE_METER_H
#define HF_CORE_METER_H

#include "holdfast.h"
#include "stores_store.h"

struct hf__meter {
    hf_metrics seen;
    uint64_t lost_kept; /* locks that are lost, but not given back yet */
};

static inline void hf__raise(uint64_t *counter)
{
    __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}
void hf__raise_code(uint64_t counters[HF_METRICS_CODES], int code); /* an HF_ code, or 0: none */
void hf__raise_duration(hf_histogram *durations, int64_t ns);

/* Mutex held, and somebody counts. */
void hf__meter_granted(hf_lock *lock, int64_t began_ns); /* of an acquire */
void hf__meter_queued(struct hf__meter *meter, size_t position);
void hf__meter_renewed(struct hf__meter *meter, int64_t left_ns); /* INT64_MAX: it never ends */
void hf__meter_lost(hf_lock *lock);
void hf__meter_keep_ends(hf_lock *lock); /* it is not looked after as a held one any more */

/* Puts a store in front of `inner` that counts, if somebody counts, and notes when the store is away
 * and when it is back. HF_NO_MEMORY: `inner` is as before. */
int hf__meter_store(hf_client *client, struct hf__store *inner, struct hf__store **ret_store,
                    hf_error *err);

#endif
