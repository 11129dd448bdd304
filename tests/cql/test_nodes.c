/* Which node is asked, and when: fail-over, the time that one node may take, pauses. */
#include <stdatomic.h>

#include "scripted.h"

/* Several nodes ------------------------------------------------------------ */
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

/* A long pause ------------------------------------------------------------- */
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_idle_connection_is_tried_before_a_write),
        cmocka_unit_test(what_was_not_applied_is_asked_of_the_next_node),
        cmocka_unit_test(a_node_that_hangs_costs_its_share_of_the_time),
        cmocka_unit_test(a_node_that_did_not_answer_is_asked_after_the_others),
        cmocka_unit_test(an_unknown_write_is_not_asked_of_the_next_node),
        cmocka_unit_test(the_node_that_is_wanted_is_asked_first),
        cmocka_unit_test(nobody_there_is_unavailable_and_told_which),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
