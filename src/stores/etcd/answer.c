/* Reading etcd's answers. A transaction's is read twice: first to see that it is one, and how much
 * there is in it, and then into two lists of that size. So nothing is read later that was not looked
 * at, and a length that lies finds no memory to be written to. */
#include <stdlib.h>

#include "base/error.h"
#include "stores/etcd/message.h"

#include "base/banned.h"

enum { HEADER = 1, SUCCEEDED = 2, RESPONSES = 3 };                        /* TxnResponse */
enum { RANGE = 1, PUT = 2, DELETE_RANGE = 3, TXN = 4 };                   /* ResponseOp */
enum { WATCH_ID = 2, CREATED, CANCELED, COMPACTED, REASON, EVENTS = 11 }; /* WatchResponse */

static bool read_kv(struct hf__slice message, struct hf__etcd_kv *ret)
{
    struct hf__proto_reader r = hf__proto_reader_of(message);
    struct hf__proto_field f;

    *ret = (struct hf__etcd_kv){.key = {"", 0}, .value = {"", 0}};
    while (hf__proto_next(&r, &f)) {
        if (f.number == 1)
            ret->key = f.bytes;
        else if (f.number == 2)
            ret->created = f.value;
        else if (f.number == 3)
            ret->put = f.value;
        else if (f.number == 5)
            ret->value = f.bytes;
        else if (f.number == 6)
            ret->lease = (int64_t)f.value;
    }
    return !r.failed;
}

static bool read_header(struct hf__slice message, uint64_t *ret_revision)
{
    struct hf__proto_reader r = hf__proto_reader_of(message);
    struct hf__proto_field f;

    while (hf__proto_next(&r, &f)) {
        if (f.number == 3)
            *ret_revision = f.value;
    }
    return !r.failed;
}

/* Where the next key is put; `at` NULL: they are only counted. */
struct kvs {
    struct hf__etcd_kv *at;
    size_t count;
};

static bool read_range(struct hf__slice message, struct kvs *kvs, struct hf__etcd_result *ret)
{
    struct hf__proto_reader r = hf__proto_reader_of(message);
    struct hf__proto_field f;
    struct hf__etcd_kv kv;

    ret->kvs = kvs->at != NULL ? kvs->at + kvs->count : NULL;
    while (hf__proto_next(&r, &f)) {
        if (f.number != 2 || !f.is_bytes)
            continue;
        if (!read_kv(f.bytes, &kv))
            return false;
        if (kvs->at != NULL)
            kvs->at[kvs->count] = kv;
        kvs->count++;
        ret->count++;
    }
    return !r.failed;
}

/* One number of a message that has little else: how many were deleted, whether it succeeded. */
static bool read_second(struct hf__slice message, uint64_t *ret_value)
{
    struct hf__proto_reader r = hf__proto_reader_of(message);
    struct hf__proto_field f;

    while (hf__proto_next(&r, &f)) {
        if (f.number == 2 && !f.is_bytes)
            *ret_value = f.value;
    }
    return !r.failed;
}

static bool read_result(struct hf__slice message, struct kvs *kvs, struct hf__etcd_result *ret)
{
    struct hf__proto_reader r = hf__proto_reader_of(message);
    struct hf__proto_field f;
    uint64_t succeeded = 0;

    *ret = (struct hf__etcd_result){0};
    while (hf__proto_next(&r, &f)) {
        bool well = !f.is_bytes                ? true
                    : f.number == RANGE        ? read_range(f.bytes, kvs, ret)
                    : f.number == DELETE_RANGE ? read_second(f.bytes, &ret->deleted)
                    : f.number == TXN          ? read_second(f.bytes, &succeeded)
                                               : true;
        if (!well)
            return false;
    }
    ret->succeeded = succeeded != 0;
    return !r.failed;
}

/* With `a->results` NULL it is only counted. */
static bool read_txn(struct hf__slice message, struct hf__etcd_answer *a, struct kvs *kvs)
{
    struct hf__proto_reader r = hf__proto_reader_of(message);
    struct hf__proto_field f;
    struct hf__etcd_result result;

    a->count = 0;
    while (hf__proto_next(&r, &f)) {
        if (f.number == HEADER && f.is_bytes && !read_header(f.bytes, &a->revision))
            return false;
        if (f.number == SUCCEEDED)
            a->succeeded = f.value != 0;
        if (f.number != RESPONSES || !f.is_bytes)
            continue;
        if (!read_result(f.bytes, kvs, &result))
            return false;
        if (a->results != NULL)
            a->results[a->count] = result;
        a->count++;
    }
    return !r.failed;
}

