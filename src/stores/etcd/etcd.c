/* etcd://h1,h2,h3/prefix - locks in an etcd cluster, by its own leases and revisions.
 *
 * This store does not run the doorman: see keys.h for the keys and attempt.c for the rules. Every
 * step that decides is one transaction, which the cluster's majority agrees on. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/thread.h"
#include "stores/etcd/etcd.h"

#include "base/banned.h"

static int operate(struct hf__store *store, const struct hf__operation *op, int64_t deadline_ns,
                   struct hf__answer *ret_answer, hf_error *err)
{
    switch (op->kind) {
    case HF__OPERATION_ATTEMPT:
        return hf__etcd_attempt(store, op->bid, deadline_ns, ret_answer, err);
    case HF__OPERATION_BREAK:
        return hf__etcd_break(store, op->bid, op->now, deadline_ns, ret_answer, err);
    case HF__OPERATION_READ:
    case HF__OPERATION_WRITE:
        return hf__etcd_value(store, op, deadline_ns, ret_answer, err);
    default:
        return hf__etcd_leave(store, op, deadline_ns, ret_answer, err);
    }
}

static const char *const schemes[] = {"etcd", NULL};

#define EXPORT __attribute__((visibility("default")))
extern const struct hf__store_type hf_store_type_v1;

static void close_etcd(struct hf__store *store)
{
    struct hf__etcd *e = (struct hf__etcd *)store;

    const struct hf__host *host = store->host;
    int64_t deadline_ns = hf__now_ns(host->env) + host->op_timeout_ms * HF__NS_PER_MS;
    int *fds[] = {&e->watching.epoll_fd, &e->watching.bell_fd, &e->watching.timer_fd};

    hf__etcd_leases_clear(e, deadline_ns);
    hf__etcd_hang_up(e, deadline_ns);
    hf__etcd_watches_clear(e);
    hf__buffer_clear(&e->watching.in);
    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++) {
        if (*fds[i] >= 0)
            close(*fds[i]);
    }
    hf__etcd_bids_clear(e);
    hf__etcd_settings_clear(&e->set);
    pthread_cond_destroy(&e->cluster.dialled);
    pthread_mutex_destroy(&e->mutex);
    free(e);
}

/* A server that cannot be reached is no error yet: it may come. */
static int open_etcd(const struct hf__url *url, const struct hf__host *host,
                     struct hf__store **ret_store, hf_error *err)
{
    struct hf__etcd *e = calloc(1, sizeof *e);

    if (e == NULL)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    e->base = (struct hf__store){
        .type = &hf_store_type_v1,
        .host = host,
        .capabilities = hf_store_type_v1.capabilities,
        .calls_holders = true,
    };
    e->watching.epoll_fd = e->watching.bell_fd = e->watching.timer_fd = -1;
    pthread_mutex_init(&e->mutex, NULL);
    hf__cond_init(&e->cluster.dialled);
    uint64_t inbox = 0;
    int r = host->env->random(host->env->ctx, &e->seed, sizeof e->seed);
    if (r == 0)
        r = host->env->random(host->env->ctx, &inbox, sizeof inbox);
    snprintf(e->inbox, sizeof e->inbox, "%016" PRIx64, inbox);
    if (r < 0)
        hf__fail(err, r, NULL);
    else
        r = hf__etcd_settings_read(url, &e->set, err);
    if (r < 0) {
        close_etcd(&e->base);
        return r;
    }
    *ret_store = &e->base;
    return 0;
}

/* There is nothing to create, and leases purge by themselves: one read shows that a majority is
 * there and that the user may use it. */
static int upkeep(struct hf__store *store, enum hf__upkeep what, int64_t retain_ms,
                  int64_t deadline_ns, uint64_t *ret_count, hf_error *err)
{
    struct hf__etcd *e = (struct hf__etcd *)store;
    struct hf__etcd_key probe;
    struct hf__etcd_txn t = {0};
    struct hf__etcd_answer answer;

    (void)what, (void)retain_ms;
    *ret_count = 0;
    hf__etcd_mark_key(e, HF__ETCD_KEY_INSIDE, (struct hf__etcd_name){"", 0}, 0, &probe);
    hf__etcd_get(&t, &probe);
    int r = hf__etcd_commit(e, &t, deadline_ns, &answer, err);
    hf__etcd_answer_clear(&answer);
    return r;
}

EXPORT const struct hf__store_type hf_store_type_v1 = {
    .abi = HF__STORE_ABI,
    .name = "etcd",
    .schemes = schemes,
    .summary = "an etcd cluster (3.4 or later), by gRPC",
    .capabilities = HF_CAN_SHARE | HF_CAN_LEASE | HF_CAN_NEVER | HF_CAN_DELAY | HF_CAN_QUEUE |
                    HF_CAN_PUSH | HF_CAN_TOKEN | HF_CAN_CHECK | HF_CAN_BREAK | HF_CAN_DETACH |
                    HF_CAN_PROCESS | HF_CAN_PERSIST | HF_CAN_AT_LEAST | HF_CAN_VALUE |
                    HF_CAN_WANTED,
    .options = hf__etcd_options,
    .open = open_etcd,
    .close = close_etcd,
    .operate = operate,
    .renew = hf__etcd_renew,
    .inspect = hf__etcd_inspect,
    .upkeep = upkeep,
    .diagnose = hf__etcd_diagnose,
    .wake_fd = hf__etcd_wake_fd,
    .wake = hf__etcd_wake,
};
