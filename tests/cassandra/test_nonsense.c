/* The store beside servers that talk nonsense: every operation ends in time with an error that says
 * so, and none with a lock. The server is a scripted one of the test's own. */
#include <stdlib.h>

#include "../cql/server.h"
#include "holdfast.h"
#include "lib/check.h"

static hf_client *client_of(struct server *s)
{
    hf_client *client = NULL;
    char url[200];
    hf_error err;

    snprintf(url, sizeof url, "cassandra://u:secret1@127.0.0.1:%d/holdfast?op_timeout=1s",
             server_port(s));
    if (hf_open(url, NULL, &client, &err) != HF_OK)
        fail_msg("%s", err.text);
    return client;
}

/* Taking a lock gives one of two codes, with this in its text. */
static void check_refused(const char *what, server_handler *handler, int wanted, const char *says)
{
    struct server *s = server_start(handler, NULL);
    hf_client *client = client_of(s);
    hf_options opt = HF_OPTIONS_INIT;
    hf_lock *lock = NULL;
    hf_error err = {0};

    opt.wait_ms = 0;
    check_number(what, hf_acquire(client, "a", HF_NTS, &opt, &lock, &err), wanted);
    assert_null(lock);
    check_contains(what, err.text, says);
    check_lacks(what, err.text, "secret1");
    hf_close(client);
    server_stop(s);
}

static bool is_question(const struct question *q)
{
    return q->opcode == HF__CQL_OP_EXECUTE;
}

static void answer_garbage(const struct question *q, void *arg)
{
    (void)arg;
    if (is_question(q))
        server_send(q, "\377\376\375\374\373\372\371\370\367\366", 10);
    else
        server_answer(q);
}

static void refuse_password(const struct question *q, void *arg)
{
    (void)arg;
    if (q->opcode == HF__CQL_OP_STARTUP)
        server_reply(q, HF__CQL_OP_AUTHENTICATE, "0003'x.P'");
    else
        server_reply(q, HF__CQL_OP_ERROR, "00000100 0008'mismatch'");
}

static void answer_nothing_useful(const struct question *q, void *arg)
{
    (void)arg;
    server_answer(q); /* Void where there should be a row */
}

static void lack_tables(const struct question *q, void *arg)
{
    (void)arg;
    if (q->opcode == HF__CQL_OP_PREPARE)
        server_reply(q, HF__CQL_OP_ERROR, "00002200 001a'table locks does not exist'");
    else
        server_answer(q);
}

/* A row of the seven columns that the store asks for, with three bytes where the holders should be:
 * a list that says it has more entries than there can be. */
static void answer_bad_row(const struct question *q, void *arg)
{
    (void)arg;
    if (is_question(q))
        server_reply(q, HF__CQL_OP_RESULT,
                     "00000002 00000004 00000007 00000001"
                     " 00000008 0000000000000001" /* count(*) */
                     " 00000008 0000018bcfe56800" /* the clock */
                     " 00000008 0000000000000007" /* version */
                     " 00000008 0000000000000007" /* generation */
                     " 00000005 7fffffff 61"      /* holders */
                     " 00000004 00000000 00000004 00000000");
    else
        server_answer(q);
}

static void nonsense_never_becomes_a_lock(void **state)
{
    (void)state;
    check_refused("garbage", answer_garbage, HF_CORRUPT, "does not speak CQL");
    check_refused("a wrong password", refuse_password, HF_DENIED, "password is not accepted");
    check_refused("no row", answer_nothing_useful, HF_CORRUPT, "cassandra");
    check_refused("no tables", lack_tables, HF_DENIED, "holdfast setup");
    check_refused("a bad row", answer_bad_row, HF_CORRUPT, "collection");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(nonsense_never_becomes_a_lock)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
