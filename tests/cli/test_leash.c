/* When a command is signalled and killed, as arithmetic (C3, C7). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/env.h"
#include "base/lease.h"
#include "leash.h"

#define MS HF__NS_PER_MS

static struct leash holding(int64_t ttl_ms, int64_t kill_after_ms)
{
    return (struct leash){
        .policy = LEASH_KILL,
        .kill_after_ms = kill_after_ms,
        .margin_ms = leash_margin_ms(ttl_ms),
        .hold_until_ns = INT64_MAX,
    };
}

static struct leash_view has(int64_t remaining_ms)
{
    return (struct leash_view){.remaining_ms = remaining_ms, .cause = HF_CAUSE_NONE};
}

static struct leash_view lost(hf_cause cause)
{
    return (struct leash_view){.remaining_ms = 0, .cause = cause};
}

static const int64_t ttls[] = {100, 150, 500, 1000, 3000, 30000, 600000, HF_TTL_MAX_MS};

static void usual_kill_after_fits_into_every_ttl(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof ttls / sizeof ttls[0]; i++)
        assert_true(ttls[i] / 4 <= leash_longest_ms(ttls[i]));
}

/* With the longest kill-after that is allowed, a lease that is renewed when it should be, and
 * answered within a sixth of the ttl, never touches the command. */
static void c7_a_renewal_in_time_signals_nobody(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof ttls / sizeof ttls[0]; i++) {
        struct leash leash = holding(ttls[i], leash_longest_ms(ttls[i]));
        int64_t believed_ms = hf__lease_deadline_ns(0, ttls[i]) / MS;
        struct leash_view view = has(believed_ms - ttls[i] / 3 - ttls[i] / 6 + 2);
        assert_int_equal(leash_step(&leash, 1000 * MS, &view), LEASH_GO_ON);
    }
}

static void shortest_ttl_takes_the_kill_after(void **state)
{
    (void)state;
    for (int64_t ms = 0; ms < 4000000; ms = ms * 3 / 2 + 7) {
        int64_t ttl_ms = leash_shortest_ttl_ms(ms);
        assert_true(leash_longest_ms(ttl_ms) >= ms);
        assert_true(ttl_ms <= 1000 || leash_longest_ms(ttl_ms - 1000) < ms);
    }
}

/* Steps in time with no renewal at all: the signal, then the kill, both before the deadline. */
static void c7_signal_and_kill_come_before_the_deadline(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof ttls / sizeof ttls[0]; i++) {
        struct leash leash = holding(ttls[i], ttls[i] / 4);
        int64_t deadline = hf__lease_deadline_ns(0, ttls[i]), now = 0, signalled = -1;
        enum leash_order order = LEASH_GO_ON;
        while (order != LEASH_SEND_KILL && now < deadline) {
            struct leash_view view = has((deadline - now) / MS);
            order = leash_step(&leash, now, &view);
            if (order == LEASH_SEND_SIGNAL)
                signalled = now;
            if (order != LEASH_SEND_KILL)
                now = leash_next_ns(&leash, now, &view);
        }
        assert_int_equal(order, LEASH_SEND_KILL);
        assert_true(signalled >= 0);
        assert_true(now <= deadline - leash.margin_ms * MS);
        assert_true(now - signalled >= (ttls[i] / 4 - 2) * MS);
        assert_int_equal(leash.cause, HF_CAUSE_EXPIRED);
    }
}

static void c7_a_broken_lock_counts_kill_after_from_the_news(void **state)
{
    (void)state;
    struct leash leash = holding(30000, 5000);
    struct leash_view view = lost(HF_CAUSE_GONE);

    assert_int_equal(leash_step(&leash, 7 * MS, &view), LEASH_SEND_SIGNAL);
    assert_int_equal(leash_next_ns(&leash, 7 * MS, &view), 5007 * MS);
    assert_int_equal(leash_step(&leash, 5006 * MS, &view), LEASH_GO_ON);
    assert_int_equal(leash_step(&leash, 5007 * MS, &view), LEASH_SEND_KILL);
    assert_int_equal(leash_step(&leash, 5008 * MS, &view), LEASH_GO_ON);
    assert_int_equal(leash.cause, HF_CAUSE_GONE);
}

static void c13_a_lease_that_ran_out_unseen_kills_at_once(void **state)
{
    (void)state;
    struct leash leash = holding(30000, 5000);
    struct leash_view view = lost(HF_CAUSE_EXPIRED);

    assert_int_equal(leash_step(&leash, 0, &view), LEASH_SEND_KILL);

    leash = holding(30000, 5000);
    struct leash_view gone = lost(HF_CAUSE_GONE);
    assert_int_equal(leash_step(&leash, 0, &gone), LEASH_SEND_SIGNAL);
    assert_int_equal(leash_step(&leash, 1, &view), LEASH_SEND_KILL);
}

