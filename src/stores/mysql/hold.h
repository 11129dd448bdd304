/* hold=session: a row lock of the server that lives as long as a connection. */
#ifndef HF_STORES_MYSQL_HOLD_H
#define HF_STORES_MYSQL_HOLD_H

#include "stores/mysql/mysql.h"

extern const struct hf__store_type hf_store_type_v1, hf__my_hold_type;

int hf__my_hold_init(struct hf__my *s, hf_error *err);

/* hold_look.c */
int hf__my_hold_inspect(struct hf__store *store, const struct hf__look *look, int64_t deadline_ns,
                        hf_error *err);

#endif
