/* See lease.h. Leases are at most a week, so milliseconds times a million do not overflow. */
#include "base_lease.h"

#include "base_env.h"

#define NS_PER_MS INT64_C(1000000)

static int64_t part_ns(int64_t sent_ns, int64_t lease_ms, int64_t thirds)
{
    return lease_ms == HF__NEVER ? INT64_MAX : sent_ns + lease_ms * NS_PER_MS / 3 * thirds;
}

int64_t hf__lease_deadline_ns(int64_t sent_ns, int64_t lease_ms)
{
    if (lease_ms == HF__NEVER)
        return INT64_MAX;

    int64_t lease_ns = lease_ms * NS_PER_MS;
    int64_t margin_ns = lease_ns / 50;
    if (margin_ns < 5 * NS_PER_MS)
        margin_ns = 5 * NS_PER_MS;
    return sent_ns + lease_ns - lease_ns / 100 - margin_ns;
}

int64_t hf__lease_renew_ns(int64_t sent_ns, int64_t lease_ms)
{
    return part_ns(sent_ns, lease_ms, 1);
}

int64_t hf__lease_at_risk_ns(int64_t sent_ns, int64_t lease_ms)
{
    return part_ns(sent_ns, lease_ms, 2);
}
