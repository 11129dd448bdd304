/* What the URLs of the SQL stores have in common: hosts, passwords, authorities, choices.
 *
 * TLS means chain and host name verified: tls=verify is the default for every host but loopback and
 * sockets. */
#ifndef HF_SQL_URL_H
#define HF_SQL_URL_H

#include "base/error.h"
#include "base/url.h"
#include "net/pool.h"

#define HF__SQL_HOSTS_MAX 16 /* servers in a URL */

enum hf__sql_tls { HF__TLS_BY_HOST, HF__TLS_VERIFY, HF__TLS_INSECURE, HF__TLS_OFF };

struct hf__sql_hosts {
    struct hf__sql_host {
        char *host, *port;    /* a host that begins with '/' is a socket or its directory */
        enum hf__sql_tls tls; /* not BY_HOST any more */
    } list[HF__SQL_HOSTS_MAX];
    size_t count;
};

/* Options that mean the same in each of them; a store's table begins or ends with these. */
#define HF__SQL_PASSWORD_OPTIONS                                                               \
    {"password_file", HF__OPTION_TEXT, NULL, 0, 0, "a file whose first line is the password"}, \
    {                                                                                          \
        "password_env", HF__OPTION_TEXT, NULL, 0, 0,                                           \
            "the environment variable that has the password"                                   \
    }
#define HF__SQL_TLS_OPTIONS                                                             \
    {"tls", HF__OPTION_TEXT,                                                            \
     NULL,  0,                                                                          \
     0,     "verify (the default, but not for loopback and sockets), insecure or off"}, \
        {"tls_ca", HF__OPTION_TEXT,                                                     \
         NULL,     0,                                                                   \
         0,        "the authority that signed the server's certificate (PEM)"},         \
        {"tls_cert", HF__OPTION_TEXT, NULL, 0, 0, "our own certificate (PEM)"},         \
    {                                                                                   \
        "tls_key", HF__OPTION_TEXT, NULL, 0, 0, "its key"                               \
    }
#define HF__SQL_POOL_OPTIONS                                                                         \
    {"max_active", HF__OPTION_NUMBER, "16", 1, 10000, "connections in use at the same time"},        \
        {"max_idle", HF__OPTION_NUMBER, "8", 0, 10000, "connections kept when they are not in use"}, \
    {                                                                                                \
        "idle_timeout", HF__OPTION_DURATION, "60s", 100, 86400000,                                   \
            "for how long idle ones are kept"                                                        \
    }

/* A copy of `text`; NULL stays NULL. HF_NO_MEMORY. */
int hf__sql_copy(const char *text, char **ret_copy, hf_error *err);

/* What they mean; zero before it is read. */
struct hf__sql_settings {
    char *user, *password; /* NULL: none */
    bool routines;         /* false: plain statements even if the routines are there */
    struct hf__pool_limits limits;
    int64_t poll_ms;    /* how often to ask when nobody calls */
    int64_t recheck_ms; /* how often the first asks although it is called; 0: never */
    int64_t retain_ms;

    /* Where the store itself knows the servers. */
    struct hf__sql_hosts hosts; /* none: somebody else knows it */
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

/* From the URL, password_file or password_env: one of them, or none. */
int hf__sql_read_password(const struct hf__url *url, char **ret_password, hf_error *err);
void hf__sql_forget(char *password); /* wipes it and frees it; NULL is fine */

#endif
