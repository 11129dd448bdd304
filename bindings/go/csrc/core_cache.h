/* Locks that stay with their client after their release (C20).
 *
 *      in use ---release---> idle ---acquire---> in use        no round trip
 *        |                    |
 *        | called, or         | called, wanted, not used since the last renewal, lost, closed
 *        v told "wanted"      v
 *      released for good by its next release, or now, in the background
 *
 * An idle lock is one on duty like any other: it is renewed, and it can be lost. Only its user's reference
 * is the cache's. A ticket that was called is never idle again, so that whoever came to the store first is
 * let in first (C5, C9): a local acquire takes from nobody who waits.
 *
 * Each local grant has the next of the tokens that belong to the grant of the store. They are not given
 * faster than one a microsecond since that grant was known. So they stay behind the store's clock, which
 * is what the next grant begins from if the store has lost its data (C4). */
#ifndef HF_CORE_CACHE_H
#define HF_CORE_CACHE_H

#include "core_client.h"

/* Takes an idle lock of this name for `opt`, and gives it to the caller: 1. 0: there is none; then
 * opt->cached says whether what is to be acquired now may stay here. Negative: there is one, but this
 * owner has the name already, or nothing can be acquired at all. Locks the client for that. */
int hf__cache_acquire(hf_client *client, const struct hf__name *name, hf_options *opt,
                      hf_lock **ret_lock, hf_error *err);

/* The rest with the mutex held. */

/* Keeps a lock that its user gives back. False: it is to be released. */
bool hf__cache_keep(hf_lock *lock);

/* Its store has called it: somebody else wants it. */
void hf__cache_called(hf_lock *lock);

/* The keeper's look at an idle lock: whether it was let go of. `renewal_is_due`: it is, or never mind. */
bool hf__cache_let_go(hf_lock *lock, int64_t now_ns, bool renewal_is_due);

/* The client closes: what is idle is nobody's any more, and is released with all the others. */
void hf__cache_close(hf_client *client);

/* The token of the lock's user, and for a release the last one that was used: 0 if none but the grant's
 * own. */
uint64_t hf__cache_token(const hf_lock *lock);
uint64_t hf__cache_used(const hf_lock *lock);

#endif
