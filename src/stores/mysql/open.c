/* From the URL to a store. A server that cannot be reached is no error yet: it may come. */
#include <stdlib.h>

#include "stores/mysql/hold.h"

#include "util/banned.h"

int hf__my_open(const struct hf__url *url, const struct hf__host *host,
                struct hf__store **ret_store, hf_error *err)
{
    struct hf__my *s = calloc(1, sizeof *s);

    if (s == NULL || mysql_library_init(0, NULL, NULL) != 0) {
        free(s);
        return hf__fail(err, HF_NO_MEMORY, NULL);
    }
    s->base.host = host;
    int r = hf__my_read_url(s, url, err);
    s->base.type = s->set.session ? &hf__my_hold_type : &hf_store_type_v1;
    r = hf__sql_init(&s->base, &hf__my_sql_type, r, err);
    if (r == 0 && s->set.session)
        r = hf__my_hold_init(s, err);
    if (r != 0) {
        hf__my_close(&s->base);
        return r;
    }
    *ret_store = &s->base;
    return 0;
}

void hf__my_close(struct hf__store *store)
{
    struct hf__my *s = (struct hf__my *)store;

    hf__hold_clear(&s->hold);
    hf__sql_clear(&s->sql);
    free(s->set.option_file);
    free(s->set.program);
    free(s);
}
