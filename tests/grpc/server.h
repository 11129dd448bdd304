/* A server of HTTP/2 in a thread of the test, which answers as the path of a call says. */
#ifndef TESTS_GRPC_SERVER_H
#define TESTS_GRPC_SERVER_H

#include <stdbool.h>

#include "grpc/conn.h"

/* What the last part of a path asks for:
 *   /ok       one message with the bytes of the request, and status 0
 *   /status   no message, status 14 with the text "a b"
 *   /reset    the stream is reset (CANCEL); /refuse (REFUSED_STREAM)
 *   /goaway   GOAWAY: this call and later ones were not looked at; the connection stays
 *   /end      the connection ends
 *   /silent   nothing, for this call
 *   /web      an answer of HTTP status 503 without gRPC
 *   /long     more bytes than a client takes
 *   /echo     an open call: what it says comes back, message by message
 * Anything else, such as a sign of life, is answered by status 12. */
struct server;

struct server_options {
    bool no_window; /* requests have no room for a body */
    bool frozen;    /* it greets, and then says nothing whatever is asked */
};
struct server *server_start(const struct server_options *options);
const char *server_port(const struct server *server);
void server_stop(struct server *server);

#endif
