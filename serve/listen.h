/* The socket that is listened on, and whether it may be. */
#ifndef SERVE_LISTEN_H
#define SERVE_LISTEN_H

#include <stdbool.h>

struct listen {
    int fd;
    bool is_unix, is_loopback;
    char shown[160];          /* "127.0.0.1:8117", "unix:/run/holdfast.sock" */
    char *tls_cert, *tls_key; /* PEM; NULL: no TLS */
};

/* Opens "HOST:PORT", "[ADDRESS]:PORT" or "unix:PATH"; NULL: what systemd has handed down, else 127.0.0.1:8117. 0, or an
 * exit status after a sentence. */
int listen_open(struct listen *listen, const char *address);

/* Reads both files. */
int listen_use_tls(struct listen *listen, const char *cert_file, const char *key_file);

/* An address that other machines reach is refused without TLS and tokens. */
int listen_check(const struct listen *listen, bool has_tokens);

void listen_clear(struct listen *listen);

#endif
