/* Counters and the log: what they say of what has happened, on a clock and over a store that the test
 * owns. */
#include "unit/bid_stage.h"

#define ENTRIES 2000

/* What the log has told. */
struct told {
    atomic_size_t count;
    hf_log_kind kinds[ENTRIES];
    hf_cause causes[ENTRIES];
    char texts[ENTRIES][200];
    pthread_mutex_t gate; /* while it is closed the callback hangs */
};

struct counted {
    struct fake_clock clock;
    struct told told;
    char url[128];
    hf_client *client, *other;
};

static struct counted c;

static void note(const hf_log_entry *entry, void *arg)
{
    struct told *told = arg;
    size_t i = told->count;

    pthread_mutex_lock(&told->gate);
    pthread_mutex_unlock(&told->gate);
    if (i < ENTRIES) {
        told->kinds[i] = entry->kind;
        told->causes[i] = entry->cause;
        snprintf(told->texts[i], sizeof told->texts[i], "%s", entry->text);
    }
    told->count = i + 1;
}

/* The client that is looked at has the faults; the other one speaks to the same store without. */
static void open_both(const char *faults)
{
    static int number;
    hf_client_options opt = {.size = sizeof opt, .metrics = 1, .on_log = note, .log_arg = &c.told};

    c = (struct counted){0};
    pthread_mutex_init(&c.told.gate, NULL);
    fake_clock_init(&c.clock);
    snprintf(c.url, sizeof c.url, "fault+memory://metrics%d?op_timeout=1s%s%s", ++number,
             *faults != '\0' ? "&" : "", faults);
    assert_int_equal(hf__open(c.url, &opt, &c.clock.env, &c.client, NULL), 0);
    snprintf(c.url, sizeof c.url, "memory://metrics%d", number);
    assert_int_equal(hf__open(c.url, NULL, &c.clock.env, &c.other, NULL), 0);
}

static void close_both(void)
{
    hf_close(c.client);
    hf_close(c.other);
}

static hf_metrics read_now(void)
{
    hf_metrics m = {.size = sizeof m};

    assert_int_equal(hf_metrics_read(c.client, &m, NULL), 0);
    return m;
}

static hf_lock *take_with(hf_client *client, const char *name, const hf_options *opt)
{
    hf_lock *lock;

    assert_int_equal(hf_acquire(client, name, HF_NTS, opt, &lock, NULL), 0);
    return lock;
}

static int has_told(void *arg)
{
    return c.told.count >= *(size_t *)arg;
}

static void await_told(size_t count)
{
    if (!fake_clock_run(&c.clock, 60000, has_told, &count))
        fail_msg("the log told %zu things instead of %zu; the last: %s", c.told.count, count,
                 c.told.count > 0 ? c.told.texts[c.told.count - 1] : "-");
}

static void check_told(size_t i, hf_log_kind kind, const char *text)
{
    assert_int_equal(c.told.kinds[i], kind);
    if (strstr(c.told.texts[i], text) == NULL)
        fail_msg("'%s' does not say '%s'", c.told.texts[i], text);
}

static void a_grant_a_hold_and_a_refusal_are_counted(void **state)
{
    hf_options no_wait = HF_OPTIONS_INIT;
    hf_lock *lock;

    (void)state;
    no_wait.wait_ms = 0;
    open_both("");
    lock = take_with(c.client, "x", NULL);
    assert_int_equal(read_now().held, 1);
    fake_clock_advance(&c.clock, 2000);
    assert_int_equal(hf_lock_release(lock, NULL), 0);
    lock = take_with(c.other, "x", NULL);
    assert_int_equal(hf_acquire(c.client, "x", HF_NTS, &no_wait, &lock, NULL), HF_BUSY);

    hf_metrics m = read_now();
    assert_int_equal(m.held, 0);
    assert_int_equal(m.grants, 1);
    assert_int_equal(m.wait.count, 1);
    assert_int_equal(m.wait.buckets[0], 1);
    assert_int_equal(m.hold.count, 1);
    assert_true(m.hold.sum_us >= 2000000 && m.hold.sum_us < 3000000);
    assert_int_equal(m.hold.buckets[9], 1); /* above 1 s, up to 3 s */
    assert_int_equal(m.failed[-HF_BUSY], 1);
    assert_int_equal(m.calls[HF_CALL_ATTEMPT], 2);
    assert_int_equal(m.calls[HF_CALL_RELEASE], 1);
    assert_int_equal(m.call_time.count, 3);
    assert_int_equal(m.closest_call_ms, -1);
    assert_int_equal(m.store_away_ms, 0);
    assert_int_equal(c.told.count, 0);
    assert_int_equal(hf_lock_release(lock, NULL), 0);
    close_both();
}

