/* fault+URL: makes chosen calls of the store inside go wrong, as a network would. README.md in this
 * directory lists the options; plan.c decides, late.c delivers late requests, wakes.c spoils
 * wake-ups.
 *
 * What may be answered follows store.h: HF_UNAVAILABLE only if the call was not applied, HF_UNKNOWN
 * where the caller cannot tell. A wrapper that broke this rule would show faults of the core that
 * no real store can cause.
 *
 * A call goes wrong at one of two points: before() it is passed on, which is the network on the way
 * to the server, or after(), which is the way back. */
#include <stdlib.h>
#include <time.h>

#include "stores/fault/late.h"
#include "stores/fault/wakes.h"
#include "stores/wrap.h"

#include "base/banned.h"

struct fault {
    struct hf__wrapper wrapper;
    struct hf__fault_plan plan;
    struct hf__fault_late late;
    struct hf__fault_wakes wakes;
};

static struct fault *fault_of(struct hf__store *store)
{
    return (struct fault *)store;
}

/* Small steps, so that a clock that a test sets is followed too: the kernel would sleep by its
 * own. */
static void sleep_until(const struct hf_env *env, int64_t when_ns)
{
    static const struct timespec step = {0, 1000000};

    while (hf__now_ns(env) < when_ns)
        nanosleep(&step, NULL);
}

/* False if the deadline came first. */
static bool sleep_for(struct fault *f, int64_t ms, int64_t deadline_ns)
{
    const struct hf_env *env = f->wrapper.base.host->env;
    int64_t until_ns = hf__now_ns(env) + ms * HF__NS_PER_MS;
    bool in_time = until_ns < deadline_ns;

    sleep_until(env, in_time ? until_ns : deadline_ns);
    return in_time;
}

static int unknown(hf_error *err)
{
    return hf__fail(err, HF_UNKNOWN, "the answer was lost on purpose");
}

/* What happens before the call; non-zero: it is not made. A delay past the deadline is
 * HF_UNAVAILABLE since the request never left; one that hangs is HF_UNKNOWN although it was not
 * applied either, because a caller that waited in vain for an answer could not know. */
static int before(struct fault *f, struct hf__fault_order order, int64_t deadline_ns, hf_error *err)
{
    if (order.act == HF__FAULT_ACT_FAIL)
        return hf__fail(err, HF_UNAVAILABLE, "made to fail");
    if (order.act == HF__FAULT_ACT_DELAY && !sleep_for(f, order.ms, deadline_ns))
        return hf__fail(err, HF_UNAVAILABLE, "delayed past the deadline");
    if (order.act == HF__FAULT_ACT_HANG) {
        sleep_until(f->wrapper.base.host->env, deadline_ns);
        return unknown(err);
    }
    return 0;
}

/* What becomes of the answer. A failure stays what it is: losing it would turn "surely not applied"
 * into "perhaps". */
static int after(struct fault *f, struct hf__fault_order order, int64_t deadline_ns, int r,
                 hf_error *err)
{
    if (r != 0)
        return r;
    if (order.act == HF__FAULT_ACT_LOSE)
        return unknown(err);
    if (order.act == HF__FAULT_ACT_SLOW && !sleep_for(f, order.ms, deadline_ns))
        return unknown(err);
    return 0;
}

static int fault_operate(struct hf__store *store, const struct hf__operation *op,
                         int64_t deadline_ns, struct hf__answer *ret_answer, hf_error *err)
{
    static const enum hf__fault_op counted[] = {[HF__OPERATION_ATTEMPT] = HF__FAULT_OP_ATTEMPT,
                                                [HF__OPERATION_RELEASE] = HF__FAULT_OP_RELEASE,
                                                [HF__OPERATION_WITHDRAW] = HF__FAULT_OP_WITHDRAW,
                                                [HF__OPERATION_BREAK] = HF__FAULT_OP_BREAK,
                                                [HF__OPERATION_READ] = HF__FAULT_OP_READ,
                                                [HF__OPERATION_WRITE] = HF__FAULT_OP_WRITE};
    struct fault *f = fault_of(store);
    struct hf__fault_order order = hf__fault_plan_next(&f->plan, counted[op->kind]);
    int r;

    if (order.act == HF__FAULT_ACT_LATE) {
        r = hf__fault_late_add(&f->late, op, order.ms);
        return r != 0 ? hf__fail(err, r, "the late call cannot be kept") : unknown(err);
    }
    r = before(f, order, deadline_ns, err);
    if (r != 0)
        return r;
    r = hf__wrapper_operate(store, op, deadline_ns, ret_answer, err);
    r = after(f, order, deadline_ns, r, err);
    if (r == 0 && op->kind == HF__OPERATION_ATTEMPT && ret_answer->verdict == HF__VERDICT_QUEUED)
        hf__fault_wakes_queued(&f->wakes, &op->bid->ticket, ret_answer->generation);
    return r;
}

