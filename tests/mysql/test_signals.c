/* Signals are the program's: the client library would take SIGPIPE from a program that handles it. */
#include <signal.h>

#include "holdfast.h"
#include "lib/check.h"

static void handle(int number)
{
    (void)number;
}

static void a_handler_of_the_program_stays(void **state)
{
    struct sigaction action = {.sa_handler = handle}, now;
    hf_client *client;
    hf_error err;

    (void)state;
    assert_int_equal(sigaction(SIGPIPE, &action, NULL), 0);
    if (hf_open("mysql://app:word@127.0.0.1:1/locks", NULL, &client, &err) != HF_OK)
        fail_msg("%s", err.text);
    hf_close(client);
    assert_int_equal(sigaction(SIGPIPE, NULL, &now), 0);
    assert_ptr_equal(now.sa_handler, handle);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_handler_of_the_program_stays)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
