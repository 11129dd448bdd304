#ifndef HF_STORES_POSTGRES_HOLD_H
#define HF_STORES_POSTGRES_HOLD_H
#include "stores/postgres/postgres.h"
extern const struct hf__store_type hf_store_type_v1, hf__pg_hold_type;
int hf__pg_hold_init(struct hf__pg *s, hf_error *err);
void hf__pg_hold_clear(struct hf__pg *s);
#endif
