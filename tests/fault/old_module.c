/* A module of a version that never was. */
#include "stores/store.h"

__attribute__((visibility("default"))) extern const struct hf__store_type hf_store_type_v1;

const struct hf__store_type hf_store_type_v1 = {.abi = HF__STORE_ABI + 1, .name = "old"};
