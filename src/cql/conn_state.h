/* The inside of a connection, for conn.c and call.c. The mutex is held in all of these. */
#ifndef HF_CQL_CONN_STATE_H
#define HF_CQL_CONN_STATE_H

#include "cql/conn.h"

struct hf__cql_conn {
    pthread_mutex_t mutex;
    unsigned refs;
    const struct hf_env *env;
    struct hf__stream stream;
    int version;
    bool segmented;

    struct hf__cql_call *calls[HF__CQL_STREAMS]; /* NULL: free */
    struct hf__cql_call abandoned; /* in the place of a call whose thread has gone; only its
                                       address counts */
    unsigned next_stream, in_flight;
    unsigned left_behind; /* of these, abandoned */

    struct hf__cql_writer out;
    size_t out_at;         /* how much of it was sent */
    uint64_t queued, sent; /* bytes, ever */
    bool sending;          /* somebody waits until the kernel takes more */

    struct hf__cql_decoder decoder;
    bool reading; /* somebody is the reader */
    struct hf__cql_call *waiters;
    int64_t heard_ns;

    bool broken;
    hf_error why;
};

/* Takes in what there is, without waiting, and hands it out. False: nothing yet, and *ret_events is
 * what to wait for. */
bool hf__cql_conn_receive(struct hf__cql_conn *c, short *ret_events);

/* Waits for events, without the mutex meanwhile. 0 or a negative errno. */
int hf__cql_conn_wait(struct hf__cql_conn *c, short events, int64_t deadline_ns);

/* Queues a frame; and sends what is queued. */
int hf__cql_conn_queue(struct hf__cql_conn *c, const struct hf__cql_writer *request, hf_error *err);
void hf__cql_conn_send(struct hf__cql_conn *c, int64_t deadline_ns);

/* An error of the stream, or 0 for its end. */
void hf__cql_conn_break_for(struct hf__cql_conn *c, const char *doing, int error);

#endif
