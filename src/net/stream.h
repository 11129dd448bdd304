/* A stream of bytes to another process, with a deadline on everything: TCP, a unix socket, and TLS
 * on top of either (net/tls.h).
 *
 * Deadlines are moments of the host's clock (hf__now_ns). A stream that has failed is of no more
 * use: close it. Not thread-safe; one thread may use it at a time. */
#ifndef HF_NET_STREAM_H
#define HF_NET_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/env.h"
#include "base/error.h"

/* Where to connect. Borrowed strings. */
struct hf__address {
    const char *host; /* a name or an address; NULL: `path` is a unix socket */
    const char *port;
    const char *path;
};

/* What a layer does. Each returns bytes, 0 for the other side's end (read), or a negative errno:
 * -EAGAIN means "wait for *ret_events, then call again". */
struct hf__stream;
struct hf__layer {
    ssize_t (*read)(struct hf__stream *s, void *buf, size_t size, short *ret_events);
    ssize_t (*write)(struct hf__stream *s, const void *buf, size_t size, short *ret_events);
    void (*close)(struct hf__stream *s); /* frees the layer's own; the descriptor stays */
    const char *(*why)(struct hf__stream *s, int error, char *buf, size_t size);
};

struct hf__stream {
    const struct hf__layer *layer;
    const struct hf_env *env;
    int fd;
    bool patient; /* a plain read may wait in the kernel for a moment: saves a system call */
    bool local;   /* a unix socket */
    void *tls;    /* the layer's own */
};

/* Connects, trying each address of a name in turn. Close-on-exec, no delay, keepalive.
 * Errors: HF_UNAVAILABLE, HF_INVALID (a path too long), HF_NO_MEMORY, HF_SYSTEM. */
int hf__stream_connect(struct hf__stream *s, const struct hf__address *to, const struct hf_env *env,
                       int64_t deadline_ns, hf_error *err);

/* Begins to connect to one address, and does not wait: until it is connected writes say -EAGAIN.
 * For who polls many streams with the layer's functions. 0 or a negative errno. */
struct addrinfo;
int hf__stream_begin(struct hf__stream *s, const struct addrinfo *to, const struct hf_env *env);

/* Takes over a connected descriptor. */
void hf__stream_init(struct hf__stream *s, int fd, const struct hf_env *env);

/* Writes all of it. `ret_sent` (may be NULL) is how much the kernel took, also on failure, so that
 * the caller can tell "surely not received" from "perhaps". Errors: HF_UNAVAILABLE. */
int hf__stream_write(struct hf__stream *s, const void *data, size_t size, int64_t deadline_ns,
                     size_t *ret_sent, hf_error *err);

/* Reads what there is, at least one byte, into `buf`. Errors: HF_UNAVAILABLE, also at the end. */
int hf__stream_read(struct hf__stream *s, void *buf, size_t size, int64_t deadline_ns,
                    size_t *ret_count, hf_error *err);

/* The same without waiting: 0 bytes if there is nothing yet. */
int hf__stream_poll(struct hf__stream *s, void *buf, size_t size, size_t *ret_count, hf_error *err);

/* Whether an idle stream is still usable: nothing to read and no end. */
bool hf__stream_is_quiet(struct hf__stream *s);

/* Waits for an event of a descriptor. 0 or -ETIMEDOUT or another negative errno. */
int hf__wait_fd(int fd, short events, const struct hf_env *env, int64_t deadline_ns);

/* Ends it at once, also one that was never connected. Says no goodbye: in a forked child nothing
 * may be sent. */
void hf__stream_close(struct hf__stream *s);

#endif
