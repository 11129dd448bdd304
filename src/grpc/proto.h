/* Messages as Protocol Buffers write them: a writer that grows up to a cap, a reader that trusts no
 * length. Both are sticky: after the first failure everything else does nothing, so that a long run
 * of calls is checked once, at its end.
 *
 * Fields are numbers and bytes; a message inside a message is bytes too. What is 0 or empty may be
 * left out, and fields that the reader does not know are passed over. */
#ifndef HF_GRPC_PROTO_H
#define HF_GRPC_PROTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A stretch of bytes that belongs to somebody else. */
struct hf__slice {
    const char *data;
    size_t len;
};

/* Bytes that grow. ----------------------------------------------------------------------------- */
struct hf__buffer {
    char *data;
    size_t len, room;
    size_t cap;  /* never longer than this; 0: HF__BUFFER_CAP */
    bool failed; /* out of memory, or longer than the cap: it is not to be used */
};
#define HF__BUFFER_CAP (1 << 20)

void hf__buffer_add(struct hf__buffer *b, const void *data, size_t len);
void hf__buffer_drop(struct hf__buffer *b, size_t len); /* from its front */
void hf__buffer_clear(struct hf__buffer *b);            /* frees and empties it */

/* Writing. ------------------------------------------------------------------------------------- */
void hf__proto_number(struct hf__buffer *b, unsigned field, uint64_t value); /* 0 is left out */
void hf__proto_bytes(struct hf__buffer *b, unsigned field, const void *data, size_t len);

/* A message inside: what is written between the two is its content. `place` is what begin gave. */
size_t hf__proto_begin(struct hf__buffer *b, unsigned field);
void hf__proto_end(struct hf__buffer *b, size_t place);

/* Reading. ------------------------------------------------------------------------------------- */
struct hf__proto_reader {
    struct hf__slice rest;
    bool failed; /* it is not a message */
};

struct hf__proto_field {
    unsigned number;
    bool is_bytes;
    uint64_t value;         /* if it is a number */
    struct hf__slice bytes; /* if it is bytes; borrowed from what is read */
};

static inline struct hf__proto_reader hf__proto_reader_of(struct hf__slice message)
{
    return (struct hf__proto_reader){.rest = message};
}

/* The next field; false at the end, or if it failed. */
bool hf__proto_next(struct hf__proto_reader *r, struct hf__proto_field *ret_field);

#endif
