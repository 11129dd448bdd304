/* gRPC over HTTP/2, without any I/O: calls go in, bytes come out, bytes go in, answers come out.
 * HTTP/2 is libnghttp2's. Not thread-safe: conn.h is for threads and sockets.
 *
 * A call is one stream of HTTP/2. Its messages, both ways, have five bytes before each: whether it is
 * compressed, which none of ours is, and its length. It ends with a status of the server, or without
 * one: reset, or with its connection. */
#ifndef HF_GRPC_SESSION_H
#define HF_GRPC_SESSION_H

#include <pthread.h>

#include "grpc/proto.h"

#define HF__GRPC_ANSWER_MAX  (64 << 20) /* of what has come and was not taken */
#define HF__GRPC_MESSAGE_MAX 200        /* of a status' text */

/* Those of gRPC's status codes that mean something to us. */
enum hf__grpc_status {
    HF__GRPC_STATUS_NONE = -1, /* it did not come */
    HF__GRPC_STATUS_OK = 0,
    HF__GRPC_STATUS_CANCELLED = 1,
    HF__GRPC_STATUS_UNKNOWN = 2,
    HF__GRPC_STATUS_INVALID = 3,
    HF__GRPC_STATUS_DEADLINE = 4,
    HF__GRPC_STATUS_NOT_FOUND = 5,
    HF__GRPC_STATUS_DENIED = 7,
    HF__GRPC_STATUS_EXHAUSTED = 8,
    HF__GRPC_STATUS_PRECONDITION = 9,
    HF__GRPC_STATUS_ABORTED = 10,
    HF__GRPC_STATUS_UNIMPLEMENTED = 12,
    HF__GRPC_STATUS_UNAVAILABLE = 14,
    HF__GRPC_STATUS_DATA_LOSS = 15,
    HF__GRPC_STATUS_UNAUTHENTICATED = 16,
};

struct hf__grpc_call {
    bool ended;
    int http_status; /* 0: none came */
    bool is_grpc;    /* the server says that it speaks gRPC */
    int status;      /* enum hf__grpc_status, or another number of the server's */
    char message[HF__GRPC_MESSAGE_MAX];
    bool refused;         /* it ended, and the server has surely not looked at it */
    struct hf__buffer in; /* the answer's messages as they came: see hf__grpc_take() */

    /* The session's own. */
    struct hf__grpc_session *session;
    struct hf__buffer out;
    size_t out_at;
    int32_t id;
    bool open;    /* we may say more */
    bool dropped; /* nobody waits for it: it is freed when it ends */
    uint64_t end; /* how many bytes the session had made when all of it was made; 0: not yet */
    struct hf__grpc_call *next, **to_this;

    /* The connection's own. */
    int64_t sent_ns;
    pthread_cond_t wake;
    struct hf__grpc_call *next_waiter, **to_waiter;
};

struct hf__grpc_request {
    const char *path;        /* "/package.Service/Method" */
    struct hf__buffer *body; /* messages, framed; emptied, also on failure */
    const char *token;       /* of a user who has logged in; or NULL */
    int64_t timeout_ms;      /* told to the server; 0: none */
    bool open;               /* more may be said: hf__grpc_session_say() */
};

struct hf__grpc_session {
    struct nghttp2_session *http2;
    char authority[300];
    bool tls;
    struct hf__grpc_call *calls; /* that have not ended, or nobody has let go of yet */
    unsigned waited_for;         /* of these: not ended, not open */
    bool settled;                /* the server speaks HTTP/2 */
    bool going_away;             /* it wants no more calls */
    bool news;     /* something came for an open call, or it ended; the reader resets it */
    uint64_t made; /* bytes, ever */
};

/* Framing. ------------------------------------------------------------------------------------- */
/* One message, which is what is written between the two. */
size_t hf__grpc_begin_message(struct hf__buffer *b);
void hf__grpc_end_message(struct hf__buffer *b, size_t place);
/* Takes the next message from what has come. 1: it is in `ret_message`, borrowed; 0: it is not all
 * there; negative: it is none that we could read. */
int hf__grpc_take(struct hf__slice *rest, struct hf__slice *ret_message);

/* The session. --------------------------------------------------------------------------------- */
/* False: out of memory. Clear in either case. */
bool hf__grpc_session_init(struct hf__grpc_session *s, const char *authority, bool tls);
void hf__grpc_session_clear(struct hf__grpc_session *s); /* calls that are left must be let go of */

/* Begins a call; NULL: out of memory, or the session takes no more. */
struct hf__grpc_call *hf__grpc_session_call(struct hf__grpc_session *s,
                                            const struct hf__grpc_request *request);
/* Says more in an open call. False: out of memory. */
bool hf__grpc_session_say(struct hf__grpc_call *call, const void *data, size_t len);
/* Lets go of a call: it is freed now, and reset if it has not ended; or, with `when_ended`, then. */
void hf__grpc_session_release(struct hf__grpc_call *call, bool when_ended);
/* All calls end without a status. */
void hf__grpc_session_abort(struct hf__grpc_session *s);

/* What has come. False: it is not HTTP/2. */
bool hf__grpc_session_feed(struct hf__grpc_session *s, const void *data, size_t len);
/* Adds what is to be sent. False: out of memory. */
bool hf__grpc_session_pull(struct hf__grpc_session *s, struct hf__buffer *into);

#endif
