/* See wrap.h. */
#include "stores/wrap.h"

#include <stdlib.h>
#include <string.h>

#include "base/banned.h"

static bool is_own(const struct hf__option *own, const char *pair, size_t len)
{
    for (; own->name != NULL; own++) {
        size_t n = strlen(own->name);
        if (len >= n && memcmp(pair, own->name, n) == 0 && (len == n || pair[n] == '='))
            return true;
    }
    return false;
}

/* The text is cut, not put together anew: the inner store sees its part just as it was written. */
static char *inner_url(const char *text, const struct hf__option *own)
{
    const char *rest = strchr(text, '+') + 1;
    size_t used = strcspn(rest, "?");
    char *url = malloc(strlen(rest) + 1);
    char separator = '?';

    if (url == NULL)
        return NULL;
    memcpy(url, rest, used);
    for (const char *pair = rest + used; *pair != '\0';) {
        size_t len = strcspn(++pair, "&");
        if (!is_own(own, pair, len)) {
            url[used++] = separator;
            memcpy(url + used, pair, len);
            used += len;
            separator = '&';
        }
        pair += len;
    }
    url[used] = '\0';
    return url;
}

int hf__wrapper_open(struct hf__wrapper *w, const struct hf__store_type *type,
                     const struct hf__url *url, const struct hf__host *host, hf_error *err)
{
    char *text = inner_url(url->text, type->options);

    if (text == NULL)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    int r = host->open_inner(host, text, &w->inner, err);
    free(text);
    if (r == 0)
        hf__wrapper_around(w, type, w->inner);
    return r;
}

void hf__wrapper_around(struct hf__wrapper *w, const struct hf__store_type *type,
                        struct hf__store *inner)
{
    w->inner = inner;
    w->base.type = type;
    w->base.host = inner->host;
    w->base.capabilities = inner->capabilities;
    w->base.calls_holders = inner->calls_holders;
    hf__wrapper_sync(w);
}

void hf__wrapper_close(struct hf__wrapper *w)
{
    w->inner->type->close(w->inner);
}

void hf__wrapper_sync(struct hf__wrapper *w)
{
    if (w->inner->data_lost)
        w->base.data_lost = true;
    if (atomic_exchange(&w->inner->moved, false))
        w->base.moved = true;
    w->base.turns = w->inner->turns;
}

static struct hf__wrapper *wrapper_of(struct hf__store *store)
{
    return (struct hf__wrapper *)store;
}

int hf__wrapper_operate(struct hf__store *store, const struct hf__operation *op,
                        int64_t deadline_ns, struct hf__answer *ret_answer, hf_error *err)
{
    struct hf__wrapper *w = wrapper_of(store);
    int r = w->inner->type->operate(w->inner, op, deadline_ns, ret_answer, err);

    hf__wrapper_sync(w);
    return r;
}

int hf__wrapper_renew(struct hf__store *store, struct hf__renewal *items, size_t count,
                      int64_t deadline_ns, hf_error *err)
{
    struct hf__wrapper *w = wrapper_of(store);
    int r = w->inner->type->renew(w->inner, items, count, deadline_ns, err);

    hf__wrapper_sync(w);
    return r;
}

int hf__wrapper_inspect(struct hf__store *store, const struct hf__search *search,
                        int64_t deadline_ns, hf_error *err)
{
    struct hf__wrapper *w = wrapper_of(store);
    int r = w->inner->type->inspect(w->inner, search, deadline_ns, err);

    hf__wrapper_sync(w);
    return r;
}

int hf__wrapper_trail(struct hf__store *store, const struct hf__trail_search *search,
                      int64_t deadline_ns, hf_error *err)
{
    struct hf__wrapper *w = wrapper_of(store);
    int r = w->inner->type->trail(w->inner, search, deadline_ns, err);

    hf__wrapper_sync(w);
    return r;
}

int hf__wrapper_upkeep(struct hf__store *store, enum hf__upkeep what, int64_t retain_ms,
                       int64_t deadline_ns, uint64_t *ret_count, hf_error *err)
{
    struct hf__wrapper *w = wrapper_of(store);

    if (w->inner->type->upkeep == NULL) {
        *ret_count = 0;
        return 0;
    }
    int r = w->inner->type->upkeep(w->inner, what, retain_ms, deadline_ns, ret_count, err);
    hf__wrapper_sync(w);
    return r;
}

int hf__wrapper_diagnose(struct hf__store *store, hf_finding_callback *found, void *arg,
                         int64_t deadline_ns, hf_error *err)
{
    struct hf__wrapper *w = wrapper_of(store);

    if (w->inner->type->diagnose == NULL)
        return 0;
    int r = w->inner->type->diagnose(w->inner, found, arg, deadline_ns, err);
    hf__wrapper_sync(w);
    return r;
}

int hf__wrapper_wake_fd(struct hf__store *store)
{
    struct hf__wrapper *w = wrapper_of(store);

    return w->inner->type->wake_fd != NULL ? w->inner->type->wake_fd(w->inner) : -1;
}

void hf__wrapper_wake(struct hf__store *store, hf__wake_sink *sink, void *ctx)
{
    struct hf__wrapper *w = wrapper_of(store);

    if (w->inner->type->wake != NULL)
        w->inner->type->wake(w->inner, sink, ctx);
    hf__wrapper_sync(w);
}
