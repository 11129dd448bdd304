/* From the URL to a store. A server that cannot be reached is no error yet: it may come. */
#include <stdio.h>
#include <stdlib.h>

#include "stores/postgres/hold.h"
#include "stores/postgres/postgres.h"

#include "util/banned.h"

int hf__pg_open(const struct hf__url *url, const struct hf__host *host,
                struct hf__store **ret_store, hf_error *err)
{
    struct hf__pg *s = calloc(1, sizeof *s);
    int r;

    if (s == NULL)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    s->base.host = host;
    r = hf__sql_init(&s->sql, &hf__pg_sql_type, s, host->env, err);
    if (r == 0)
        r = hf__pg_read_url(url, &s->set, host, err);
    s->sql.push = s->set.push;
    s->sql.routines = s->set.routines;
    s->sql.poll_ms = s->set.poll_ms;
    s->sql.pool.limits = s->set.limits;
    s->sql.pool.host_count = s->set.hosts.count;
    s->base.type = s->set.hold == HF__PG_LEASE ? &hf_store_type_v1 : &hf__pg_hold_type;
    s->base.capabilities = s->base.type->capabilities;
    if (s->set.hold == HF__PG_LEASE && !s->set.push)
        s->base.capabilities &= ~(uint32_t)HF_CAN_PUSH;
    if (r == 0)
        r = hf__pg_hold_init(s, err);
    if (r != 0) {
        hf__pg_close(&s->base);
        return r;
    }
    *ret_store = &s->base;
    return 0;
}

void hf__pg_close(struct hf__store *store)
{
    struct hf__pg *s = (struct hf__pg *)store;

    hf__hold_clear(&s->hold);
    hf__sql_clear(&s->sql);
    hf__pg_settings_clear(&s->set);
    free(s);
}
