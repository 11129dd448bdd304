/* What the client makes of servers that behave badly: each failure has one outcome, and that of a
 * write is "unknown" only if the server may have got it. */
#include <unistd.h>

#include "client.h"
#include "server.h"

static const struct hf__cql_statement look = {HF__CQL_READ, "SELECT a FROM k.t"};
static const struct hf__cql_statement swap = {HF__CQL_SWAP, "UPDATE k.t SET a = 1 IF a = 0"};

/* A client of one server or two; `more` are options. */
static struct hf__cql *client_of(struct server *a, struct server *b, const char *account,
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

static int ask(struct hf__cql *cql, const struct hf__cql_statement *statement, int64_t ms,
               hf_error *err)
{
    struct hf__cql_request request = client_request(statement, NULL, 0, ms);
    struct hf__cql_result result;
    int code = hf__cql_execute(cql, &request, &result, err);

    if (code == 0)
        hf__cql_result_clear(&result);
    return code;
}

#define AMPLE_MS 20000 /* for what is answered: the machine may be slow */

/* One server with this handler, a read and a swap of so many ms: what they give. */
static void check_outcomes_in(int64_t ms, const char *what, server_handler *handler, int of_read,
                              int of_swap)
{
    const struct hf__cql_statement *const statements[] = {&look, &swap};
    const int wanted[] = {of_read, of_swap};

    for (size_t i = 0; i < COUNT(statements); i++) {
        struct server *s = server_start(handler, NULL);
        struct hf__cql *cql = client_of(s, NULL, "u:secret1@", "");
        hf_error err = {0};
        int code = ask(cql, statements[i], ms, &err);
        check_number(what, code, wanted[i]);
        if (code != 0)
            check_number(what, err.code, code);
        check_lacks(what, err.text, "secret1");
        hf__cql_close(cql);
        server_stop(s);
    }
}

static void check_outcomes(const char *what, server_handler *handler, int of_read, int of_swap)
{
    check_outcomes_in(AMPLE_MS, what, handler, of_read, of_swap);
}

static bool is_question(const struct question *q)
{
    return q->opcode == HF__CQL_OP_EXECUTE;
}

/* the handshake -----------------------------------------------------------------------------------
 */
static void refuse_password(const struct question *q, void *arg)
{
    (void)arg;
    if (q->opcode == HF__CQL_OP_STARTUP)
        server_reply(q, HF__CQL_OP_AUTHENTICATE, "0003'x.P'");
    else
        server_reply(q, HF__CQL_OP_ERROR, "00000100 0008'mismatch'");
}

static void accept_password(const struct question *q, void *arg)
{
    (void)arg;
    if (q->opcode == HF__CQL_OP_STARTUP)
        server_reply(q, HF__CQL_OP_AUTHENTICATE, "0003'x.P'");
    else if (q->opcode == HF__CQL_OP_AUTH_RESPONSE && q->len == 14 &&
             memcmp(q->body, "\0\0\0\12\0u\0secret1", 14) == 0)
        server_reply(q, HF__CQL_OP_AUTH_SUCCESS, "ffffffff");
    else if (q->opcode != HF__CQL_OP_AUTH_RESPONSE)
        server_answer(q);
    else
        server_hang_up(q);
}

static void challenge(const struct question *q, void *arg)
{
    (void)arg;
    if (q->opcode == HF__CQL_OP_STARTUP)
        server_reply(q, HF__CQL_OP_AUTHENTICATE, "0003'x.P'");
    else
        server_reply(q, HF__CQL_OP_AUTH_CHALLENGE, "00000001 00");
}

static void logins_are_accepted_or_refused(void **state)
{
    struct server *s = server_start(accept_password, NULL);
    struct hf__cql *cql = client_of(s, NULL, "", "");
    hf_error err;

    (void)state;
    check_outcomes("a good password", accept_password, 0, 0);
    check_outcomes("a bad password", refuse_password, HF_DENIED, HF_DENIED);
    check_outcomes("a challenge", challenge, HF_UNSUPPORTED, HF_UNSUPPORTED);
    assert_int_equal(ask(cql, &look, AMPLE_MS, &err), HF_DENIED);
    check_contains("no password", err.text, "password_file=");
    hf__cql_close(cql);
    server_stop(s);
}

static void speak_5_only(const struct question *q, void *arg)
{
    struct question as_5 = *q;

    (void)arg;
    as_5.version = 5;
    if (q->version != 5)
        server_reply(&as_5, HF__CQL_OP_ERROR, "0000000a 0004'only'");
    else
        server_answer(q);
}

static void a_server_that_refuses_v4_is_asked_in_v5(void **state)
{
    struct server *s = server_start(speak_5_only, NULL);
    struct hf__cql *cql = client_of(s, NULL, "", ""), *old = client_of(s, NULL, "", "protocol=4");
    hf_error err;

    (void)state;
    assert_int_equal(ask(cql, &swap, AMPLE_MS, NULL), 0);
    assert_int_equal(ask(cql, &swap, AMPLE_MS, NULL), 0);
    assert_int_equal(server_connections(s), 2);
    assert_int_equal(ask(old, &swap, AMPLE_MS, &err), HF_UNSUPPORTED);
    check_contains("v4", err.text, "version 4");
    hf__cql_close(cql);
    hf__cql_close(old);
    server_stop(s);
}

/* nonsense ----------------------------------------------------------------------------------------
 */
static void talk_http(const struct question *q, void *arg)
{
    (void)arg;
    server_send(q, "HTTP/1.1 400 Bad Request\r\n\r\n", 28);
}

static void answer_garbage(const struct question *q, void *arg)
{
    (void)arg;
    if (is_question(q))
        server_send(q, "\377\377\377\377\377\377\377\377\377\377", 10);
    else
        server_answer(q);
}

static void answer_too_much(const struct question *q, void *arg)
{
    (void)arg;
    if (is_question(q))
        server_send(q, "\204\0\0\0\10\177\377\377\377", 9);
    else
        server_answer(q);
}

static void answer_malformed(const struct question *q, void *arg)
{
    (void)arg;
    if (is_question(q))
        server_reply(q, HF__CQL_OP_RESULT, "00000002 00000001 00000001");
    else
        server_answer(q);
}

static void answer_somebody_else(const struct question *q, void *arg)
{
    (void)arg;
    if (is_question(q))
        server_reply_to(q, 999, HF__CQL_OP_RESULT, "\0\0\0\1", 4);
    else
        server_answer(q);
}

static void nonsense_is_refused_and_a_write_before_it_unknown(void **state)
{
    (void)state;
    check_outcomes("another protocol", talk_http, HF_CORRUPT, HF_CORRUPT);
    check_outcomes("garbage", answer_garbage, HF_CORRUPT, HF_UNKNOWN);
    check_outcomes("too long", answer_too_much, HF_CORRUPT, HF_UNKNOWN);
    check_outcomes("malformed", answer_malformed, HF_CORRUPT, HF_UNKNOWN);
    check_outcomes("an unknown stream", answer_somebody_else, HF_CORRUPT, HF_UNKNOWN);
}

/* lost answers ------------------------------------------------------------------------------------
 */
static void answer_half(const struct question *q, void *arg)
{
    (void)arg;
    if (!is_question(q)) {
        server_answer(q);
        return;
    }
    server_send(q, "\204\0\0\0\10\0", 6);
    server_hang_up(q);
}

static void hang_up(const struct question *q, void *arg)
{
    (void)arg;
    if (is_question(q))
        server_hang_up(q);
    else
        server_answer(q);
}

static void hang_up_early(const struct question *q, void *arg)
{
    (void)arg;
    if (q->opcode == HF__CQL_OP_PREPARE)
        server_hang_up(q);
    else
        server_answer(q);
}

static void say_nothing(const struct question *q, void *arg)
{
    (void)arg;
    if (!is_question(q))
        server_answer(q);
}

static void prepare_nothing(const struct question *q, void *arg)
{
    (void)arg;
    if (q->opcode != HF__CQL_OP_PREPARE)
        server_answer(q);
}

static void a_write_is_unknown_only_if_it_was_sent(void **state)
{
    (void)state;
    check_outcomes("cut in a frame", answer_half, HF_UNAVAILABLE, HF_UNKNOWN);
    check_outcomes("cut after the send", hang_up, HF_UNAVAILABLE, HF_UNKNOWN);
    check_outcomes("cut before the send", hang_up_early, HF_UNAVAILABLE, HF_UNAVAILABLE);
    check_outcomes_in(500, "no answer", say_nothing, HF_UNAVAILABLE, HF_UNKNOWN);
    check_outcomes_in(500, "never prepared", prepare_nothing, HF_UNAVAILABLE, HF_UNAVAILABLE);
}

static void time_out_swap(const struct question *q, void *arg)
{
    (void)arg;
    if (is_question(q))
        server_reply(q, HF__CQL_OP_ERROR, "00001100 0000 0008 00000001 00000002 0003'CAS'");
    else
        server_answer(q);
}

static void errors_of_the_server_keep_their_meaning(void **state)
{
    (void)state;
    check_outcomes("a CAS write timeout", time_out_swap, HF_UNAVAILABLE, HF_UNKNOWN);
}

static void answer_and_hang_up(const struct question *q, void *arg)
{
    (void)arg;
    server_answer(q);
    if (is_question(q))
        server_hang_up(q);
}

/* A connection that the server closed while nobody used it is no failure, not even of a write. */
static void a_server_that_closed_an_idle_connection_is_met_again(void **state)
{
    struct server *s = server_start(answer_and_hang_up, NULL);
    struct hf__cql *cql = client_of(s, NULL, "", "");
    hf_error err;

    (void)state;
    for (unsigned i = 1; i <= 5; i++) {
        if (ask(cql, &swap, AMPLE_MS, &err) != 0)
            fail_msg("%s", err.text);
        assert_int_equal(server_connections(s), i);
        usleep(20000); /* so that its end has come */
    }
    hf__cql_close(cql);
    server_stop(s);
}

/* a long pause ------------------------------------------------------------------------------------
 */
static _Atomic int64_t ahead_ns; /* of the system's clock */

static int64_t now_ahead(void *ctx)
{
    (void)ctx;
    return hf__now_ns(&hf__system_env) + atomic_load(&ahead_ns);
}

static int ask_ahead(struct hf__cql *cql)
{
    struct hf__cql_request request = client_request(&swap, NULL, 0, 4000);
    struct hf__cql_result result;

    request.deadline_ns += atomic_load(&ahead_ns);
    int code = hf__cql_execute(cql, &request, &result, NULL);
    hf__cql_result_clear(&result);
    return code;
}

static void be_deaf_to_options(const struct question *q, void *arg)
{
    (void)arg;
    if (q->opcode != HF__CQL_OP_OPTIONS)
        server_answer(q);
}

/* A firewall may have forgotten an idle connection: what is sent on it is lost without a word, and
 * a write would be unknown. So it is tried with something harmless first. */
static void an_idle_connection_is_tried_before_a_write(void **state)
{
    server_handler *const handlers[] = {NULL, be_deaf_to_options};
    struct hf_env env = hf__system_env;

    (void)state;
    env.now_ns = now_ahead;
    for (size_t i = 0; i < COUNT(handlers); i++) {
        struct server *s = server_start(handlers[i], NULL);
        struct hf__cql_settings settings = {0};
        struct hf__cql *cql = NULL;
        char url[100];

        atomic_store(&ahead_ns, 0);
        snprintf(url, sizeof url, "cassandra://127.0.0.1:%d/?node_timeout=100ms", server_port(s));
        assert_int_equal(client_settings(url, &settings, NULL), 0);
        assert_int_equal(hf__cql_open(&settings, &env, &cql, NULL), 0);
        assert_int_equal(ask_ahead(cql), 0);
        assert_int_equal(server_count(s, HF__CQL_OP_OPTIONS), 0);
        atomic_store(&ahead_ns, 31000 * HF__NS_PER_MS);
        assert_int_equal(ask_ahead(cql), 0);
        assert_int_equal(server_count(s, HF__CQL_OP_OPTIONS), 1);
        assert_int_equal(server_connections(s), handlers[i] == NULL ? 1 : 2);
        hf__cql_close(cql);
        server_stop(s);
    }
}

/* prepared statements -----------------------------------------------------------------------------
 */
static void forget(const struct question *q, void *arg)
{
    atomic_int *times = arg;

    if (is_question(q) && atomic_fetch_sub(times, 1) > 0)
        server_reply(q, HF__CQL_OP_ERROR, "00002500 0000 0001 01");
    else
        server_answer(q);
}

static void a_forgotten_statement_is_prepared_again_once(void **state)
{
    atomic_int times = 1;
    struct server *s = server_start(forget, &times);
    struct hf__cql *cql = client_of(s, NULL, "", "");
    hf_error err;

    (void)state;
    assert_int_equal(ask(cql, &swap, AMPLE_MS, &err), 0);
    assert_int_equal(server_count(s, HF__CQL_OP_PREPARE), 2);
    assert_int_equal(ask(cql, &swap, AMPLE_MS, &err), 0);
    assert_int_equal(server_count(s, HF__CQL_OP_PREPARE), 2);

    atomic_store(&times, 100);
    assert_int_equal(ask(cql, &swap, AMPLE_MS, &err), HF_UNAVAILABLE);
    assert_int_equal(err.store_code, HF__CQL_UNPREPARED);
    assert_int_equal(server_count(s, HF__CQL_OP_PREPARE), 3);
    hf__cql_close(cql);
    server_stop(s);
}

/* several nodes -----------------------------------------------------------------------------------
 */
static void lack_replicas(const struct question *q, void *arg)
{
    (void)arg;
    if (is_question(q))
        server_reply(q, HF__CQL_OP_ERROR, "00001000 0000 0008 00000002 00000001");
    else
        server_answer(q);
}

static void what_was_not_applied_is_asked_of_the_next_node(void **state)
{
    server_handler *const handlers[] = {lack_replicas, hang_up_early, talk_http};

    (void)state;
    for (size_t i = 0; i < COUNT(handlers); i++) {
        struct server *bad = server_start(handlers[i], NULL), *good = server_start(NULL, NULL);
        struct hf__cql *cql = client_of(bad, good, "", "");
        for (unsigned k = 1; k <= 3; k++) {
            assert_int_equal(ask(cql, &swap, AMPLE_MS, NULL), 0);
            assert_int_equal(server_count(good, HF__CQL_OP_EXECUTE), k);
        }
        assert_int_equal(server_connections(bad), 1); /* the one that worked is asked first */
        hf__cql_close(cql);
        server_stop(bad);
        server_stop(good);
    }
}

static void a_node_that_hangs_costs_its_share_of_the_time(void **state)
{
    struct server *bad = server_start(say_nothing, NULL), *good = server_start(NULL, NULL);
    struct hf__cql *cql = client_of(bad, good, "", "node_timeout=1s");
    int64_t begun_ns = hf__now_ns(&hf__system_env);

    (void)state;
    assert_int_equal(ask(cql, &look, AMPLE_MS, NULL), 0);
    assert_int_equal(server_count(good, HF__CQL_OP_EXECUTE), 1);
    assert_true(hf__now_ns(&hf__system_env) - begun_ns >= 1000 * HF__NS_PER_MS);
    hf__cql_close(cql);
    server_stop(bad);
    server_stop(good);
}

/* Also if the caller had no time for another one itself. */
static void a_node_that_did_not_answer_is_asked_after_the_others(void **state)
{
    struct server *bad = server_start(say_nothing, NULL), *good = server_start(NULL, NULL);
    struct hf__cql *cql = client_of(bad, good, "", "node_timeout=20s");

    (void)state;
    assert_int_equal(ask(cql, &look, 200, NULL), HF_UNAVAILABLE);
    assert_int_equal(ask(cql, &look, AMPLE_MS, NULL), 0);
    assert_int_equal(server_count(good, HF__CQL_OP_EXECUTE), 1);
    hf__cql_close(cql);
    server_stop(bad);
    server_stop(good);
}

/* It may have been applied: nobody but the caller, who knows how to find out, may try again. */
static void an_unknown_write_is_not_asked_of_the_next_node(void **state)
{
    server_handler *const handlers[] = {say_nothing, hang_up, time_out_swap};

    (void)state;
    for (size_t i = 0; i < COUNT(handlers); i++) {
        struct server *bad = server_start(handlers[i], NULL), *good = server_start(NULL, NULL);
        struct hf__cql *cql = client_of(bad, good, "", "node_timeout=1s");
        struct hf__cql_request request = client_request(&swap, NULL, 0, AMPLE_MS);
        struct hf__cql_result result;
        assert_int_equal(hf__cql_execute(cql, &request, &result, NULL), HF_UNKNOWN);
        assert_int_equal(result.node, 1);
        assert_int_equal(server_count(good, HF__CQL_OP_EXECUTE), 0);
        hf__cql_close(cql);
        server_stop(bad);
        server_stop(good);
    }
}

static void the_node_that_is_wanted_is_asked_first(void **state)
{
    struct server *a = server_start(NULL, NULL), *b = server_start(NULL, NULL);
    struct hf__cql *cql = client_of(a, b, "", "");
    struct hf__cql_request request = client_request(&swap, NULL, 0, AMPLE_MS);
    struct hf__cql_result result;

    (void)state;
    for (int node = 2; node >= 1; node--) {
        request.node = node;
        assert_int_equal(hf__cql_execute(cql, &request, &result, NULL), 0);
        assert_int_equal(result.node, node);
        hf__cql_result_clear(&result);
    }
    assert_int_equal(server_count(a, HF__CQL_OP_EXECUTE), 1);
    hf__cql_close(cql);
    server_stop(a);
    server_stop(b);
}

static void nobody_there_is_unavailable_and_told_which(void **state)
{
    struct server *s = server_start(NULL, NULL);
    struct hf__cql *cql = client_of(s, NULL, "", "");
    int port = server_port(s);
    char name[40];
    hf_error err;

    (void)state;
    server_stop(s);
    snprintf(name, sizeof name, "127.0.0.1:%d: ", port);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(ask(cql, &swap, 3000, &err), HF_UNAVAILABLE);
        check_contains("which", err.text, name);
    }
    assert_int_equal(ask(cql, &swap, 1, &err), HF_UNAVAILABLE); /* in its pause */
    hf__cql_close(cql);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logins_are_accepted_or_refused),
        cmocka_unit_test(a_server_that_refuses_v4_is_asked_in_v5),
        cmocka_unit_test(nonsense_is_refused_and_a_write_before_it_unknown),
        cmocka_unit_test(a_write_is_unknown_only_if_it_was_sent),
        cmocka_unit_test(errors_of_the_server_keep_their_meaning),
        cmocka_unit_test(a_server_that_closed_an_idle_connection_is_met_again),
        cmocka_unit_test(an_idle_connection_is_tried_before_a_write),
        cmocka_unit_test(a_forgotten_statement_is_prepared_again_once),
        cmocka_unit_test(what_was_not_applied_is_asked_of_the_next_node),
        cmocka_unit_test(a_node_that_hangs_costs_its_share_of_the_time),
        cmocka_unit_test(a_node_that_did_not_answer_is_asked_after_the_others),
        cmocka_unit_test(an_unknown_write_is_not_asked_of_the_next_node),
        cmocka_unit_test(the_node_that_is_wanted_is_asked_first),
        cmocka_unit_test(nobody_there_is_unavailable_and_told_which),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
