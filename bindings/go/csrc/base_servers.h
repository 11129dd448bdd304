/* What the URLs of all stores with servers say in the same way: where the servers are, who we are
 * to them, and how much TLS there is.
 *
 *      scheme://user:password@h1:1,h2,[::1]:1/...?password_file=F&tls=verify&tls_ca=F
 *
 * One reader for all of them, and one sentence for each mistake. The options are rows that a store
 * puts into its table. */
#ifndef HF_BASE_SERVERS_H
#define HF_BASE_SERVERS_H

#include "base_error.h"
#include "base_url.h"

#define HF__SERVERS_MAX 64 /* room in struct hf__servers; most stores take fewer */

/* TLS ----------------------------------------------------------------------- */

enum hf__tls_mode {
    HF__TLS_MODE_BY_HOST,  /* nothing was said: as the store thinks best for the host */
    HF__TLS_MODE_VERIFY,   /* the server's chain and name are verified */
    HF__TLS_MODE_INSECURE, /* encrypted, whoever it is */
    HF__TLS_MODE_OFF,
};

struct hf__tls_settings {
    enum hf__tls_mode mode;
    const char *ca_file, *cert_file, *key_file; /* PEM, borrowed from the URL; NULL: not given */
};

#define HF__TLS_FILE_OPTIONS                                                                    \
    {"tls_ca", HF__OPTION_TEXT,                                                                 \
     NULL,     0,                                                                               \
     0,        "the authority that signed the servers' certificates (PEM)"},                    \
        {"tls_cert", HF__OPTION_TEXT, NULL, 0, 0, "our own certificate, with its chain (PEM)"}, \
    {                                                                                           \
        "tls_key", HF__OPTION_TEXT, NULL, 0, 0, "the key of our own certificate (PEM)"          \
    }
#define HF__TLS_OPTIONS                                                               \
    {"tls",                                                                           \
     HF__OPTION_TEXT,                                                                 \
     NULL,                                                                            \
     0,                                                                               \
     0,                                                                               \
     "verify (the default, but for loopback and sockets), insecure (no check of the " \
     "server) or off"},                                                               \
        HF__TLS_FILE_OPTIONS

/* `preset` counts if the URL says nothing; but if that is BY_HOST, whoever names certificates wants
 * VERIFY, on loopback too. Errors: HF_INVALID. */
int hf__tls_settings_read(const struct hf__url *url, enum hf__tls_mode preset,
                          struct hf__tls_settings *ret_tls, hf_error *err);

/* Servers ------------------------------------------------------------------- */

struct hf__servers {
    struct hf__server {
        char *host, *port;     /* without the brackets of an IPv6 address; or see `sockets` */
        enum hf__tls_mode tls; /* not BY_HOST any more */
    } list[HF__SERVERS_MAX];
    size_t count;
};

struct hf__servers_form {
    const char *port;    /* of those that name none */
    size_t max;          /* at most HF__SERVERS_MAX */
    const char *host;    /* if none is named; NULL: see the next one */
    const char *example; /* a URL, for who names none; NULL: then there are none */
    bool sockets;        /* a host that begins with '/' is the path of a socket, or its directory */
};

/* The hosts of the URL. Where `tls` leaves it open, those of loopback go without and all others
 * are verified; sockets go without in any case. `servers` is zeroed before; clear it in any case. Errors: HF_INVALID,
 * HF_NO_MEMORY. */
int hf__servers_read(const struct hf__url *url, const struct hf__servers_form *form,
                     const struct hf__tls_settings *tls, struct hf__servers *servers,
                     hf_error *err);
void hf__servers_clear(struct hf__servers *servers);

/* Whether TLS is spoken to any of them. */
bool hf__servers_use_tls(const struct hf__servers *servers);

/* "host:port" or "[address]:port", as snprintf() writes it and counts it. */
int hf__server_text(const struct hf__server *server, char *buf, size_t size);

/* Account ------------------------------------------------------------------- */

struct hf__account {
    char *user, *password; /* NULL: none */
};

enum hf__account_rule {
    HF__ACCOUNT_ANY,                 /* one of them, both or none: the server knows others ways */
    HF__ACCOUNT_USER_NEEDS_PASSWORD, /* a password may be alone */
    HF__ACCOUNT_BOTH_OR_NONE,
};

#define HF__PASSWORD_OPTIONS                                                                   \
    {"password_file", HF__OPTION_TEXT, NULL, 0, 0, "a file whose first line is the password"}, \
    {                                                                                          \
        "password_env", HF__OPTION_TEXT, NULL, 0, 0,                                           \
            "the environment variable that has the password"                                   \
    }

/* The user of the URL, and the password from there, password_file or password_env. `account` is
 * zeroed before; clear it in any case. Errors: as hf__secret_read(); HF_INVALID if the rule is not
 * kept. */
int hf__account_read(const struct hf__url *url, enum hf__account_rule rule,
                     struct hf__account *account, hf_error *err);

/* A second account of the same URL, all from options that begin with `prefix`: PREFIXuser,
 * PREFIXpassword_file, PREFIXpassword_env. */
int hf__account_read_options(const struct hf__url *url, const char *prefix,
                             enum hf__account_rule rule, struct hf__account *account,
                             hf_error *err);
void hf__account_clear(struct hf__account *account);

#endif
