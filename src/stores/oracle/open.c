/* From the URL to a store. A server that cannot be reached is no error yet: it may come. */
#include <stdlib.h>

#include "base/secret.h"
#include "stores/oracle/oracle.h"

#include "base/banned.h"

extern const struct hf__store_type hf_store_type_v1;

int hf__ora_open(const struct hf__url *url, const struct hf__host *host,
                 struct hf__store **ret_store, hf_error *err)
{
    struct hf__ora *s = calloc(1, sizeof *s);

    if (s == NULL)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    s->base.host = host;
    s->base.type = &hf_store_type_v1;
    int r = hf__ora_read_url(s, url, err);
    r = hf__sql_init(&s->base, &hf__ora_sql_type, r, err);
    if (r != 0) {
        hf__ora_close(&s->base);
        return r;
    }
    *ret_store = &s->base;
    return 0;
}

void hf__ora_close(struct hf__store *store)
{
    struct hf__ora *s = (struct hf__ora *)store;

    hf__sql_clear(&s->sql);
    hf__secret_free(s->set.connect);
    free(s->set.dsn);
    free(s->set.schema);
    free(s);
}
