/* What the tests against real Cassandra nodes share. The nodes are those of
 * tests/fleet/with-cassandra or with-cassandra3, with holdfast's tables in them. */
#ifndef TESTS_CASSANDRA_LIVE_H
#define TESTS_CASSANDRA_LIVE_H

#include <signal.h>

#include "lib/live.h"

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

#endif
