/* One connection to one node, shared by all threads that ask it something.
 *
 * There is no thread behind it. Whoever waits for an answer while nobody reads becomes the reader:
 * it takes whatever comes, hands each frame to the call it belongs to (by the stream's number) and
 * wakes that call's thread. When its own answer has come, or its deadline, it leaves, and one of
 * those who wait becomes the reader. What has come of a frame by then stays with the connection, so
 * a reader that leaves loses nothing for the others.
 *
 *     asked ──(answer, by whoever reads)──> answered
 *       └──(deadline)──> abandoned: the stream's number is not given to another call until its
 *                        answer comes, which is then thrown away
 *
 * A connection that has failed is broken for good, for all that wait: drop it and open another. */
#ifndef HF_CQL_CONN_H
#define HF_CQL_CONN_H

#include <pthread.h>

#include "cql/frame.h"
#include "net/stream.h"
#include "net/tls.h"

#define HF__CQL_STREAMS 1024 /* requests under way at once */

struct hf__cql_conn;

/* Where to and how. Borrowed. */
struct hf__cql_route {
    struct hf__address address;
    struct hf__tls *tls;         /* NULL: plain */
    const char *user, *password; /* NULL: none */
    const struct hf_env *env;
};

/* Connects and logs in, with this version of the protocol. The caller has the first reference.
 * Errors: HF_UNAVAILABLE, HF_DENIED, HF_CORRUPT, HF_NO_MEMORY, HF_UNSUPPORTED (the server refuses
 * this version or wants another way to log in). */
int hf__cql_conn_open(const struct hf__cql_route *route, int version, int64_t deadline_ns,
                      struct hf__cql_conn **ret_conn, hf_error *err);
struct hf__cql_conn *hf__cql_conn_ref(struct hf__cql_conn *c);
void hf__cql_conn_unref(struct hf__cql_conn *c); /* NULL is fine */

int hf__cql_conn_version(const struct hf__cql_conn *c);
bool hf__cql_conn_is_broken(struct hf__cql_conn *c);
/* Takes in what has come, the end of the connection too. False: it is broken. A server that has
 * gone has often said so: better seen before the send than after it. */
bool hf__cql_conn_look(struct hf__cql_conn *c);
void hf__cql_conn_break(struct hf__cql_conn *c, const char *why);

/* When the last bytes came. */
int64_t hf__cql_conn_heard_ns(struct hf__cql_conn *c);

/* A request under way; lives with who asks. */
struct hf__cql_call {
    struct hf__cql_frame answer; /* once done; the body is to be freed */
    bool done;
    bool may_have_arrived; /* after a failure: the server may have got the request */

    /* The connection's own. */
    int16_t stream;
    uint64_t end; /* how many bytes were sent when it was sent */
    pthread_cond_t wake;
    struct hf__cql_call *next_waiter, **to_waiter;
};

/* Sends the frame in `request`, which gets its stream's number, and waits for the answer. Errors:
 * HF_UNAVAILABLE, HF_CORRUPT, HF_NO_MEMORY; may_have_arrived says more. */
int hf__cql_ask(struct hf__cql_conn *c, struct hf__cql_call *call, struct hf__cql_writer *request,
                int64_t deadline_ns, hf_error *err);

/* The handshake, for hf__cql_conn_open() (login.c). */
int hf__cql_login(struct hf__cql_conn *c, const struct hf__cql_route *route, int64_t deadline_ns,
                  hf_error *err);
/* From here on both sides wrap their frames into segments. */
void hf__cql_conn_use_segments(struct hf__cql_conn *c);

#endif
