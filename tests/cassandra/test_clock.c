/* Two nodes of three whose clocks are a second apart (clock_shim.c): what clock_skew is for, and
 * what happens without it. */
#include <stdlib.h>

#include "cassandra/live.h"

#define LEASE_MS 2000
#define APART_MS 1000

/* One holds by the node whose clock is right and does not renew; another tries by the node that is
 * ahead until it has the lock. By how much it came too early, as the first one believes; negative:
 * in time. */
static int64_t too_early_ms(const char *name, const char *skew)
{
    hf_client *holder = open_at(node_address(1), skew), *taker = open_at(node_address(2), skew);
    hf_options opt = options(LEASE_MS, 0);
    hf_lock *lock, *next;
    int code;

    opt.by_hand = 1;
    check_code(take(holder, name, opt, &lock), HF_OK);
    int64_t until_ms = now_ms() + AWAIT_MS;
    while ((code = take(taker, name, options(LEASE_MS, 0), &next)) == HF_BUSY &&
           now_ms() < until_ms)
        sleep_ms(10);
    int64_t left_ms = hf_lock_remaining_ms(lock);
    check_code(code, HF_OK);
    bool lost = hf_lock_state(lock) == HF_STATE_LOST;
    check_code(release(next), HF_OK);
    release(lock);
    hf_close(holder);
    hf_close(taker);
    return lost ? -1 : left_ms;
}

static void c3_clock_that_is_ahead_gives_nothing_away_within_clock_skew(void **state)
{
    (void)state;
    node_set_clock(2, APART_MS);
    int64_t early_ms = too_early_ms("skew", "clock_skew=1500ms");
    node_set_clock(2, 0);
    assert_true(early_ms < 0);
}

/* The same without the allowance: the lease is given away while its holder counts on it. This is
 * what `doctor` warns of, and what tokens are for. */
static void c3_without_it_the_lease_ends_early(void **state)
{
    (void)state;
    node_set_clock(2, APART_MS);
    int64_t early_ms = too_early_ms("no skew", "clock_skew=0");
    node_set_clock(2, 0);
    assert_true(early_ms > 0);
}

static void c4_tokens_rise_although_clocks_differ(void **state)
{
    hf_client *ahead = open_at(node_address(2), ""), *behind = open_at(node_address(1), "");
    uint64_t last = 0;

    (void)state;
    node_set_clock(2, APART_MS);
    for (int i = 0; i < 10; i++) {
        uint64_t generation;
        hf_lock *lock;
        check_code(take(i % 2 == 0 ? ahead : behind, "token", options(LEASE_MS, 0), &lock), HF_OK);
        assert_int_equal(hf_lock_generation(lock, &generation), HF_OK);
        assert_true(generation > last);
        last = generation;
        check_code(release(lock), HF_OK);
    }
    node_set_clock(2, 0);
    hf_close(ahead);
    hf_close(behind);
}

static void note(int level, const char *clause, const char *text, void *arg)
{
    if (level == 3 && clause != NULL && strcmp(clause, "C3") == 0 &&
        strstr(text, "ms apart") != NULL)
        *(bool *)arg = true;
}

static void doctor_sees_the_difference(void **state)
{
    hf_client *client = open_at(NULL, "");
    bool told = false;

    (void)state;
    assert_int_equal(hf_diagnose(client, note, &told, NULL), HF_OK);
    assert_false(told);
    node_set_clock(2, APART_MS);
    assert_int_equal(hf_diagnose(client, note, &told, NULL), HF_OK);
    node_set_clock(2, 0);
    assert_true(told);
    hf_close(client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(c3_clock_that_is_ahead_gives_nothing_away_within_clock_skew),
        cmocka_unit_test(c3_without_it_the_lease_ends_early),
        cmocka_unit_test(c4_tokens_rise_although_clocks_differ),
        cmocka_unit_test(doctor_sees_the_difference),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