static int fault_renew(struct hf__store *store, struct hf__renewal *items, size_t count,
                       int64_t deadline_ns, hf_error *err)
{
    struct fault *f = fault_of(store);
    struct hf__fault_order order = hf__fault_plan_next(&f->plan, HF__FAULT_OP_RENEW);
    int r = before(f, order, deadline_ns, err);

    if (r == 0)
        r = after(f, order, deadline_ns, hf__wrapper_renew(store, items, count, deadline_ns, err),
                  err);
    return r;
}

static int fault_inspect(struct hf__store *store, const struct hf__search *search,
                         int64_t deadline_ns, hf_error *err)
{
    struct fault *f = fault_of(store);
    struct hf__fault_order order = hf__fault_plan_next(&f->plan, HF__FAULT_OP_INSPECT);
    int r = before(f, order, deadline_ns, err);

    if (r == 0)
        r = after(f, order, deadline_ns, hf__wrapper_inspect(store, search, deadline_ns, err), err);
    return r;
}

/* A look, as far as plans are concerned. */
static int fault_trail(struct hf__store *store, const struct hf__trail_search *search,
                       int64_t deadline_ns, hf_error *err)
{
    struct fault *f = fault_of(store);
    struct hf__fault_order order = hf__fault_plan_next(&f->plan, HF__FAULT_OP_INSPECT);
    int r = before(f, order, deadline_ns, err);

    if (r == 0)
        r = after(f, order, deadline_ns, hf__wrapper_trail(store, search, deadline_ns, err), err);
    return r;
}

static int fault_upkeep(struct hf__store *store, enum hf__upkeep what, int64_t retain_ms,
                        int64_t deadline_ns, uint64_t *ret_count, hf_error *err)
{
    struct fault *f = fault_of(store);
    struct hf__fault_order order = hf__fault_plan_next(&f->plan, HF__FAULT_OP_UPKEEP);
    int r = before(f, order, deadline_ns, err);

    if (r == 0)
        r = after(f, order, deadline_ns,
                  hf__wrapper_upkeep(store, what, retain_ms, deadline_ns, ret_count, err), err);
    return r;
}

static int fault_wake_fd(struct hf__store *store)
{
    return hf__fault_wakes_fd(&fault_of(store)->wakes);
}

/* hf__fault_wakes_pass() calls the inner store past the wrapper, so what that may have learnt of lost data is
 * taken over here. */
static void fault_wake(struct hf__store *store, hf__wake_sink *sink, void *ctx)
{
    hf__fault_wakes_pass(&fault_of(store)->wakes, sink, ctx);
    hf__wrapper_sync(&fault_of(store)->wrapper);
}

static void fault_close(struct hf__store *store)
{
    struct fault *f = fault_of(store);

    hf__fault_late_clear(&f->late); /* first: its threads still use the inner store */
    hf__fault_wakes_clear(&f->wakes);
    hf__fault_plan_clear(&f->plan);
    hf__wrapper_close(&f->wrapper);
    free(f);
}

static int fault_open(const struct hf__url *url, const struct hf__host *host,
                      struct hf__store **ret_store, hf_error *err);

__attribute__((visibility("default"))) extern const struct hf__store_type hf_store_type_v1;

const struct hf__store_type hf_store_type_v1 = {
    .abi = HF__STORE_ABI,
    .name = "fault",
    .schemes = (const char *const[]){"fault", NULL},
    .summary = "makes chosen calls of another store go wrong, for tests: fault+URL",
    .options = hf__fault_options,
    .open = fault_open,
    .close = fault_close,
    .operate = fault_operate,
    .renew = fault_renew,
    .inspect = fault_inspect,
    .upkeep = fault_upkeep,
    .diagnose = hf__wrapper_diagnose,
    .wake_fd = fault_wake_fd,
    .wake = fault_wake,
    .trail = fault_trail,
};

/* The plan comes first: a rule that is written wrongly is to be told even if the inner store is
 * down. */
static int fault_open(const struct hf__url *url, const struct hf__host *host,
                      struct hf__store **ret_store, hf_error *err)
{
    struct fault *f = calloc(1, sizeof *f);

    if (f == NULL)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    int r = hf__fault_plan_init(&f->plan, url, err);
    if (r != 0)
        goto no_plan;
    r = hf__wrapper_open(&f->wrapper, &hf_store_type_v1, url, host, err);
    if (r != 0)
        goto no_inner;
    hf__fault_late_init(&f->late, f->wrapper.inner);
    r = hf__fault_wakes_init(&f->wakes, &f->plan, f->wrapper.inner);
    if (r != 0)
        goto no_wakes;
    *ret_store = &f->wrapper.base;
    return 0;

no_wakes:
    hf__fault_late_clear(&f->late);
    hf__wrapper_close(&f->wrapper);
    hf__fail(err, r, NULL);
no_inner:
    hf__fault_plan_clear(&f->plan);
no_plan:
    free(f);
    return r;
}
