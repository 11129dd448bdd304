/* The server: sockets, requests, limits. One thread, but for the workers of the stores. */
#ifndef SERVE_SERVER_H
#define SERVE_SERVER_H

#include "listen.h"
#include "request.h"

struct stream;

struct server_limits {
    unsigned connections;
    unsigned
        idle_s; /* a connection on which nothing moves for so long is cut, unless it waits for us */
};

struct server {
    struct loop loop;
    struct stores stores;
    struct access access;
    bool allow_break;
    struct server_limits limits;
    struct MHD_Daemon *daemon;
    struct source http; /* the daemon's own descriptor */
    struct request *requests;
    struct stream *streams;
    bool ending;
    int64_t beat_ms; /* when the next heartbeats are due */
    struct counters {
        uint64_t answers[6]; /* by the first digit of the status */
        uint64_t connections, streams, bids;
    } counters;
};

/* Begins to listen. 0, or an exit status after a sentence. */
int server_start(struct server *server, const struct listen *listen);

/* Serves until server->ending. */
void server_run(struct server *server);

/* Ends what is under way and closes the sockets. */
void server_stop(struct server *server);

void server_count(struct server *server, const struct route *route, unsigned status);

/* route.c: the route of a request, NULL if there is none. Then *ret_status is 404 or 405. On success store and name
 * are filled in. */
const struct route *route_find(struct request *request, const char *method, unsigned *ret_status);

#endif
