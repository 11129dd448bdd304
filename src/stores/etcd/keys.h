/* From names to keys and back.
 *
 * etcd orders keys by the revision that created them, and that is the queue. A bid is a lease, which
 * it has for itself as long as it bids and holds, and keys that die with it:
 *
 *   <prefix><name>/write/<lease>              a writer's place in the queue (read/ for a reader)
 *   <prefix>.holdfast/inside/<name>/<lease>   it was let in; its create revision is the generation
 *   <prefix>.holdfast/broken/<name>/<lease>   somebody broke it: it is not renewed any more. Every
 *                                             client watches for these
 *   <prefix>.holdfast/next/<inbox>/<lease>    who stands right behind it, told to its client
 *   <prefix>.holdfast/slot/<lease>            where that one learns that it must ask: handover.c
 *   <prefix>.holdfast/retired/<ticket>        a tombstone: this ticket is never let in again
 *   <prefix>.holdfast/value/<name>/           the lock's value; on no lease, as the next
 *   <prefix>.holdfast/opened/<name>/<lease>   its holder has read or written the value: value.c
 *
 * <lease> is in hex without leading zeros, as the Go client writes it, so that every contender of
 * etcd's own Mutex, of `etcdctl lock` and of the v3lock service stands in the same queue. '/' and
 * '%' in a name are escaped, as is a '.' in front: no name lies below another, nor in .holdfast. */
#ifndef HF_STORES_ETCD_KEYS_H
#define HF_STORES_ETCD_KEYS_H

#include "base/ticket.h"
#include "grpc/proto.h"
#include "holdfast.h"

#define HF__ETCD_KEY_MAX (3 * HF_NAME_MAX + 1024)
#define HF__ETCD_INBOX   17 /* of a client's number, in hex */

struct hf__etcd;

/* A key: bytes, of which none is special. */
struct hf__etcd_key {
    size_t len;
    char bytes[HF__ETCD_KEY_MAX];
};

static inline struct hf__slice hf__etcd_slice(const struct hf__etcd_key *key)
{
    return (struct hf__slice){key->bytes, key->len};
}
bool hf__etcd_is_key(struct hf__slice slice, const struct hf__etcd_key *key);

/* The number of a lease that this ticket asks for; positive. */
int64_t hf__etcd_lease_of(const struct hf__ticket *ticket);
/* The lease in the name of a place or a mark; 0: none. It need not hang on that lease: see renew.c
 * and break.c for what is put again. */
int64_t hf__etcd_lease_in(struct hf__slice key);

enum hf__etcd_key_kind {
    HF__ETCD_KEY_PLACE,
    HF__ETCD_KEY_INSIDE,
    HF__ETCD_KEY_BROKEN,
    HF__ETCD_KEY_OPENED,
    HF__ETCD_KEY_VALUE, /* one for each name: its root is the key */
};

struct hf__etcd_name {
    const char *bytes;
    size_t len;
};

/* The key below which all of one kind lie for names that begin with `name`, or, if `whole`, for
 * this very name: then it ends in '/'. */
void hf__etcd_root(const struct hf__etcd *e, enum hf__etcd_key_kind kind, struct hf__etcd_name name,
                   bool whole, struct hf__etcd_key *ret_key);
void hf__etcd_append(struct hf__etcd_key *key, const char *text);
/* root + "write/" or "read/" + lease; root + lease. */
void hf__etcd_place_key(const struct hf__etcd *e, struct hf__etcd_name name, hf_mode mode,
                        int64_t lease, struct hf__etcd_key *ret_key);
void hf__etcd_mark_key(const struct hf__etcd *e, enum hf__etcd_key_kind kind,
                       struct hf__etcd_name name, int64_t lease, struct hf__etcd_key *ret_key);
void hf__etcd_tombstone_key(const struct hf__etcd *e, const struct hf__ticket *ticket,
                            struct hf__etcd_key *ret_key);
void hf__etcd_slot_key(const struct hf__etcd *e, int64_t lease, struct hf__etcd_key *ret_key);
/* Below which a client is told who is next; and where, for one of its bids. */
void hf__etcd_inbox_key(const struct hf__etcd *e, const char *inbox, struct hf__etcd_key *ret_key);
void hf__etcd_next_key(const struct hf__etcd *e, const char *inbox, int64_t lease,
                       struct hf__etcd_key *ret_key);
/* The first key after all that begin with this one. Empty: there is none. */
void hf__etcd_end_of(const struct hf__etcd_key *key, struct hf__etcd_key *ret_end);

/* Takes "<name>/write/<lease>" or a stranger's "<name>/<lease>" apart, after the prefix. False if
 * it is neither. */
struct hf__etcd_parts {
    size_t name_len;
    char name[HF_NAME_MAX];
    hf_mode mode;
    bool ours; /* has the write/ or read/ */
};
bool hf__etcd_parse_place(const struct hf__etcd *e, struct hf__slice key,
                          struct hf__etcd_parts *ret_parts);

#endif
