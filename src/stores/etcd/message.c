/* Writing etcd's messages. The numbers are those of its rpc.proto and kv.proto, of 3.4 and later. What
 * is 0 or empty is left out, as Protocol Buffers have it. Answers are read in answer.c. */
#include <string.h>

#include "grpc/session.h"
#include "stores/etcd/message.h"

#include "base/banned.h"

enum { EQUAL = 0, GREATER = 1 }; /* Compare.result */
enum { CREATE = 1, MOD = 2 };    /* Compare.target */
enum { SORT_CREATE = 2, ASCEND = 1, DESCEND = 2 };
enum { COMPARE = 1, SUCCESS = 2, FAILURE = 3 };         /* TxnRequest */
enum { RANGE = 1, PUT = 2, DELETE_RANGE = 3, TXN = 4 }; /* RequestOp */

/* A transaction. ------------------------------------------------------------------------------- */
static void start(struct hf__etcd_txn *t)
{
    if (t->message == 0)
        t->message = hf__grpc_begin_message(&t->body);
}

static void add_key(struct hf__etcd_txn *t, unsigned field, const struct hf__etcd_key *key)
{
    hf__proto_bytes(&t->body, field, key->bytes, key->len);
}

static void compare(struct hf__etcd_txn *t, const struct hf__etcd_key *key,
                    const struct hf__etcd_key *end, int result, int target, uint64_t revision)
{
    start(t);
    size_t place = hf__proto_begin(&t->body, COMPARE);
    hf__proto_number(&t->body, 1, (uint64_t)result);
    hf__proto_number(&t->body, 2, (uint64_t)target);
    add_key(t, 3, key);
    hf__proto_number(&t->body, target == CREATE ? 5 : 6, revision);
    if (end != NULL)
        add_key(t, 64, end);
    hf__proto_end(&t->body, place);
}

void hf__etcd_compare(struct hf__etcd_txn *t, const struct hf__etcd_key *key, uint64_t revision)
{
    compare(t, key, NULL, EQUAL, CREATE, revision);
}

void hf__etcd_compare_none(struct hf__etcd_txn *t, const struct hf__etcd_key *from,
                           const struct hf__etcd_key *end)
{
    compare(t, from, end, EQUAL, CREATE, 0);
}

void hf__etcd_compare_above(struct hf__etcd_txn *t, const struct hf__etcd_key *key,
                            const struct hf__etcd_key *end, uint64_t revision)
{
    compare(t, key, end, GREATER, CREATE, revision);
}

void hf__etcd_compare_put(struct hf__etcd_txn *t, const struct hf__etcd_key *key,
                          uint64_t mod_revision)
{
    compare(t, key, NULL, EQUAL, MOD, mod_revision);
}

/* A step: an operation in one of the two lists, and inside it what it is. */
struct step {
    size_t outer, inner;
};

static struct step begin_step(struct hf__etcd_txn *t, unsigned what)
{
    struct step step;

    start(t);
    step.outer = hf__proto_begin(&t->body, t->otherwise ? FAILURE : SUCCESS);
    step.inner = hf__proto_begin(&t->body, what);
    return step;
}

static void end_step(struct hf__etcd_txn *t, struct step step)
{
    hf__proto_end(&t->body, step.inner);
    hf__proto_end(&t->body, step.outer);
}

void hf__etcd_put_bytes(struct hf__etcd_txn *t, const struct hf__etcd_key *key,
                        struct hf__slice value, int64_t lease)
{
    struct step step = begin_step(t, PUT);

    add_key(t, 1, key);
    if (value.len > 0)
        hf__proto_bytes(&t->body, 2, value.data, value.len);
    hf__proto_number(&t->body, 3, (uint64_t)lease);
    end_step(t, step);
}

void hf__etcd_put(struct hf__etcd_txn *t, const struct hf__etcd_key *key, const char *value,
                  int64_t lease)
{
    t->incomplete |= value == NULL;
    hf__etcd_put_bytes(t, key, (struct hf__slice){value, value != NULL ? strlen(value) : 0}, lease);
}

void hf__etcd_put_again(struct hf__etcd_txn *t, const struct hf__etcd_key *key, int64_t lease)
{
    struct step step = begin_step(t, PUT);

    add_key(t, 1, key);
    hf__proto_number(&t->body, 3, (uint64_t)lease);
    hf__proto_number(&t->body, 5, true); /* ignore_value */
    end_step(t, step);
}

