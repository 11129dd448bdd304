/* A SQLite that is older than the one that the build has seen: this program has its version. */
#include "sqlite/fixture.h"

int sqlite3_libversion_number(void)
{
    return 3034001;
}

static void an_old_library_is_refused_before_anything_is_made(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(try_open(f, f->url), HF_NO_STORE);
    check_text("old", f->err.text,
               "the library SQLite is of version 3.34.1: install 3.40 or newer");
    assert_int_equal(access(f->path, F_OK), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(
        an_old_library_is_refused_before_anything_is_made, setup_fixture, teardown)};

    return cmocka_run_group_tests_name("sqlite_version", tests, NULL, NULL);
}
