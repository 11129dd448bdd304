/* What the command of `run` gets as HOLDFAST_URL, and what is taken out of its environment. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "environment.h"

static hf_client *client;
static hf_lock *lock;

static int take_lock(void **state)
{
    (void)state;
    if (hf_open("memory://environment", NULL, &client, NULL) != HF_OK)
        return -1;
    return hf_acquire(client, "x", HF_NTS, NULL, &lock, NULL);
}

static int give_back(void **state)
{
    (void)state;
    hf_lock_release(lock, NULL);
    hf_close(client);
    return 0;
}

/* The value of a variable in the command's environment; NULL if it has none. The caller frees
 * it. */
static char *value_for(const char *url, const char *name)
{
    struct environment_lock held = {
        .url = url, .mode = HF_EXCLUSIVE, .lock = lock, .secrets_fd = -1};
    char **environment = environment_new(&held), *value = NULL;
    size_t len = strlen(name);

    assert_non_null(environment);
    for (char **entry = environment; *entry; entry++)
        if (strncmp(*entry, name, len) == 0 && (*entry)[len] == '=')
            value = strdup(*entry + len + 1);
    environment_free(environment);
    return value;
}

static void check_url(const char *url, const char *wanted)
{
    char *value = value_for(url, "HOLDFAST_URL");

    assert_non_null(value);
    assert_string_equal(value, wanted);
    free(value);
}

static void a_url_without_a_secret_is_handed_on(void **state)
{
    (void)state;
    setenv("HOLDFAST_URL", "memory://another", 1);
    check_url("sqlite:a b.db", "sqlite:a b.db");
    check_url("redis://u@h/0?password_file=/run/p", "redis://u@h/0?password_file=/run/p");
    check_url("redis://u@h/0?password_env=HUSH", "redis://u@h/0?password_env=HUSH");
    unsetenv("HOLDFAST_URL");
}

static void a_secret_is_hidden(void **state)
{
    (void)state;
    check_url("redis://u:hush@h/0", "redis://u:***@h/0");
    check_url("redis://h/0?password=hush", "redis://h/0?password=***");
    /* Hidden as a whole it would be no longer seen as hidden. */
    check_url("sqlite:/a:b?password=hush@h", "***");
}

static void the_variable_of_a_password_is_removed(void **state)
{
    (void)state;
    setenv("HUSH", "hush", 1);
    setenv("HUSH2", "keep", 1);
    assert_null(value_for("redis://u@h/0?password_env=HUSH", "HUSH"));
    assert_null(value_for("trace+redis://h/0?sentinel_password_env=HUSH", "HUSH"));
    char *kept = value_for("redis://u@h/0?password_env=HUSH", "HUSH2");
    assert_non_null(kept);
    free(kept);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_url_without_a_secret_is_handed_on),
        cmocka_unit_test(a_secret_is_hidden),
        cmocka_unit_test(the_variable_of_a_password_is_removed),
    };

    return cmocka_run_group_tests(tests, take_lock, give_back);
}
