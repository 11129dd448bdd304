/* Answers of an etcd server: whatever comes, nothing is read that is not there, and what is accepted
 * can be read to its end. The first byte says as what the rest is taken. */
#include <stdlib.h>
#include <string.h>

#include "grpc/session.h"
#include "shape.h"
#include "stores/etcd/etcd.h"
#include "stores/etcd/record.h"

enum { TXN, LEASE, NOTICE, TOKEN, RECORD, FRAMES, SHAPED_TXN, SHAPED_LEASE, SHAPED_RECORD, KINDS };

static unsigned sum;

static void read_all(struct hf__slice s)
{
    for (size_t i = 0; i < s.len; i++)
        sum += (unsigned char)s.data[i];
}

static void read_record(struct hf__slice value)
{
    struct hf__etcd_details d;

    if (hf__etcd_details_read(value, &d)) {
        REQUIRE(d.ttl_ms == HF__NEVER || (d.ttl_ms > 0 && d.ttl_ms <= HF_TTL_MAX_MS));
        REQUIRE(d.delay_ms >= 0 && d.delay_ms <= HF_DELAY_MAX_MS);
        sum += (unsigned)(strlen(d.who.host) + strlen(d.who.user) + strlen(d.who.program) +
                          strlen(d.who.note) + strlen(d.inbox));
    }
    REQUIRE(d.keep.count <= HF__ETCD_FIELDS);
    hf__etcd_details_clear(&d);
}

static void read_place(struct hf__slice key)
{
    static char prefix[] = "p/";
    static const struct hf__etcd e = {.set = {.prefix = prefix}};
    struct hf__etcd_parts parts;

    if (hf__etcd_parse_place(&e, key, &parts))
        REQUIRE(parts.name_len >= 1 && parts.name_len <= HF_NAME_MAX);
}

static void read_lease(struct hf__slice message)
{
    struct hf__etcd_lease lease;

    if (hf__etcd_lease_read(message, &lease))
        sum += (unsigned)((lease.granted_s - lease.ttl_s) * 1000 * 1000000);
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
            sum += (unsigned)hf__etcd_lease_in(r.kvs[k].key);
            read_record(r.kvs[k].value);
            read_place(r.kvs[k].key);
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

static void read_frames(struct hf__slice rest)
{
    struct hf__slice message;

    while (hf__grpc_take(&rest, &message) == 1)
        read_txn(message);
}

/* Records as JSON, keys as ours and others' are, and transactions around them. */
static size_t build_record(struct shape *s, char *to, size_t room)
{
    static const char *const names[] = {"ticket",    "ttl_ms", "delay_ms", "since_ms",
                                        "inbox",     "host",   "user",     "note64",
                                        "program64", "pid",    "note"};
    static const char *const texts[] = {
        "00112233445566778899aabbccddeeff", "AAAA", "\\u0000", "\\ud800", "", "30000"};
    size_t len = (size_t)snprintf(to, room, "{");

    for (unsigned left = shape_choose(s, 14); left > 0 && len + 400 < room; left--) {
        const char *name = names[shape_choose(s, sizeof names / sizeof names[0])];
        char any[200];
        len += (size_t)snprintf(to + len, room - len, "%s\"%s\":", len > 1 ? "," : "", name);
        switch (shape_choose(s, 4)) {
        case 0:
            shape_bytes(s, any, sizeof any);
            len += (size_t)snprintf(to + len, room - len, "\"%s\"", any);
            break;
        case 1:
            len += (size_t)snprintf(to + len, room - len, "%" PRId64, shape_number(s));
            break;
        default:
            len += (size_t)snprintf(to + len, room - len, "\"%s\"", texts[shape_choose(s, 6)]);
        }
    }
    return len + (size_t)snprintf(to + len, room - len, "}");
}

static void build_kv(struct shape *s, struct hf__buffer *b)
{
    static const char *const keys[] = {"p/a/write/1f",  "p/a/read/7fffffffffffffff",
                                       "p/a/1",         "p/.holdfast/inside/a/1",
                                       "p/%00/write/1", "p//",
                                       "q/a/1"};
    char text[6000];
    const char *key = keys[shape_choose(s, 7)];
    size_t place = hf__proto_begin(b, 2);

    hf__proto_bytes(b, 1, key, strlen(key));
    hf__proto_number(b, 2, (uint64_t)shape_number(s));
    hf__proto_number(b, 3, (uint64_t)shape_number(s));
    hf__proto_bytes(b, 5, text, build_record(s, text, sizeof text));
    hf__proto_number(b, 6, (uint64_t)shape_number(s));
    hf__proto_end(b, place);
}

static void build_response(struct shape *s, struct hf__buffer *b)
{
    size_t response = hf__proto_begin(b, 3), inside = hf__proto_begin(b, 1 + shape_choose(s, 5));

    for (unsigned left = shape_choose(s, 4); left > 0; left--)
        build_kv(s, b);
    if (shape_choose(s, 4) == 0)
        hf__proto_number(b, 2, (uint64_t)shape_number(s));
    hf__proto_end(b, inside);
    hf__proto_end(b, response);
}

static void read_shaped(struct shape *s, unsigned as)
{
    struct hf__buffer b = {0};
    char text[6000];

    if (as == SHAPED_RECORD) {
        size_t len = build_record(s, text, sizeof text);
        char *copy = fuzz_text((const uint8_t *)text, len);
        read_record((struct hf__slice){copy, len});
        free(copy);
        return;
    }
    if (as == SHAPED_LEASE) {
        for (unsigned field = 1; field < 5; field++)
            hf__proto_number(&b, field, (uint64_t)shape_number(s));
        read_lease((struct hf__slice){b.data, b.len});
    } else {
        hf__proto_number(&b, 2, shape_choose(s, 2));
        for (unsigned left = shape_choose(s, 5); left > 0; left--)
            build_response(s, &b);
        read_txn((struct hf__slice){b.data, b.len});
    }
    hf__buffer_clear(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hf__slice token;

    if (size == 0)
        return 0;
    if (data[0] % KINDS >= SHAPED_TXN) {
        read_shaped(&(struct shape){data + 1, size - 1}, data[0] % KINDS);
        return 0;
    }
    char *copy = malloc(size); /* so that a byte too many is seen */
    REQUIRE(copy != NULL);
    memcpy(copy, data + 1, size - 1);
    struct hf__slice rest = {copy, size - 1};
    switch (data[0] % KINDS) {
    case TXN:
        read_txn(rest);
        break;
    case LEASE:
        read_lease(rest);
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
