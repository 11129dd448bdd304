/* Byte strings that may contain anything, such as names. */
#ifndef HF_BASE_BYTES_H
#define HF_BASE_BYTES_H

#include <string.h>

/* Negative, 0 or positive, as memcmp(): by their bytes; what the other one begins with is first. */
static inline int hf__bytes_order(const void *a, size_t a_len, const void *b, size_t b_len)
{
    int order = memcmp(a, b, a_len < b_len ? a_len : b_len);

    return order != 0 ? order : (a_len > b_len) - (a_len < b_len);
}

#endif
