/* What the tests against real servers share: the servers as a stranger sees them. They are those of
 * tests/fleet/with-etcd and with-etcd3. */
#ifndef TESTS_ETCD_LIVE_H
#define TESTS_ETCD_LIVE_H

#include "lib/live.h"

#define GRANTS        "grpc_server_handled_total{grpc_code=\"OK\",grpc_method=\"LeaseGrant\""
#define WATCHES_BEGUN "grpc_server_started_total{grpc_method=\"Watch\""
#define STREAMS       "etcd_debugging_mvcc_watch_stream_total"
#define TXNS          "grpc_server_handled_total{grpc_code=\"OK\",grpc_method=\"Txn\""

/* The first of them. */
const char *server_address(void);

/* "etcd://127.0.0.1:<port>/test?<options>"; port 0: the servers' own. Static storage per thread. */
const char *url_of(int port, const char *options);
hf_client *open_live(const char *options); /* at the servers themselves */

/* The sum of the servers' metrics that begin so. */
double metric(const char *prefix);
void await_more(const char *prefix, double than);
/* Writers that wait behind a writer: each has two watches. Each stream has two more, for its client.
 */
void await_watchers(int count);
void await_streams(int count);
size_t count_keys(const char *root);             /* all that begin so, in the whole store */
void delete_place(const char *name, size_t nth); /* as an operator would */
void compact(void);                              /* all revisions but the present one */

/* A server with a quota: puts until it refuses; and makes room again. */
void fill_up(void);
void make_room(void);

#endif
