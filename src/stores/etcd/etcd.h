/* etcd://h1,h2,h3/prefix - the inside of the store. There is no doorman here: see keys.h for what is
 * the queue, and attempt.c for the rules. */
#ifndef HF_STORES_ETCD_ETCD_H
#define HF_STORES_ETCD_ETCD_H

#include "stores/etcd/bids.h"
#include "stores/etcd/cluster.h"
#include "stores/etcd/lease.h"
#include "stores/etcd/record.h"
#include "stores/etcd/settings.h"
#include "stores/etcd/watch.h"
#include "stores/store.h"

#define HF__ETCD_ALIVE 2048

struct hf__etcd {
    struct hf__store base;
    struct hf__etcd_settings set;
    uint64_t seed;
    char inbox[HF__ETCD_INBOX]; /* where others tell that they are next */

    /* Guards all below; taken before that of a connection, and never held while somebody waits. */
    pthread_mutex_t mutex;
    struct hf__etcd_cluster cluster;
    struct hf__etcd_watching watching;
    struct hf__etcd_spare spare;
    struct hf__table bids; /* by ticket */
    size_t sweep_at;       /* see bids.c */
    struct hf__etcd_alive {
        int64_t lease, until_ns;
    } alive[HF__ETCD_ALIVE]; /* see inspect.c */
};

/* attempt.c, leave.c, break.c, value.c, renew.c, inspect.c, diagnose.c, wake.c: the operations of store.h. */
int hf__etcd_attempt(struct hf__store *store, const struct hf__bid *bid, int64_t deadline_ns,
                     struct hf__answer *ret_answer, hf_error *err);
int hf__etcd_leave(struct hf__store *store, const struct hf__operation *op, int64_t deadline_ns,
                   struct hf__answer *ret_answer, hf_error *err); /* RELEASE, WITHDRAW */
int hf__etcd_break(struct hf__store *store, const struct hf__bid *bid, bool now,
                   int64_t deadline_ns, struct hf__answer *ret_answer, hf_error *err);
int hf__etcd_value(struct hf__store *store, const struct hf__operation *op, int64_t deadline_ns,
                   struct hf__answer *ret_answer, hf_error *err); /* READ, WRITE */
int hf__etcd_renew(struct hf__store *store, struct hf__renewal *items, size_t count,
                   int64_t deadline_ns, hf_error *err);
int hf__etcd_inspect(struct hf__store *store, const struct hf__search *search, int64_t deadline_ns,
                     hf_error *err);
int hf__etcd_diagnose(struct hf__store *store, hf_finding_callback *found, void *arg,
                      int64_t deadline_ns, hf_error *err);
int hf__etcd_wake_fd(struct hf__store *store);
void hf__etcd_wake(struct hf__store *store, hf__wake_sink *sink, void *ctx);

/* find.c: what is in the store for one ticket. -------------------------------------------------- */
struct hf__etcd_found {
    bool there; /* it has a place */
    bool ours;  /* it was made by holdfast */
    hf_mode mode;
    int64_t lease;               /* its place hangs on this; 0: none, it never expires */
    int64_t named;               /* the lease in its keys' names */
    uint64_t joined, generation; /* generation 0: waits */
    bool broken;
    bool tells; /* its holder wants to know when somebody waits */
    int64_t ttl_ms, delay_ms;
    struct hf__etcd_key place; /* its key */
};
/* One request. A stranger is found by the ticket that inspect shows for it. */
int hf__etcd_find(struct hf__etcd *e, struct hf__etcd_name name, const struct hf__ticket *ticket,
                  int64_t deadline_ns, struct hf__etcd_found *ret_found, hf_error *err);
/* The ticket under which a stranger's place is shown. */
void hf__etcd_stranger(int64_t lease, uint64_t joined, struct hf__ticket *ret_ticket);

/* wanted.c: whether somebody has come to wait for this lock, which `b` holds, after it. If nobody has,
 * its client is called when somebody does. Without an answer it is what it was. */
bool hf__etcd_is_wanted(struct hf__etcd *e, struct hf__etcd_name name, const struct hf__etcd_bid *b,
                        int64_t deadline_ns);
/* The same for one that nobody was beside when it was let in, at this revision: nothing is asked. */
void hf__etcd_watch_behind(struct hf__etcd *e, struct hf__etcd_name name,
                           const struct hf__etcd_bid *b, uint64_t revision);

/* handover.c ----------------------------------------------------------------------------------- */
/* Whether the mark (or NULL) of a place that was made at `joined` was put by the release of somebody
 * else, and not claimed yet. */
bool hf__etcd_is_handed(const struct hf__etcd_kv *mark, uint64_t joined);
/* What came into our inbox. */
void hf__etcd_note_next(struct hf__etcd *e, const struct hf__etcd_kv *kv);
/* Whether a release of `b` can let in the next one. */
bool hf__etcd_can_hand_over(const struct hf__etcd_bid *b);

#endif
