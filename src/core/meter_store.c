/* A store in front of the real one that counts its calls and sees whether it answers. It is there only
 * if somebody counts or has a log: nobody else pays for it.
 *
 * It shows the table of the store inside, with its own functions in it: so it has that one's name,
 * and lacks what that one lacks. */
#include <stdlib.h>

#include "core/client.h"
#include "core/log.h"
#include "core/meter.h"
#include "stores/wrap.h"

#include "base/banned.h"

struct metered {
    struct hf__wrapper wrapper;
    struct hf__store_type type;
    hf_client *client;
};

struct call {
    struct metered *store;
    hf_call kind;
    int64_t began_ns;
    unsigned turns;
    hf_error err, *asked; /* the caller may not want to know why, but the log does */
};

static void begin(struct hf__store *store, struct call *call, hf_call kind, hf_error *err)
{
    call->store = (struct metered *)store;
    call->kind = kind;
    call->began_ns = hf__now_ns(store->host->env);
    call->turns = store->turns;
    call->err = (hf_error){0};
    call->asked = err;
}

/* That the store is away or back is told once, by whoever finds it. */
static void note_away(hf_client *client, const hf_error *err, int64_t now_ns)
{
    int64_t answers = 0;

    if (!atomic_compare_exchange_strong(&client->away_since_ns, &answers, now_ns))
        return;
    hf__lock_client(client);
    hf__log(client, HF_LOG_STORE_AWAY, err->code, "the store does not answer: %s", err->text);
    hf__unlock_client(client);
}

static void note_back(hf_client *client, int64_t now_ns)
{
    int64_t since_ns = client->away_since_ns != 0 ? atomic_exchange(&client->away_since_ns, 0) : 0;

    if (since_ns == 0)
        return;
    hf__lock_client(client);
    hf__log(client, HF_LOG_STORE_BACK, HF_OK, "the store answers again, after %lld ms",
            (long long)((now_ns - since_ns) / HF__NS_PER_MS));
    hf__unlock_client(client);
}

/* Gives back `r`. A store whose line moves is there, though it had no turn for this call. */
static int end(struct call *call, int r)
{
    struct metered *m = call->store;
    struct hf__meter *meter = m->client->meter;
    int64_t now_ns = hf__now_ns(m->wrapper.base.host->env);
    bool unanswered = r == HF_UNAVAILABLE || r == HF_UNKNOWN;

    if (r != 0 && call->err.code != r) /* a store may fail without a word */
        hf__fail(&call->err, r, NULL);
    if (r != 0 && call->asked != NULL)
        *call->asked = call->err;
    if (meter != NULL) {
        hf__raise(&meter->seen.calls[call->kind]);
        hf__raise_code(meter->seen.call_errors, r);
        hf__raise_duration(&meter->seen.call_time, now_ns - call->began_ns);
    }
    if (!unanswered)
        note_back(m->client, now_ns);
    else if (m->wrapper.base.turns == call->turns)
        note_away(m->client, &call->err, now_ns);
    return r;
}

static int metered_operate(struct hf__store *store, const struct hf__operation *op,
                           int64_t deadline_ns, struct hf__answer *ret_answer, hf_error *err)
{
    static const hf_call kinds[] = {
        [HF__OPERATION_ATTEMPT] = HF_CALL_ATTEMPT,   [HF__OPERATION_RELEASE] = HF_CALL_RELEASE,
        [HF__OPERATION_WITHDRAW] = HF_CALL_WITHDRAW, [HF__OPERATION_BREAK] = HF_CALL_BREAK,
        [HF__OPERATION_READ] = HF_CALL_VALUE,        [HF__OPERATION_WRITE] = HF_CALL_VALUE,
    };
    struct call call;

    begin(store, &call, kinds[op->kind], err);
    return end(&call, hf__wrapper_operate(store, op, deadline_ns, ret_answer, &call.err));
}

static int metered_renew(struct hf__store *store, struct hf__renewal *items, size_t count,
                         int64_t deadline_ns, hf_error *err)
{
    struct call call;

    begin(store, &call, HF_CALL_RENEW, err);
    return end(&call, hf__wrapper_renew(store, items, count, deadline_ns, &call.err));
}

static int metered_inspect(struct hf__store *store, const struct hf__search *search,
                           int64_t deadline_ns, hf_error *err)
{
    struct call call;

    begin(store, &call, HF_CALL_INSPECT, err);
    return end(&call, hf__wrapper_inspect(store, search, deadline_ns, &call.err));
}

/* A look as well. */
static int metered_trail(struct hf__store *store, const struct hf__trail_search *search,
                         int64_t deadline_ns, hf_error *err)
{
    struct call call;

    begin(store, &call, HF_CALL_INSPECT, err);
    return end(&call, hf__wrapper_trail(store, search, deadline_ns, &call.err));
}

static int metered_upkeep(struct hf__store *store, enum hf__upkeep what, int64_t retain_ms,
                          int64_t deadline_ns, uint64_t *ret_count, hf_error *err)
{
    struct call call;

    begin(store, &call, HF_CALL_UPKEEP, err);
    return end(&call,
               hf__wrapper_upkeep(store, what, retain_ms, deadline_ns, ret_count, &call.err));
}

static int metered_diagnose(struct hf__store *store, hf_finding_callback *found, void *arg,
                            int64_t deadline_ns, hf_error *err)
{
    struct call call;

    begin(store, &call, HF_CALL_DIAGNOSE, err);
    return end(&call, hf__wrapper_diagnose(store, found, arg, deadline_ns, &call.err));
}

struct told {
    struct hf__meter *meter;
    hf__wake_sink *sink;
    void *ctx;
};

static void pass_wake(void *ctx, const struct hf__ticket *ticket, uint64_t generation)
{
    const struct told *told = ctx;

    if (told->meter != NULL)
        hf__raise(&told->meter->seen.wakes);
    told->sink(told->ctx, ticket, generation);
}

static void metered_wake(struct hf__store *store, hf__wake_sink *sink, void *ctx)
{
    struct told told = {((struct metered *)store)->client->meter, sink, ctx};

    hf__wrapper_wake(store, pass_wake, &told);
}

static void metered_close(struct hf__store *store)
{
    hf__wrapper_close((struct hf__wrapper *)store);
    free(store);
}

/* Named one by one: a function of the store inside that were left in the table would be called with the
 * wrong store. */
static struct hf__store_type make_type(const struct hf__store_type *inner)
{
    return (struct hf__store_type){
        .abi = inner->abi,
        .name = inner->name,
        .schemes = inner->schemes,
        .summary = inner->summary,
        .capabilities = inner->capabilities,
        .options = inner->options,
        .ddl = inner->ddl,
        .close = metered_close,
        .operate = metered_operate,
        .renew = metered_renew,
        .inspect = metered_inspect,
        .trail = inner->trail != NULL ? metered_trail : NULL,
        .upkeep = inner->upkeep != NULL ? metered_upkeep : NULL,
        .diagnose = inner->diagnose != NULL ? metered_diagnose : NULL,
        .wake_fd = inner->wake_fd != NULL ? hf__wrapper_wake_fd : NULL,
        .wake = inner->wake != NULL ? metered_wake : NULL,
    };
}

int hf__meter_store(hf_client *client, struct hf__store *inner, struct hf__store **ret_store,
                    hf_error *err)
{
    struct metered *m = calloc(1, sizeof *m);

    if (m == NULL)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    m->client = client;
    m->type = make_type(inner->type);
    hf__wrapper_around(&m->wrapper, &m->type, inner);
    *ret_store = &m->wrapper.base;
    return 0;
}
