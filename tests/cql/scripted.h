/* Clients of scripted servers, and some things that servers do. */
#ifndef TESTS_CQL_SCRIPTED_H
#define TESTS_CQL_SCRIPTED_H

#include <unistd.h>

#include "client.h"
#include "server.h"

static const struct hf__cql_statement look = {HF__CQL_KIND_READ, "SELECT a FROM k.t"};
static const struct hf__cql_statement swap = {HF__CQL_KIND_SWAP, "UPDATE k.t SET a = 1 IF a = 0"};

/* A client of one server or two; `more` are options. */
static inline struct hf__cql *client_of(struct server *a, struct server *b, const char *account,
                                        const char *more)
{
    struct hf__cql *cql = NULL;
    char url[300], second[40] = "";
    hf_error err;

    if (b != NULL)
        snprintf(second, sizeof second, ",127.0.0.1:%d", server_port(b));
    snprintf(url, sizeof url, "cassandra://%s127.0.0.1:%d%s/?%s", account, server_port(a), second,
             more);
    if (client_open(url, &cql, &err) != 0)
        fail_msg("%s", err.text);
    return cql;
}

static inline int ask(struct hf__cql *cql, const struct hf__cql_statement *statement, int64_t ms,
                      hf_error *err)
{
    struct hf__cql_request request = client_request(statement, NULL, 0, ms);
    struct hf__cql_result result;
    int code = hf__cql_execute(cql, &request, &result, err);

    if (code == 0)
        hf__cql_result_clear(&result);
    return code;
}

static inline bool is_question(const struct question *q)
{
    return q->opcode == HF__CQL_OP_EXECUTE;
}

/* Handlers ----------------------------------------------------------------- */
static inline void talk_http(const struct question *q, void *arg)
{
    (void)arg;
    server_send(q, "HTTP/1.1 400 Bad Request\r\n\r\n", 28);
}

static inline void hang_up(const struct question *q, void *arg)
{
    (void)arg;
    if (is_question(q))
        server_hang_up(q);
    else
        server_answer(q);
}

static inline void hang_up_early(const struct question *q, void *arg)
{
    (void)arg;
    if (q->opcode == HF__CQL_OP_PREPARE)
        server_hang_up(q);
    else
        server_answer(q);
}

static inline void say_nothing(const struct question *q, void *arg)
{
    (void)arg;
    if (!is_question(q))
        server_answer(q);
}

static inline void time_out_swap(const struct question *q, void *arg)
{
    (void)arg;
    if (is_question(q))
        server_reply(q, HF__CQL_OP_ERROR, "00001100 0000 0008 00000001 00000002 0003'CAS'");
    else
        server_answer(q);
}

#endif
