/* The bounded writer and the distrustful reader. */
#include "cql/buffer.h"

#include <stdlib.h>
#include <string.h>

#include "base/banned.h"

#define FIRST_ROOM 256

void hf__cql_writer_init(struct hf__cql_writer *w, size_t cap)
{
    *w = (struct hf__cql_writer){.cap = cap};
}

void hf__cql_writer_clear(struct hf__cql_writer *w)
{
    free(w->data);
    hf__cql_writer_init(w, w->cap);
}

static bool make_room(struct hf__cql_writer *w, size_t more)
{
    if (w->failed || more > w->cap - w->len)
        w->failed = true;
    if (w->failed || more <= w->room - w->len)
        return !w->failed;

    size_t room = w->room > 0 ? w->room : FIRST_ROOM;
    while (room - w->len < more)
        room = room > w->cap / 2 ? w->cap : room * 2;
    unsigned char *data = realloc(w->data, room);
    if (data == NULL) {
        w->failed = true;
        return false;
    }
    w->data = data;
    w->room = room;
    return true;
}

void hf__cql_put(struct hf__cql_writer *w, const void *data, size_t len)
{
    if (!make_room(w, len) || len == 0)
        return;
    memcpy(w->data + w->len, data, len);
    w->len += len;
}

static void store(unsigned char *to, uint64_t value, size_t size)
{
    for (size_t i = size; i-- > 0; value >>= 8)
        to[i] = (unsigned char)value;
}

static void put_number(struct hf__cql_writer *w, uint64_t value, size_t size)
{
    unsigned char bytes[8];

    store(bytes, value, size);
    hf__cql_put(w, bytes, size);
}

void hf__cql_put_byte(struct hf__cql_writer *w, uint8_t value)
{
    put_number(w, value, 1);
}

void hf__cql_put_short(struct hf__cql_writer *w, uint16_t value)
{
    put_number(w, value, 2);
}

void hf__cql_put_int(struct hf__cql_writer *w, int32_t value)
{
    put_number(w, (uint32_t)value, 4);
}

void hf__cql_put_long(struct hf__cql_writer *w, int64_t value)
{
    put_number(w, (uint64_t)value, 8);
}

void hf__cql_put_short_bytes(struct hf__cql_writer *w, struct hf__cql_bytes bytes)
{
    w->failed = w->failed || bytes.len > UINT16_MAX;
    hf__cql_put_short(w, (uint16_t)bytes.len);
    hf__cql_put(w, bytes.data, bytes.len);
}

void hf__cql_put_bytes(struct hf__cql_writer *w, struct hf__cql_bytes bytes)
{
    w->failed = w->failed || bytes.len > INT32_MAX;
    hf__cql_put_int(w, bytes.data != NULL ? (int32_t)bytes.len : -1);
    hf__cql_put(w, bytes.data, bytes.data != NULL ? bytes.len : 0);
}

static struct hf__cql_bytes bytes_of(const char *text)
{
    return (struct hf__cql_bytes){(const unsigned char *)text, strlen(text)};
}

void hf__cql_put_string(struct hf__cql_writer *w, const char *text)
{
    hf__cql_put_short_bytes(w, bytes_of(text));
}

void hf__cql_put_long_string(struct hf__cql_writer *w, const char *text)
{
    hf__cql_put_bytes(w, bytes_of(text));
}

size_t hf__cql_reserve_int(struct hf__cql_writer *w)
{
    size_t place = w->len;

    hf__cql_put_int(w, 0);
    return place;
}

void hf__cql_fill_int(struct hf__cql_writer *w, size_t place, int32_t value)
{
    if (!w->failed)
        store(w->data + place, (uint32_t)value, 4);
}

size_t hf__cql_begin_bytes(struct hf__cql_writer *w)
{
    return hf__cql_reserve_int(w);
}

void hf__cql_end_bytes(struct hf__cql_writer *w, size_t place)
{
    if (w->failed)
        return;
    size_t len = w->len - place - 4;
    w->failed = len > INT32_MAX;
    hf__cql_fill_int(w, place, (int32_t)len);
}

/* Reader ------------------------------------------------------------------- */
struct hf__cql_bytes hf__cql_take(struct hf__cql_reader *r, size_t len)
{
    struct hf__cql_bytes bytes = {(const unsigned char *)"", 0};

    if (r->failed || len > r->left)
        r->failed = true;
    if (r->failed || len == 0)
        return bytes;
    bytes = (struct hf__cql_bytes){r->at, len};
    r->at += len;
    r->left -= len;
    return bytes;
}

static uint64_t take_number(struct hf__cql_reader *r, size_t size)
{
    struct hf__cql_bytes bytes = hf__cql_take(r, size);
    uint64_t value = 0;

    for (size_t i = 0; i < bytes.len; i++)
        value = value << 8 | bytes.data[i];
    return value;
}

uint8_t hf__cql_take_byte(struct hf__cql_reader *r)
{
    return (uint8_t)take_number(r, 1);
}

uint16_t hf__cql_take_short(struct hf__cql_reader *r)
{
    return (uint16_t)take_number(r, 2);
}

int32_t hf__cql_take_int(struct hf__cql_reader *r)
{
    return (int32_t)(uint32_t)take_number(r, 4);
}

int64_t hf__cql_take_long(struct hf__cql_reader *r)
{
    return (int64_t)take_number(r, 8);
}

struct hf__cql_bytes hf__cql_take_short_bytes(struct hf__cql_reader *r)
{
    return hf__cql_take(r, hf__cql_take_short(r));
}

struct hf__cql_bytes hf__cql_take_string(struct hf__cql_reader *r)
{
    return hf__cql_take_short_bytes(r);
}

struct hf__cql_bytes hf__cql_take_bytes(struct hf__cql_reader *r)
{
    int32_t len = hf__cql_take_int(r);

    if (r->failed || len < 0)
        return (struct hf__cql_bytes){NULL, 0};
    return hf__cql_take(r, (size_t)len);
}

size_t hf__cql_take_count(struct hf__cql_reader *r, size_t least)
{
    int32_t count = hf__cql_take_int(r);

    if (count < 0 || (uint64_t)count * least > r->left)
        r->failed = true;
    return r->failed ? 0 : (size_t)count;
}
