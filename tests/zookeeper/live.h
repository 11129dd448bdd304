/* What the tests against real servers share. The servers are those of tests/fleet/with-zookeeper
 * and with-zookeeper3. */
#ifndef TESTS_ZOOKEEPER_LIVE_H
#define TESTS_ZOOKEEPER_LIVE_H

#define THREADED
#include <pthread.h>
#include <zookeeper/zookeeper.h>

#include "holdfast.h"
#include "lib/check.h"

#define PATIENCE_MS 30000

/* A connection of its own, by which the test acts as a stranger. */
zhandle_t *stranger(void);
int child_count(zhandle_t *zh, const char *path); /* 0 if there is no such node */

/* "zookeeper://<hosts>/locks?acl=world&<options>", so that strangers can be played with them. Static
 * storage per thread. */
const char *url_of(const char *hosts, const char *options);
const char *servers(void); /* of the fleet */

hf_client *open_at(const char *hosts, const char *options);
int try_lock(hf_client *client, const char *name, int64_t ttl_ms, hf_lock **ret_lock);
hf_lock *take(hf_client *client, const char *name, int64_t ttl_ms); /* waits */

/* An acquire on a thread of its own. */
struct waiter {
    hf_client *client;
    const char *name;
    hf_options opt;
    pthread_t thread;
    int result;
    hf_lock *lock;
    hf_error err;
    _Atomic bool done;
};
void wait_in_thread(struct waiter *w, hf_client *client, const char *name, int64_t ttl_ms);
void wait_with(struct waiter *w, hf_client *client, const char *name, int64_t ttl_ms,
               hf_cancel *cancel);
int join_waiter(struct waiter *w);

/* Waits for the lock on a thread of its own, and releases it at once. */
struct visitor {
    hf_client *client;
    const char *name;
    int64_t ttl_ms;
    pthread_t thread;
};
void send_visitor(struct visitor *v, hf_client *client, const char *name, int64_t ttl_ms);
void join_visitor(struct visitor *v);

int64_t now_ms(void);
void await(const char *what, int (*is_true)(void *), void *ctx);
void await_waiting(hf_client *client, const char *name, size_t count);
void await_lost(hf_lock *lock);
/* Until the servers keep so many watches, and no more than at the last look: a session that watches
 * a node for two of its waiters watches it once, so how many there will be depends on who stands
 * beside whom. */
int await_watches(int least);

/* What a server ("127.0.0.1:2181") answers to a four-letter word; "" if it does not within 1 s. */
void ask_server_at(const char *address, const char *word, char *buf, size_t size);
void ask_server(int port, const char *word, char *buf, size_t size); /* on loopback */

#endif
