/* etcd's messages: those few that are sent, and what is read out of the answers. No I/O. */
#ifndef HF_STORES_ETCD_MESSAGE_H
#define HF_STORES_ETCD_MESSAGE_H

#include "stores/etcd/keys.h"

/* A transaction. ------------------------------------------------------------------------------- */
/* Starts as {0} and is written in any order. One that finds no memory is incomplete as a whole, since a
 * condition must not just be missing: it is never sent. */
struct hf__etcd_txn {
    struct hf__buffer body;
    size_t message, nested[2];
    bool otherwise, outer_otherwise, incomplete;

    /* How it is sent: see cluster.h. */
    bool once;
    bool *doubted;
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
void hf__etcd_put_bytes(struct hf__etcd_txn *t, const struct hf__etcd_key *key,
                        struct hf__slice value, int64_t lease);
/* With the value it has. */
void hf__etcd_put_again(struct hf__etcd_txn *t, const struct hf__etcd_key *key, int64_t lease);
void hf__etcd_delete(struct hf__etcd_txn *t, const struct hf__etcd_key *key);
void hf__etcd_get(struct hf__etcd_txn *t, const struct hf__etcd_key *key);
/* All in [from, to), in the order of their creation. */
struct hf__etcd_range {
    const struct hf__etcd_key *from, *to;
    uint64_t before; /* only such as were created before this revision; 0: whenever */
    uint64_t after;  /* and after this one */
    int64_t newest;  /* only so many, the newest first; 0: all */
};
void hf__etcd_range(struct hf__etcd_txn *t, const struct hf__etcd_range *range);
/* What follows is done if the conditions do not hold. */
void hf__etcd_otherwise(struct hf__etcd_txn *t);
/* What is in between is a transaction of its own; one deep. */
void hf__etcd_nest(struct hf__etcd_txn *t);
void hf__etcd_unnest(struct hf__etcd_txn *t);
/* The request, framed; `failed`: out of memory. The transaction is {0} again. */
struct hf__buffer hf__etcd_written(struct hf__etcd_txn *t);

/* Its answer. ---------------------------------------------------------------------------------- */
/* A key with its value, borrowed from the answer. */
struct hf__etcd_kv {
    struct hf__slice key, value;
    uint64_t created, put; /* the revisions of its creation, and when it was last put */
    int64_t lease;
};

struct hf__etcd_result {
    const struct hf__etcd_kv *kvs; /* of a range */
    size_t count;
    uint64_t deleted; /* of a deletion */
    bool succeeded;   /* of a nested transaction */
};

struct hf__etcd_answer {
    bool succeeded;
    uint64_t revision;
    struct hf__etcd_result *results; /* one a step */
    size_t count;
    struct hf__etcd_kv *kvs;
    struct hf__buffer bytes; /* what all is borrowed from */
};
/* HF_CORRUPT: it is none. HF_NO_MEMORY. `message` must stay while the answer is used; clear only if
 * it was read. */
int hf__etcd_answer_read(struct hf__slice message, struct hf__etcd_answer *ret_answer);
void hf__etcd_answer_clear(struct hf__etcd_answer *a);
/* The range of the n-th step, empty if it was none; its first key, or NULL. */
struct hf__etcd_result hf__etcd_nth(const struct hf__etcd_answer *a, size_t n);
const struct hf__etcd_kv *hf__etcd_first(const struct hf__etcd_answer *a, size_t n);

/* Leases. -------------------------------------------------------------------------------------- */
/* `lease` 0: the server chooses. */
struct hf__buffer hf__etcd_grant_request(int64_t lease, int64_t seconds);
/* To revoke it, to keep it alive, to ask how long it lives: they look the same. Adds one message. */
void hf__etcd_lease_request(struct hf__buffer *b, int64_t lease);

struct hf__etcd_lease {
    int64_t id, ttl_s, granted_s;
};
bool hf__etcd_lease_read(struct hf__slice message, struct hf__etcd_lease *ret_lease);

/* Watches. ------------------------------------------------------------------------------------- */
enum hf__etcd_unwanted { HF__ETCD_UNWANTED_PUTS, HF__ETCD_UNWANTED_DELETES };

struct hf__etcd_watch_request {
    struct hf__slice key, end; /* `end` empty: this key alone */
    uint64_t from;             /* 0: from now on */
    int64_t id;
    enum hf__etcd_unwanted unwanted;
};
void hf__etcd_write_watch(struct hf__buffer *b, const struct hf__etcd_watch_request *request);
void hf__etcd_write_cancel(struct hf__buffer *b, int64_t id);

/* What the server says about one watch, or about none of them. */
struct hf__etcd_notice {
    int64_t id;
    bool created, canceled;
    uint64_t compacted; /* it was to begin from revisions that are gone, before this one */
    struct hf__slice reason;
    uint64_t revision;
    struct hf__proto_reader events;
};
bool hf__etcd_notice_read(struct hf__slice message, struct hf__etcd_notice *ret_notice);
/* The next of its events: the key as it was put, or of one that was deleted. */
bool hf__etcd_next_event(struct hf__etcd_notice *notice, struct hf__etcd_kv *ret_kv);

/* Logging in. ---------------------------------------------------------------------------------- */
struct hf__buffer hf__etcd_login_request(const char *user, const char *password);
bool hf__etcd_token_read(struct hf__slice message, struct hf__slice *ret_token);

/* For doctor, and wherever nothing is to be said. */
struct hf__buffer hf__etcd_empty_request(void);

#endif
