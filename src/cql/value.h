/* Values of CQL's types: to bind, and as rows have them.
 *
 * A value to bind is a small struct made by one of the functions below; it borrows texts, blobs and
 * packed collections, and copies what has a fixed size. Getters give false if the value is null or
 * does not have the size of its type. */
#ifndef HF_CQL_VALUE_H
#define HF_CQL_VALUE_H

#include "cql/buffer.h"

#define HF__CQL_NULL  (-1)
#define HF__CQL_UNSET (-2) /* "leave the column as it is" */

struct hf__cql_value {
    const void *data;      /* NULL: in `own` */
    int32_t len;           /* or HF__CQL_NULL, HF__CQL_UNSET */
    unsigned char own[16]; /* of a fixed size */
};

/* Binding ------------------------------------------------------------------ */
struct hf__cql_value hf__cql_null(void);
struct hf__cql_value hf__cql_unset(void);
struct hf__cql_value hf__cql_boolean(bool value);
struct hf__cql_value hf__cql_integer(int32_t value);     /* int */
struct hf__cql_value hf__cql_bigint(int64_t value);      /* bigint, counter */
struct hf__cql_value hf__cql_timestamp(int64_t unix_ms); /* timestamp */
struct hf__cql_value hf__cql_uuid(const unsigned char bits[16]);
struct hf__cql_value hf__cql_text(const char *text);                 /* text; borrowed */
struct hf__cql_value hf__cql_blob(const void *data, size_t len);     /* blob, text; borrowed */
struct hf__cql_value hf__cql_packed(const struct hf__cql_writer *w); /* a collection; borrowed */

/* Writes it as [value]: in a request, or as an element of a collection, tuple or user-defined
 * type. */
void hf__cql_put_value(struct hf__cql_writer *w, const struct hf__cql_value *value);

/* Rows --------------------------------------------------------------------- */
bool hf__cql_get_boolean(struct hf__cql_bytes bytes, bool *ret);
bool hf__cql_get_integer(struct hf__cql_bytes bytes, int32_t *ret);
bool hf__cql_get_bigint(struct hf__cql_bytes bytes, int64_t *ret); /* timestamp too */
bool hf__cql_get_uuid(struct hf__cql_bytes bytes, unsigned char ret_bits[16]);

#endif
