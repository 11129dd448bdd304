/* The store beside servers that talk nonsense: every operation ends in time with an error that says
 * so, and none with a lock. The server is a scripted one of the test's own. */

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

/* Taking a lock gives this code, with this in its text. */
static void check_refused(const char *what, server_handler *handler, void *arg, int wanted,
                          const char *says)
{
    struct server *s = server_start(handler, arg);
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

static void nonsense_never_becomes_a_lock(void **state)
{
    (void)state;
    check_refused("garbage", SAYING({HF__CQL_OP_EXECUTE, SERVER_BARE, "fffefdfcfb faf9f8f7f6"}),
                  HF_CORRUPT, "does not speak CQL");
    check_refused("a wrong password",
                  SAYING({HF__CQL_OP_STARTUP, HF__CQL_OP_AUTHENTICATE, "0003'x.P'"},
                         {HF__CQL_OP_AUTH_RESPONSE, HF__CQL_OP_ERROR, "00000100 0008'mismatch'"}),
                  HF_DENIED, "password is not accepted");
    check_refused("no row", NULL, NULL, HF_CORRUPT, "cassandra"); /* Void instead */
    check_refused(
        "no tables",
        SAYING({HF__CQL_OP_PREPARE, HF__CQL_OP_ERROR, "00002200 001a'table locks does not exist'"}),
        HF_DENIED, "holdfast setup");
}

/* Of the seven columns that the store asks for, with three bytes where the holders should be: a
 * list that says it has more entries than there can be. */
static void bad_row_never_becomes_a_lock(void **state)
{
    (void)state;
    check_refused("a bad row",
                  SAYING({HF__CQL_OP_EXECUTE, HF__CQL_OP_RESULT,
                          "00000002 00000004 00000007 00000001"
                          " 00000008 0000000000000001" /* count(*) */
                          " 00000008 0000018bcfe56800" /* the clock */
                          " 00000008 0000000000000007" /* version */
                          " 00000008 0000000000000007" /* generation */
                          " 00000005 7fffffff 61"      /* holders */
                          " 00000004 00000000 00000004 00000000"}),
                  HF_CORRUPT, "collection");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nonsense_never_becomes_a_lock),
        cmocka_unit_test(bad_row_never_becomes_a_lock),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
