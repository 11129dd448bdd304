/* TLS on a stream, by OpenSSL: 1.2 or newer, the server's chain and name verified unless told
 * otherwise. In a file of its own, so that only modules that use it link OpenSSL. */
#ifndef HF_NET_TLS_H
#define HF_NET_TLS_H

#include "net/stream.h"

struct hf__tls_options {
    bool insecure;         /* do not verify: only for tests on one machine */
    const char *ca_file;   /* PEM; NULL: the system's */
    const char *cert_file; /* our own, with its chain; NULL: none */
    const char *key_file;  /* NULL: in cert_file */
    const char *protocol;  /* told to the server in the handshake (ALPN), as "h2"; NULL: none */
};

/* What all streams to one server share. */
struct hf__tls;

/* Errors: HF_INVALID (a file that cannot be used, with what is wrong), HF_NO_MEMORY. */
int hf__tls_new(const struct hf__tls_options *options, struct hf__tls **ret_tls, hf_error *err);
void hf__tls_free(struct hf__tls *tls); /* NULL is fine */

/* Shakes hands. The stream must stay where it is in memory from now on. `host` is the name that the
 * certificate must have; NULL: it is not looked at.
 * Errors: HF_DENIED (not trusted; says what to do), HF_UNAVAILABLE, HF_NO_MEMORY. */
int hf__tls_start(struct hf__tls *tls, struct hf__stream *s, const char *host, int64_t deadline_ns,
                  hf_error *err);

/* The same without waiting: the first reads and writes shake hands. If one of them fails,
 * hf__tls_refused() says whether the server was not trusted: HF_DENIED, or 0. */
int hf__tls_prepare(struct hf__tls *tls, struct hf__stream *s, const char *host, hf_error *err);
int hf__tls_refused(const struct hf__stream *s, hf_error *err);

#endif
