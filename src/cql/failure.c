/* The server's errors.
 *
 * Whether a write may have been applied is decided on the safe side. Surely not applied are only
 * those that the server finds before it proposes anything: a statement it does not accept, no
 * right, a node that is not in the ring yet, and too few replicas for the level of the first phase.
 * A swap that lacks replicas at the level of its last phase has been accepted by a majority and
 * will be completed by whoever comes next; an overloaded coordinator may have noticed that in any
 * phase. */
#include "cql/failure.h"

#include <stdio.h>
#include <string.h>

#include "base/banned.h"

/* Endpoints and reasons in v5; a number in v4. */
static int32_t take_failures(struct hf__cql_reader *r, int version)
{
    if (version < 5)
        return hf__cql_take_int(r);
    size_t count = hf__cql_take_count(r, 7); /* an address of 4 bytes, its length, a reason */
    for (size_t i = 0; i < count; i++) {
        hf__cql_take(r, hf__cql_take_byte(r));
        hf__cql_take_short(r);
    }
    return (int32_t)count;
}

static void take_tally(struct hf__cql_reader *r, struct hf__cql_failure *f)
{
    f->consistency = hf__cql_take_short(r);
    f->received = hf__cql_take_int(r);
    f->required = hf__cql_take_int(r);
}

static bool is_swap(const struct hf__cql_failure *f)
{
    return f->write_type.len == 3 && memcmp(f->write_type.data, "CAS", 3) == 0;
}

/* What follows code and message. */
static void take_details(struct hf__cql_reader *r, int version, struct hf__cql_failure *f)
{
    switch (f->code) {
    case HF__CQL_CODE_UNAVAILABLE:
        f->consistency = hf__cql_take_short(r);
        f->required = hf__cql_take_int(r);
        f->received = hf__cql_take_int(r);
        break;
    case HF__CQL_CODE_WRITE_TIMEOUT:
        take_tally(r, f);
        f->write_type = hf__cql_take_string(r);
        if (version >= 5 && is_swap(f) && r->left >= 2)
            f->contentions = hf__cql_take_short(r);
        break;
    case HF__CQL_CODE_READ_TIMEOUT:
        take_tally(r, f);
        f->data_present = hf__cql_take_byte(r) != 0;
        break;
    case HF__CQL_CODE_READ_FAILURE:
        take_tally(r, f);
        f->failures = take_failures(r, version);
        f->data_present = hf__cql_take_byte(r) != 0;
        break;
    case HF__CQL_CODE_WRITE_FAILURE:
        take_tally(r, f);
        f->failures = take_failures(r, version);
        f->write_type = hf__cql_take_string(r);
        break;
    case HF__CQL_CODE_CAS_WRITE_UNKNOWN:
        take_tally(r, f);
        break;
    case HF__CQL_CODE_FUNCTION_FAILURE:
    case HF__CQL_CODE_ALREADY_EXISTS:
        f->keyspace = hf__cql_take_string(r);
        f->thing = hf__cql_take_string(r);
        break;
    case HF__CQL_CODE_UNPREPARED:
        f->id = hf__cql_take_short_bytes(r);
        break;
    default:
        break;
    }
}

int hf__cql_read_failure(const struct hf__cql_frame *frame, struct hf__cql_failure *ret_failure,
                         hf_error *err)
{
    struct hf__cql_reader r = hf__cql_message_of(frame);

    *ret_failure = (struct hf__cql_failure){.code = hf__cql_take_int(&r)};
    ret_failure->message = hf__cql_take_string(&r);
    take_details(&r, frame->header.version, ret_failure);
    return r.failed ? hf__fail(err, HF_CORRUPT, "the server's error message is malformed") : 0;
}

static bool says(const struct hf__cql_failure *f, const char *part)
{
    return memmem(f->message.data, f->message.len, part, strlen(part)) != NULL;
}

/* There is no code for it, and the words differ between versions. */
static bool is_missing(const struct hf__cql_failure *f)
{
    return f->code == HF__CQL_CODE_INVALID &&
           (says(f, "does not exist") || says(f, "unconfigured table"));
}

