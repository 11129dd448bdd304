/* How long a grant may be believed, on the client's clock. Pure arithmetic (C3).
 *
 * Everything counts from `sent_ns`, the moment before the request left in which the store read its
 * own clock: the store cannot have started the lease earlier, so the client ends it first. */
#ifndef HF_BASE_LEASE_H
#define HF_BASE_LEASE_H

#include <stdint.h>

/* The last moment it may be believed: the lease less 1 % drift and a margin of max(5 ms, lease/50).
 * HF__NEVER for a lease of HF__NEVER. */
int64_t hf__lease_deadline_ns(int64_t sent_ns, int64_t lease_ms);

/* When to renew (a third of the lease), and from when on a renewal is overdue (two thirds). */
int64_t hf__lease_renew_ns(int64_t sent_ns, int64_t lease_ms);
int64_t hf__lease_at_risk_ns(int64_t sent_ns, int64_t lease_ms);

#endif
