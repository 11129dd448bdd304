/* See proto.h. The wire: a varint of (number << 3 | type), then a varint (type 0), eight bytes (1),
 * a varint of a length and so many bytes (2), or four bytes (5). Groups (3, 4) are of old and
 * refused. */
#include "grpc/proto.h"

#include <stdlib.h>
#include <string.h>

#include "base/banned.h"

enum { VARINT = 0, EIGHT_BYTES = 1, BYTES = 2, FOUR_BYTES = 5 };

#define VARINT_MAX 10

/* Bytes that grow. ----------------------------------------------------------------------------- */
void hf__buffer_add(struct hf__buffer *b, const void *data, size_t len)
{
    size_t cap = b->cap != 0 ? b->cap : HF__BUFFER_CAP;

    if (b->failed || len == 0)
        return;
    if (len > cap - b->len) {
        b->failed = true;
        return;
    }
    if (b->len + len > b->room) {
        size_t room = 2 * (b->len + len) + 256;
        if (room > cap)
            room = cap;
        char *more = realloc(b->data, room);
        if (more == NULL) {
            b->failed = true;
            return;
        }
        b->data = more;
        b->room = room;
    }
    memcpy(b->data + b->len, data, len);
    b->len += len;
}

void hf__buffer_drop(struct hf__buffer *b, size_t len)
{
    if (len < b->len)
        memmove(b->data, b->data + len, b->len - len);
    b->len -= len;
}

void hf__buffer_clear(struct hf__buffer *b)
{
    free(b->data);
    *b = (struct hf__buffer){.cap = b->cap};
}

/* Writing. ------------------------------------------------------------------------------------- */
static size_t make_varint(uint64_t value, unsigned char into[VARINT_MAX])
{
    size_t len = 0;

    for (; value > 127; value >>= 7)
        into[len++] = (unsigned char)(value | 128);
    into[len++] = (unsigned char)value;
    return len;
}

static void add_varint(struct hf__buffer *b, uint64_t value)
{
    unsigned char bytes[VARINT_MAX];

    hf__buffer_add(b, bytes, make_varint(value, bytes));
}

void hf__proto_number(struct hf__buffer *b, unsigned field, uint64_t value)
{
    if (value == 0)
        return;
    add_varint(b, (uint64_t)field << 3 | VARINT);
    add_varint(b, value);
}

void hf__proto_bytes(struct hf__buffer *b, unsigned field, const void *data, size_t len)
{
    add_varint(b, (uint64_t)field << 3 | BYTES);
    add_varint(b, len);
    hf__buffer_add(b, data, len);
}

/* One byte is left for the length, which is enough for most; the content moves on if it is not. */
size_t hf__proto_begin(struct hf__buffer *b, unsigned field)
{
    add_varint(b, (uint64_t)field << 3 | BYTES);
    hf__buffer_add(b, "", 1);
    return b->len;
}

void hf__proto_end(struct hf__buffer *b, size_t place)
{
    unsigned char bytes[VARINT_MAX];

    if (b->failed)
        return;
    size_t len = b->len - place, size = make_varint(len, bytes);
    hf__buffer_add(b, bytes, size - 1); /* for the room */
    if (b->failed)
        return;
    memmove(b->data + place + size - 1, b->data + place, len);
    memcpy(b->data + place - 1, bytes, size);
}

/* Reading. ------------------------------------------------------------------------------------- */
static uint64_t fail(struct hf__proto_reader *r)
{
    r->failed = true;
    r->rest.len = 0;
    return 0;
}

static uint64_t take_varint(struct hf__proto_reader *r)
{
    uint64_t value = 0;

    for (size_t i = 0; i < VARINT_MAX && i < r->rest.len; i++) {
        unsigned char byte = (unsigned char)r->rest.data[i];
        value |= (uint64_t)(byte & 127) << (7 * i);
        if (byte < 128) {
            r->rest.data += i + 1;
            r->rest.len -= i + 1;
            return value;
        }
    }
    return fail(r);
}

static struct hf__slice take(struct hf__proto_reader *r, uint64_t len)
{
    struct hf__slice taken = {r->rest.data, (size_t)len};

    if (len > r->rest.len) {
        fail(r);
        return (struct hf__slice){"", 0};
    }
    r->rest.data += len;
    r->rest.len -= (size_t)len;
    return taken;
}

static uint64_t take_fixed(struct hf__proto_reader *r, size_t size)
{
    struct hf__slice bytes = take(r, size);
    uint64_t value = 0;

    for (size_t i = bytes.len; i-- > 0;)
        value = value << 8 | (unsigned char)bytes.data[i];
    return value;
}

bool hf__proto_next(struct hf__proto_reader *r, struct hf__proto_field *ret_field)
{
    if (r->failed || r->rest.len == 0)
        return false;
    uint64_t tag = take_varint(r);
    *ret_field =
        (struct hf__proto_field){.number = (unsigned)(tag >> 3 & 0x1fffffff), .bytes = {"", 0}};
    switch (tag & 7) {
    case VARINT:
        ret_field->value = take_varint(r);
        break;
    case EIGHT_BYTES:
        ret_field->value = take_fixed(r, 8);
        break;
    case FOUR_BYTES:
        ret_field->value = take_fixed(r, 4);
        break;
    case BYTES:
        ret_field->is_bytes = true;
        ret_field->bytes = take(r, take_varint(r));
        break;
    default:
        fail(r);
    }
    if (ret_field->number == 0)
        fail(r);
    return !r->failed;
}
