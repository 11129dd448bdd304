/* Bytes as CQL writes them: a writer that grows up to a cap, a reader that trusts no length.
 *
 * Both are sticky: after the first failure everything else does nothing (the reader gives zeros),
 * so that a long run of calls is checked once, at its end. All numbers are big-endian. */
#ifndef HF_CQL_BUFFER_H
#define HF_CQL_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A stretch of bytes that belongs to somebody else. data NULL: CQL's null. */
struct hf__cql_bytes {
    const unsigned char *data;
    size_t len;
};

/* Writer ------------------------------------------------------------------- */
struct hf__cql_writer {
    unsigned char *data;
    size_t len, room;
    size_t cap;  /* never longer than this */
    bool failed; /* out of memory, or longer than the cap, or a part longer than its length field */
};

void hf__cql_writer_init(struct hf__cql_writer *w, size_t cap);
void hf__cql_writer_clear(struct hf__cql_writer *w); /* frees and empties it */

void hf__cql_put(struct hf__cql_writer *w, const void *data, size_t len); /* as it is */
void hf__cql_put_byte(struct hf__cql_writer *w, uint8_t value);
void hf__cql_put_short(struct hf__cql_writer *w, uint16_t value);
void hf__cql_put_int(struct hf__cql_writer *w, int32_t value);
void hf__cql_put_long(struct hf__cql_writer *w, int64_t value);
void hf__cql_put_string(struct hf__cql_writer *w, const char *text);      /* [string] */
void hf__cql_put_long_string(struct hf__cql_writer *w, const char *text); /* [long string] */
void hf__cql_put_short_bytes(struct hf__cql_writer *w, struct hf__cql_bytes bytes);
void hf__cql_put_bytes(struct hf__cql_writer *w, struct hf__cql_bytes bytes); /* [bytes], or null */

/* A number that is known only later: leaves room for an [int] and gives its place. */
size_t hf__cql_reserve_int(struct hf__cql_writer *w);
void hf__cql_fill_int(struct hf__cql_writer *w, size_t place, int32_t value);

/* [bytes] whose content follows piece by piece: a tuple, a user-defined type, a nested collection.
 * `place` is what begin gave. */
size_t hf__cql_begin_bytes(struct hf__cql_writer *w);
void hf__cql_end_bytes(struct hf__cql_writer *w, size_t place);

/* Reader ------------------------------------------------------------------- */
struct hf__cql_reader {
    const unsigned char *at;
    size_t left;
    bool failed; /* something was shorter than it said */
};

static inline struct hf__cql_reader hf__cql_reader_of(struct hf__cql_bytes bytes)
{
    return (struct hf__cql_reader){.at = bytes.data, .left = bytes.len};
}

uint8_t hf__cql_take_byte(struct hf__cql_reader *r);
uint16_t hf__cql_take_short(struct hf__cql_reader *r);
int32_t hf__cql_take_int(struct hf__cql_reader *r);
int64_t hf__cql_take_long(struct hf__cql_reader *r);
struct hf__cql_bytes hf__cql_take(struct hf__cql_reader *r, size_t len);
struct hf__cql_bytes hf__cql_take_string(struct hf__cql_reader *r); /* [string]; never null */
struct hf__cql_bytes hf__cql_take_short_bytes(struct hf__cql_reader *r);
struct hf__cql_bytes hf__cql_take_bytes(struct hf__cql_reader *r); /* [bytes]; may be null */

/* The [int] before the elements of a list, set or map: refused if so many elements of at least
 * `least` bytes each cannot be there. */
size_t hf__cql_take_count(struct hf__cql_reader *r, size_t least);

#endif
