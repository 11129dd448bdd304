/* What the client makes of servers that behave badly: each failure has one outcome, and that of a
 * write is "unknown" only if the server may have got it. */
#include "scripted.h"

/* One server with this handler, a read and a swap of so many ms: what they give. */
static void check_outcomes_in(int64_t ms, const char *what, server_handler *handler, void *arg,
                              int of_read, int of_swap)
{
    const struct hf__cql_statement *const statements[] = {&look, &swap};
    const int wanted[] = {of_read, of_swap};

    for (size_t i = 0; i < COUNT(statements); i++) {
        struct server *s = server_start(handler, arg);
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

static void check_outcomes(const char *what, server_handler *handler, void *arg, int of_read,
                           int of_swap)
{
    check_outcomes_in(AMPLE_MS, what, handler, arg, of_read, of_swap);
}

/* The handshake ------------------------------------------------------------ */
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

static void logins_are_accepted_or_refused(void **state)
{
    struct server *s = server_start(accept_password, NULL);
    struct hf__cql *cql = client_of(s, NULL, "", "");
    hf_error err;

    (void)state;
    check_outcomes("a good password", accept_password, NULL, 0, 0);
    check_outcomes("a bad password",
                   SAYING({HF__CQL_OP_STARTUP, HF__CQL_OP_AUTHENTICATE, "0003'x.P'"},
                          {HF__CQL_OP_AUTH_RESPONSE, HF__CQL_OP_ERROR, "00000100 0008'mismatch'"}),
                   HF_DENIED, HF_DENIED);
    check_outcomes("a challenge",
                   SAYING({HF__CQL_OP_STARTUP, HF__CQL_OP_AUTHENTICATE, "0003'x.P'"},
                          {HF__CQL_OP_AUTH_RESPONSE, HF__CQL_OP_AUTH_CHALLENGE, "00000001 00"}),
                   HF_UNSUPPORTED, HF_UNSUPPORTED);
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

/* Nonsense ----------------------------------------------------------------- */
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
    check_outcomes("another protocol", talk_http, NULL, HF_CORRUPT, HF_CORRUPT);
    check_outcomes("garbage", SAYING({HF__CQL_OP_EXECUTE, SERVER_BARE, "ffffffffff ffffffffff"}),
                   HF_CORRUPT, HF_UNKNOWN);
    check_outcomes("too long", SAYING({HF__CQL_OP_EXECUTE, SERVER_BARE, "84 00 0000 08 7fffffff"}),
                   HF_CORRUPT, HF_UNKNOWN);
    check_outcomes("malformed",
                   SAYING({HF__CQL_OP_EXECUTE, HF__CQL_OP_RESULT, "00000002 00000001 00000001"}),
                   HF_CORRUPT, HF_UNKNOWN);
    check_outcomes("an unknown stream", answer_somebody_else, NULL, HF_CORRUPT, HF_UNKNOWN);
}

/* Lost answers ------------------------------------------------------------- */
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

static void prepare_nothing(const struct question *q, void *arg)
{
    (void)arg;
    if (q->opcode != HF__CQL_OP_PREPARE)
        server_answer(q);
}

static void a_write_is_unknown_only_if_it_was_sent(void **state)
{
    (void)state;
    check_outcomes("cut in a frame", answer_half, NULL, HF_UNAVAILABLE, HF_UNKNOWN);
    check_outcomes("cut after the send", hang_up, NULL, HF_UNAVAILABLE, HF_UNKNOWN);
    check_outcomes("cut before the send", hang_up_early, NULL, HF_UNAVAILABLE, HF_UNAVAILABLE);
    check_outcomes_in(500, "no answer", say_nothing, NULL, HF_UNAVAILABLE, HF_UNKNOWN);
    check_outcomes_in(500, "never prepared", prepare_nothing, NULL, HF_UNAVAILABLE, HF_UNAVAILABLE);
}

static void errors_of_the_server_keep_their_meaning(void **state)
{
    (void)state;
    check_outcomes("nothing is applied by preparing it",
                   SAYING({HF__CQL_OP_PREPARE, HF__CQL_OP_ERROR, "00000000 0003'bug'"}),
                   HF_UNAVAILABLE, HF_UNAVAILABLE);
    check_outcomes("a CAS write timeout", time_out_swap, NULL, HF_UNAVAILABLE, HF_UNKNOWN);
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
        server_await_end(s, i);
    }
    hf__cql_close(cql);
    server_stop(s);
}

/* Prepared statements ------------------------------------------------------ */
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
    assert_int_equal(err.store_code, HF__CQL_CODE_UNPREPARED);
    assert_int_equal(server_count(s, HF__CQL_OP_PREPARE), 3);
    hf__cql_close(cql);
    server_stop(s);
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
        cmocka_unit_test(a_forgotten_statement_is_prepared_again_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
