/* Leases that nothing hangs on any more.
 *
 * A lock that is given back leaves its lease behind, and the next bid of this client with the same
 * ttl and lock-delay takes it over: that saves two of four requests. Only such as were shown to be
 * alive a moment ago (a third of what a bid may be silent), so that it counts as a fresh one. Of the
 * others a short one runs out by itself: to revoke it would cost the server a request just when the
 * next one is let in. A long one is revoked, without waiting for the answer.
 *
 * What a lease of its own is good for must stay true: a request that is still on the way finds no
 * lease to hang on. So it is kept, or left to itself, only if every request of its ticket was
 * answered: then there is none. */
#include "stores/etcd/etcd.h"

#include "base/banned.h"

#define SHORT_S 60

static void end_lease(struct hf__etcd *e, int64_t lease, int64_t until_ns)
{
    struct hf__etcd_request q = {.path = "/etcdserverpb.Lease/LeaseRevoke",
                                 .deadline_ns = until_ns};

    hf__etcd_lease_request(&q.body, lease);
    hf__etcd_send_off(e, q);
}

/* One that has become too old makes room, and is the one to end then. */
void hf__etcd_lease_keep(struct hf__etcd *e, const struct hf__etcd_bid *b)
{
    int64_t now_ns = hf__now_ns(e->base.host->env);
    int64_t third_ns = hf__provisional_lease_ms(b->ttl_ms) * HF__NS_PER_MS / 3;
    struct hf__etcd_spare *kept = &e->spare;
    struct hf__etcd_spare_lease spare = {.lease = b->lease,
                                         .seconds = hf__etcd_lease_seconds(b->ttl_ms, b->delay_ms),
                                         .proved_ns = b->proved_ns,
                                         .fresh_ns = b->proved_ns + third_ns};
    struct hf__etcd_spare_lease over = spare;
    bool sure = b->lease_given && !b->doubted;

    pthread_mutex_lock(&e->mutex);
    if (sure && !b->lease_dropped && now_ns < spare.fresh_ns) {
        size_t i = 0;
        while (i < kept->count && now_ns < kept->leases[i].fresh_ns)
            i++;
        if (i < kept->count) {
            over = kept->leases[i];
            kept->leases[i] = spare;
        } else if (i < HF__ETCD_SPARE) {
            over.lease = 0;
            kept->leases[kept->count++] = spare;
        }
    }
    pthread_mutex_unlock(&e->mutex);
    if (over.lease != 0 && (!sure || over.seconds > SHORT_S))
        end_lease(e, over.lease, now_ns + e->base.host->op_timeout_ms * HF__NS_PER_MS);
}

void hf__etcd_lease_take(struct hf__etcd *e, struct hf__etcd_bid *b)
{
    int64_t seconds = hf__etcd_lease_seconds(b->ttl_ms, b->delay_ms);
    int64_t now_ns = hf__now_ns(e->base.host->env);
    struct hf__etcd_spare *kept = &e->spare;

    for (size_t i = kept->count; i-- > 0;) {
        struct hf__etcd_spare_lease s = kept->leases[i];
        if (s.seconds != seconds || now_ns >= s.fresh_ns)
            continue;
        kept->leases[i] = kept->leases[--kept->count];
        b->lease = s.lease;
        b->proved_ns = s.proved_ns;
        b->lease_given = true;
        return;
    }
}

/* One deadline for all: a server that is away does not hold up the end for long. */
void hf__etcd_leases_clear(struct hf__etcd *e, int64_t deadline_ns)
{
    while (e->spare.count > 0 && hf__now_ns(e->base.host->env) < deadline_ns)
        end_lease(e, e->spare.leases[--e->spare.count].lease, deadline_ns);
}
