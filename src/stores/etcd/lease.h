/* Leases: each bid has one of its own, and what is left over serves the next. */
#ifndef HF_STORES_ETCD_LEASE_H
#define HF_STORES_ETCD_LEASE_H

#include "base/error.h"

struct hf__etcd;
struct hf__etcd_bid;

/* lease.c -------------------------------------------------------------------------------------- */
int64_t hf__etcd_lease_seconds(int64_t ttl_ms, int64_t delay_ms);
int hf__etcd_lease_grant(struct hf__etcd *e, int64_t lease, int64_t seconds, int64_t deadline_ns,
                         hf_error *err);
/* One with a number of the server's choice, and how long it gives it. */
int hf__etcd_lease_new(struct hf__etcd *e, int64_t seconds, int64_t deadline_ns, int64_t *ret_lease,
                       int64_t *ret_seconds, hf_error *err);
/* 0, HF_NOT_FOUND, or an error. */
int hf__etcd_lease_renew(struct hf__etcd *e, int64_t lease, int64_t deadline_ns, hf_error *err);
/* All in one request. `ret_alive`: for each, whether it was. */
int hf__etcd_lease_renew_all(struct hf__etcd *e, const int64_t *leases, size_t count,
                             int64_t deadline_ns, bool *ret_alive, hf_error *err);
int hf__etcd_lease_revoke(struct hf__etcd *e, int64_t lease, int64_t deadline_ns, hf_error *err);

struct hf__etcd_life {
    int64_t left_s, given_s; /* left: rounded down */
};
int hf__etcd_lease_life(struct hf__etcd *e, int64_t lease, int64_t deadline_ns,
                        struct hf__etcd_life *ret_life, hf_error *err);
/* Many at once. `codes`: what the one above would return for each. */
int hf__etcd_lease_lives(struct hf__etcd *e, const int64_t *leases, size_t count,
                         int64_t deadline_ns, struct hf__etcd_life *ret_lives, int *ret_codes,
                         hf_error *err);
/* Whether somebody who has not been let in has given no sign of life for longer than it may. */
bool hf__etcd_is_dead(const struct hf__etcd_life *life, int64_t ttl_ms);
/* Whether somebody inside has outlived its ttl and only its lock-delay keeps the door closed. */
bool hf__etcd_lingers(const struct hf__etcd_life *life, int64_t ttl_ms, int64_t delay_ms);

/* spare.c: leases that nothing hangs on any more, for the next bids. ----------------------------- */
#define HF__ETCD_SPARE 16

struct hf__etcd_spare {
    struct hf__etcd_spare_lease {
        int64_t lease, seconds, proved_ns, fresh_ns;
    } leases[HF__ETCD_SPARE];
    size_t count;
};
/* `b` is over, and nothing hangs on its lease: keeps it, or ends it. */
void hf__etcd_lease_keep(struct hf__etcd *e, const struct hf__etcd_bid *b);
/* Gives `b` a lease that was kept, if there is one that will do. Mutex held. */
void hf__etcd_lease_take(struct hf__etcd *e, struct hf__etcd_bid *b);
void hf__etcd_leases_clear(struct hf__etcd *e, int64_t deadline_ns);

#endif
