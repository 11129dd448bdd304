/* Accounts and TLS, against a real server that wants both. */
#include <pthread.h>
#include <unistd.h>

#include "live.h"

#define TRUSTED "tls_ca=%s/ca.pem"

static const struct hf__cql_statement look = {
    HF__CQL_KIND_READ, "SELECT cluster_name FROM system.local WHERE key = ?"};

static int ask(struct hf__cql *cql, hf_error *err)
{
    const struct hf__cql_value key = hf__cql_text("local");
    struct hf__cql_request request = live_request(&look, &key, 1);
    struct hf__cql_result result;
    int code = hf__cql_execute(cql, &request, &result, err);

    if (code != 0)
        return code;
    bool right = hf__cql_next_row(&result) && hf__cql_column(&result, 0).len == strlen("holdfast");
    hf__cql_result_clear(&result);
    return right ? 0 : HF_CORRUPT;
}

static void check_login(const char *account, const char *options, int wanted, const char *says)
{
    struct hf__cql *cql = NULL;
    hf_error err = {0};
    int code = live_open(account, options, &cql, &err);

    if (code == 0)
        code = ask(cql, &err);
    hf__cql_close(cql);
    if (code != wanted)
        fail_msg("%s, %s: %d instead of %d: %s", account, options, code, wanted, err.text);
    if (wanted != 0)
        check_contains(options, err.text, says);
    check_lacks(options, err.text, "wrong77");
}

static void accounts_are_asked_for_and_checked(void **state)
{
    (void)state;
    check_login("cassandra:cassandra@", TRUSTED, 0, "");
    check_login("cassandra:cassandra@", TRUSTED "&protocol=5", 0, "");
    check_login("cassandra:wrong77@", TRUSTED, HF_DENIED, "password is not accepted");
    check_login("cassandra:wrong77@", TRUSTED "&protocol=5", HF_DENIED, "password is not accepted");
    check_login("nobody:wrong77@", TRUSTED, HF_DENIED, "password is not accepted");
    check_login("", TRUSTED, HF_DENIED, "wants a user");
}

static void passwords_come_from_files_too(void **state)
{
    char path[] = "/tmp/holdfast-cql-XXXXXX", options[200];
    int fd = mkstemp(path);

    (void)state;
    assert_int_equal(write(fd, "cassandra\n", 10), 10);
    close(fd);
    snprintf(options, sizeof options, "%s&password_file=%s", TRUSTED, path);
    check_login("cassandra@", options, 0, "");
    unlink(path);
    check_login("cassandra@", options, HF_DENIED, "cannot be read");
    setenv("CQL_TEST_PASSWORD", "cassandra", 1);
    check_login("cassandra@", TRUSTED "&password_env=CQL_TEST_PASSWORD", 0, "");
    check_login("cassandra:cassandra@", TRUSTED "&password_env=CQL_TEST_PASSWORD", HF_INVALID,
                "twice");
}

static void servers_are_trusted_only_if_their_authority_is(void **state)
{
    (void)state;
    check_login("cassandra:cassandra@", "tls=verify", HF_DENIED, "not trusted");
    check_login("cassandra:cassandra@", "tls=insecure", 0, "");
    check_login("cassandra:cassandra@", TRUSTED "&tls=verify", 0, "");
    check_login("cassandra:cassandra@", "tls_ca=/nowhere.pem", HF_INVALID, "tls_ca");
    check_login("cassandra:cassandra@", TRUSTED "&tls=off", HF_INVALID, "no use");
}

enum { THREADS = 8, ROUNDS = 100 };

static void *ask_often(void *arg)
{
    int failed = 0;

    for (int i = 0; i < ROUNDS && failed == 0; i++)
        failed = ask(arg, NULL);
    return failed == 0 ? NULL : arg;
}

static void threads_share_a_connection_with_tls(void **state)
{
    struct hf__cql *cql = live_must_open("cassandra:cassandra@", *state);
    pthread_t threads[THREADS];
    void *failed;

    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask_often, cql), 0);
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    hf__cql_close(cql);
}

#define WITH(f, options)                                                                \
    {                                                                                   \
        .name = #f " (" options ")", .test_func = f, .initial_state = (void *)(options) \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accounts_are_asked_for_and_checked),
        cmocka_unit_test(passwords_come_from_files_too),
        cmocka_unit_test(servers_are_trusted_only_if_their_authority_is),
        WITH(threads_share_a_connection_with_tls, TRUSTED "&protocol=4"),
        WITH(threads_share_a_connection_with_tls, TRUSTED "&protocol=5"),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
