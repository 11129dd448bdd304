/* Locks in Cassandra: one row per name, changed by lightweight transactions only.
 *
 * Each operation is a SERIAL read, the doorman in this process, and a conditional update of what
 * was read (operate.c). Waiters ask at intervals; there is no push. README.md beside this file says
 * what holds and why. */
#include <stdatomic.h>

#include "base/thread.h"
#include "stores/cassandra/cassandra.h"

#include "base/banned.h"

#define RENEWERS 8 /* renewals under way at once */

static struct hf__cql_bytes bytes_of(const char *text)
{
    return (struct hf__cql_bytes){(const unsigned char *)text, strlen(text)};
}

static int apply(struct hf__cs *s, const struct hf__operation *op, int64_t deadline_ns,
                 struct hf__answer *ret_answer, hf_error *err)
{
    return s->simple ? hf__cs_simple_operate(s, op, deadline_ns, ret_answer, err)
                     : hf__cs_operate(s, op, deadline_ns, ret_answer, err);
}

/* What is kept in the row lasts longer by the skew that the nodes' clocks may have. */
static int operate(struct hf__store *store, const struct hf__operation *op, int64_t deadline_ns,
                   struct hf__answer *ret_answer, hf_error *err)
{
    struct hf__cs *s = (struct hf__cs *)store;
    struct hf__operation kept = *op;
    struct hf__bid bid = *op->bid;
    struct hf__cs_extra self;
    struct hf__who_text who;

    kept.bid = &bid;
    kept.retire_ms += kept.retire_ms > 0 ? s->skew_ms : 0;
    if (op->kind == HF__OPERATION_ATTEMPT) {
        hf__who_text_init(&who, bid.who);
        self = (struct hf__cs_extra){.host = bytes_of(who.host),
                                     .user = bytes_of(who.user),
                                     .program = bytes_of(who.program),
                                     .note = bytes_of(who.note),
                                     .pid = who.pid,
                                     .skew_ms = s->skew_ms};
        kept.who = &self;
        bid.ttl_ms += bid.ttl_ms != HF__NEVER ? s->skew_ms : 0;
        bid.retire_ms += s->skew_ms;
    }
    return apply(s, &kept, deadline_ns, ret_answer, err);
}

/* Renewals: one row each, some at a time ----------------------------------- */

struct renewals {
    struct hf__store *store;
    struct hf__renewal *items;
    size_t count;
    int64_t deadline_ns;
    atomic_size_t next;
    pthread_mutex_t mutex;
    int code; /* the first failure, and its text; guarded */
    hf_error *err;
};

static void renew_one(struct renewals *all, struct hf__renewal *item)
{
    struct hf__bid bid = {.name = item->name, .name_len = item->name_len, .ticket = item->ticket};
    struct hf__operation op = {
        .kind = HF__OPERATION_RENEW, .bid = &bid, .generation = item->generation};
    hf_error err = {0};
    int code = apply((struct hf__cs *)all->store, &op, all->deadline_ns, &item->answer, &err);

    if (code == 0)
        return;
    pthread_mutex_lock(&all->mutex);
    if (all->code == 0 || code == HF_UNKNOWN) {
        all->code = code;
        if (all->err != NULL)
            *all->err = err;
    }
    pthread_mutex_unlock(&all->mutex);
}

static void *renew_some(void *arg)
{
    struct renewals *all = arg;

    for (size_t i; (i = atomic_fetch_add(&all->next, 1)) < all->count;)
        renew_one(all, &all->items[i]);
    return NULL;
}

static int renew(struct hf__store *store, struct hf__renewal *items, size_t count,
                 int64_t deadline_ns, hf_error *err)
{
    struct renewals all = {.store = store,
                           .items = items,
                           .count = count,
                           .deadline_ns = deadline_ns,
                           .mutex = PTHREAD_MUTEX_INITIALIZER,
                           .err = err};
    pthread_t threads[RENEWERS - 1];
    size_t started = 0;

    while (started + 1 < count && started < RENEWERS - 1 &&
           hf__thread_start(&threads[started], "hf-renewer", 0, renew_some, &all) == 0)
        started++;
    renew_some(&all);
    for (size_t i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    return all.code;
}

static const char *const schemes[] = {"cassandra", NULL};

__attribute__((visibility("default"))) const struct hf__store_type hf_store_type_v1 = {
    .abi = HF__STORE_ABI,
    .name = "cassandra",
    .schemes = schemes,
    .summary = "Apache Cassandra 4.0 or later, by lightweight transactions",
    .capabilities = HF_CAN_SHARE | HF_CAN_LIMIT | HF_CAN_LEASE | HF_CAN_NEVER | HF_CAN_DELAY |
                    HF_CAN_QUEUE | HF_CAN_TOKEN | HF_CAN_CHECK | HF_CAN_BREAK | HF_CAN_DETACH |
                    HF_CAN_PROCESS | HF_CAN_PERSIST | HF_CAN_AT_LEAST,
    .options = hf__cs_options,
    .ddl = hf__cs_ddl,
    .ddl_of = hf__cs_ddl_of,
    .open = hf__cs_open,
    .close = hf__cs_close,
    .operate = operate,
    .renew = renew,
    .inspect = hf__cs_inspect,
    .upkeep = hf__cs_upkeep,
    .diagnose = hf__cs_diagnose,
};
