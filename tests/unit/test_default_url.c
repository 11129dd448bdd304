/* The store that is used when no URL is given: the environment's, else the embedded one. */
#include <stdlib.h>

#include "base/handed_down.h"
#include "core/registry.h"
#include "lib/check.h"

static void the_environment_names_it(void **state)
{
    hf_client *client;
    hf_error err = {0};
    char *url = NULL;

    (void)state;
    setenv("HOLDFAST_URL", "memory://by-environment", 1);
    assert_int_equal(hf__default_url(&url, &err), HF_OK);
    check_text("url", url, "memory://by-environment");
    free(url);
    assert_int_equal(hf_open(NULL, NULL, &client, &err), HF_OK);
    assert_false(hf_capabilities(client) & HF_CAN_PROCESS);
    hf_close(client);
    unsetenv("HOLDFAST_URL");
}

static void a_url_that_is_given_wins(void **state)
{
    hf_client *client;

    (void)state;
    setenv("HOLDFAST_URL", "gopher://x", 1);
    assert_int_equal(hf_open("memory://given", NULL, &client, NULL), HF_OK);
    hf_close(client);
    assert_int_equal(hf_open(NULL, NULL, &client, NULL), HF_NO_STORE);
    unsetenv("HOLDFAST_URL");
}

static void nothing_is_guessed(void **state)
{
    hf_client *client;
    hf_error err = {0};

    (void)state;
    setenv("HOLDFAST_URL", "", 1);
    assert_int_equal(hf_open(NULL, NULL, &client, &err), HF_INVALID);
    check_contains("text", err.text, "HOLDFAST_URL is set but empty");
    setenv("HOLDFAST_URL", "redis://u:***@h/0", 1);
    assert_int_equal(hf_open(NULL, NULL, &client, &err), HF_INVALID);
    check_contains("text", err.text, "has its password removed");
    setenv(HF__HANDED_DOWN, "/proc/self/fd/0", 1);
    assert_int_equal(hf_open(NULL, NULL, &client, &err), HF_INVALID);
    unsetenv(HF__HANDED_DOWN);
    unsetenv("HOLDFAST_URL");
}

static void the_version_is_that_of_the_header(void **state)
{
    (void)state;
    check_text("version", hf_version(), HF_VERSION);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_environment_names_it),
        cmocka_unit_test(a_url_that_is_given_wins),
        cmocka_unit_test(nothing_is_guessed),
        cmocka_unit_test(the_version_is_that_of_the_header),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
