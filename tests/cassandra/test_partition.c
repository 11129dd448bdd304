/* Three nodes in a network namespace of their own, between which the net is cut. The client has the
 * address of node 1, and shares its fate. Lost packets are silent: nobody is told. */
#include <stdlib.h>

#include "cassandra/live.h"

#define LEASE_MS 4000

static void cut(const char *verb, int a, int b)
{
    char command[200];

    for (int i = 0; i < 2; i++) {
        snprintf(command, sizeof command,
                 "ip rule %s pref 100 from 127.0.0.%d to 127.0.0.%d blackhole", verb,
                 i == 0 ? a : b, i == 0 ? b : a);
        assert_int_equal(system(command), 0);
    }
}

static void await_take(hf_client *client, const char *name, hf_lock **ret_lock)
{
    int64_t began_ms = now_ms();

    while (take(client, name, options(LEASE_MS, 0), ret_lock) != HF_OK) {
        if (now_ms() - began_ms > AWAIT_MS)
            fail_msg("'%s': %s", name, last_error());
        sleep_ms(100);
    }
}

/* The node that is asked first is the one that is cut off. */
static void one_node_cut_off_is_borne(void **state)
{
    char hosts[100];
    hf_lock *lock, *other;

    (void)state;
    snprintf(hosts, sizeof hosts, "%s,%s,%s", node_address(3), node_address(1), node_address(2));
    hf_client *client = open_at(hosts, "node_timeout=400ms");
    check_code(take(client, "cut", options(LEASE_MS, 0), &lock), HF_OK);
    cut("add", 3, 1);
    cut("add", 3, 2);
    for (int64_t until_ms = now_ms() + 2 * LEASE_MS; now_ms() < until_ms; sleep_ms(50)) {
        if (hf_lock_state(lock) == HF_STATE_LOST)
            fail_msg("the lock was lost");
    }
    check_code(take(client, "cut", options(LEASE_MS, 0), &other), HF_BUSY);
    check_code(release(lock), HF_OK);
    await_take(client, "cut", &lock);
    check_code(release(lock), HF_OK);
    cut("del", 3, 1);
    cut("del", 3, 2);
    hf_close(client);
}

/* Node 1 still answers, but has no majority behind it. */
static void a_client_on_the_side_of_the_minority_loses_its_lock_by_its_own_clock(void **state)
{
    hf_client *client = open_at(NULL, "op_timeout=2s&node_timeout=400ms");
    hf_lock *lock, *none;

    (void)state;
    await_take(client, "minority", &lock);
    cut("add", 1, 2);
    cut("add", 1, 3);
    await_lost(lock); /* while the net is cut: nobody told it */
    check_number("cause", hf_lock_cause(lock), HF_CAUSE_EXPIRED);
    int code = take(client, "refused", options(LEASE_MS, 0), &none);
    cut("del", 1, 2);
    cut("del", 1, 3);
    if (code != HF_UNAVAILABLE && code != HF_UNKNOWN)
        fail_msg("got %d: %s", code, last_error());
    check_code(release(lock), HF_STALE);
    await_free(client, "refused");
    await_take(client, "minority", &lock);
    check_code(release(lock), HF_OK);
    hf_close(client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_node_cut_off_is_borne),
        cmocka_unit_test(a_client_on_the_side_of_the_minority_loses_its_lock_by_its_own_clock),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