static int waits(void *arg)
{
    (void)arg;
    return read_now().waiting == 1;
}

static void waits_hand_overs_and_time_outs_are_counted(void **state)
{
    struct asker a;
    hf_lock *lock;

    (void)state;
    open_both("");
    lock = take_with(c.other, "x", NULL);
    start(&a, c.client, 3000);
    assert_true(fake_clock_run(&c.clock, 60000, has_ended, &a));
    pthread_join(a.thread, NULL);
    assert_int_equal(a.r, HF_TIMEOUT);
    start(&a, c.client, HF_FOREVER);
    assert_true(fake_clock_stand(waits, NULL));
    assert_int_equal(hf_lock_release(lock, NULL), 0);
    assert_true(fake_clock_run(&c.clock, 60000, has_ended, &a));
    pthread_join(a.thread, NULL);
    assert_int_equal(a.r, 0);

    hf_metrics m = read_now();
    assert_int_equal(m.failed[-HF_TIMEOUT], 1);
    assert_int_equal(m.grants, 1);
    assert_int_equal(m.hand_over.count, 1);
    assert_true(m.queued >= 2);
    assert_int_equal(m.queued_places, m.queued);
    assert_int_equal(m.longest_queue, 1);
    assert_int_equal(m.waiting, 0);
    assert_true(m.wakes >= 1);
    assert_int_equal(hf_lock_release(a.lock, NULL), 0);
    close_both();
}

static int renewed_twice(void *arg)
{
    (void)arg;
    return read_now().renewals == 2;
}

static void a_renewal_tells_what_was_left(void **state)
{
    hf_lock *lock;

    (void)state;
    open_both("");
    lock = take_with(c.client, "x", NULL); /* 30 s, renewed after a third */
    assert_true(fake_clock_run(&c.clock, 60000, renewed_twice, NULL));
    hf_metrics m = read_now();
    assert_in_range(m.closest_call_ms, 15000, 21000);
    assert_int_equal(m.renewal_left.count, 2);
    assert_int_equal(m.renewals_failed, 0);
    assert_int_equal(m.at_risk, 0);
    assert_int_equal(hf_lock_release(lock, NULL), 0);
    close_both();
}

static void a_lock_that_is_lost_is_counted_and_told_with_the_reason(void **state)
{
    hf_lock *lock;

    (void)state;
    open_both("fail=renew:*");
    lock = take_with(c.client, "x", NULL);
    await_told(3);
    check_told(0, HF_LOG_STORE_AWAY, "the store does not answer");
    check_told(1, HF_LOG_AT_RISK, "'x': a renewal is overdue (");
    check_told(2, HF_LOG_LOST, "'x': the lease could not be renewed in time (");
    assert_int_equal(c.told.causes[2], HF_CAUSE_EXPIRED);

    hf_metrics m = read_now();
    assert_int_equal(m.held, 0);
    assert_int_equal(m.lost[HF_CAUSE_EXPIRED], 1);
    assert_int_equal(m.at_risk, 1);
    assert_true(m.renewals_failed >= 2);
    assert_int_equal(m.call_errors[-HF_UNAVAILABLE], m.calls[HF_CALL_RENEW]);
    assert_int_equal(m.hold.count, 1);
    assert_true(m.store_away_ms > 10000);
    assert_int_equal(hf_lock_release(lock, NULL), HF_STALE);
    m = read_now();
    assert_int_equal(m.held, 0);
    assert_int_equal(m.hold.count, 1); /* it was over with the loss */
    close_both();
}