int hf__etcd_answer_read(struct hf__slice message, struct hf__etcd_answer *ret_answer)
{
    struct hf__etcd_answer a = {0};
    struct kvs kvs = {0};

    if (!read_txn(message, &a, &kvs))
        return HF_CORRUPT;
    a.results = calloc(a.count + 1, sizeof *a.results);
    a.kvs = kvs.at = calloc(kvs.count + 1, sizeof *a.kvs);
    if (a.results == NULL || a.kvs == NULL) {
        hf__etcd_answer_clear(&a);
        return HF_NO_MEMORY;
    }
    kvs.count = 0;
    read_txn(message, &a, &kvs);
    *ret_answer = a;
    return 0;
}

void hf__etcd_answer_clear(struct hf__etcd_answer *a)
{
    free(a->results);
    free(a->kvs);
    hf__buffer_clear(&a->bytes);
    *a = (struct hf__etcd_answer){0};
}

struct hf__etcd_result hf__etcd_nth(const struct hf__etcd_answer *a, size_t n)
{
    return n < a->count ? a->results[n] : (struct hf__etcd_result){0};
}

const struct hf__etcd_kv *hf__etcd_first(const struct hf__etcd_answer *a, size_t n)
{
    struct hf__etcd_result result = hf__etcd_nth(a, n);

    return result.count > 0 ? result.kvs : NULL;
}

#define LEASE_MAX_S INT64_C(9000000000) /* no server grants a longer one */

bool hf__etcd_lease_read(struct hf__slice message, struct hf__etcd_lease *ret_lease)
{
    struct hf__proto_reader r = hf__proto_reader_of(message);
    struct hf__proto_field f;

    *ret_lease = (struct hf__etcd_lease){0};
    while (hf__proto_next(&r, &f)) {
        if (f.number == 2)
            ret_lease->id = (int64_t)f.value;
        else if (f.number == 3)
            ret_lease->ttl_s = (int64_t)f.value;
        else if (f.number == 4)
            ret_lease->granted_s = (int64_t)f.value;
    }
    return !r.failed && ret_lease->ttl_s >= -1 && ret_lease->ttl_s <= LEASE_MAX_S &&
           ret_lease->granted_s >= 0 && ret_lease->granted_s <= LEASE_MAX_S;
}

bool hf__etcd_notice_read(struct hf__slice message, struct hf__etcd_notice *ret)
{
    struct hf__proto_reader r = hf__proto_reader_of(message);
    struct hf__proto_field f;

    *ret = (struct hf__etcd_notice){.events = hf__proto_reader_of(message), .reason = {"", 0}};
    while (hf__proto_next(&r, &f)) {
        if (f.number == HEADER && f.is_bytes && !read_header(f.bytes, &ret->revision))
            return false;
        if (f.number == WATCH_ID)
            ret->id = (int64_t)f.value;
        else if (f.number == CREATED)
            ret->created = f.value != 0;
        else if (f.number == CANCELED)
            ret->canceled = f.value != 0;
        else if (f.number == COMPACTED)
            ret->compacted = f.value;
        else if (f.number == REASON)
            ret->reason = f.bytes;
    }
    return !r.failed;
}

bool hf__etcd_next_event(struct hf__etcd_notice *notice, struct hf__etcd_kv *ret_kv)
{
    struct hf__proto_field f;

    while (hf__proto_next(&notice->events, &f)) {
        if (f.number != EVENTS || !f.is_bytes)
            continue;
        struct hf__proto_reader event = hf__proto_reader_of(f.bytes);
        while (hf__proto_next(&event, &f)) {
            if (f.number == 2 && f.is_bytes)
                return read_kv(f.bytes, ret_kv);
        }
    }
    return false;
}

bool hf__etcd_token_read(struct hf__slice message, struct hf__slice *ret_token)
{
    struct hf__proto_reader r = hf__proto_reader_of(message);
    struct hf__proto_field f;

    *ret_token = (struct hf__slice){"", 0};
    while (hf__proto_next(&r, &f)) {
        if (f.number == 2)
            *ret_token = f.bytes;
    }
    return !r.failed && ret_token->len > 0;
}
