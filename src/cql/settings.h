/* Where the cluster is and who we are to it: what a URL says.
 *
 *   cassandra://user:password@h1:9042,h2,[::1]:9043/keyspace?tls=verify&tls_ca=FILE... */
#ifndef HF_CQL_SETTINGS_H
#define HF_CQL_SETTINGS_H

#include "net/tls.h"

#define HF__CQL_NODES_MAX    16
#define HF__CQL_KEYSPACE_MAX 48 /* Cassandra's own limit */

struct hf__cql_settings {
    struct hf__servers contacts;
    struct hf__account account; /* none: no login unless the server wants one, and then it is an
                                   error */
    struct hf__tls *tls;        /* NULL: all is plain */
    int protocol;               /* 4 or 5; 0: 4, or 5 if the server refuses it */
    int64_t node_timeout_ms; /* how long one node may take before the request is given up there */
};

/* Rows of a store's table of options. */
#define HF__CQL_OPTIONS                                                         \
    HF__TLS_OPTIONS, HF__PASSWORD_OPTIONS,                                      \
        {"protocol", HF__OPTION_NUMBER,                                         \
         "0",        0,                                                         \
         5,          "version of the native protocol: 4, 5, or 0 to find out"}, \
    {                                                                           \
        "node_timeout", HF__OPTION_DURATION, "2s", 50, 600000,                  \
            "how long one node may take before another one is asked"            \
    }

/* Reads hosts, account and TLS of a URL whose options were checked. `set` is zeroed
 * before; clear it in any case. Errors: HF_INVALID, HF_DENIED, HF_NO_MEMORY. */
int hf__cql_settings_read(const struct hf__url *url, struct hf__cql_settings *set, hf_error *err);
void hf__cql_settings_clear(struct hf__cql_settings *set);

/* Whether `name` may stand in a statement as it is, as the name of a keyspace or a table: a letter,
 * then letters, digits and '_', at most 48. */
bool hf__cql_is_name(const char *name);

#endif
