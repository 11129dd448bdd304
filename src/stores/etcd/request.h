/* What is sent to the gateway and what comes back: bodies of requests, written as text (request.c),
 * and what is read out of answers (json.c). */
#ifndef HF_STORES_ETCD_REQUEST_H
#define HF_STORES_ETCD_REQUEST_H

#include <jansson.h>

#include "stores/store.h"

#define HF__ETCD_KEY_MAX (3 * HF_NAME_MAX + 1024)
#define HF__ETCD_INBOX   17 /* of a client's number, in hex */

struct hf__etcd;

/* A key: bytes, of which none is special. */
struct hf__etcd_key {
    size_t len;
    char bytes[HF__ETCD_KEY_MAX];
};

/* Bytes that grow; see stream.c. */
struct hf__etcd_bytes {
    char *at;
    size_t len, size;
};

/* request.c: what is sent. ---------------------------------------------------------------------- */
/* False: out of memory. */
bool hf__etcd_bytes_add(struct hf__etcd_bytes *b, const char *from, size_t len);

/* The body of a request; NULL: out of memory. */
char *hf__etcd_format(const char *format, ...) __attribute__((format(printf, 1, 2)));
char *hf__etcd_key_request(const struct hf__etcd_key *key);

/* A transaction: starts as {0}, is written in its order, and ends with hf__etcd_written(). */
struct hf__etcd_txn {
    struct hf__etcd_bytes text;
    int list, outer;
    bool otherwise, outer_otherwise, spoilt;
};
/* The key was created at this revision; 0: it is not there. */
void hf__etcd_compare(struct hf__etcd_txn *t, const struct hf__etcd_key *key, uint64_t revision);
/* There are no keys in [from, end). */
void hf__etcd_compare_none(struct hf__etcd_txn *t, const struct hf__etcd_key *from,
                           const struct hf__etcd_key *end);
/* The key, or with `end` not NULL each in [key, end), was created after this revision. */
void hf__etcd_compare_above(struct hf__etcd_txn *t, const struct hf__etcd_key *key,
                            const struct hf__etcd_key *end, uint64_t revision);
/* The key was last put at this revision. */
void hf__etcd_compare_put(struct hf__etcd_txn *t, const struct hf__etcd_key *key,
                          uint64_t mod_revision);
/* `value` NULL: there was no memory for it. `lease` 0: none. */
void hf__etcd_put(struct hf__etcd_txn *t, const struct hf__etcd_key *key, const char *value,
                  int64_t lease);
/* With the value it has. */
void hf__etcd_put_again(struct hf__etcd_txn *t, const struct hf__etcd_key *key, int64_t lease);
void hf__etcd_delete(struct hf__etcd_txn *t, const struct hf__etcd_key *key);
void hf__etcd_get(struct hf__etcd_txn *t, const struct hf__etcd_key *key);
/* All in [from, to), in the order of their creation. */
struct hf__etcd_range {
    const struct hf__etcd_key *from, *to;
    uint64_t before; /* only such as were created before; 0: whenever */
    int64_t newest;  /* only so many, the newest first; 0: all */
};
void hf__etcd_range(struct hf__etcd_txn *t, const struct hf__etcd_range *range);
/* What follows is done if the conditions do not hold. */
void hf__etcd_otherwise(struct hf__etcd_txn *t);
/* What is in between is a transaction of its own; one deep. */
void hf__etcd_nest(struct hf__etcd_txn *t);
void hf__etcd_unnest(struct hf__etcd_txn *t);
/* The body, to be freed; NULL: out of memory. */
char *hf__etcd_written(struct hf__etcd_txn *t);

/* json.c: what comes back. --------------------------------------------------------------------- */
#define HF__ETCD_BASE64(len) (((len) + 2) / 3 * 4 + 1)
void hf__etcd_to_base64(const void *bytes, size_t len, char *ret_text);
bool hf__etcd_unb64(const json_t *text, struct hf__etcd_key *ret_bytes);
/* A field that the gateway writes as a string, or leaves out when it is 0. */
int64_t hf__etcd_int(const json_t *object, const char *field);
uint64_t hf__etcd_revision(const json_t *answer); /* of its header */

/* The n-th answer of a transaction, as what it is ("response_range"); NULL if it is not. */
const json_t *hf__etcd_nth(const json_t *answer, size_t n, const char *what);
/* The n-th pair of a range's answer; NULL: there is none. */
const json_t *hf__etcd_kv(const json_t *range, size_t n);

/* What a place's value tells. `who`'s strings are borrowed from the JSON in `keep`. */
struct hf__etcd_details {
    struct hf__ticket ticket;
    int64_t ttl_ms, delay_ms, since_ms; /* wall clock of whoever bid */
    struct hf__who who;
    json_t *keep;
    char note[HF_NOTE_MAX + 1];
    char inbox[HF__ETCD_INBOX]; /* "": it has none */
};
/* To be freed; NULL: out of memory. */
char *hf__etcd_details_text(const struct hf__etcd *e, const struct hf__bid *bid);
/* False: a stranger's. Clear in either case. */
bool hf__etcd_details_read(const json_t *kv, struct hf__etcd_details *ret);
void hf__etcd_details_clear(struct hf__etcd_details *d);

#endif
