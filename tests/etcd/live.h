/* What the tests against a real server share: the server as a stranger sees it, and small helpers.
 * The server is the one of tests/fleet/with-etcd. */
#ifndef TESTS_ETCD_LIVE_H
#define TESTS_ETCD_LIVE_H

#include <pthread.h>

#include "holdfast.h"
#include "lib/check.h"

#define GRANTS        "grpc_server_handled_total{grpc_code=\"OK\",grpc_method=\"LeaseGrant\""
#define WATCHES_BEGUN "grpc_server_started_total{grpc_method=\"Watch\""
#define TXNS          "grpc_server_handled_total{grpc_code=\"OK\",grpc_method=\"Txn\""

/* The first of them. */
const char *server_address(void);

/* "etcd://127.0.0.1:<port>/test?<options>"; port 0: the server's own. Static storage per thread. */
const char *url_of(int port, const char *options);
hf_client *open_at(const char *url);

/* Takes a lock without waiting; the code that comes of it. */
int try_lock(hf_client *client, const char *name, int64_t ttl_ms, hf_lock **ret_lock,
             hf_error *err);

/* An acquire on a thread of its own. */
struct waiter {
    hf_client *client;
    const char *name;
    int releases; /* at once when it has got it */
    int never_expires;
    int64_t wait_ms; /* 0: as long as it takes */
    pthread_t thread;
    int result;
    hf_lock *lock;
    hf_error err;
    int64_t got_ms;
};
void wait_in_thread(struct waiter *w, hf_client *client, const char *name);
int join_waiter(struct waiter *w);

int64_t now_ms(void);

size_t count_entries(hf_client *client, const char *name); /* holders and waiters */
void await_waiting(hf_client *client, const char *name, size_t count);
void await_free(hf_client *client, const char *name);

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

#endif
