/* See abi_struct.h. */
#include "core_abi_struct.h"

#include <string.h>

#include "base_banned.h"

int hf__copy_abi_struct(const struct hf__abi_struct *type, const void *given, void *ret,
                        hf_error *err)
{
    const char *bytes = given;
    size_t size;

    memcpy(&size, given, sizeof size);
    if (size < type->least || size > 8 * type->known || size % sizeof(void *) != 0)
        return hf__fail(err, HF_INVALID, "set size to sizeof(%s)", type->name);
    for (size_t i = type->known; i < size; i++) {
        if (bytes[i] != 0)
            return hf__fail(err, HF_UNSUPPORTED, "%s has something newer than this library",
                            type->name);
    }
    size_t known = size < type->known ? size : type->known;
    memset(ret, 0, type->known);
    memcpy(ret, given, known);
    return 0;
}