static void a_renewal_after_the_signal_does_not_call_it_back(void **state)
{
    (void)state;
    struct leash leash = holding(30000, 5000);
    struct leash_view low = has(5000), renewed = has(29000);

    assert_int_equal(leash_step(&leash, 0, &low), LEASH_SEND_SIGNAL);
    assert_int_equal(leash_step(&leash, 4999 * MS, &renewed), LEASH_GO_ON);
    assert_int_equal(leash_step(&leash, 5000 * MS, &renewed), LEASH_SEND_KILL);
}

static void max_hold_signals_while_the_lock_is_ours(void **state)
{
    (void)state;
    struct leash leash = holding(30000, 5000);
    struct leash_view view = has(29000), low = has(500);

    leash.hold_until_ns = 1000 * MS;
    assert_int_equal(leash_next_ns(&leash, 0, &view), 1000 * MS);
    assert_int_equal(leash_step(&leash, 999 * MS, &view), LEASH_GO_ON);
    assert_int_equal(leash_step(&leash, 1000 * MS, &view), LEASH_SEND_SIGNAL);
    assert_int_equal(leash.cause, HF_CAUSE_MAX_HOLD);
    /* The lease may run short before kill-after is over. */
    assert_int_equal(leash_step(&leash, 1001 * MS, &low), LEASH_SEND_KILL);
}

static void a_lock_that_never_expires_is_left_alone(void **state)
{
    (void)state;
    struct leash leash = holding(30000, 5000);
    struct leash_view view = has(INT64_MAX);

    assert_int_equal(leash_step(&leash, 0, &view), LEASH_GO_ON);
    assert_int_equal(leash_next_ns(&leash, 0, &view), INT64_MAX);
    assert_int_equal(leash_guard_ns(&leash, 0, &view), INT64_MAX);
}

static void on_lost_term_never_kills(void **state)
{
    (void)state;
    struct leash leash = holding(30000, 5000);
    struct leash_view low = has(100), over = lost(HF_CAUSE_EXPIRED);

    leash.policy = LEASH_TERM;
    assert_int_equal(leash_step(&leash, 0, &low), LEASH_SEND_SIGNAL);
    assert_int_equal(leash_step(&leash, 60000 * MS, &over), LEASH_GO_ON);
    assert_int_equal(leash_next_ns(&leash, 60000 * MS, &over), INT64_MAX);
    assert_int_equal(leash_guard_ns(&leash, 60000 * MS, &over), INT64_MAX);
}

static void on_lost_ignore_tells_once(void **state)
{
    (void)state;
    struct leash leash = holding(30000, 5000);
    struct leash_view low = has(1), over = lost(HF_CAUSE_EXPIRED);

    leash.policy = LEASH_IGNORE;
    assert_int_equal(leash_step(&leash, 0, &low), LEASH_GO_ON);
    assert_int_equal(leash_step(&leash, 1, &over), LEASH_TELL);
    assert_int_equal(leash_step(&leash, 2, &over), LEASH_GO_ON);
}

static void a_guard_kills_after_us_and_before_the_deadline(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof ttls / sizeof ttls[0]; i++) {
        struct leash leash = holding(ttls[i], ttls[i] / 4);
        int64_t remaining_ms = hf__lease_deadline_ns(0, ttls[i]) / MS;
        struct leash_view view = has(remaining_ms);
        int64_t guard = leash_guard_ns(&leash, 0, &view);
        assert_true(guard > (remaining_ms - leash.margin_ms) * MS);
        assert_true(guard < remaining_ms * MS);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(usual_kill_after_fits_into_every_ttl),
        cmocka_unit_test(c7_a_renewal_in_time_signals_nobody),
        cmocka_unit_test(shortest_ttl_takes_the_kill_after),
        cmocka_unit_test(c7_signal_and_kill_come_before_the_deadline),
        cmocka_unit_test(c7_a_broken_lock_counts_kill_after_from_the_news),
        cmocka_unit_test(c13_a_lease_that_ran_out_unseen_kills_at_once),
        cmocka_unit_test(a_renewal_after_the_signal_does_not_call_it_back),
        cmocka_unit_test(max_hold_signals_while_the_lock_is_ours),
        cmocka_unit_test(a_lock_that_never_expires_is_left_alone),
        cmocka_unit_test(on_lost_term_never_kills),
        cmocka_unit_test(on_lost_ignore_tells_once),
        cmocka_unit_test(a_guard_kills_after_us_and_before_the_deadline),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
