/* From the URL to a store. A server that cannot be reached is no error yet: it may come. */
#include <stdlib.h>

#include "stores/oracle/oracle.h"

#include "util/banned.h"

extern const struct hf__store_type hf_store_type_v1;

int hf__ora_open(const struct hf__url *url, const struct hf__host *host,
                 struct hf__store **ret_store, hf_error *err)
{
    struct hf__ora *s = calloc(1, sizeof *s);

    if (s == NULL)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    s->base.host = host;
    s->base.type = &hf_store_type_v1;
    s->base.capabilities = s->base.type->capabilities;
    int r = hf__sql_init(&s->sql, &hf__ora_sql_type, s, host->env, err);
    if (r == 0)
        r = hf__ora_read_url(url, &s->set, err);
    if (r != 0) {
        hf__ora_close(&s->base);
        return r;
    }
    s->sql.routines = s->set.routines;
    s->sql.poll_ms = s->set.poll_ms;
    s->sql.pool.limits = s->set.limits;
    s->sql.pool.host_count = 1; /* the driver knows the others */
    *ret_store = &s->base;
    return 0;
}

void hf__ora_close(struct hf__store *store)
{
    struct hf__ora *s = (struct hf__ora *)store;

    hf__sql_clear(&s->sql);
    hf__ora_settings_clear(&s->set);
    free(s);
}
