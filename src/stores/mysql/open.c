/* From the URL to a store. A server that cannot be reached is no error yet: it may come. */
#include <stdlib.h>

#include "stores/mysql/hold.h"

#include "util/banned.h"

int hf__my_open(const struct hf__url *url, const struct hf__host *host,
                struct hf__store **ret_store, hf_error *err)
{
    struct hf__my *s = calloc(1, sizeof *s);
    int r;

    if (s == NULL || mysql_library_init(0, NULL, NULL) != 0) {
        free(s);
        return hf__fail(err, HF_NO_MEMORY, NULL);
    }
    s->base.host = host;
    s->base.type = &hf_store_type_v1;
    r = hf__sql_init(&s->sql, &hf__my_sql_type, s, host->env, err);
    if (r == 0)
        r = hf__my_read_url(url, &s->set, host, err);
    s->sql.push = s->set.push;
    s->sql.routines = s->set.routines;
    s->sql.poll_ms = s->set.poll_ms;
    s->sql.recheck_ms = s->set.recheck_ms;
    s->sql.pool.limits = s->set.limits;
    s->sql.pool.host_count = s->set.hosts.count;
    if (r == 0 && s->set.session)
        r = hf__my_hold_init(s, err);
    if (r != 0) {
        hf__my_close(&s->base);
        return r;
    }
    if (s->set.session)
        s->base.type = &hf__my_hold_type;
    s->base.capabilities = s->base.type->capabilities;
    if (!s->set.session && !s->set.push)
        s->base.capabilities &= ~(uint32_t)HF_CAN_PUSH;
    *ret_store = &s->base;
    return 0;
}

void hf__my_close(struct hf__store *store)
{
    struct hf__my *s = (struct hf__my *)store;

    hf__hold_clear(&s->hold);
    hf__sql_clear(&s->sql);
    hf__my_settings_clear(&s->set);
    free(s);
}
