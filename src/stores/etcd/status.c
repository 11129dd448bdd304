/* What became of a call: an answer, a refusal by the server, or a connection that failed. What
 * matters most is whether it may have been applied, and whether another server could do better. */
#include <stdio.h>
#include <string.h>

#include "stores/etcd/cluster.h"

#include "base/banned.h"

/* What the server says, and what to do about it. */
static const char *refusal_hint(const char *text)
{
    static const char *const hints[][2] = {
        {"user name is empty", " (name a user and its password in the URL)"},
        {"authentication is not enabled",
         " (leave user and password out of the URL, or enable it with etcdctl)"},
        {"permission denied", " (this user must be allowed to read and write below the prefix)"},
        {"database space exceeded", " (compact and defragment it, then disarm its alarm)"},
    };

    for (size_t i = 0; i < sizeof hints / sizeof hints[0]; i++) {
        if (strstr(text, hints[i][0]) != NULL)
            return hints[i][1];
    }
    return "";
}

const char *hf__etcd_dial_hint(bool plain, const hf_error *why)
{
    if (plain && (strstr(why->text, "closed") != NULL || strstr(why->text, "HTTP/2") != NULL ||
                  strstr(why->text, "reset") != NULL))
        return " (if it wants TLS: tls=verify)";
    if (!plain && strstr(why->text, "does this port speak TLS") != NULL)
        return " (if it has no TLS: tls=off)";
    if (!plain && (strstr(why->text, "certificate") != NULL || strstr(why->text, "closed") != NULL))
        return " (if it wants a certificate: tls_cert=FILE)";
    return "";
}

/* Codes alone do not tell: etcd uses one for several things, with a text of its own for each. The
 * quota is looked at after a transaction was applied, too: so what is full may have been done. */
static struct hf__etcd_outcome refused(int status, const char *text)
{
    struct hf__etcd_outcome o = {.code = HF_CORRUPT};

    o.no_token = status == HF__GRPC_STATUS_UNAUTHENTICATED ||
                 strstr(text, "invalid auth token") != NULL ||
                 strstr(text, "user name is empty") != NULL ||
                 strstr(text, "revision of auth store is old") != NULL;
    if (status == HF__GRPC_STATUS_NOT_FOUND) {
        o.code = HF_NOT_FOUND;
    } else if (strstr(text, "lease already exists") != NULL) {
        o.code = HF_BUSY;
    } else if (status == HF__GRPC_STATUS_EXHAUSTED && strstr(text, "space") != NULL) {
        o.code = HF_FULL;
        o.maybe = true;
    } else if (o.no_token || status == HF__GRPC_STATUS_DENIED ||
               status == HF__GRPC_STATUS_INVALID ||
               strstr(text, "authentication is not enabled") != NULL) {
        o.code = HF_DENIED;
    } else if (status == HF__GRPC_STATUS_UNAVAILABLE || status == HF__GRPC_STATUS_DEADLINE ||
               status == HF__GRPC_STATUS_EXHAUSTED || status == HF__GRPC_STATUS_CANCELLED ||
               status == HF__GRPC_STATUS_UNKNOWN || status == HF__GRPC_STATUS_ABORTED ||
               status == HF__GRPC_STATUS_NONE) {
        o.code = HF_UNKNOWN;
        o.next = o.maybe = true;
        o.passing = status == HF__GRPC_STATUS_UNAVAILABLE;
    }
    return o;
}

static struct hf__etcd_outcome answered(const struct hf__grpc_call *call, const char *where,
                                        hf_error *err)
{
    const char *text = call->message[0] != '\0' ? call->message : "an answer without a reason";
    struct hf__etcd_outcome o = {0};
    char shown[160];

    if (call->http_status != 200 || !call->is_grpc) { /* something before it, or something else */
        bool passing = call->http_status >= 500;
        o = (struct hf__etcd_outcome){.code = passing ? HF_UNKNOWN : HF_CORRUPT,
                                      .maybe = passing,
                                      .next = true,
                                      .passing = passing};
        hf__fail(err, o.code, "etcd: %s: no gRPC (HTTP status %d)", where, call->http_status);
        hf__set_store_code(err, call->http_status);
    } else if (call->status != HF__GRPC_STATUS_OK) {
        o = refused(call->status, text);
        hf__fail(err, o.code, "etcd: %s: %s%s", where,
                 hf__sentence(text, strlen(text), shown, sizeof shown), refusal_hint(text));
        hf__set_store_code(err, call->status);
    }
    return o;
}

struct hf__etcd_outcome hf__etcd_outcome_of(const struct hf__grpc_call *call, enum hf__grpc_end end,
                                            const char *where, const hf_error *why, hf_error *err)
{
    if (end == HF__GRPC_END_ANSWERED)
        return answered(call, where, err);
    bool maybe = end != HF__GRPC_END_NOT_RECEIVED;
    struct hf__etcd_outcome o = {.code = maybe ? HF_UNKNOWN : HF_UNAVAILABLE,
                                 .maybe = maybe,
                                 .next = true,
                                 .passing = end != HF__GRPC_END_TOO_LATE};
    hf__fail(err, o.code, "etcd: %s: %s", where, why->text);
    return o;
}

int hf__etcd_full(int code, hf_error *err)
{
    return code == HF_FULL ? hf__wrap(err, HF_UNKNOWN, "it may have been applied") : code;
}
