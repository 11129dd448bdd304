/* What the benchmarks of SQL servers share: pairs and hand-overs of ours, each beside the bare
 * statements that do the least for the same purpose, in turns. Pairs and hand-overs are medians of
 * one round. */
#ifndef BENCH_SQL_H
#define BENCH_SQL_H

#include <holdfast.h>

#include "bench.h"

#define SQL_CROWD 200 /* waiters of the longest chain */

struct sql_bench {
    const char *store, *label; /* for the figures' names */
    hf_client *client, *other; /* who has the lock first, and who waits for it */
    void *db, *ear;            /* bare connections */
    void (*run)(void *db, const char *sql);
    long (*number)(void *db, const char *sql); /* of one row with one cell */

    /* What a hand-over needs at the least: from before a commit on `db` until `ear` was woken. */
    int64_t (*wake_once)(void *db, void *ear);
};

/* A client that has had the lock once, so that it is connected. */
hf_client *sql_open(const char *url);

/* Acquire and release by the client, and two bare statements. */
struct sql_pair {
    const char *figure;
    hf_client *client;
    const char *take, *give;
};
void sql_pairs(const struct sql_bench *b, const struct sql_pair *pair, int count);

/* To one waiter, `count` times; and chains through 2 waiters and through all. */
void sql_handovers(const struct sql_bench *b, int count);

#endif