void hf__etcd_delete(struct hf__etcd_txn *t, const struct hf__etcd_key *key)
{
    struct step step = begin_step(t, DELETE_RANGE);

    add_key(t, 1, key);
    end_step(t, step);
}

void hf__etcd_get(struct hf__etcd_txn *t, const struct hf__etcd_key *key)
{
    struct step step = begin_step(t, RANGE);

    add_key(t, 1, key);
    end_step(t, step);
}

void hf__etcd_range(struct hf__etcd_txn *t, const struct hf__etcd_range *range)
{
    struct step step = begin_step(t, RANGE);

    add_key(t, 1, range->from);
    add_key(t, 2, range->to);
    hf__proto_number(&t->body, 3, (uint64_t)range->newest);
    hf__proto_number(&t->body, 5, range->newest > 0 ? DESCEND : ASCEND);
    hf__proto_number(&t->body, 6, SORT_CREATE);
    if (range->after > 0)
        hf__proto_number(&t->body, 12, range->after + 1); /* min_create_revision */
    if (range->before > 0)
        hf__proto_number(&t->body, 13, range->before - 1); /* max_create_revision */
    end_step(t, step);
}

void hf__etcd_otherwise(struct hf__etcd_txn *t)
{
    t->otherwise = true;
}

void hf__etcd_nest(struct hf__etcd_txn *t)
{
    struct step step = begin_step(t, TXN);

    t->nested[0] = step.outer;
    t->nested[1] = step.inner;
    t->outer_otherwise = t->otherwise;
    t->otherwise = false;
}

void hf__etcd_unnest(struct hf__etcd_txn *t)
{
    end_step(t, (struct step){t->nested[0], t->nested[1]});
    t->otherwise = t->outer_otherwise;
}

struct hf__buffer hf__etcd_written(struct hf__etcd_txn *t)
{
    start(t);
    hf__grpc_end_message(&t->body, t->message);
    struct hf__buffer body = t->body;
    body.failed |= t->incomplete;
    *t = (struct hf__etcd_txn){0};
    return body;
}

/* The others. ---------------------------------------------------------------------------------- */
struct hf__buffer hf__etcd_grant_request(int64_t lease, int64_t seconds)
{
    struct hf__buffer b = {0};
    size_t place = hf__grpc_begin_message(&b);

    hf__proto_number(&b, 1, (uint64_t)seconds);
    hf__proto_number(&b, 2, (uint64_t)lease);
    hf__grpc_end_message(&b, place);
    return b;
}

void hf__etcd_lease_request(struct hf__buffer *b, int64_t lease)
{
    size_t place = hf__grpc_begin_message(b);

    hf__proto_number(b, 1, (uint64_t)lease);
    hf__grpc_end_message(b, place);
}

void hf__etcd_write_watch(struct hf__buffer *b, const struct hf__etcd_watch_request *request)
{
    size_t message = hf__grpc_begin_message(b), create = hf__proto_begin(b, 1);
    unsigned char unwanted = (unsigned char)request->unwanted;

    hf__proto_bytes(b, 1, request->key.data, request->key.len);
    if (request->end.len > 0)
        hf__proto_bytes(b, 2, request->end.data, request->end.len);
    hf__proto_number(b, 3, request->from);
    hf__proto_bytes(b, 5, &unwanted, 1); /* a list of one number */
    hf__proto_number(b, 7, (uint64_t)request->id);
    hf__proto_end(b, create);
    hf__grpc_end_message(b, message);
}

void hf__etcd_write_cancel(struct hf__buffer *b, int64_t id)
{
    size_t message = hf__grpc_begin_message(b), cancel = hf__proto_begin(b, 2);

    hf__proto_number(b, 1, (uint64_t)id);
    hf__proto_end(b, cancel);
    hf__grpc_end_message(b, message);
}

struct hf__buffer hf__etcd_login_request(const char *user, const char *password)
{
    struct hf__buffer b = {0};
    size_t place = hf__grpc_begin_message(&b);

    hf__proto_bytes(&b, 1, user, strlen(user));
    hf__proto_bytes(&b, 2, password, strlen(password));
    hf__grpc_end_message(&b, place);
    return b;
}

struct hf__buffer hf__etcd_empty_request(void)
{
    struct hf__buffer b = {0};

    hf__grpc_end_message(&b, hf__grpc_begin_message(&b));
    return b;
}
