/* Byte strings that may contain anything, such as names; and texts, which end in NUL. */
#ifndef HF_BASE_BYTES_H
#define HF_BASE_BYTES_H

#include <string.h>

#include "base_error.h"

/* Negative, 0 or positive, as memcmp(): by their bytes; what the other one begins with is first. */
static inline int hf__bytes_order(const void *a, size_t a_len, const void *b, size_t b_len)
{
    int order = memcmp(a, b, a_len < b_len ? a_len : b_len);

    return order != 0 ? order : (a_len > b_len) - (a_len < b_len);
}

/* A copy to be freed; of NULL it is NULL. Errors: HF_NO_MEMORY. */
static inline int hf__copy_text(const char *text, char **ret_copy, hf_error *err)
{
    *ret_copy = text != NULL ? strdup(text) : NULL;
    return text != NULL && *ret_copy == NULL ? hf__fail(err, HF_NO_MEMORY, NULL) : 0;
}

#endif
