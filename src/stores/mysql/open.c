/* From the URL to a store. A server that cannot be reached is no error yet: it may come. */
#include <signal.h>
#include <stdlib.h>

#include "stores/mysql/session/session.h"

#include "base/banned.h"

/* The library ignores SIGPIPE from now on, since TLS would raise it. A program that handles it by itself
 * is in no danger, and keeps its handler. */
static bool prepare_library(void)
{
    struct sigaction before;
    bool known = sigaction(SIGPIPE, NULL, &before) == 0;
    bool done = mysql_library_init(0, NULL, NULL) == 0;

    if (known && ((before.sa_flags & SA_SIGINFO) != 0 || before.sa_handler != SIG_DFL))
        sigaction(SIGPIPE, &before, NULL);
    return done;
}

int hf__my_open(const struct hf__url *url, const struct hf__host *host,
                struct hf__store **ret_store, hf_error *err)
{
    struct hf__my *s = calloc(1, sizeof *s);

    if (s == NULL || !prepare_library()) {
        free(s);
        return hf__fail(err, HF_NO_MEMORY, NULL);
    }
    s->base.host = host;
    int r = hf__my_read_url(s, url, err);
    s->base.type = s->set.session ? &hf__my_session_type : &hf_store_type_v1;
    r = hf__sql_init(&s->base, &hf__my_sql_type, r, err);
    if (r == 0 && s->set.session)
        r = hf__my_session_init(s, err);
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

    hf__session_clear(&s->list);
    hf__sql_clear(&s->sql);
    free(s->set.option_file);
    free(s->set.program);
    free(s);
}
