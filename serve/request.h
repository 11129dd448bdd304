/* One request, from its head to its last byte.
 *
 *     NEW --admitted--> BODY --started--> WORKING --resumed--> READY --answered--> ANSWERED
 *      `---refused---------`------at once------------------------------^
 *
 * While it is WORKING its connection is suspended: nothing of HTTP happens to it, and the one who works on it may write
 * its reply, on whatever thread. */
#ifndef SERVE_REQUEST_H
#define SERVE_REQUEST_H

#include <microhttpd.h>

#include "access.h"
#include "reply.h"
#include "stores.h"

struct server;
struct request;

struct route {
    const char *method;
    const char *path; /* "v1/stores/{store}/locks/{name}" */
    enum role role;   /* what the token must allow; ROLE_NONE: no token is asked for */
    /* Begins to answer: fills in the reply, or has it filled in later. */
    void (*start)(struct request *request);
    bool has_body;
};

struct request {
    struct request *prev, *next; /* of the server */
    struct server *server;
    struct MHD_Connection *connection;
    enum request_state {
        REQUEST_NEW,
        REQUEST_BODY,
        REQUEST_WORKING,
        REQUEST_READY,
        REQUEST_ANSWERED
    } state;
    struct target target; /* `text` NULL: it could not be read */
    const struct route *route;
    enum role role;
    struct store *store; /* {store}, {name} of the path */
    struct bytes name;
    char *body; /* ends in NUL */
    size_t body_len;
    struct reply reply;
    const char *allow;             /* the methods of this path, if it was asked with another one */
    struct MHD_Response *response; /* instead of a reply: a stream */
    struct job job;
    void (*work)(struct request *request);
    void *
        owner; /* who wants to know when it is over: `over` is called once, `sent` says whether all was sent */
    void (*over)(struct request *request, bool sent);
};

#define REQUEST_BODY_MAX 16384

struct request *request_new(struct server *server, const char *uri);
void request_free(struct request *request);

/* Suspends it until request_resume(). The reply must be there by then. */
void request_suspend(struct request *request);
void request_resume(struct request *request);

/* Has `work` fill in the reply on a thread of its store. */
void request_work(struct request *request, void (*work)(struct request *request));

/* A header of it; NULL: it is not there. */
const char *request_header(const struct request *request, const char *name);

/* Takes more of the body. False: it is too long. */
bool request_take_body(struct request *request, const char *data, size_t size);

/* Answers with what is there. */
enum MHD_Result request_answer(struct request *request);

#endif
