#include "stores/postgres/hold.h"
const struct hf__store_type hf__pg_hold_type = {0};
int hf__pg_hold_init(struct hf__pg *s, hf_error *err)
{
    (void)s;
    (void)err;
    return 0;
}
void hf__pg_hold_clear(struct hf__pg *s)
{
    (void)s;
}
