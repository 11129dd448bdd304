/* One connection to one server, shared by all threads that ask it something.
 *
 * There is no thread behind it. Whoever waits for an answer while nobody reads becomes the reader: it
 * takes whatever comes, hands it to the calls it belongs to and wakes their threads. When its own
 * answer has come, or its deadline, it leaves, and one of those who wait becomes the reader.
 *
 * An open call (a watch) has no thread that waits. Whoever wants to hear of it gives the connection
 * an epoll descriptor, in which the socket is while nobody reads, and an eventfd, which is rung when a
 * reader has taken in something for an open call. Either leads to hf__grpc_hear().
 *
 * A server that is silent while something is expected of it is asked for a sign of life, and given up
 * if it gives none: one that was frozen or cut off sends no end. A ping of HTTP/2 would do, but etcd's
 * servers hang up on whoever sends one more often than every five seconds; so it is a call of gRPC's
 * health service, to which any answer will do.
 *
 * A connection that has failed is broken for good, for all that wait: drop it and open another. */
#ifndef HF_GRPC_CONN_H
#define HF_GRPC_CONN_H

#include "grpc/session.h"
#include "net/stream.h"
#include "net/tls.h"

struct hf__grpc_conn;

/* Where to and how. Borrowed. */
struct hf__grpc_route {
    struct hf__address address;
    struct hf__tls *tls; /* NULL: plain */
    const struct hf_env *env;
};

/* Connects, and sees that the server speaks HTTP/2. The caller has the first reference. Errors, all
 * of which mean that nothing was asked: HF_UNAVAILABLE, HF_DENIED, HF_NO_MEMORY. */
int hf__grpc_dial(const struct hf__grpc_route *route, int64_t deadline_ns,
                  struct hf__grpc_conn **ret_conn, hf_error *err);
struct hf__grpc_conn *hf__grpc_ref(struct hf__grpc_conn *c);
void hf__grpc_unref(struct hf__grpc_conn *c); /* NULL is fine */

/* Whether new calls may be made. One that was idle is looked at first: a server that has gone has
 * often said so, which is better seen before a call is sent than after it. */
bool hf__grpc_is_usable(struct hf__grpc_conn *c);

/* Calls. --------------------------------------------------------------------------------------- */
/* Sends one. NULL: it was not sent, and `err` says why (HF_UNAVAILABLE, HF_NO_MEMORY). */
struct hf__grpc_call *hf__grpc_begin(struct hf__grpc_conn *c,
                                     const struct hf__grpc_request *request, hf_error *err);

/* How a call ended that was waited for. */
enum hf__grpc_end {
    HF__GRPC_END_ANSWERED,     /* the server has said how: `status` */
    HF__GRPC_END_NOT_RECEIVED, /* it has surely not been looked at */
    HF__GRPC_END_CUT_OFF,      /* it may have been: the call or its connection was ended */
    HF__GRPC_END_TOO_LATE,     /* the same: no answer in time */
};
/* Waits for its end. Then release it, in any case. */
enum hf__grpc_end hf__grpc_finish(struct hf__grpc_conn *c, struct hf__grpc_call *call,
                                  int64_t deadline_ns, hf_error *err);
void hf__grpc_release(struct hf__grpc_conn *c, struct hf__grpc_call *call);
/* Nobody wants to know how it ends. */
void hf__grpc_leave(struct hf__grpc_conn *c, struct hf__grpc_call *call);
/* Waits for those that were left so. */
void hf__grpc_settle(struct hf__grpc_conn *c, int64_t deadline_ns);

/* Open calls. ---------------------------------------------------------------------------------- */
/* From now on `epoll_fd` is readable when there may be something to hear, or `bell_fd`, an eventfd, is
 * rung. Both are the caller's, and stay until hf__grpc_deafen(). */
void hf__grpc_listen(struct hf__grpc_conn *c, int epoll_fd, int bell_fd);
void hf__grpc_deafen(struct hf__grpc_conn *c);

/* Says more in an open call: it is sent with whatever is sent next, or by hf__grpc_flush(). */
void hf__grpc_say(struct hf__grpc_conn *c, struct hf__grpc_call *call, const void *data,
                  size_t len);
void hf__grpc_flush(struct hf__grpc_conn *c);

/* Takes in what has come, without waiting, unless somebody reads already. Then what has come for this
 * open call is appended to `into`. False: the call has ended, or the server wants no more. */
bool hf__grpc_hear(struct hf__grpc_conn *c, struct hf__grpc_call *call, struct hf__buffer *into);

/* Sees whether the server lives, as above, for who listens. Gives the moment to do so again. */
int64_t hf__grpc_check(struct hf__grpc_conn *c);

#endif
