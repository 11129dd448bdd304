/* The first words on a connection: STARTUP, and user and password if the server wants them.
 *
 * In v5 the answer to STARTUP is the last frame that is not in a segment. */
#include <stdlib.h>
#include <string.h>

#include "cql/conn.h"
#include "cql/failure.h"

#include "base/banned.h"

/* What went wrong in the handshake; only here a protocol error has another meaning: the server
 * refuses our version. */
static int refuse(const struct hf__cql_conn *c, const struct hf__cql_frame *answer, hf_error *err)
{
    struct hf__cql_failure failure;
    int code = hf__cql_read_failure(answer, &failure, err);

    if (code != 0)
        return code;
    code = hf__cql_report(&failure, HF__CQL_KIND_READ, err);
    if (failure.code != HF__CQL_CODE_PROTOCOL_ERROR)
        return code;
    return hf__wrap(err, HF_UNSUPPORTED, "version %d of the protocol is refused",
                    hf__cql_conn_version(c));
}

static int send_password(struct hf__cql_conn *c, const struct hf__cql_route *route,
                         int64_t deadline_ns, struct hf__cql_call *call, hf_error *err)
{
    struct hf__cql_writer w;

    if (route->user == NULL)
        return hf__fail(err, HF_DENIED,
                        "the server wants a user and a password: name them in the URL, the "
                        "password better with password_file=");
    hf__cql_writer_init(&w, HF__CQL_REQUEST_MAX);
    hf__cql_write_login(&w, hf__cql_conn_version(c), route->user, route->password);
    int code = hf__cql_ask(c, call, &w, deadline_ns, err);
    explicit_bzero(w.data, w.len);
    hf__cql_writer_clear(&w);
    return code;
}

static int log_in(struct hf__cql_conn *c, const struct hf__cql_route *route, int64_t deadline_ns,
                  hf_error *err)
{
    struct hf__cql_call call;
    int code = send_password(c, route, deadline_ns, &call, err);

    if (code != 0)
        return code;
    switch (call.answer.header.opcode) {
    case HF__CQL_OP_AUTH_SUCCESS:
        break;
    case HF__CQL_OP_ERROR:
        code = refuse(c, &call.answer, err);
        break;
    case HF__CQL_OP_AUTH_CHALLENGE:
        code = hf__fail(err, HF_UNSUPPORTED, "the server wants more than a user and a password");
        break;
    default:
        code = hf__fail(err, HF_CORRUPT, "the server's answer to the login is malformed");
        break;
    }
    free(call.answer.body);
    return code;
}

int hf__cql_login(struct hf__cql_conn *c, const struct hf__cql_route *route, int64_t deadline_ns,
                  hf_error *err)
{
    struct hf__cql_call call;
    struct hf__cql_writer w;

    hf__cql_writer_init(&w, HF__CQL_REQUEST_MAX);
    hf__cql_write_startup(&w, hf__cql_conn_version(c));
    int code = hf__cql_ask(c, &call, &w, deadline_ns, err);
    hf__cql_writer_clear(&w);
    if (code != 0)
        return code;
    uint8_t opcode = call.answer.header.opcode;
    if (opcode == HF__CQL_OP_ERROR)
        code = refuse(c, &call.answer, err);
    free(call.answer.body);
    if (code != 0)
        return code;
    if (opcode != HF__CQL_OP_READY && opcode != HF__CQL_OP_AUTHENTICATE)
        return hf__fail(err, HF_CORRUPT, "the server's answer to STARTUP is malformed");
    if (hf__cql_conn_version(c) >= 5)
        hf__cql_conn_use_segments(c);
    return opcode == HF__CQL_OP_AUTHENTICATE ? log_in(c, route, deadline_ns, err) : 0;
}
