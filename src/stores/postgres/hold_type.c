/* The table of functions of hold=session and hold=advisory. */
#include "stores/postgres/hold.h"

#include "util/banned.h"

static struct hf__hold *hold_of(struct hf__store *store)
{
    return &((struct hf__pg *)store)->hold;
}

static int attempt(struct hf__store *store, const struct hf__bid *bid, int64_t deadline_ns,
                   struct hf__answer *ret_answer, hf_error *err)
{
    return hf__hold_attempt(hold_of(store), bid, deadline_ns, ret_answer, err);
}

static int withdraw(struct hf__store *store, const struct hf__bid *bid, int64_t retire_ms,
                    int64_t deadline_ns, struct hf__answer *ret_answer, hf_error *err)
{
    return hf__hold_withdraw(hold_of(store), bid, retire_ms, deadline_ns, ret_answer, err);
}

static int release(struct hf__store *store, const struct hf__bid *bid, int64_t retire_ms,
                   int64_t deadline_ns, struct hf__answer *ret_answer, hf_error *err)
{
    return hf__hold_release(hold_of(store), bid, retire_ms, deadline_ns, ret_answer, err);
}

static int renew(struct hf__store *store, struct hf__renewal *items, size_t count,
                 int64_t deadline_ns, hf_error *err)
{
    (void)err;
    return hf__hold_renew(hold_of(store), items, count, deadline_ns);
}

static int wake_fd(struct hf__store *store)
{
    return hold_of(store)->epoll_fd;
}

static void wake(struct hf__store *store, hf__wake_sink *sink, void *ctx)
{
    hf__hold_wake(hold_of(store), sink, ctx);
}

static const char *const schemes[] = {"postgres", "postgresql", NULL};

const struct hf__store_type hf__pg_hold_type = {
    .abi = HF__STORE_ABI,
    .name = "postgres",
    .schemes = schemes,
    .summary = "locks of a PostgreSQL server that live as long as a connection",
    .capabilities = HF_CAN_SHARE | HF_CAN_QUEUE | HF_CAN_PUSH | HF_CAN_TOKEN | HF_CAN_PROCESS,
    .options = hf__pg_options,
    .ddl = hf__pg_ddl,
    .open = hf__pg_open,
    .close = hf__pg_close,
    .attempt = attempt,
    .withdraw = withdraw,
    .release = release,
    .renew = renew,
    .inspect = hf__pg_hold_inspect,
    .upkeep = hf__pg_upkeep,
    .diagnose = hf__pg_diagnose,
    .wake_fd = wake_fd,
    .wake = wake,
};
