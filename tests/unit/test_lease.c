/* How long a grant may be believed (C3), as arithmetic. */
#include "base/lease.h"
#include "doorman/doorman.h"
#include "lib/check.h"
#include "lib/random.h"

#define MS INT64_C(1000000)

static void c3_the_deadline_leaves_drift_and_a_margin(void **state)
{
    static const struct {
        int64_t lease_ms, deadline_ns;
    } cases[] = {
        {100, 94 * MS},           /* 1 ms drift, 5 ms margin */
        {250, 242 * MS + MS / 2}, /* the margins meet: lease/50 is 5 ms */
        {1000, 970 * MS},         /* 10 ms, 20 ms */
        {30000, 29100 * MS},      {HF_TTL_MAX_MS, HF_TTL_MAX_MS * MS / 100 * 97},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        check_number("from 0", hf__lease_deadline_ns(0, cases[i].lease_ms), cases[i].deadline_ns);
        check_number("from 5 s", hf__lease_deadline_ns(5000 * MS, cases[i].lease_ms),
                     5000 * MS + cases[i].deadline_ns);
    }
}

static void c3_what_never_expires_has_no_deadline(void **state)
{
    (void)state;
    assert_true(hf__lease_deadline_ns(1, HF__NEVER) == INT64_MAX);
    assert_true(hf__lease_renew_ns(1, HF__NEVER) == INT64_MAX);
    assert_true(hf__lease_at_risk_ns(1, HF__NEVER) == INT64_MAX);
}

static void c3_a_clock_one_percent_fast_never_expires_it_first(void **state)
{
    struct random r = {10};

    (void)state;
    for (int i = 0; i < 50000; i++) {
        int64_t span = random_below(&r, 2) ? 2000 : HF_TTL_MAX_MS - HF_TTL_MIN_MS;
        int64_t lease_ms = HF_TTL_MIN_MS + (int64_t)random_below(&r, (uint64_t)span + 1);
        int64_t sent_ns = (int64_t)random_below(&r, UINT64_C(1) << 60);
        int64_t deadline = hf__lease_deadline_ns(sent_ns, lease_ms) - sent_ns;
        assert_true(deadline > 0);
        assert_true(deadline + deadline / 100 < lease_ms * MS);
        assert_true(hf__lease_renew_ns(sent_ns, lease_ms) <
                    hf__lease_at_risk_ns(sent_ns, lease_ms));
        assert_true(hf__lease_at_risk_ns(sent_ns, lease_ms) - sent_ns < deadline);
    }
}

static void c5_a_waiter_lives_between_one_and_ten_seconds(void **state)
{
    static const struct {
        int64_t ttl_ms, own_ms, provisional_ms;
    } cases[] = {
        {HF__NEVER, 5000, 5000}, {100, 1000, 100},
        {999, 1000, 999},        {1000, 1000, 1000},
        {5500, 5500, 5500},      {10000, 10000, 10000},
        {10001, 10000, 10000},   {HF_TTL_MAX_MS, 10000, 10000},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        check_number("own", hf__own_lease_ms(cases[i].ttl_ms), cases[i].own_ms);
        check_number("provisional", hf__provisional_lease_ms(cases[i].ttl_ms),
                     cases[i].provisional_ms);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(c3_the_deadline_leaves_drift_and_a_margin),
        cmocka_unit_test(c3_what_never_expires_has_no_deadline),
        cmocka_unit_test(c3_a_clock_one_percent_fast_never_expires_it_first),
        cmocka_unit_test(c5_a_waiter_lives_between_one_and_ten_seconds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
