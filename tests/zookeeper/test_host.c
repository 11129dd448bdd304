/* What the program that uses the store notices of the client library in it (C13): nothing of its
 * random numbers, and no long wait at its end. This test is not linked to that library, as most
 * programs are not. */
#include <signal.h>
#include <stdlib.h>

#include "lib/live.h"

#define DRAWS 20
#define FIRST 4 /* drawn before */

static const char *server_url(void)
{
    static char url[200];
    const char *hosts = getenv("HOLDFAST_TEST_ZOOKEEPER");

    assert_non_null(hosts);
    snprintf(url, sizeof url, "zookeeper://%s/host?acl=world&op_timeout=10s", hosts);
    return url;
}

static pid_t server_pid(void)
{
    const char *pid = getenv("HOLDFAST_TEST_ZOOKEEPER_PID");

    assert_non_null(pid);
    return (pid_t)strtol(pid, NULL, 10);
}

/* The sequences of a program that has seeded them, with whatever `between` does in their midst. */
static void draw(void (*between)(void), long ints[DRAWS], double reals[DRAWS])
{
    srandom(42);
    srand48(42);
    for (int i = 0; i < DRAWS; i++) {
        if (i == FIRST)
            between();
        ints[i] = random();
        reals[i] = drand48();
    }
}

static void do_nothing(void)
{
}

static void take_and_close(void)
{
    hf_client *client = open_url(server_url());

    assert_int_equal(hf_lock_release(take_free(client, "random", 5000), NULL), HF_OK);
    hf_close(client);
}

static int is_at_risk(void *lock)
{
    return hf_lock_state(lock) != HF_STATE_HELD;
}

static int is_held(void *lock)
{
    return hf_lock_state(lock) == HF_STATE_HELD;
}

/* The library looks for another server, on a thread of its own. */
static void lose_the_server(void)
{
    hf_client *client = open_url(server_url());
    hf_lock *lock = take_free(client, "reconnect", 15000);

    kill(server_pid(), SIGSTOP);
    await("a renewal to fail", is_at_risk, lock);
    kill(server_pid(), SIGCONT);
    await("the next to be answered", is_held, lock);
    assert_int_equal(hf_lock_release(lock, NULL), HF_OK);
    hf_close(client);
}

/* The library draws from drand48() when a session begins, which cannot be prevented: but the
 * sequence is the program's. */
static void assert_undisturbed(void (*between)(void))
{
    long ints[DRAWS], expected_ints[DRAWS];
    double reals[DRAWS], expected_reals[DRAWS];
    size_t skipped = 0;

    draw(do_nothing, expected_ints, expected_reals);
    draw(between, ints, reals);
    assert_memory_equal(ints, expected_ints, sizeof ints);
    while (skipped < DRAWS - FIRST && reals[FIRST] != expected_reals[FIRST + skipped])
        skipped++;
    assert_in_range(skipped, 0, 3);
    assert_memory_equal(reals, expected_reals, FIRST * sizeof *reals);
    assert_memory_equal(&reals[FIRST], &expected_reals[FIRST + skipped],
                        (DRAWS - FIRST - skipped) * sizeof *reals);
}

static void c13_random_numbers_of_the_program_go_on(void **state)
{
    (void)state;
    assert_undisturbed(take_and_close);
}

static void c13_random_numbers_go_on_while_the_server_is_away(void **state)
{
    (void)state;
    assert_undisturbed(lose_the_server);
}

/* Each ttl is a session. The library waits for each in turn for the answer to its farewell. */
static void c13_close_ends_although_the_server_is_frozen(void **state)
{
    hf_client *client = open_url(server_url());

    (void)state;
    for (int64_t ttl_ms = 10000; ttl_ms < 18000; ttl_ms += 1000)
        assert_int_equal(hf_lock_release(take_free(client, "close", ttl_ms), NULL), HF_OK);
    kill(server_pid(), SIGSTOP);
    int64_t began_ms = now_ms();
    hf_close(client);
    int64_t took_ms = now_ms() - began_ms;
    kill(server_pid(), SIGCONT);
    assert_in_range(took_ms, 0, 5000); /* 12 s if they are waited for one by one */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(c13_random_numbers_of_the_program_go_on),
        cmocka_unit_test(c13_random_numbers_go_on_while_the_server_is_away),
        cmocka_unit_test(c13_close_ends_although_the_server_is_frozen),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
