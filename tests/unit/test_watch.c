/* Watches, beyond what every store has to do (tests/conformance/cases_watch.c). */
#include <pthread.h>

#include "core/client.h"
#include "lib/check.h"

static atomic_long looks_at_clock;

static int64_t counted_now(void *ctx)
{
    (void)ctx;
    atomic_fetch_add(&looks_at_clock, 1);
    return hf__system_env.now_ns(hf__system_env.ctx);
}

static void *watch_shortly(void *arg)
{
    hf_view *view;
    int r = hf_watch_next(arg, 200, &view, NULL);

    return (void *)(intptr_t)r;
}

/* One of two looks, and gets no answer for half a second. */
static void who_waits_beside_a_look_that_hangs_sleeps(void **state)
{
    struct hf_env env = hf__system_env;
    hf_client *client;
    hf_watch *watch;
    pthread_t other;
    void *result;

    (void)state;
    env.now_ns = counted_now;
    assert_int_equal(
        hf__open("fault+memory://watch?hang=inspect:*&op_timeout=500ms", NULL, &env, &client, NULL),
        0);
    assert_int_equal(hf_watch_new(client, NULL, 3600000, &watch, NULL), 0);
    assert_int_equal(pthread_create(&other, NULL, watch_shortly, watch), 0);
    int mine = (int)(intptr_t)watch_shortly(watch);
    pthread_join(other, &result);
    int its = (int)(intptr_t)result;
    assert_true((mine == HF_TIMEOUT && its == HF_UNAVAILABLE) ||
                (mine == HF_UNAVAILABLE && its == HF_TIMEOUT));
    if (looks_at_clock > 1000)
        fail_msg("it did not sleep: it looked at the clock %ld times", looks_at_clock);
    hf_watch_free(watch);
    hf_close(client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(who_waits_beside_a_look_that_hangs_sleeps)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
