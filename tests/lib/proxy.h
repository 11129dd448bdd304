/* A TCP proxy in a thread of the test, which treats what passes through it badly. */
#ifndef TESTS_LIB_PROXY_H
#define TESTS_LIB_PROXY_H

#include <stddef.h>
#include <stdint.h>

enum proxy_mode {
    PROXY_PASS,
    PROXY_DELAY,    /* everything arrives `number` ms late */
    PROXY_C2S_HOLE, /* of the connections there are, what the client sends is held back, and
                       delivered when passing again, even if the client has gone; new ones pass */
    PROXY_S2C_HOLE, /* of the connections there are, what the server sends is lost; new ones pass */
    PROXY_HOLE,     /* both are lost */
    PROXY_RST,      /* connections are reset, new ones too */
    PROXY_END,      /* the connections there are end, as when a server stops; new ones pass */
    PROXY_REFUSE,   /* new connections are closed at once; old ones go on */
    PROXY_SPLIT,    /* byte by byte */
    PROXY_CUT,      /* the connection ends after `number` more bytes of the server */
};

struct proxy;

/* Listens on a port of loopback for connections to `target` ("127.0.0.1:6379"). */
struct proxy *proxy_start(const char *target);
int proxy_port(const struct proxy *proxy);

/* From now on, for all connections. Returns when it is in force. */
void proxy_set(struct proxy *proxy, enum proxy_mode mode, int64_t number);

/* How many bytes clients have sent so far, and servers, and how many connections there were. */
size_t proxy_sent(struct proxy *proxy);
size_t proxy_answered(struct proxy *proxy);
size_t proxy_connections(struct proxy *proxy);

void proxy_stop(struct proxy *proxy);

#endif
