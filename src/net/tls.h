/* TLS on a stream, by OpenSSL: 1.2 or newer, the server's chain and name verified unless told
 * otherwise. In a file of its own, so that only modules that use it link OpenSSL. */
#ifndef HF_NET_TLS_H
#define HF_NET_TLS_H

#include "base/servers.h"
#include "net/stream.h"

/* What all streams to one server share. */
struct hf__tls;

/* With the files of `set`: no authority means the system's, no key that it is in the file of the
 * certificate. Servers are verified unless the mode is INSECURE. `protocol` is told to them in the
 * handshake (ALPN), as "h2"; NULL: none.
 * Errors: HF_INVALID (a file that cannot be used, with what is wrong), HF_NO_MEMORY. */
int hf__tls_new(const struct hf__tls_settings *set, const char *protocol, struct hf__tls **ret_tls,
                hf_error *err);
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
