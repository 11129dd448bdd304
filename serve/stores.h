/* The stores that are served: each with its client, and its own workers. */
#ifndef SERVE_STORES_H
#define SERVE_STORES_H

#include "holdfast.h"
#include "target.h"
#include "workers.h"

#define SERVER_PROGRAM "holdfast-serve" /* as entries name it */

#define STORES_MAX    32
#define STORE_ID_MAX  32 /* with the NUL */
#define STORE_URL_MAX 512

struct server;
struct board;
struct bid;

struct store {
    struct server *server;
    char id[STORE_ID_MAX];
    char shown[STORE_URL_MAX]; /* its URL without secrets */
    char kind[STORE_ID_MAX];   /* the scheme */
    hf_client *client;
    struct workers workers;
    struct source events; /* those of the client */
    struct bid *bids;
    struct board *board; /* NULL: nobody has listened yet */
};

struct stores {
    int64_t history; /* written into each URL that says nothing of it; 0: not */
    struct loop *loop;
    struct server *server;
    size_t count;
    struct store list[STORES_MAX];
};

/* Opens "URL" or "ID=URL"; NULL is the embedded default. 0, or an exit status after a sentence. */
int stores_open(struct stores *stores, const char *text);

/* Ends the workers and closes the clients, which gives back every lock that they hold. */
void stores_close(struct stores *stores);

/* Tells everybody who waits that it ends. */
void stores_stop(struct stores *stores);

struct store *stores_find(struct stores *stores, const struct bytes *id);

#endif
