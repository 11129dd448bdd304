/* What the URLs of the SQL stores have in common: hosts, passwords, authorities, choices.
 *
 * TLS means chain and host name verified: tls=verify is the default for every host but loopback and
 * sockets. */
#ifndef HF_SQL_URL_H
#define HF_SQL_URL_H

#include "core/error.h"
#include "core/url.h"

#define HF__SQL_HOSTS_MAX 16 /* servers in a URL */
#define HF__SQL_SYSTEM_CA "/etc/ssl/certs/ca-certificates.crt"

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
    {"password_file", HF__TEXT, NULL, 0, 0, "a file whose first line is the password"},        \
    {                                                                                          \
        "password_env", HF__TEXT, NULL, 0, 0, "the environment variable that has the password" \
    }
#define HF__SQL_TLS_OPTIONS                                                                       \
    {"tls", HF__TEXT, NULL,                                                                       \
     0,     0,        "verify (the default, but not for loopback and sockets), insecure or off"}, \
        {"tls_ca", HF__TEXT, NULL,                                                                \
         0,        0,        "the authority that signed the server's certificate (PEM)"},         \
        {"tls_cert", HF__TEXT, NULL, 0, 0, "our own certificate (PEM)"},                          \
    {                                                                                             \
        "tls_key", HF__TEXT, NULL, 0, 0, "its key"                                                \
    }
#define HF__SQL_POOL_OPTIONS                                                                  \
    {"max_active", HF__NUMBER, "16", 1, 10000, "connections in use at the same time"},        \
        {"max_idle", HF__NUMBER, "8", 0, 10000, "connections kept when they are not in use"}, \
    {                                                                                         \
        "idle_timeout", HF__DURATION, "60s", 100, 86400000, "for how long idle ones are kept" \
    }

/* A URL and the store's own table of options. */
struct hf__sql_url {
    const struct hf__url *url;
    const struct hf__option *options;
};

const char *hf__sql_text(const struct hf__sql_url *from, const char *option);
int64_t hf__sql_number(const struct hf__sql_url *from, const char *option);

/* A copy of `text`; NULL stays NULL. HF_NO_MEMORY. */
int hf__sql_copy(const char *text, char **ret_copy, hf_error *err);

struct hf__sql_choice {
    const char *word; /* NULL ends the list */
    int value;
};

/* The value of the word given; unchanged if there is none. HF_INVALID names the words. */
int hf__sql_choose(const struct hf__sql_url *from, const char *option,
                   const struct hf__sql_choice *choices, int *ret_value, hf_error *err);

/* The hosts of the authority, or `socket`, or `preset_socket` if nothing is named, with the port
 * `port` unless they name one; and what `tls` means for each of them. */
struct hf__sql_defaults {
    const char *preset_socket, *port;
    const char *socket_port; /* beside a socket; may be NULL */
};
int hf__sql_read_hosts(const struct hf__sql_url *from, const struct hf__sql_defaults *preset,
                       struct hf__sql_hosts *ret_hosts, hf_error *err);
void hf__sql_hosts_clear(struct hf__sql_hosts *hosts);

/* From the URL, password_file or password_env: one of them, or none. */
int hf__sql_read_password(const struct hf__sql_url *from, char **ret_password, hf_error *err);
void hf__sql_forget(char *password); /* wipes it and frees it; NULL is fine */

#endif
