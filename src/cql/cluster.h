/* The contact points: which one to ask, its connection, and what was prepared there. */
#ifndef HF_CQL_CLUSTER_H
#define HF_CQL_CLUSTER_H

#include "cql/conn.h"
#include "cql/message.h"

struct hf__cql_node {
    char name[96]; /* "host:port", for messages */
    struct hf__cql_route route;
    int version;               /* of the protocol; learnt at the first connect */
    struct hf__cql_conn *conn; /* NULL: none */
    bool connecting;           /* somebody is at it */
    hf_error refusal;          /* of the last connect that failed */

    /* After a failure it is left alone for a while, longer each time. One that did not answer in
     * time is asked after the others. */
    unsigned failures;
    int64_t not_before_ns;
    bool doubted;

    struct hf__cql_known {
        const struct hf__cql_statement *statement;
        struct hf__cql_prepared prepared;
    } known[HF__CQL_STATEMENTS];
    size_t known_count;
};

struct hf__cql {
    struct hf__cql_settings settings;
    const struct hf_env *env;
    pthread_mutex_t mutex;  /* guards what follows; taken before that of a connection */
    pthread_cond_t changed; /* a connect has ended */
    size_t preferred;       /* the node that worked last */
    struct hf__cql_node nodes[HF__CQL_NODES_MAX];
};

/* The best node that is not in `tried` (a bit for each), or -1: `wanted` (1 + index, 0: none) if it
 * is well, then the preferred one, then the others as the URL has them, those that failed lately
 * last. Waits until that one may be tried again; -1 too if that is after the deadline. */
int hf__cql_choose(struct hf__cql *cql, int wanted, unsigned tried, int64_t deadline_ns);

/* A reference to its connection, made if there is none, seen to be alive if it was idle for long.
 * Errors as hf__cql_conn_open. */
int hf__cql_reach(struct hf__cql *cql, size_t node, int64_t deadline_ns,
                  struct hf__cql_conn **ret_conn, hf_error *err);

/* Success and failure of a request, so that the next one knows better. A failure lets go of the
 * connection if it is broken; `silent`: nothing came from the node since the request was sent. */
void hf__cql_worked(struct hf__cql *cql, size_t node);
void hf__cql_failed(struct hf__cql *cql, size_t node, struct hf__cql_conn *conn, bool silent);

/* What a node gave for a statement; forgetting makes it be asked again. */
bool hf__cql_recall(struct hf__cql *cql, size_t node, const struct hf__cql_statement *statement,
                    struct hf__cql_prepared *ret_prepared);
int hf__cql_remember(struct hf__cql *cql, size_t node, const struct hf__cql_statement *statement,
                     const struct hf__cql_prepared *prepared, hf_error *err);

#endif
