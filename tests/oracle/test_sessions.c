/* Lost connections, transactions, deadlines and URLs. The server is a script. */
#include <unistd.h>

#include "script.h"

/* Transactions ------------------------------------------------------------- */

static void c6_a_lost_session_is_not_used_again(void **state)
{
    struct world *w = *state;
    struct hf__answer answer = {0};

    script(w, "", "1 execute rules.attempt 08S01 3113 ORA-03113: end-of-file");
    check_number("lost", attempt(w, AMPLE_MS, &answer), HF_UNKNOWN);
    check_number("again", attempt(w, AMPLE_MS, &answer), 0);
    check_number("connections", count(w, "connect"), 2);
    check_number("good-byes", count(w, "disconnect"), 1);
}

static void autocommit_is_off_and_what_is_open_is_rolled_back(void **state)
{
    struct world *w = *state;
    struct hf__answer answer = {0};

    script(w, "", "0 execute rules.attempt HY000 1653 ORA-01653: unable to extend table");
    check_number("full", attempt(w, AMPLE_MS, &answer), HF_FULL);
    check_number("autocommit", count(w, "autocommit off"), 1);
    check_number("commits", count(w, "commit"), 0);
    assert_true(count(w, "rollback") >= 1);
}

/* Deadlines ---------------------------------------------------------------- */

/* The thread that was left behind cleans up. */
static void await_disconnect(struct world *w)
{
    for (int i = 0; i < 2000 && count(w, "disconnect") == 0; i++)
        usleep(10000);
}

static void c7_a_server_that_hangs_is_left_at_the_deadline(void **state)
{
    struct world *w = *state;
    struct hf__answer answer = {0};

    script(w, "", "1 slow rules.attempt 00000 3600000"); /* longer than the test may take */
    check_number("late", attempt(w, 200, &answer), HF_UNKNOWN);
    check_contains("late", w->walk.err.text, "in time");
    check_number("again", attempt(w, AMPLE_MS, &answer), 0);
    await_disconnect(w);
    check_number("cancelled", count(w, "cancel"), 1);
    check_number("good-byes", count(w, "disconnect"), 1);
    assert_true(count(w, "timeout") >= 1);
}

static void the_store_may_close_while_a_server_hangs(void **state)
{
    struct world *w = *state;
    struct hf__answer answer = {0};

    script(w, "", "1 slow rules.attempt 00000 500");
    check_number("late", attempt(w, 100, &answer), HF_UNKNOWN);
    hf_store_type_v1.close(w->store);
    w->store = NULL;
    await_disconnect(w);
    check_number("good-byes", count(w, "disconnect"), 1);
}

/* URLs --------------------------------------------------------------------- */

static void urls_say_what_is_wrong_with_them(void **state)
{
    static const struct {
        const char *url, *says;
        int code;
    } cases[] = {
        {"oracle://u@/?dsn=a&hold=session", "not there on Oracle", HF_UNSUPPORTED},
        {"oracle://u@/", "either a dsn", HF_INVALID},
        {"oracle://u@/?dsn=a&connect=DRIVER=b", "either a dsn", HF_INVALID},
        {"oracle://u@host:1521/?dsn=a", "a host does not belong here", HF_INVALID},
        {"oracle://u@/?connect=DRIVER=a;PWD=Sesam", "must not hold a password", HF_INVALID},
        {"oracle://u@/?connect=DRIVER=a;password = Sesam", "must not hold a password", HF_INVALID},
        {"oracle://u@/a'b?dsn=a", "not a plain name", HF_INVALID},
        {"oracle://u@/?dsn=a&dialect=db2", "dialect is one of", HF_INVALID},
        {"oracle://u:Sesam@/?dsn=a&password_env=HOME", "given twice", HF_INVALID},
    };
    struct world *w = *state;

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct hf__store *store = NULL;
        struct hf__url url;
        hf_error err = {0};
        assert_int_equal(hf__url_parse(cases[i].url, &url, &err), 0);
        assert_int_equal(hf__url_check(&url, hf__ora_options, &err), 0);
        check_number(cases[i].url, hf_store_type_v1.open(&url, &w->walk.host, &store, &err),
                     cases[i].code);
        check_contains(cases[i].url, err.text, cases[i].says);
        check_lacks(cases[i].url, err.text, "Sesam");
        hf__url_clear(&url);
    }
}

static void a_dsn_or_a_driver_that_is_not_there_is_told(void **state)
{
    static const struct {
        const char *url, *says;
    } cases[] = {
        {"oracle://u:Sesam@/?dsn=no-such-dsn", "no such dsn"},
        {"oracle://u:Sesam@/?connect=DRIVER=/no/such/driver.so", "driver cannot be loaded"},
    };
    struct world *w = *state;

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct hf__answer answer = {0};
        if (w->store != NULL)
            hf_store_type_v1.close(w->store);
        w->store = store_walk_open(&w->walk, &hf_store_type_v1, cases[i].url);
        check_number(cases[i].url, attempt(w, AMPLE_MS, &answer), HF_DENIED);
        check_contains(cases[i].url, w->walk.err.text, cases[i].says);
        check_lacks(cases[i].url, w->walk.err.text, "Sesam");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(c6_a_lost_session_is_not_used_again),
        cmocka_unit_test(autocommit_is_off_and_what_is_open_is_rolled_back),
        cmocka_unit_test(c7_a_server_that_hangs_is_left_at_the_deadline),
        cmocka_unit_test(the_store_may_close_while_a_server_hangs),
        cmocka_unit_test(urls_say_what_is_wrong_with_them),
        cmocka_unit_test(a_dsn_or_a_driver_that_is_not_there_is_told),
    };

    return cmocka_run_group_tests_name("oracle_sessions", tests, world_setup, world_teardown);
}
