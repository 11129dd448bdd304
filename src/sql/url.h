/* What the URLs of the SQL stores have in common beside base/servers.h: sockets, the pool, how the
 * rules are run. */
#ifndef HF_SQL_URL_H
#define HF_SQL_URL_H

#include "base/servers.h"
#include "net/pool.h"

#define HF__SQL_POOL_OPTIONS                                                                         \
    {"max_active", HF__OPTION_NUMBER, "16", 1, 10000, "connections in use at the same time"},        \
        {"max_idle", HF__OPTION_NUMBER, "8", 0, 10000, "connections kept when they are not in use"}, \
    {                                                                                                \
        "idle_timeout", HF__OPTION_DURATION, "60s", 100, 86400000,                                   \
            "for how long idle ones are kept"                                                        \
    }

/* What they mean; zero before it is read. */
struct hf__sql_settings {
    struct hf__account account;
    struct hf__pool_limits limits;
    int64_t poll_ms;    /* how often to ask when nobody calls */
    int64_t recheck_ms; /* how often the first asks although it is called; 0: never */
    int64_t retain_ms, history;

    /* Where the store itself knows the servers. */
    struct hf__servers servers; /* none: somebody else knows it */
    char *database;             /* NULL: none is named */
    char *tls_ca, *tls_cert, *tls_key;
    bool push; /* false: nobody is called even if it could be */
    int64_t max_held;
};

/* The first part, and the second. */
struct hf__sql_defaults {
    const char *preset_socket, *port; /* if none is named */
    const char *socket_port;          /* beside a socket; may be NULL */
    bool has_ca;                      /* the library finds an authority by itself */
};
int hf__sql_read_account(const struct hf__url *url, struct hf__sql_settings *set, hf_error *err);
int hf__sql_read_servers(const struct hf__url *url, const struct hf__sql_defaults *preset,
                         struct hf__sql_settings *set, hf_error *err);
void hf__sql_settings_clear(struct hf__sql_settings *set);

#endif
