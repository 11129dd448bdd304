/* A CQL server of a test's own, in a thread: it says READY, prepares anything, and answers Void;
 * whatever else it shall do the test's handler does. */
#ifndef TESTS_CQL_SERVER_H
#define TESTS_CQL_SERVER_H

#include <stdatomic.h>

#include "cql/frame.h"

#define AMPLE_MS 20000 /* for what is answered: the machine may be slow */

struct server;

/* A frame that came in. */
struct question {
    struct server *server;
    int fd;
    unsigned connection; /* the first is 1 */
    uint8_t version, opcode;
    int16_t stream;
    const unsigned char *body;
    size_t len;
};

/* Answers it, or not. Runs in the server's thread, one question at a time. */
typedef void server_handler(const struct question *q, void *arg);

/* Listens on a port of loopback. `handler` may be NULL: server_answer(). */
struct server *server_start(server_handler *handler, void *arg);
int server_port(const struct server *s);
void server_stop(struct server *s);

/* How many frames of an opcode have come, and how many connections. */
unsigned server_count(struct server *s, enum hf__cql_opcode opcode);
unsigned server_connections(struct server *s);

/* What it does by itself. */
void server_answer(const struct question *q);

/* An answer on the question's stream; the body as golden() has it. */
void server_reply(const struct question *q, enum hf__cql_opcode opcode, const char *body);
/* The same in bytes, on any stream; and bytes that need not be a frame. */
void server_reply_to(const struct question *q, int16_t stream, enum hf__cql_opcode opcode,
                     const void *body, size_t len);
void server_send(const struct question *q, const void *bytes, size_t len);

/* A handler for a server that only says other things: what the first line for the question's opcode
 * has, and what it says by itself where there is none. */
struct server_line {
    enum hf__cql_opcode to;
    int with;         /* an opcode, or SERVER_BARE: bytes that need not be a frame */
    const char *body; /* as golden() has it; NULL: the end of the lines */
};
#define SERVER_BARE 256
void server_say(const struct question *q, void *lines);
#define SAYING(...)                    \
    server_say, (struct server_line[]) \
    {                                  \
        __VA_ARGS__,                   \
        {                              \
            0                          \
        }                              \
    }

/* Ends the connection of a question; and waits until so many ends have reached the client's
 * side. */
void server_hang_up(const struct question *q);
void server_await_end(struct server *s, unsigned count);

#endif
