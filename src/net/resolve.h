/* The addresses of a name, by a deadline. */
#ifndef HF_NET_RESOLVE_H
#define HF_NET_RESOLVE_H

#include <netdb.h>

#include "base/env.h"
#include "base/error.h"

/* As getaddrinfo() gives them; free with freeaddrinfo(). An address in figures is never looked up.
 * Errors: HF_UNAVAILABLE (no such name, or no answer in time), HF_NO_MEMORY, HF_SYSTEM. */
int hf__resolve(const char *host, const char *port, const struct hf_env *env, int64_t deadline_ns,
                struct addrinfo **ret_list, hf_error *err);

#endif
