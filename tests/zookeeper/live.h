/* What the tests against real servers share. The servers are those of tests/fleet/with-zookeeper
 * and with-zookeeper3. */
#ifndef TESTS_ZOOKEEPER_LIVE_H
#define TESTS_ZOOKEEPER_LIVE_H

#define THREADED
#include <zookeeper/zookeeper.h>

#include "lib/live.h"

/* A connection of its own, by which the test acts as a stranger. */
zhandle_t *stranger(void);
int child_count(zhandle_t *zh, const char *path); /* 0 if there is no such node */

/* "zookeeper://<hosts>/locks?acl=world&<options>", so that strangers can be played with them.
 * Static storage per thread. */
const char *url_of(const char *hosts, const char *options);
const char *servers(void); /* of the fleet */

hf_client *open_at(const char *hosts, const char *options);
/* The client listens from now on, so that a waiter who is told that it waits asks no second
 * time. */
void make_listen(hf_client *client);
hf_lock *take(hf_client *client, const char *name, int64_t ttl_ms); /* waits */

/* Bids on threads of their own: one that `cancel` ends (NULL: nothing does), and one that releases
 * the lock at once. */
void send_waiter(struct waiter *w, hf_client *client, const char *name, int64_t ttl_ms,
                 hf_cancel *cancel);
void send_visitor(struct waiter *w, hf_client *client, const char *name, int64_t ttl_ms);

/* How many watches the servers keep. */
int count_watches(void);

/* What a server ("127.0.0.1:2181") answers to a four-letter word; "" if it does not within 1 s. */
void ask_server_at(const char *address, const char *word, char *buf, size_t size);
void ask_server(int port, const char *word, char *buf, size_t size); /* on loopback */

#endif
