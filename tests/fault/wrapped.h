/* A store opened as the core would open it, for tests that call its functions themselves. */
#ifndef TESTS_FAULT_WRAPPED_H
#define TESTS_FAULT_WRAPPED_H

#include "core/registry.h"
#include "lib/check.h"
#include "lib/operate.h"

static const struct hf__who wrapped_who = {"host", "user", "test", "", 1};
static const struct hf__host wrapped_host = {.env = &hf__system_env,
                                             .self = &wrapped_who,
                                             .op_timeout_ms = 5000,
                                             .open_inner = hf__store_open};

static inline struct hf__store *wrapped_open(const char *url)
{
    struct hf__store *store = NULL;
    hf_error err = {0};

    if (hf__store_open(&wrapped_host, url, &store, &err) != 0)
        fail_msg("%s: %s", url, err.text);
    return store;
}

static inline int64_t wrapped_in(int64_t ms)
{
    return hf__now_ns(&hf__system_env) + ms * HF__NS_PER_MS;
}

/* A bid for "a" whose ticket is made of this one byte. */
static inline struct hf__bid wrapped_bid(unsigned char byte, bool queue)
{
    struct hf__bid bid = {.name = "a",
                          .name_len = 1,
                          .ttl_ms = 60000,
                          .retire_ms = 60000,
                          .queue = queue,
                          .who = &wrapped_who};

    memset(bid.ticket.bits, byte, sizeof bid.ticket.bits);
    return bid;
}

/* The code, or 100 + the verdict. */
static inline int wrapped_attempt(struct hf__store *store, const struct hf__bid *bid)
{
    struct hf__answer answer = {.sent_ns = wrapped_in(0)};
    int r = ask_store(store, op_attempt(bid), wrapped_in(300), &answer, NULL);

    return r != 0 ? r : 100 + (int)answer.verdict;
}

static inline int wrapped_release(struct hf__store *store, const struct hf__bid *bid)
{
    struct hf__answer answer = {0};
    int r = ask_store(store, op_release(bid, 0), wrapped_in(300), &answer, NULL);

    return r != 0 ? r : 100 + (int)answer.verdict;
}

enum {
    GRANTED = 100 + HF__VERDICT_GRANTED,
    QUEUED = 100 + HF__VERDICT_QUEUED,
    BUSY = 100 + HF__VERDICT_BUSY,
    DONE = 100 + HF__VERDICT_DONE,
    STALE = 100 + HF__VERDICT_STALE,
};

static inline void wrapped_close(struct hf__store *store)
{
    store->type->close(store);
}

#endif
