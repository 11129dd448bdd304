/* Where a password may come from, and which files are refused. */
#include "base/secret.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/check.h"

static char path[] = "/tmp/holdfast-secret-XXXXXX";

static int make_file(void **state)
{
    (void)state;
    int fd = mkstemp(path);
    return fd < 0 ? -1 : close(fd);
}

static int remove_file(void **state)
{
    (void)state;
    return unlink(path);
}

static void write_file(const char *text, mode_t mode)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, mode), 0);
}

static void check_file(int wanted, const char *text)
{
    struct hf__secret_source source = {.file = path, .file_name = "sentinel_password_file"};
    char *secret = NULL;
    hf_error err = {0};

    assert_int_equal(hf__secret_read(&source, &secret, &err), wanted);
    if (wanted == 0)
        check_text("the secret", secret, text);
    else
        check_contains("the sentence", err.text, text);
    free(secret);
}

static void the_first_line_of_a_file_is_it(void **state)
{
    (void)state;
    write_file("Sesam\r\nmore\n", 0600);
    check_file(0, "Sesam");
    write_file("Sesam", 0400);
    check_file(0, "Sesam");
    write_file("\nSesam\n", 0600);
    check_file(HF_INVALID, "no first line");
    write_file("", 0600);
    check_file(HF_INVALID, "no first line");
}

static void a_line_that_is_too_long_is_not_cut(void **state)
{
    char line[2000];

    (void)state;
    memset(line, 'a', sizeof line - 1);
    line[sizeof line - 1] = '\0';
    write_file(line, 0600);
    check_file(HF_INVALID, "too long");
}

static void a_file_that_others_can_open_is_refused(void **state)
{
    (void)state;
    write_file("Sesam\n", 0644);
    check_file(HF_DENIED, "sentinel_password_file '/tmp/holdfast-secret-");
    check_file(HF_DENIED, "is open to others; run: chmod 600 /tmp/holdfast-secret-");
    write_file("Sesam\n", 0602);
    check_file(HF_DENIED, "open to others");
    write_file("Sesam\n", 0620);
    check_file(HF_DENIED, "open to others");
}

static void only_roots_file_may_be_read_by_a_group(void **state)
{
    (void)state;
    write_file("Sesam\n", 0640);
    if (geteuid() != 0) {
        check_file(HF_DENIED, "open to others");
        return;
    }
    check_file(0, "Sesam");
    assert_int_equal(chown(path, 65534, (gid_t)-1), 0);
    check_file(HF_DENIED, "open to others");
    assert_int_equal(chown(path, 0, (gid_t)-1), 0);
}

static void one_source_is_enough(void **state)
{
    struct hf__secret_source twice = {.given = "a", .env = "HOLDFAST_TEST_SECRET"};
    struct hf__secret_source variable = {.env = "HOLDFAST_TEST_SECRET"}, none = {0};
    char *secret = NULL;
    hf_error err = {0};

    (void)state;
    assert_int_equal(hf__secret_read(&twice, &secret, &err), HF_INVALID);
    check_contains("twice", err.text, "keep one of URL, password_file, password_env");
    assert_int_equal(hf__secret_read(&variable, &secret, &err), HF_INVALID);
    check_contains("no variable", err.text, "no environment variable 'HOLDFAST_TEST_SECRET'");
    assert_int_equal(hf__secret_read(&none, &secret, &err), 0);
    assert_null(secret);
    setenv("HOLDFAST_TEST_SECRET", "Sesam", 1);
    assert_int_equal(hf__secret_read(&variable, &secret, &err), 0);
    check_text("the variable", secret, "Sesam");
    free(secret);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_line_of_a_file_is_it),
        cmocka_unit_test(a_line_that_is_too_long_is_not_cut),
        cmocka_unit_test(a_file_that_others_can_open_is_refused),
        cmocka_unit_test(only_roots_file_may_be_read_by_a_group),
        cmocka_unit_test(one_source_is_enough),
    };

    return cmocka_run_group_tests(tests, make_file, remove_file);
}
