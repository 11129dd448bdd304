/* What the tests against real Cassandra nodes share. The nodes are those of tests/fleet/with-cassandra
 * or with-cassandra3, with holdfast's tables in them. */
#ifndef TESTS_CASSANDRA_LIVE_H
#define TESTS_CASSANDRA_LIVE_H

#include <pthread.h>
#include <signal.h>

#include "holdfast.h"
#include "lib/check.h"

#define AWAIT_MS 30000 /* the servers may share a slow machine */

/* "cassandra://<hosts>/holdfast?<options>"; hosts NULL: all nodes. */
hf_client *open_at(const char *hosts, const char *options);

/* "127.0.0.<node>:<port>", node from 1. Static storage per node. */
const char *node_address(int node);
void node_signal(int node, int signal);
void node_kill(int node);
/* Puts a node's clock off by so much, if it runs with the shim. */
void node_set_clock(int node, int64_t ms);

/* A bid of its own owner, so that one thread can make many. */
hf_options options(int64_t ttl_ms, int64_t wait_ms);
int take(hf_client *client, const char *name, hf_options opt, hf_lock **ret_lock);

/* Fails the test with the text of the last error unless it is so. */
void check_code(int got, int wanted);
const char *last_error(void); /* of take() and release() in this thread */
int release(hf_lock *lock);

/* An acquire on a thread of its own. */
struct waiter {
    hf_client *client;
    const char *name;
    int64_t ttl_ms;  /* 0: 20 s */
    int64_t hold_ms; /* then it releases; 0: the test does */
    pthread_t thread;
    int code;
    hf_lock *lock;
    uint64_t generation;
};
void wait_in_thread(struct waiter *w);
void join_waiter(struct waiter *w);

int64_t now_ms(void);
void sleep_ms(int64_t ms);

/* Entries of this name, or -1 while the store does not answer. */
long count_entries(hf_client *client, const char *name);
long count_waiting(hf_client *client, const char *name);
void await_waiting(hf_client *client, const char *name, long count);
void await_free(hf_client *client, const char *name);
void await_lost(hf_lock *lock);

#endif
