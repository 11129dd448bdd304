/* Structures that the caller passes with their size in front, by one rule: it may be shorter than
 * ours (an older header; what is missing is unset) or longer (a newer one: what we do not know must
 * be unset, or we would do something else than was asked). */
#ifndef HF_CORE_ABI_STRUCT_H
#define HF_CORE_ABI_STRUCT_H

#include <stddef.h>

#include "base_error.h"

struct hf__abi_struct {
    const char *name;    /* of the type, for messages */
    size_t least, known; /* the size of its first version, and of ours */
};

/* Copies what is known of `given`. HF_INVALID (its size cannot be), HF_UNSUPPORTED (it is
 * newer). */
int hf__copy_abi_struct(const struct hf__abi_struct *type, const void *given, void *ret,
                        hf_error *err);

#endif
