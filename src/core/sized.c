/* See sized.h. */
#include "core/sized.h"

#include <string.h>

#include "util/banned.h"

int hf__copy_sized(const struct hf__sized *sized, const void *given, void *ret, hf_error *err)
{
    const char *bytes = given;
    size_t size;

    memcpy(&size, given, sizeof size);
    if (size < sized->least || size > 8 * sized->known || size % sizeof(void *) != 0)
        return hf__fail(err, HF_INVALID, "set size to sizeof(%s)", sized->type);
    for (size_t i = sized->known; i < size; i++) {
        if (bytes[i] != 0)
            return hf__fail(err, HF_UNSUPPORTED, "%s has something newer than this library",
                            sized->type);
    }
    size_t known = size < sized->known ? size : sized->known;
    memset(ret, 0, sized->known);
    memcpy(ret, given, known);
    return 0;
}
