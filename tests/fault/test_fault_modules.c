/* Finding the store of a URL when its module is missing, broken or of another version, and where
 * the embedded store lives. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "wrapped.h"

static char dir[] = "/tmp/holdfast-modules-XXXXXX";

static int make_dir(void **state)
{
    (void)state;
    return mkdtemp(dir) != NULL ? 0 : -1;
}

static int remove_dir(void **state)
{
    char command[100];

    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", dir);
    return system(command);
}

static const char *in_dir(const char *name)
{
    static char path[200];

    snprintf(path, sizeof path, "%s/%s", dir, name);
    return path;
}

/* What a module that was loaded stays, so every try is in a process of its own. 0, or the code. */
static int open_in_child_with(const char *url, const char *modules, char text[400])
{
    struct told {
        int code;
        char text[400];
    } told = {0};
    int fds[2];

    assert_int_equal(pipe(fds), 0);
    pid_t pid = fork();
    if (pid == 0) {
        hf_client_options opt = {.size = sizeof opt, .modules = modules};
        hf_client *client = NULL;
        hf_error err = {0};
        told.code = hf_open(url, &opt, &client, &err);
        memcpy(told.text, err.text, sizeof err.text);
        hf_close(client);
        _exit(write(fds[1], &told, sizeof told) == sizeof told ? 0 : 1);
    }
    close(fds[1]);
    assert_int_equal(read(fds[0], &told, sizeof told), sizeof told);
    close(fds[0]);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    memcpy(text, told.text, sizeof told.text);
    return told.code;
}

static int open_in_child(const char *url, char text[400])
{
    return open_in_child_with(url, NULL, text);
}

static void missing_module_says_what_to_install(void **state)
{
    char text[400];

    (void)state;
    setenv("HOLDFAST_MODULES", dir, 1);
    assert_int_equal(open_in_child("trace+memory://x", text), HF_NO_STORE);
    check_contains("missing", text, "trace: its module ");
    check_contains("missing", text, "holdfast-trace.so is not there: install ");
}

static void file_that_is_no_module_is_refused(void **state)
{
    char text[400];
    FILE *out = fopen(in_dir("holdfast-trace.so"), "w");

    (void)state;
    assert_non_null(out);
    fputs("not an object\n", out);
    fclose(out);
    setenv("HOLDFAST_MODULES", dir, 1);
    assert_int_equal(open_in_child("trace+memory://x", text), HF_NO_STORE);
    check_contains("broken", text, "cannot be loaded");
    unlink(in_dir("holdfast-trace.so"));
}

static void the_program_may_say_where_modules_are(void **state)
{
    char text[400], dirs[600];

    (void)state;
    unsetenv("HOLDFAST_MODULES");
    assert_int_equal(open_in_child_with("trace+memory://x", MODULES, text), 0);
    snprintf(dirs, sizeof dirs, ":%s:/nowhere:" MODULES, dir);
    assert_int_equal(open_in_child_with("trace+memory://x", dirs, text), 0);
    /* And what a wrapper opens inside is looked for in the same places. */
    assert_int_equal(open_in_child_with("trace+fault+memory://x", dirs, text), 0);
}

static void the_first_directory_that_has_the_module_decides(void **state)
{
    char text[400], dirs[600];

    (void)state;
    assert_int_equal(symlink(OLD_MODULE, in_dir("holdfast-fault.so")), 0);
    snprintf(dirs, sizeof dirs, "%s:" MODULES, dir);
    assert_int_equal(open_in_child_with("fault+memory://x", dirs, text), HF_NO_STORE);
    check_contains("old", text, "of another version");
    unlink(in_dir("holdfast-fault.so"));
    assert_int_equal(open_in_child_with("fault+memory://x", dirs, text), 0);
}

static void the_environment_goes_before_the_program(void **state)
{
    char text[400], dirs[600];

    (void)state;
    setenv("HOLDFAST_MODULES", dir, 1);
    assert_int_equal(open_in_child_with("trace+memory://x", MODULES, text), HF_NO_STORE);
    check_contains("missing", text, dir);
    snprintf(dirs, sizeof dirs, "%s:" MODULES, dir);
    setenv("HOLDFAST_MODULES", dirs, 1);
    assert_int_equal(open_in_child_with("trace+memory://x", "/nowhere", text), 0);
}

static void module_of_another_version_is_refused(void **state)
{
    char text[400];

    (void)state;
    assert_int_equal(symlink(OLD_MODULE, in_dir("holdfast-fault.so")), 0);
    setenv("HOLDFAST_MODULES", dir, 1);
    assert_int_equal(open_in_child("fault+memory://x", text), HF_NO_STORE);
    check_contains("old", text, "of another version");
    unlink(in_dir("holdfast-fault.so"));
}

