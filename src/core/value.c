/* The value of a lock (C15), read and written by its holder.
 *
 * Both are asked twice within the time of an operation, because both may be: a read changes nothing that
 * a second one would not, and a write has its number, by which the store drops it if the next one came
 * first. So after HF_UNKNOWN the user simply writes again. */
#include <string.h>

#include "core/client.h"

#include "base/banned.h"

/* Writes of whoever had the lock before it was taken over may be under way: they are below this. */
#define TAKEN_OVER (UINT64_C(1) << 20)

/* Mutex held, released meanwhile. */
static int ask(hf_lock *lock, const struct hf__operation *op, struct hf__answer *ret_answer,
               hf_error *err)
{
    hf_client *client = lock->client;
    int64_t deadline_ns = hf__op_deadline(client);
    int64_t half_ns = client->op_timeout_ms * HF__NS_PER_MS / 2;
    hf_error first = {0};

    hf__unlock_client(client);
    int r =
        client->store->type->operate(client->store, op, deadline_ns - half_ns, ret_answer, &first);
    bool unknown = r == HF_UNKNOWN;
    if ((r == HF_UNKNOWN || r == HF_UNAVAILABLE) && hf__now_ns(client->env) < deadline_ns)
        r = client->store->type->operate(client->store, op, deadline_ns, ret_answer, err);
    else if (r < 0 && err != NULL)
        *err = first;
    hf__lock_client(client);
    hf__after_call(client);
    return r == HF_UNAVAILABLE && unknown ? hf__wrap(err, HF_UNKNOWN, "asked twice") : r;
}

static int fail_lost(const hf_lock *lock, hf_error *err)
{
    return hf__fail(err, HF_LOST, "it was lost: %s", hf_cause_text(lock->bidder.cause));
}

/* A store that does not know the grant it was asked about by its token would not renew it either. */
static int follow(hf_lock *lock, enum hf__verdict verdict, hf_error *err)
{
    if (verdict == HF__VERDICT_DONE)
        return 0;
    if (verdict == HF__VERDICT_STALE)
        return hf__fail(err, HF_STALE, "the store has a newer value");
    hf__bidder_lose(&lock->bidder, HF_CAUSE_GONE);
    hf__lock_holds(lock, hf__now_ns(lock->client->env)); /* tells it */
    return fail_lost(lock, err);
}

static int read_value(hf_lock *lock, struct hf__value *ret_value, hf_error *err)
{
    struct hf__operation op = {.kind = HF__OPERATION_READ,
                               .bid = &lock->bid,
                               .generation = lock->bidder.generation,
                               .value = ret_value};
    struct hf__answer answer = {0};
    int r = ask(lock, &op, &answer, err);

    if (r == HF_UNKNOWN) /* nothing was to be changed: there is no outcome to be known */
        r = hf__wrap(err, HF_UNAVAILABLE, "read");
    return r < 0 ? r : follow(lock, answer.verdict, err);
}

static int write_value(hf_lock *lock, struct hf__value *value, hf_error *err)
{
    struct hf__operation op = {.kind = HF__OPERATION_WRITE,
                               .bid = &lock->bid,
                               .generation = lock->bidder.generation,
                               .value = value};
    struct hf__answer answer = {0};

    if (lock->order_is_unknown) {
        struct hf__value before = {0};
        int r = read_value(lock, &before, err);
        if (r < 0)
            return r;
        bool same = before.generation == lock->bidder.generation;
        if (lock->order_is_unknown)
            lock->value_order = TAKEN_OVER + (same ? before.order : 0);
        lock->order_is_unknown = false;
    }
    value->order = ++lock->value_order;
    int r = ask(lock, &op, &answer, err);
    return r < 0 ? r : follow(lock, answer.verdict, err);
}

/* Around both. */
static int begin(hf_lock *lock, struct hf__visit *visit, hf_error *err)
{
    if (lock == NULL)
        return hf__fail(err, HF_INVALID, "there is no lock");
    if (!(lock->client->capabilities & HF_CAN_VALUE))
        return hf__fail(err, HF_UNSUPPORTED, "%s keeps no values", lock->client->store_name);
    int r = hf__enter_locked(lock->client, visit, err);
    lock->opened_value |= r == 0;
    if (r < 0 || hf__lock_holds(lock, hf__now_ns(lock->client->env)))
        return r;
    r = fail_lost(lock, err);
    hf__leave_unlock(lock->client, visit);
    return r;
}

static int end(hf_lock *lock, const struct hf__visit *visit, int r, hf_error *err)
{
    char shown[80];

    if (r < 0)
        hf__wrap(err, r, "value of '%s'",
                 hf__printable(lock->name, lock->bid.name_len, shown, sizeof shown));
    hf__leave_unlock(lock->client, visit);
    return r;
}

int hf_lock_value(hf_lock *lock, void *buf, size_t size, size_t *ret_len, int *ret_doubt,
                  hf_error *err)
{
    struct hf__value value = {0};
    struct hf__visit visit;

    if ((buf == NULL && size > 0) || ret_len == NULL)
        return hf__fail(err, HF_INVALID, "there is no place for the value");
    int r = begin(lock, &visit, err);
    if (r < 0)
        return r;
    r = read_value(lock, &value, err);
    if (r == 0 && value.len > size)
        r = hf__fail(err, HF_INVALID, "it has %zu bytes, and there is room for %zu", value.len,
                     size);
    if (r == 0) {
        if (value.len > 0)
            memcpy(buf, value.bytes, value.len);
        *ret_len = value.len;
        if (ret_doubt != NULL)
            *ret_doubt = value.doubt;
    }
    return end(lock, &visit, r, err);
}

int hf_lock_set_value(hf_lock *lock, const void *bytes, size_t len, hf_error *err)
{
    struct hf__value value = {.len = len};
    struct hf__visit visit;

    if (bytes == NULL && len > 0)
        return hf__fail(err, HF_INVALID, "there is no value");
    if (len > HF_VALUE_MAX)
        return hf__fail(err, HF_INVALID, "the value is too long; at most %d bytes", HF_VALUE_MAX);
    if (lock != NULL && lock->bid.mode != HF_EXCLUSIVE)
        return hf__fail(err, HF_INVALID, "a shared lock cannot write the value");
    if (len > 0)
        memcpy(value.bytes, bytes, len);
    int r = begin(lock, &visit, err);
    return r < 0 ? r : end(lock, &visit, write_value(lock, &value, err), err);
}
