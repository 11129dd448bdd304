/* See puppet.h. */
#include "lib/puppet.h"

#include <poll.h>
#include <stdlib.h>

static bool take(atomic_int *count)
{
    int n = atomic_load(count);

    while (n > 0 && !atomic_compare_exchange_weak(count, &n, n - 1))
        ;
    return n > 0;
}

/* True: the call does not reach the store. */
static bool begins_badly(struct puppet *p, enum puppet_call call, int64_t deadline_ns)
{
    atomic_fetch_add(&p->calls[call], 1);
    if (atomic_load(&p->hold[call])) {
        atomic_fetch_add(&p->held[call], 1);
        while (atomic_load(&p->hold[call]))
            poll(NULL, 0, 1);
        atomic_fetch_sub(&p->held[call], 1);
    }
    if (atomic_load(&p->slow[call])) {
        while (hf__now_ns(p->base.host->env) < deadline_ns && atomic_load(&p->slow[call]))
            poll(NULL, 0, 1);
        return true;
    }
    return take(&p->fail[call]);
}

static int ends(struct puppet *p, enum puppet_call call, int r, hf_error *err)
{
    if (atomic_load(&p->inner->data_lost))
        p->base.data_lost = true;
    return r == 0 && take(&p->lose[call]) ? hf__fail(err, HF_UNKNOWN, "the answer was lost") : r;
}

static int away(struct puppet *p, hf_error *err)
{
    if (atomic_load(&p->crowded))
        atomic_fetch_add(&p->base.turns, 1);
    return hf__fail(err, HF_UNAVAILABLE, "the store is away");
}

static int operate(struct hf__store *store, const struct hf__operation *op, int64_t deadline_ns,
                   struct hf__answer *ret_answer, hf_error *err)
{
    struct puppet *p = (struct puppet *)store;
    enum puppet_call call = op->kind == HF__OPERATION_ATTEMPT    ? PUPPET_ATTEMPT
                            : op->kind == HF__OPERATION_WITHDRAW ? PUPPET_WITHDRAW
                                                                 : PUPPET_RELEASE;

    if (op->kind == HF__OPERATION_BREAK)
        return p->inner->type->operate(p->inner, op, deadline_ns, ret_answer, err);
    if (begins_badly(p, call, deadline_ns))
        return away(p, err);
    return ends(p, call, p->inner->type->operate(p->inner, op, deadline_ns, ret_answer, err), err);
}

static int renew(struct hf__store *store, struct hf__renewal *items, size_t count,
                 int64_t deadline_ns, hf_error *err)
{
    struct puppet *p = (struct puppet *)store;

    if (begins_badly(p, PUPPET_RENEW, deadline_ns))
        return away(p, err);
    return ends(p, PUPPET_RENEW, p->inner->type->renew(p->inner, items, count, deadline_ns, err),
                err);
}

static int inspect(struct hf__store *store, const struct hf__search *search, int64_t deadline_ns,
                   hf_error *err)
{
    struct puppet *p = (struct puppet *)store;

    return p->inner->type->inspect(p->inner, search, deadline_ns, err);
}

static int wake_fd(struct hf__store *store)
{
    struct puppet *p = (struct puppet *)store;

    return begins_badly(p, PUPPET_LISTEN, INT64_MAX) ? HF_SYSTEM
                                                     : p->inner->type->wake_fd(p->inner);
}

static void wake(struct hf__store *store, hf__wake_sink *sink, void *ctx)
{
    struct puppet *p = (struct puppet *)store;

    if (atomic_fetch_add(&p->hearing, 1) > 0)
        atomic_fetch_add(&p->crossed, 1);
    atomic_store(&p->heard_by, pthread_self());
    p->inner->type->wake(p->inner, sink, ctx);
    atomic_fetch_sub(&p->hearing, 1);
}

static void close_puppet(struct hf__store *store)
{
    struct puppet *p = (struct puppet *)store;

    p->inner->type->close(p->inner);
    free(p);
}

struct puppet *puppet_open(const char *url, const struct hf_env *env, hf_client **ret_client)
{
    struct puppet *p = calloc(1, sizeof *p);

    if (p == NULL || hf__open(url, NULL, env, ret_client, NULL) < 0) {
        free(p);
        return NULL;
    }
    p->inner = (*ret_client)->store;
    p->type = *p->inner->type;
    p->type.close = close_puppet;
    p->type.operate = operate;
    p->type.renew = renew;
    p->type.inspect = inspect;
    p->type.wake_fd = wake_fd;
    p->type.wake = wake;
    p->base.type = &p->type;
    p->base.host = p->inner->host;
    p->base.capabilities = p->inner->capabilities;
    (*ret_client)->store = &p->base;
    return p;
}

void puppet_close(hf_client *client)
{
    hf_close(client);
}
