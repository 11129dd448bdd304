/* Answers of an etcd server: whatever comes, nothing is read that is not there, and what is accepted
 * can be read to its end. The first byte says as what the rest is taken. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "grpc/session.h"
#include "stores/etcd/message.h"
#include "stores/etcd/record.h"

enum { TXN, LEASE, NOTICE, TOKEN, RECORD, FRAMES, KINDS };

static unsigned sum;

static void read_all(struct hf__slice s)
{
    for (size_t i = 0; i < s.len; i++)
        sum += (unsigned char)s.data[i];
}

static void read_txn(struct hf__slice message)
{
    struct hf__etcd_answer a;

    if (hf__etcd_answer_read(message, &a) != 0)
        return;
    for (size_t i = 0; i <= a.count; i++) {
        struct hf__etcd_result r = hf__etcd_nth(&a, i);
        for (size_t k = 0; k < r.count; k++) {
            read_all(r.kvs[k].key);
            read_all(r.kvs[k].value);
            sum += (unsigned)hf__etcd_named(r.kvs[k].key);
        }
    }
    hf__etcd_answer_clear(&a);
}

static void read_notice(struct hf__slice message)
{
    struct hf__etcd_notice n;
    struct hf__etcd_kv kv;

    if (!hf__etcd_notice_read(message, &n))
        return;
    read_all(n.reason);
    while (hf__etcd_next_event(&n, &kv)) {
        read_all(kv.key);
        read_all(kv.value);
    }
}

static void read_record(struct hf__slice value)
{
    struct hf__etcd_details d;

    if (hf__etcd_details_read(value, &d))
        sum += (unsigned)(strlen(d.who.host) + strlen(d.who.user) + strlen(d.who.program) +
                          strlen(d.who.note) + strlen(d.inbox));
    REQUIRE(d.keep.count <= HF__ETCD_FIELDS);
    hf__etcd_details_clear(&d);
}

static void read_frames(struct hf__slice rest)
{
    struct hf__slice message;

    while (hf__grpc_take(&rest, &message) == 1)
        read_txn(message);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hf__etcd_lease lease;
    struct hf__slice token;

    if (size == 0)
        return 0;
    char *copy = malloc(size); /* so that a byte too many is seen */
    REQUIRE(copy != NULL);
    memcpy(copy, data + 1, size - 1);
    struct hf__slice rest = {copy, size - 1};
    switch (data[0] % KINDS) {
    case TXN:
        read_txn(rest);
        break;
    case LEASE:
        hf__etcd_lease_read(rest, &lease);
        break;
    case NOTICE:
        read_notice(rest);
        break;
    case TOKEN:
        if (hf__etcd_token_read(rest, &token))
            read_all(token);
        break;
    case RECORD:
        read_record(rest);
        break;
    default:
        read_frames(rest);
    }
    free(copy);
    return 0;
}
