/* Operations in one line, for tests that ask the doorman or a store directly. */
#ifndef TESTS_LIB_OPERATE_H
#define TESTS_LIB_OPERATE_H

#include "stores/store.h"

static inline struct hf__operation op_attempt(const struct hf__bid *bid)
{
    return (struct hf__operation){.kind = HF__OPERATION_ATTEMPT, .bid = bid};
}

static inline struct hf__operation op_release(const struct hf__bid *bid, int64_t retire_ms)
{
    return (struct hf__operation){
        .kind = HF__OPERATION_RELEASE, .bid = bid, .retire_ms = retire_ms};
}

static inline struct hf__operation op_withdraw(const struct hf__bid *bid, int64_t retire_ms)
{
    return (struct hf__operation){
        .kind = HF__OPERATION_WITHDRAW, .bid = bid, .retire_ms = retire_ms};
}

static inline struct hf__operation op_renew(const struct hf__bid *bid, uint64_t generation)
{
    return (struct hf__operation){
        .kind = HF__OPERATION_RENEW, .bid = bid, .generation = generation};
}

static inline struct hf__operation op_break(const struct hf__bid *bid, bool now)
{
    return (struct hf__operation){.kind = HF__OPERATION_BREAK, .bid = bid, .now = now};
}

static inline struct hf__operation op_release_after(const struct hf__bid *bid, int64_t retire_ms,
                                                    int64_t at_least_ms)
{
    return (struct hf__operation){.kind = HF__OPERATION_RELEASE,
                                  .bid = bid,
                                  .retire_ms = retire_ms,
                                  .at_least_ms = at_least_ms};
}

/* Of a cached grant, whose client has used its tokens up to this one. */
static inline struct hf__operation op_release_used(const struct hf__bid *bid, int64_t retire_ms,
                                                   int64_t at_least_ms, uint64_t last)
{
    return (struct hf__operation){.kind = HF__OPERATION_RELEASE,
                                  .bid = bid,
                                  .retire_ms = retire_ms,
                                  .at_least_ms = at_least_ms,
                                  .generation = last};
}

static inline struct hf__operation op_read(const struct hf__bid *bid, uint64_t generation,
                                           struct hf__value *value)
{
    return (struct hf__operation){
        .kind = HF__OPERATION_READ, .bid = bid, .generation = generation, .value = value};
}

static inline struct hf__operation op_write(const struct hf__bid *bid, uint64_t generation,
                                            struct hf__value *value)
{
    return (struct hf__operation){
        .kind = HF__OPERATION_WRITE, .bid = bid, .generation = generation, .value = value};
}

static inline struct hf__operation op_sweep(void)
{
    return (struct hf__operation){.kind = HF__OPERATION_SWEEP};
}

static inline struct hf__answer ask_doorman(struct hf__record *record, struct hf__operation op,
                                            struct hf__moment at)
{
    return hf__doorman_apply(record, &op, at);
}

static inline int ask_store(struct hf__store *store, struct hf__operation op, int64_t deadline_ns,
                            struct hf__answer *ret_answer, hf_error *err)
{
    return store->type->operate(store, &op, deadline_ns, ret_answer, err);
}

#endif
