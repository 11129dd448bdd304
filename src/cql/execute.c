/* Requests: prepare what is not, send, and decide whether another node may be asked.
 *
 * A request goes to one node after the other, each at most once, as long as it surely was not
 * applied. One node may take node_timeout (all of the time if there is no other, or if the schema
 * changes, which takes long), so that a node that hangs leaves time for another one, or for whoever
 * has to find out what became of a write. */
#include <stdlib.h>
#include <string.h>

#include "cql/cluster.h"
#include "cql/failure.h"

#include "base/banned.h"

/* One attempt on one node. */
struct attempt {
    struct hf__cql *cql;
    const struct hf__cql_request *request;
    struct hf__cql_bytes paging_state;
    size_t node;
    struct hf__cql_conn *conn;
    int64_t begun_ns, asked_ns, deadline_ns; /* asked: the last frame was sent */
    enum hf__cql_kind doing;                 /* the statement's kind; READ while preparing it */
    bool elsewhere;                          /* after a failure: another node may be asked */
};

static enum hf__cql_kind kind_of(const struct attempt *a)
{
    return a->request->statement->kind;
}

/* The server may have done it. */
static int doubt(hf_error *err)
{
    hf__wrap(err, HF_UNKNOWN, "the write may have been applied");
    if (err != NULL)
        err->retriable = true;
    return HF_UNKNOWN;
}

/* No answer: of a write that may have arrived nobody knows; all else may be asked elsewhere. A node
 * from which nothing at all came for half of its time is given up, connection and all. */
static int unanswered(struct attempt *a, const struct hf__cql_call *call, int code, hf_error *err)
{
    int64_t heard_ns = hf__cql_conn_heard_ns(a->conn);
    int64_t since_ns = heard_ns > a->asked_ns ? heard_ns : a->asked_ns;
    int64_t patience_ns = a->cql->settings.node_timeout_ms * HF__NS_PER_MS;

    if (hf__now_ns(a->cql->env) - since_ns >= patience_ns / 2)
        hf__cql_conn_break(a->conn, "the node does not answer");
    hf__cql_failed(a->cql, a->node, a->conn, heard_ns < a->asked_ns);
    bool unknown = call->may_have_arrived && a->doing != HF__CQL_KIND_READ;
    a->elsewhere = !unknown && code != HF_NO_MEMORY;
    return unknown ? doubt(err) : code;
}

/* Sends a frame and takes its answer; an ERROR goes into `failure`, and its frame stays, because
 * the failure borrows from it. */
static int ask(struct attempt *a, struct hf__cql_writer *frame, struct hf__cql_frame *ret_answer,
               struct hf__cql_failure *ret_failure, hf_error *err)
{
    struct hf__cql_call call;

    a->asked_ns = hf__now_ns(a->cql->env);
    int code = hf__cql_ask(a->conn, &call, frame, a->deadline_ns, err);
    *ret_failure = (struct hf__cql_failure){.code = -1};
    if (code != 0)
        return unanswered(a, &call, code, err);
    *ret_answer = call.answer;
    if (ret_answer->header.opcode == HF__CQL_OP_RESULT)
        return 0;
    if (ret_answer->header.opcode != HF__CQL_OP_ERROR)
        return hf__fail(err, HF_CORRUPT, "the server's answer is no result");
    code = hf__cql_read_failure(ret_answer, ret_failure, err);
    if (code != 0)
        return code;
    a->elsewhere = hf__cql_is_local(ret_failure, a->doing);
    return hf__cql_report(ret_failure, a->doing, err);
}

static int prepare(struct attempt *a, struct hf__cql_prepared *ret_prepared, hf_error *err)
{
    const struct hf__cql_statement *statement = a->request->statement;
    struct hf__cql_frame answer = {0};
    struct hf__cql_failure failure;
    struct hf__cql_writer w;

    a->doing = HF__CQL_KIND_READ;
    hf__cql_writer_init(&w, HF__CQL_REQUEST_MAX);
    hf__cql_write_prepare(&w, hf__cql_conn_version(a->conn), statement->text);
    int code = ask(a, &w, &answer, &failure, err);
    hf__cql_writer_clear(&w);
    if (code == 0)
        code = hf__cql_read_prepared(&answer, ret_prepared, err);
    if (code == 0)
        code = hf__cql_remember(a->cql, a->node, statement, ret_prepared, err);
    free(answer.body);
    return code;
}

static void write_request(const struct attempt *a, const struct hf__cql_prepared *prepared,
                          struct hf__cql_writer *w)
{
    const struct hf__cql_request *q = a->request;
    int version = hf__cql_conn_version(a->conn);
    struct hf__cql_parameters parameters = {
        .values = q->values,
        .value_count = q->value_count,
        .consistency = q->consistency,
        .serial = kind_of(a) == HF__CQL_KIND_SWAP ? q->serial : 0,
        .page_size = kind_of(a) == HF__CQL_KIND_READ ? q->page_size : 0,
        .paging_state = a->paging_state,
        .skip_metadata = kind_of(a) == HF__CQL_KIND_READ,
    };

