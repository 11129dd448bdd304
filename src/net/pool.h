/* Connections that are lent to one operation at a time.
 *
 * Nobody keeps one while it waits for a lock, so a thousand waiting threads share a few. The last
 * one given back is the first to be lent again: the others grow old and are closed. A store tells
 * the pool how its connections are made and ended; its own structure begins with hf__pooled. */
#ifndef HF_NET_POOL_H
#define HF_NET_POOL_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/env.h"
#include "base/error.h"

struct hf__pooled {
    struct hf__pooled *next;
    int64_t idle_since_ns;
    unsigned epoch; /* the pool's, when it was dialled; for stores that flush */
};

/* What a store knows about its connections. `owner` is the one given to hf__pool_init. */
struct hf__pool_type {
    const char *store; /* for messages: "postgres" */

    /* Connects to the server of that number. HF_UNAVAILABLE, HF_DENIED, HF_NO_MEMORY. */
    int (*dial)(void *owner, size_t host, int64_t deadline_ns, struct hf__pooled **ret_conn,
                hf_error *err);
    void (*hang_up)(struct hf__pooled *conn);

    /* Whether one that was idle for so long may be lent again: the other side has neither hung up
     * nor said anything. NULL: always. */
    bool (*is_alive)(void *owner, struct hf__pooled *conn, int64_t idle_ns, int64_t deadline_ns);

    /* Whether a dial failed only because others have all the connections that the server allows. They
     * will give them back, so it is waited for. NULL: never. */
    bool (*is_crowded)(const hf_error *why);
};

struct hf__pool_limits {
    int64_t max_active, max_idle, idle_timeout_ms;
    bool fail_at_once; /* when all are in use, instead of waiting for one */
};

struct hf__pool {
    const struct hf__pool_type *type;
    const struct hf_env *env;
    void *owner;
    struct hf__pool_limits limits; /* may be changed until the first one is lent */
    size_t host_count;
    pthread_mutex_t mutex;
    pthread_cond_t free_one;
    struct hf__pooled *idle; /* the last used first */
    int64_t active;
    _Atomic unsigned epoch; /* rises when all connections have become useless */
    size_t best_host;       /* the one that answered last */
    uint64_t jitter;        /* see hf__jitter() */
    int64_t retry_ns;       /* nobody dials before then */
    unsigned failures;
    hf_error failure; /* why the last dial failed */
};

/* HF_SYSTEM: there is no randomness to be had. It can be cleared even then. */
int hf__pool_init(struct hf__pool *pool, const struct hf__pool_type *type, void *owner,
                  const struct hf_env *env, hf_error *err);
void hf__pool_clear(struct hf__pool *pool); /* none is lent any more */

/* A connection of the caller's own, which does not count: to the server that answered last or, in
 * its turn, the next. Each gets its share of the time, so that one that swallows packets does not
 * use up what the others need. */
int hf__pool_dial(struct hf__pool *pool, int64_t deadline_ns, struct hf__pooled **ret_conn,
                  hf_error *err);

/* Lends one. HF_UNAVAILABLE also if all are in use, here or in the server, until the deadline. Soon after a
 * dial that failed it fails in the same way without dialling: a server that is down is not asked by
 * everybody. */
int hf__pool_take(struct hf__pool *pool, int64_t deadline_ns, struct hf__pooled **ret_conn,
                  hf_error *err);

/* Takes it back. What is not `whole` (a reply is missing, a transaction is open) is hung up before
 * anybody else can ask on another one. */
void hf__pool_give(struct hf__pool *pool, struct hf__pooled *conn, bool whole);

/* All connections have become useless: hangs up those that are not lent now, the others when they
 * are given back. What comes next may be dialled at once. */
void hf__pool_flush(struct hf__pool *pool);

/* A number below `below`, and a pause of about so long: for jitter. */
uint64_t hf__pool_jitter(struct hf__pool *pool, uint64_t below);
void hf__pool_sleep(struct hf__pool *pool, int64_t ms);

#endif