/* What no write survives: found before anything was proposed. */
static int early_meaning(const struct hf__cql_failure *f)
{
    if (is_missing(f))
        return HF_DENIED;
    switch (f->code) {
    case HF__CQL_CODE_PROTOCOL_ERROR:
        return HF_CORRUPT;
    case HF__CQL_CODE_AUTH_ERROR:
    case HF__CQL_CODE_UNAUTHORIZED:
        return HF_DENIED;
    case HF__CQL_CODE_SYNTAX_ERROR:
    case HF__CQL_CODE_INVALID:
    case HF__CQL_CODE_CONFIG_ERROR:
    case HF__CQL_CODE_ALREADY_EXISTS:
    case HF__CQL_CODE_FUNCTION_FAILURE:
        return HF_INVALID;
    case HF__CQL_CODE_BOOTSTRAPPING:
    case HF__CQL_CODE_UNPREPARED:
        return HF_UNAVAILABLE;
    default:
        return 0;
    }
}

static bool is_serial(uint16_t consistency)
{
    return consistency == HF__CQL_CONSISTENCY_SERIAL ||
           consistency == HF__CQL_CONSISTENCY_LOCAL_SERIAL;
}

int hf__cql_meaning(const struct hf__cql_failure *f, enum hf__cql_kind kind)
{
    int early = early_meaning(f);

    if (early != 0)
        return early;
    if (kind == HF__CQL_KIND_READ)
        return HF_UNAVAILABLE;
    if (f->code == HF__CQL_CODE_UNAVAILABLE &&
        (kind != HF__CQL_KIND_SWAP || is_serial(f->consistency)))
        return HF_UNAVAILABLE;
    return HF_UNKNOWN;
}

bool hf__cql_is_local(const struct hf__cql_failure *f, enum hf__cql_kind kind)
{
    return hf__cql_meaning(f, kind) == HF_UNAVAILABLE;
}

const char *hf__cql_consistency_name(uint16_t consistency)
{
    static const char *const names[] = {"ANY",    "ONE",          "TWO",          "THREE",
                                        "QUORUM", "ALL",          "LOCAL_QUORUM", "EACH_QUORUM",
                                        "SERIAL", "LOCAL_SERIAL", "LOCAL_ONE"};

    return consistency < sizeof names / sizeof names[0] ? names[consistency] : "another level";
}

/* What happened, for those whose tally says more than the server's own message. */
static void describe(const struct hf__cql_failure *f, char *buf, size_t size)
{
    const char *level = hf__cql_consistency_name(f->consistency);
    char message[160];

    hf__sentence((const char *)f->message.data, f->message.len, message, sizeof message);
    switch (f->code) {
    case HF__CQL_CODE_UNAVAILABLE:
        snprintf(buf, size, "%s needs %d replicas and %d are alive", level, f->required,
                 f->received);
        break;
    case HF__CQL_CODE_WRITE_TIMEOUT:
    case HF__CQL_CODE_READ_TIMEOUT:
        snprintf(buf, size, "%s needs %d replicas and %d answered in time", level, f->required,
                 f->received);
        break;
    case HF__CQL_CODE_READ_FAILURE:
    case HF__CQL_CODE_WRITE_FAILURE:
        snprintf(buf, size, "%s needs %d replicas, %d answered and %d failed", level, f->required,
                 f->received, f->failures);
        break;
    case HF__CQL_CODE_CAS_WRITE_UNKNOWN:
        snprintf(buf, size, "another transaction outbid this one (%d of %d replicas had accepted)",
                 f->received, f->required);
        break;
    case HF__CQL_CODE_OVERLOADED:
        snprintf(buf, size, "the node is overloaded (%s)", message);
        break;
    case HF__CQL_CODE_BOOTSTRAPPING:
        snprintf(buf, size, "the node is still joining the cluster");
        break;
    case HF__CQL_CODE_AUTH_ERROR:
        snprintf(buf, size, "user or password is not accepted (%s)", message);
        break;
    default:
        snprintf(buf, size, "%s", message);
        break;
    }
}

int hf__cql_report(const struct hf__cql_failure *f, enum hf__cql_kind kind, hf_error *err)
{
    int code = hf__cql_meaning(f, kind);
    char what[256];

    describe(f, what, sizeof what);
    hf__fail(err, code, "%s%s", what,
             code == HF_UNKNOWN ? "; the write may have been applied"
             : is_missing(f)    ? "; create it with `holdfast setup`"
                                : "");
    hf__set_store_code(err, f->code);
    return code;
}
