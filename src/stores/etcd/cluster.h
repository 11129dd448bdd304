/* Asking the cluster: one connection, to whichever server answers, for all calls of a client. */
#ifndef HF_STORES_ETCD_CLUSTER_H
#define HF_STORES_ETCD_CLUSTER_H

#include "grpc/conn.h"
#include "stores/etcd/message.h"

struct hf__etcd;

/* Guarded by the store's mutex. */
struct hf__etcd_cluster {
    struct hf__grpc_conn *conn; /* NULL: none */
    size_t endpoint;            /* where it leads to, or the next one will */
    char *token;                /* of our user; NULL: none yet */
    bool dialling;              /* somebody is at it */
    unsigned dials;             /* that have ended */
    pthread_cond_t dialled;
    hf_error refusal; /* of the last dial, if it failed */
};

struct hf__etcd_request {
    const char *path;       /* "/etcdserverpb.KV/Txn" */
    struct hf__buffer body; /* stolen; `failed`: out of memory */
    int64_t deadline_ns;
    bool once;     /* not again on another server if it may have been applied */
    bool *doubted; /* set if it may still be on the way; or NULL */
};

/* One call, on whichever server answers: what it said, framed as it came, to be cleared. Errors:
 * HF_NOT_FOUND (no such lease), HF_BUSY (there is such a lease already), HF_UNAVAILABLE, HF_UNKNOWN,
 * HF_DENIED, HF_FULL (which may have been applied all the same: see hf__etcd_full()), HF_CORRUPT,
 * HF_NO_MEMORY. */
int hf__etcd_call(struct hf__etcd *e, struct hf__etcd_request q, struct hf__buffer *ret_answer,
                  hf_error *err);
/* The same for one transaction, which is used up. */
int hf__etcd_commit(struct hf__etcd *e, struct hf__etcd_txn *t, int64_t deadline_ns,
                    struct hf__etcd_answer *ret_answer, hf_error *err);
/* Many at once; each has its own code and answer. What failed for want of a server is tried again
 * like a single one. */
struct hf__etcd_many {
    struct hf__etcd_request request;
    struct hf__buffer answer;
    int code;
    struct hf__grpc_call *call; /* for its own use */
};
void hf__etcd_call_many(struct hf__etcd *e, struct hf__etcd_many *all, size_t count, hf_error *err);
/* Sends it, and does not wait for the answer: for what need not be known. */
void hf__etcd_send_off(struct hf__etcd *e, struct hf__etcd_request q);

/* The one message of an answer. HF_CORRUPT, with a text, if there is not one. */
int hf__etcd_message(const struct hf__buffer *answer, struct hf__slice *ret_message, hf_error *err);

/* What a server whose quota is used up has refused, it may have applied first. Turns HF_FULL into
 * HF_UNKNOWN, and leaves what is not HF_FULL alone. */
int hf__etcd_full(int code, hf_error *err);

/* One server and no other, on a connection of the caller's own. */
int hf__etcd_dial(struct hf__etcd *e, size_t endpoint, int64_t deadline_ns,
                  struct hf__grpc_conn **ret_conn, hf_error *err);
int hf__etcd_call_on(struct hf__etcd *e, struct hf__grpc_conn *conn, size_t endpoint,
                     struct hf__etcd_request q, struct hf__buffer *ret_answer, hf_error *err);

/* The present connection is of no more use, or not worth waiting for. */
void hf__etcd_move_on(struct hf__etcd *e, struct hf__grpc_conn *conn);

/* Waits for what was sent off, and hangs up. */
void hf__etcd_hang_up(struct hf__etcd *e, int64_t deadline_ns);

/* status.c: what became of a call. -------------------------------------------------------------- */
struct hf__etcd_outcome {
    int code;      /* HF_ */
    bool maybe;    /* it may have been applied */
    bool no_token; /* ask again with a fresh one */
    bool next;     /* another server may do better */
    bool passing;  /* and so may this one, in a moment */
};
/* From how it ended, with a text; `why` is that of the connection. */
struct hf__etcd_outcome hf__etcd_outcome_of(const struct hf__grpc_call *call, enum hf__grpc_end end,
                                            const char *where, const hf_error *why, hf_error *err);
/* What a dial that failed may want, in the words of the URL. */
const char *hf__etcd_dial_hint(bool plain, const hf_error *why);

#endif
