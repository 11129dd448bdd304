/* The inside of a connection, for conn.c and call.c. The mutex is held in all of these. */
#ifndef HF_GRPC_CONN_STATE_H
#define HF_GRPC_CONN_STATE_H

#include "grpc/conn.h"

struct hf__grpc_conn {
    pthread_mutex_t mutex;
    unsigned refs;
    const struct hf_env *env;
    struct hf__stream stream;
    bool plain; /* no TLS: its reader may wait in the kernel */
    struct hf__grpc_session session;

    struct hf__buffer out;
    size_t out_at; /* how much of it was sent */
    uint64_t sent; /* bytes, ever */

    unsigned coming;   /* threads that have sent a call, and will come to read */
    bool reading;      /* somebody is the reader, and the chunk is his */
    char chunk[16384]; /* holds a record of TLS: none is left in the library when it was read */
    struct hf__grpc_call *waiters;

    int epoll_fd, bell_fd; /* of who listens; -1: nobody does */
    uint32_t armed;        /* what the epoll is told to look for */
    bool rung;             /* who listens knows that there is something */

    int64_t heard_ns, asked_ns; /* when the last bytes came; when a call found nobody waiting */
    int64_t probe_ns;           /* when a sign of life was asked for; INT64_MAX: it was not */

    bool broken;
    hf_error why;
};

/* Takes in what there is, without waiting, and hands it out. False: nothing yet, and *ret_events is
 * what to wait for. The second does so with what was read into the chunk. */
bool hf__grpc_receive(struct hf__grpc_conn *c, short *ret_events);
void hf__grpc_take_in(struct hf__grpc_conn *c, ssize_t n);

/* Sends what there is to send, as far as the kernel takes it. */
void hf__grpc_send(struct hf__grpc_conn *c);

/* Waits for events, and for room if something waits to be sent, without the mutex meanwhile. 0 or a
 * negative errno. */
int hf__grpc_wait(struct hf__grpc_conn *c, short events, int64_t deadline_ns);

/* An error of the stream, or 0 for its end. */
void hf__grpc_break_for(struct hf__grpc_conn *c, const char *doing, int error);

/* Rings if there is something for an open call. */
void hf__grpc_ring(struct hf__grpc_conn *c);
/* Tells the epoll what to look for. */
void hf__grpc_arm(struct hf__grpc_conn *c);

/* Whether something waits to be read. */
bool hf__grpc_is_readable(const struct hf__grpc_conn *c);
/* When the server must be asked for a sign of life, or has given none; and doing so. */
int64_t hf__grpc_next_check(const struct hf__grpc_conn *c);
void hf__grpc_check_life(struct hf__grpc_conn *c);

#endif
