/* From the URL to a store. A server that cannot be reached is no error yet: it may come. */
#include <stdio.h>
#include <stdlib.h>

#include "stores/postgres/session/session.h"

#include "base/banned.h"

int hf__pg_open(const struct hf__url *url, const struct hf__host *host,
                struct hf__store **ret_store, hf_error *err)
{
    struct hf__pg *s = calloc(1, sizeof *s);

    if (s == NULL)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    s->base.host = host;
    int r = hf__pg_read_url(s, url, err);
    bool lease = s->set.hold == HF__PG_HOLD_LEASE;
    s->base.type = lease ? &hf_store_type_v1 : &hf__pg_session_type;
    r = hf__sql_init(&s->base, &hf__pg_sql_type, r, err);
    if (r == 0 && !lease)
        r = hf__pg_session_init(s, err);
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

    hf__session_clear(&s->list);
    hf__sql_clear(&s->sql);
    free(s->set.passfile);
    free(s->set.application);
    free(s->set.schema);
    free(s);
}