static void a_lock_that_was_at_risk_is_told_safe_again(void **state)
{
    hf_lock *lock;

    (void)state;
    open_both("fail=renew:1-13");
    lock = take_with(c.client, "x", NULL);
    await_told(4);
    check_told(1, HF_LOG_AT_RISK, "'x': a renewal is overdue");
    check_told(2, HF_LOG_STORE_BACK, "the store answers again, after ");
    check_told(3, HF_LOG_SAFE, "'x': ");
    hf_metrics m = read_now();
    assert_int_equal(m.held, 1);
    assert_in_range(m.closest_call_ms, 0, 10000);
    assert_int_equal(m.store_away_ms, 0);
    assert_int_equal(hf_lock_release(lock, NULL), 0);
    close_both();
}

static int settled(void *arg)
{
    (void)arg;
    return read_now().undoing == 0;
}

static void an_unknown_outcome_is_counted_and_told_until_it_is_settled(void **state)
{
    hf_lock *lock;

    (void)state;
    open_both("lose=release:1-3");
    lock = take_with(c.client, "x", NULL);
    assert_int_equal(hf_lock_release(lock, NULL), HF_UNKNOWN);
    hf_metrics m = read_now();
    assert_int_equal(m.unknown, 1);
    assert_int_equal(m.undoing, 1);
    assert_true(fake_clock_run(&c.clock, 60000, settled, NULL));
    await_told(4);
    check_told(0, HF_LOG_STORE_AWAY, "");
    check_told(1, HF_LOG_UNKNOWN, "'x': the release was not answered");
    check_told(2, HF_LOG_STORE_BACK, "");
    check_told(3, HF_LOG_SETTLED, "'x': ");
    close_both();
}

/* The names must not end a line of somebody's log, or begin a sequence of a terminal. */
static void a_name_is_printable_in_the_text_and_whole_beside_it(void **state)
{
    hf_options opt = HF_OPTIONS_INIT;
    hf_lock *lock;

    (void)state;
    opt.max_hold_ms = 1000;
    open_both("");
    assert_int_equal(hf_acquire(c.client, "a\n\033[2J", HF_NTS, &opt, &lock, NULL), 0);
    await_told(1);
    check_told(0, HF_LOG_LOST, "max_hold was reached");
    for (const char *at = c.told.texts[0]; *at != '\0'; at++)
        assert_true(*at >= ' ' && *at != 127);
    hf_lock_release(lock, NULL);
    close_both();
}

/* Beyond a thousand; and that some were dropped is told in their place. */
static void a_log_that_is_too_slow_drops_and_says_so(void **state)
{
    enum { LOCKS = 1200 };
    static hf_lock *locks[LOCKS];
    hf_options opt = HF_OPTIONS_INIT;
    char name[16];

    (void)state;
    opt.max_hold_ms = 1000;
    opt.owner = 1;
    open_both("");
    pthread_mutex_lock(&c.told.gate);
    for (int i = 0; i < LOCKS; i++) {
        snprintf(name, sizeof name, "%d", i);
        locks[i] = take_with(c.client, name, &opt);
    }
    fake_clock_advance(&c.clock, 2000);
    for (int i = 0; i < LOCKS; i++)
        assert_int_equal(hf_lock_release(locks[i], NULL), HF_STALE);
    hf_metrics m = read_now();
    assert_int_equal(m.lost[HF_CAUSE_MAX_HOLD], LOCKS);
    assert_in_range(m.log_dropped, LOCKS - 1001, LOCKS - 998); /* one or two were taken before */
    pthread_mutex_unlock(&c.told.gate);
    size_t told = LOCKS - m.log_dropped + 1;
    await_told(told);
    check_told(told - 1, HF_LOG_DROPPED, "dropped");
    close_both();
    assert_int_equal(c.told.count, told);
}

/* It may ask, take and give back; a close of its own client does nothing. */
static void call_everything(const hf_log_entry *entry, void *arg)
{
    hf_lock *lock = NULL;
    atomic_int *ended = arg;
    hf_metrics m = {.size = sizeof m};

    assert_int_equal(entry->kind, HF_LOG_LOST);
    assert_int_equal(hf_metrics_read(c.client, &m, NULL), 0);
    assert_int_equal(hf_acquire(c.client, "y", HF_NTS, NULL, &lock, NULL), 0);
    assert_int_equal(hf_lock_release(lock, NULL), 0);
    hf_close(c.client);
    *ended = 1;
}