    if (prepared != NULL)
        hf__cql_write_execute(w, version, prepared, &parameters);
    else
        hf__cql_write_query(w, version, q->statement->text, &parameters);
}

/* Sends the request itself. `*ret_unprepared`: the node has forgotten the statement. */
static int run(struct attempt *a, const struct hf__cql_prepared *prepared,
               struct hf__cql_result *ret_result, bool *ret_unprepared, hf_error *err)
{
    struct hf__cql_frame answer = {0};
    struct hf__cql_failure failure;
    struct hf__cql_writer w;

    a->doing = kind_of(a);
    hf__cql_writer_init(&w, HF__CQL_REQUEST_MAX);
    write_request(a, prepared, &w);
    int code = ask(a, &w, &answer, &failure, err);
    hf__cql_writer_clear(&w);
    *ret_unprepared = failure.code == HF__CQL_CODE_UNPREPARED;
    if (code == 0)
        code = hf__cql_read_result(&answer, ret_result, err);
    free(answer.body);
    bool muddled = code == HF_CORRUPT && failure.code != HF__CQL_CODE_PROTOCOL_ERROR;
    return muddled && kind_of(a) != HF__CQL_KIND_READ ? doubt(err) : code;
}

static int run_prepared(struct attempt *a, struct hf__cql_result *ret_result, hf_error *err)
{
    struct hf__cql_prepared prepared;
    bool unprepared = false;
    int code = 0;

    if (kind_of(a) == HF__CQL_KIND_SCHEMA)
        return run(a, NULL, ret_result, &unprepared, err);
    if (!hf__cql_recall(a->cql, a->node, a->request->statement, &prepared))
        code = prepare(a, &prepared, err);
    if (code == 0)
        code = run(a, &prepared, ret_result, &unprepared, err);
    if (!unprepared)
        return code;
    code = prepare(a, &prepared, err);
    return code != 0 ? code : run(a, &prepared, ret_result, &unprepared, err);
}

static int64_t deadline_of(const struct attempt *a)
{
    int64_t share_ns = hf__moment_after(a->begun_ns, a->cql->settings.node_timeout_ms);
    bool all = a->cql->settings.contacts.count == 1 || kind_of(a) == HF__CQL_KIND_SCHEMA;

    return all || share_ns > a->request->deadline_ns ? a->request->deadline_ns : share_ns;
}

static int try_node(struct attempt *a, struct hf__cql_result *ret_result, hf_error *err)
{
    a->begun_ns = hf__now_ns(a->cql->env);
    a->deadline_ns = deadline_of(a);
    int code = hf__cql_reach(a->cql, a->node, a->deadline_ns, &a->conn, err);
    a->elsewhere = code == HF_UNAVAILABLE || code == HF_CORRUPT;
    if (code != 0)
        return code;
    a->elsewhere = false;
    code = run_prepared(a, ret_result, err);
    hf__cql_conn_unref(a->conn);
    if (code == 0)
        hf__cql_worked(a->cql, a->node);
    else
        hf__wrap(err, code, "%s", a->cql->nodes[a->node].name);
    return code;
}

static int execute(struct hf__cql *cql, const struct hf__cql_request *request,
                   struct hf__cql_bytes paging_state, struct hf__cql_result *ret_result,
                   hf_error *err)
{
    struct attempt a = {.cql = cql, .request = request, .paging_state = paging_state};
    unsigned tried = 0;
    int code = 0;

    for (;;) {
        int node = hf__cql_choose(cql, request->node, tried, request->deadline_ns);
        if (node < 0)
            return tried != 0 ? code
                              : hf__fail(err, HF_UNAVAILABLE, "no node can be asked in time");
        tried |= 1u << node;
        a.node = (size_t)node;
        ret_result->node = node + 1;
        code = try_node(&a, ret_result, err);
        if (code == 0 || !a.elsewhere || hf__now_ns(cql->env) >= request->deadline_ns)
            return code;
    }
}

int hf__cql_execute(struct hf__cql *cql, const struct hf__cql_request *request,
                    struct hf__cql_result *ret_result, hf_error *err)
{
    *ret_result = (struct hf__cql_result){0};
    return execute(cql, request, ret_result->paging_state, ret_result, err);
}

int hf__cql_next_page(struct hf__cql *cql, const struct hf__cql_request *request,
                      struct hf__cql_result *result, hf_error *err)
{
    struct hf__cql_result page = {0};
    int code = execute(cql, request, result->paging_state, &page, err);

    hf__cql_result_clear(result);
    *result = page;
    return code;
}
