/* A ticket: 128 random bits, the identity of one bid and the right to release it. */
#ifndef HF_BASE_TICKET_H
#define HF_BASE_TICKET_H

#include <stdbool.h>
#include <string.h>

#include "holdfast.h"

struct hf__ticket {
    unsigned char bits[16];
};

static inline bool hf__ticket_equal(const struct hf__ticket *a, const struct hf__ticket *b)
{
    return memcmp(a->bits, b->bits, sizeof a->bits) == 0;
}

/* 32 lower-case hex digits and a NUL. */
void hf__ticket_format(const struct hf__ticket *ticket, char text[HF_TICKET_SIZE]);

/* False unless `text` is exactly 32 hex digits. */
bool hf__ticket_parse(const char *text, struct hf__ticket *ret_ticket);

#endif