static int is_set(void *arg)
{
    return *(atomic_int *)arg;
}

static void the_log_may_call_the_library(void **state)
{
    atomic_int ended = 0;
    hf_client_options opt = {.size = sizeof opt, .metrics = 1, .on_log = call_everything};
    hf_options short_hold = HF_OPTIONS_INIT;
    hf_lock *lock;

    (void)state;
    c = (struct counted){0};
    fake_clock_init(&c.clock);
    opt.log_arg = &ended;
    short_hold.max_hold_ms = 500;
    assert_int_equal(hf__open("memory://metrics-log", &opt, &c.clock.env, &c.client, NULL), 0);
    lock = take_with(c.client, "x", &short_hold);
    assert_true(fake_clock_run(&c.clock, 60000, is_set, &ended));
    assert_int_equal(hf_lock_release(lock, NULL), HF_STALE);
    hf_close(c.client);
}

static void what_is_not_counted_is_refused_by_a_sentence(void **state)
{
    hf_client *client;
    hf_metrics m = {.size = sizeof m};
    hf_error err = {0};

    (void)state;
    assert_int_equal(hf_open("memory://metrics-off", NULL, &client, NULL), 0);
    assert_int_equal(hf_metrics_read(client, &m, &err), HF_INVALID);
    assert_non_null(strstr(err.text, "metrics = 1"));
    assert_int_equal(hf_metrics_read(client, NULL, NULL), HF_INVALID);
    m.size = 8;
    assert_int_equal(hf_metrics_read(client, &m, NULL), HF_INVALID);
    m.size = sizeof m;
    assert_int_equal(hf_metrics_read(NULL, &m, NULL), HF_INVALID);
    hf_close(client);
}

static void a_newer_header_finds_zeros(void **state)
{
    struct {
        hf_metrics known;
        uint64_t added[4];
    } m = {.known = {.size = sizeof m}, .added = {1, 2, 3, 4}};

    (void)state;
    open_both("");
    assert_int_equal(hf_metrics_read(c.client, &m.known, NULL), 0);
    assert_int_equal(m.known.size, sizeof m);
    for (size_t i = 0; i < COUNT(m.added); i++)
        assert_int_equal(m.added[i], 0);
    close_both();
}

static void buckets_have_rising_bounds_and_calls_have_names(void **state)
{
    (void)state;
    for (size_t i = 1; i < HF_BUCKETS; i++)
        assert_true(hf_bucket_us(i) > hf_bucket_us(i - 1));
    assert_true(hf_bucket_us(HF_BUCKETS - 1) == INT64_MAX);
    assert_true(hf_bucket_us(HF_BUCKETS) == INT64_MAX);
    assert_string_equal(hf_call_name(HF_CALL_ATTEMPT), "attempt");
    assert_string_equal(hf_call_name(HF_CALL_DIAGNOSE), "diagnose");
    assert_null(hf_call_name(HF_CALL_DIAGNOSE + 1));
    assert_null(hf_call_name(-1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_grant_a_hold_and_a_refusal_are_counted),
        cmocka_unit_test(waits_hand_overs_and_time_outs_are_counted),
        cmocka_unit_test(a_renewal_tells_what_was_left),
        cmocka_unit_test(a_lock_that_is_lost_is_counted_and_told_with_the_reason),
        cmocka_unit_test(a_lock_that_was_at_risk_is_told_safe_again),
        cmocka_unit_test(an_unknown_outcome_is_counted_and_told_until_it_is_settled),
        cmocka_unit_test(a_name_is_printable_in_the_text_and_whole_beside_it),
        cmocka_unit_test(a_log_that_is_too_slow_drops_and_says_so),
        cmocka_unit_test(the_log_may_call_the_library),
        cmocka_unit_test(what_is_not_counted_is_refused_by_a_sentence),
        cmocka_unit_test(a_newer_header_finds_zeros),
        cmocka_unit_test(buckets_have_rising_bounds_and_calls_have_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