static void unknown_scheme_names_the_known_ones(void **state)
{
    static const char *const unknown[] = {"nosuch://x", "trace:x", "fault://x", "nosuch+memory://x",
                                          "trace+nosuch://x"};
    char text[400];

    (void)state;
    setenv("HOLDFAST_MODULES", MODULES, 1);
    for (size_t i = 0; i < COUNT(unknown); i++) {
        check_number(unknown[i], open_in_child(unknown[i], text), HF_NO_STORE);
        check_contains(unknown[i], text, "memory:, sqlite:");
    }
}

static void password_is_in_no_message(void **state)
{
    char text[400];

    (void)state;
    setenv("HOLDFAST_MODULES", MODULES, 1);
    assert_int_equal(open_in_child("nosuch://me:hunter2@host/x", text), HF_NO_STORE);
    check_lacks("password", text, "hunter2");
    assert_int_equal(open_in_child("trace+nosuch://me:hunter2@host/x?trace=fd:2", text),
                     HF_NO_STORE);
    check_lacks("password", text, "hunter2");
}

static void count_store(const hf_store_info *info, void *arg)
{
    unsigned *seen = arg;

    if (strcmp(info->name, "memory") == 0) {
        *seen |= 1;
        assert_null(info->missing);
        assert_string_equal(info->schemes, "memory:");
        check_contains("options", info->options, "op_timeout=5s  ");
        assert_true(info->capabilities & HF_CAN_SHARE);
    } else if (strcmp(info->name, "trace") == 0) {
        *seen |= 2;
        assert_string_equal(info->schemes, "trace+");
        check_contains("missing", info->missing, "is not there");
    } else {
        *seen |= 4;
    }
}

static void stores_are_listed_with_why_one_is_missing(void **state)
{
    unsigned seen = 0;

    (void)state;
    setenv("HOLDFAST_MODULES", dir, 1);
    assert_int_equal(hf_stores(count_store, &seen), 0);
    assert_int_equal(seen, 7);
    assert_int_equal(hf_stores(NULL, NULL), HF_INVALID);
}

/* The embedded URL as another user would get it: root has a place of its own. */
static int embedded_as_nobody(char url[400])
{
    int fds[2];

    assert_int_equal(pipe(fds), 0);
    pid_t pid = fork();
    if (pid == 0) {
        char *made = NULL, told[400] = "";
        hf_error err = {0};
        if (geteuid() == 0 && setuid(65534) != 0)
            _exit(1);
        int r = hf__embedded_url(&made, &err);
        snprintf(told, sizeof told, "%s", r == 0 ? made : err.text);
        free(made);
        bool written = write(fds[1], told, sizeof told) == sizeof told;
        _exit(!written ? 1 : -r);
    }
    int status;
    close(fds[1]);
    assert_int_equal(read(fds[0], url, 400), 400);
    close(fds[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return -WEXITSTATUS(status);
}

static void embedded_store_lives_in_the_state_directory(void **state)
{
    char url[400], expected[400];
    struct stat st;

    (void)state;
    assert_int_equal(chmod(dir, 0777), 0);
    setenv("XDG_STATE_HOME", in_dir("a b"), 1);
    assert_int_equal(embedded_as_nobody(url), 0);
    snprintf(expected, sizeof expected, "sqlite:%s/a%%20b/holdfast/locks.db", dir);
    assert_string_equal(url, expected);
    assert_int_equal(stat(in_dir("a b/holdfast"), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);

    setenv("XDG_STATE_HOME", "relative", 1); /* to be ignored, says its specification */
    setenv("HOME", in_dir("home"), 1);
    assert_int_equal(embedded_as_nobody(url), 0);
    snprintf(expected, sizeof expected, "sqlite:%s/home/.local/state/holdfast/locks.db", dir);
    assert_string_equal(url, expected);
}

static void embedded_store_needs_a_place_it_may_make(void **state)
{
    char url[400];

    (void)state;
    setenv("XDG_STATE_HOME", "/proc/nowhere", 1);
    assert_int_equal(embedded_as_nobody(url), HF_DENIED);
    check_contains("place", url, "/proc/nowhere cannot be made: ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(missing_module_says_what_to_install),
        cmocka_unit_test(file_that_is_no_module_is_refused),
        cmocka_unit_test(the_program_may_say_where_modules_are),
        cmocka_unit_test(the_first_directory_that_has_the_module_decides),
        cmocka_unit_test(the_environment_goes_before_the_program),
        cmocka_unit_test(module_of_another_version_is_refused),
        cmocka_unit_test(unknown_scheme_names_the_known_ones),
        cmocka_unit_test(password_is_in_no_message),
        cmocka_unit_test(stores_are_listed_with_why_one_is_missing),
        cmocka_unit_test(embedded_store_lives_in_the_state_directory),
        cmocka_unit_test(embedded_store_needs_a_place_it_may_make),
    };

    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
