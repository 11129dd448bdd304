/* Values: the bytes of CQL's types. */
#include "cql/value.h"

#include <string.h>

#include "base/banned.h"

static struct hf__cql_value number(uint64_t value, int32_t size)
{
    struct hf__cql_value v = {.len = size};

    for (int32_t i = size; i-- > 0; value >>= 8)
        v.own[i] = (unsigned char)value;
    return v;
}

struct hf__cql_value hf__cql_null(void)
{
    return (struct hf__cql_value){.len = HF__CQL_NULL};
}

struct hf__cql_value hf__cql_unset(void)
{
    return (struct hf__cql_value){.len = HF__CQL_UNSET};
}

struct hf__cql_value hf__cql_boolean(bool value)
{
    return number(value, 1);
}

struct hf__cql_value hf__cql_integer(int32_t value)
{
    return number((uint32_t)value, 4);
}

struct hf__cql_value hf__cql_bigint(int64_t value)
{
    return number((uint64_t)value, 8);
}

struct hf__cql_value hf__cql_timestamp(int64_t unix_ms)
{
    return hf__cql_bigint(unix_ms);
}

struct hf__cql_value hf__cql_uuid(const unsigned char bits[16])
{
    struct hf__cql_value v = {.len = 16};

    memcpy(v.own, bits, 16);
    return v;
}

/* A length that does not fit becomes one that no request has room for. */
struct hf__cql_value hf__cql_blob(const void *data, size_t len)
{
    return (struct hf__cql_value){.data = data, .len = len > INT32_MAX ? INT32_MAX : (int32_t)len};
}

struct hf__cql_value hf__cql_text(const char *text)
{
    return hf__cql_blob(text, strlen(text));
}

struct hf__cql_value hf__cql_packed(const struct hf__cql_writer *w)
{
    return hf__cql_blob(w->data, w->len);
}

void hf__cql_put_value(struct hf__cql_writer *w, const struct hf__cql_value *value)
{
    hf__cql_put_int(w, value->len);
    if (value->len > 0)
        hf__cql_put(w, value->data != NULL ? value->data : value->own, (size_t)value->len);
}

bool hf__cql_get_boolean(struct hf__cql_bytes bytes, bool *ret)
{
    if (bytes.data == NULL || bytes.len != 1)
        return false;
    *ret = bytes.data[0] != 0;
    return true;
}

bool hf__cql_get_integer(struct hf__cql_bytes bytes, int32_t *ret)
{
    struct hf__cql_reader r = hf__cql_reader_of(bytes);

    if (bytes.data == NULL || bytes.len != 4)
        return false;
    *ret = hf__cql_take_int(&r);
    return true;
}

bool hf__cql_get_bigint(struct hf__cql_bytes bytes, int64_t *ret)
{
    struct hf__cql_reader r = hf__cql_reader_of(bytes);

    if (bytes.data == NULL || bytes.len != 8)
        return false;
    *ret = hf__cql_take_long(&r);
    return true;
}

bool hf__cql_get_uuid(struct hf__cql_bytes bytes, unsigned char ret_bits[16])
{
    if (bytes.data == NULL || bytes.len != 16)
        return false;
    memcpy(ret_bits, bytes.data, 16);
    return true;
}
