/* The bare calls that the etcd store is measured against, and how both sides rest and print. */
#ifndef BENCH_ETCD_H
#define BENCH_ETCD_H

#include <stdbool.h>

#include "bench.h"

extern const char *etcd_host, *etcd_label; /* of the server, and in the names of the figures */

void etcd_print(const char *figure, double us);

/* A connection of the bare side. */
struct hf__grpc_conn;
struct hf__grpc_conn *etcd_dial(void);

/* One acquire and release, as etcd.c says: by the recipe, and by the server's own lock. */
void etcd_bare_pair(struct hf__grpc_conn *conn);
void etcd_v3lock_pair(struct hf__grpc_conn *conn);

/* Two deletions in turn, like ours with two waiting; with `rests`, after a pause. */
void etcd_bare_handover(struct hf__grpc_conn *conn, int handovers, bool rests);

/* Whoever waits does so for a while. A server that has slept answers late, so somebody else asks it
 * something before each measurement: a process of its own, or the code of the bare side would be in
 * the processor's cache and ours not. It is started before any thread. */
void etcd_start_somebody(void);
void etcd_rest(void);

#endif
