/* Between the public functions (acquire_api.c) and the work of one bid (acquire.c, adopt.c). Mutex
 * held, released for round trips, callbacks and sleep. */
#ifndef HF_CORE_ACQUIRE_H
#define HF_CORE_ACQUIRE_H

#include "core/client.h"

/* Bids until it is held, refused, or no longer wanted. On success the lock is kept; on failure
 * nothing of it is left in the store, or the withdrawer goes on undoing it (HF_UNKNOWN). */
int hf__bid(hf_lock *lock, const hf_options *opt, hf_error *err);

/* Takes over the grant of this ticket; then as above. HF_STALE: it holds nothing. */
int hf__adopt(hf_lock *lock, const char *ticket, const hf_options *opt, hf_error *err);

#endif
