/* What the server's errors become: what is not known is not taken for a refusal (C6). */
#include "lib/check.h"
#include "stores/mysql/mysql.h"

static void c6_an_error_that_nobody_knows_may_have_been_applied(void **state)
{
    hf_error err = {0};

    (void)state;
    assert_int_equal(hf__my_fail(3169, "Session was killed", false, &err), HF_UNKNOWN);
    assert_int_equal(err.store_code, 3169);
    assert_int_equal(hf__my_fail(3169, "Session was killed", true, &err), HF_UNAVAILABLE);
}

static void c6_a_known_refusal_was_not_applied(void **state)
{
    hf_error err = {0};

    (void)state;
    assert_int_equal(hf__my_fail(1213, "Deadlock found", false, &err), HF_UNAVAILABLE);
    assert_int_equal(hf__my_fail(1114, "The table is full", false, &err), HF_FULL);
    assert_int_equal(hf__my_fail(1142, "INSERT command denied", false, &err), HF_DENIED);
    assert_non_null(strstr(err.text, "holdfast setup --print"));
    assert_int_equal(hf__my_fail(1665, "impossible to write to binary log", false, &err),
                     HF_DENIED);
    assert_int_equal(hf__my_fail(3101, "Plugin instructed to rollback", false, &err),
                     HF_UNAVAILABLE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(c6_an_error_that_nobody_knows_may_have_been_applied),
        cmocka_unit_test(c6_a_known_refusal_was_not_applied),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
