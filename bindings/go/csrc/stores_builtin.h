/* The stores that are part of the library itself. */
#ifndef HF_STORES_BUILTIN_H
#define HF_STORES_BUILTIN_H

#include "stores_store.h"

extern const struct hf__store_type hf__memory_store_type, hf__sqlite_store_type;

#endif
