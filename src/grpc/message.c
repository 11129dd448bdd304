/* The five bytes before each message. */
#include <string.h>

#include "grpc/session.h"

#include "base/banned.h"

#define PREFIX 5

size_t hf__grpc_begin_message(struct hf__buffer *b)
{
    hf__buffer_add(b, "\0\0\0\0", PREFIX);
    return b->len;
}

void hf__grpc_end_message(struct hf__buffer *b, size_t place)
{
    if (b->failed)
        return;
    size_t len = b->len - place;
    for (size_t i = 0; i < 4; i++)
        b->data[place - 4 + i] = (char)(len >> (24 - 8 * i));
}

int hf__grpc_take(struct hf__slice *rest, struct hf__slice *ret_message)
{
    size_t len = 0;

    if (rest->len < PREFIX)
        return 0;
    for (size_t i = 1; i < PREFIX; i++)
        len = len << 8 | (unsigned char)rest->data[i];
    if (rest->data[0] != 0 || len > HF__GRPC_ANSWER_MAX)
        return -1;
    if (rest->len - PREFIX < len)
        return 0;
    *ret_message = (struct hf__slice){rest->data + PREFIX, len};
    rest->data += PREFIX + len;
    rest->len -= PREFIX + len;
    return 1;
}
