/* Inside the store's watches: what is watched (watch.c) and what is heard of it (hear.c).
 *
 * The server knows a watch by a number of ours. Of a bid there are up to two: one on what is before
 * it, for its deletion, and one on its own mark, for being let in. So a bid has a number, and twice
 * that is the one, and one more the other. Numbers are never used twice: what the server still says
 * about a watch that is over finds nobody. */
#ifndef HF_STORES_ETCD_WATCH_H
#define HF_STORES_ETCD_WATCH_H

#include "stores/etcd/etcd.h"

#define HF__ETCD_BROKEN_ID 1 /* the watch on broken locks */
#define HF__ETCD_INBOX_ID  2 /* on our inbox */
#define HF__ETCD_FIRST_BID 2 /* the lowest number of a bid */

enum hf__etcd_watched { HF__ETCD_BEFORE, HF__ETCD_OWN_MARK };

struct hf__etcd_watch {
    struct hf__link by_ticket; /* first */
    struct hf__link by_number;
    struct hf__ticket ticket;
    int64_t number;
    uint64_t from;     /* revision */
    bool confirmed[2]; /* by enum hf__etcd_watched */
    bool told;         /* it was called, and that is all it gets */
    size_t len[2];     /* of the keys; that of the mark may be 0: it is not watched */
    char keys[];
};

/* All with the mutex held. NULL: there is none. */
struct hf__etcd_watch *hf__etcd_watch_of(struct hf__etcd *e, const struct hf__ticket *ticket);
struct hf__etcd_watch *hf__etcd_watch_by_id(struct hf__etcd *e, int64_t id);

#endif
