/* Shapes: an input read as a list of choices, so that a fuzzer's bytes become answers that are well
 * formed but misshapen, which plain bytes hardly ever do. An input that has ended chooses 0. */
#ifndef TESTS_FUZZ_SHAPE_H
#define TESTS_FUZZ_SHAPE_H

#include <inttypes.h>

#include "fuzz.h"

struct shape {
    const uint8_t *data;
    size_t size;
};

static inline unsigned shape_byte(struct shape *s)
{
    if (s->size == 0)
        return 0;
    s->size--;
    return *s->data++;
}

static inline unsigned shape_choose(struct shape *s, unsigned of)
{
    return shape_byte(s) % of;
}

/* Numbers at the edges of what a decoder expects, small ones, and any. */
static inline int64_t shape_number(struct shape *s)
{
    static const int64_t edges[] = {0,
                                    1,
                                    -1,
                                    1000,
                                    30000,
                                    7 * 24 * INT64_C(3600000),
                                    INT64_C(1700000000000),
                                    INT64_C(1700000030000),
                                    INT64_C(1700000000000000),
                                    INT32_MAX,
                                    INT32_MIN,
                                    UINT32_MAX,
                                    INT64_C(1) << 53,
                                    INT64_MAX / 1000000,
                                    INT64_MAX,
                                    INT64_MAX - 1,
                                    INT64_MIN,
                                    INT64_MIN + 1};
    const unsigned count = sizeof edges / sizeof edges[0];
    unsigned choice = shape_choose(s, count + 4);
    uint64_t any = 0;

    if (choice < count)
        return edges[choice];
    if (choice < count + 3)
        return shape_byte(s);
    for (int i = 0; i < 8; i++)
        any = any << 8 | shape_byte(s);
    return (int64_t)any;
}

/* Bytes of the input as they are, with a NUL behind them; gives their number, less than `room`. */
static inline size_t shape_bytes(struct shape *s, char *buf, size_t room)
{
    size_t len = shape_byte(s);

    if (len >= room)
        len = room - 1;
    for (size_t i = 0; i < len; i++)
        buf[i] = (char)shape_byte(s);
    buf[len] = '\0';
    return len;
}

/* One of a few tickets, so that they meet. */
static inline void shape_ticket(struct shape *s, char text[33])
{
    snprintf(text, 33, "%032x", shape_choose(s, 4));
}

#endif
