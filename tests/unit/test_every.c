/* What `run --every` asks for (C14): jobs of several machines, whose clocks differ, on a clock that the test
 * owns. */
#include "core/client.h"
#include "lib/check.h"
#include "lib/fake_clock.h"

#define PERIOD_MS 100000
#define PERIODS   60

struct cron {
    hf_client *client;
    int64_t period_ms; /* as its own clock has it */
    int64_t next_ms;   /* of the true time */
};

struct fleet {
    struct fake_clock clock;
    struct cron crons[2];
    int64_t ran_ms[4 * PERIODS];
    size_t runs;
};

/* Takes the lock or leaves, and keeps it closed for nine tenths of the period. */
static void fire(struct fleet *f, struct cron *cron)
{
    hf_options opt = HF_OPTIONS_INIT;
    hf_lock *lock;

    opt.wait_ms = 0;
    int r = hf_acquire(cron->client, "job", HF_NTS, &opt, &lock, NULL);
    if (r == HF_BUSY)
        return;
    check_number("acquire", r, HF_OK);
    f->ran_ms[f->runs++] = cron->next_ms;
    check_number("release", hf_lock_release_after(lock, PERIOD_MS / 10 * 9, NULL), HF_OK);
}

static void run(struct fleet *f, int64_t second_period_ms, int64_t offset_ms)
{
    int64_t now_ms = 0;

    *f = (struct fleet){0};
    fake_clock_init(&f->clock);
    f->crons[0] = (struct cron){.period_ms = PERIOD_MS, .next_ms = PERIOD_MS};
    f->crons[1] =
        (struct cron){.period_ms = second_period_ms, .next_ms = second_period_ms + offset_ms};
    for (int i = 0; i < 2; i++)
        check_number("open",
                     hf__open("memory://every", NULL, &f->clock.env, &f->crons[i].client, NULL),
                     HF_OK);
    while (now_ms < PERIODS * (int64_t)PERIOD_MS) {
        struct cron *first =
            f->crons[0].next_ms <= f->crons[1].next_ms ? &f->crons[0] : &f->crons[1];
        fake_clock_advance(&f->clock, first->next_ms - now_ms);
        now_ms = first->next_ms;
        fire(f, first);
        first->next_ms += first->period_ms;
    }
    for (int i = 0; i < 2; i++)
        hf_close(f->crons[i].client);
}

static void check_gaps(const struct fleet *f, int64_t least_ms, int64_t most_ms)
{
    for (size_t i = 1; i < f->runs; i++) {
        int64_t gap_ms = f->ran_ms[i] - f->ran_ms[i - 1];
        if (gap_ms < least_ms || gap_ms > most_ms)
            fail_msg("run %zu came %lld ms after the one before", i, (long long)gap_ms);
    }
}

/* Their clocks show different times: each period has one run. */
static void c14_crons_that_are_5_percent_apart_run_once_a_period(void **state)
{
    struct fleet f;

    (void)state;
    run(&f, PERIOD_MS, PERIOD_MS / 20);
    check_number("runs", (int64_t)f.runs, PERIODS);
    check_gaps(&f, PERIOD_MS, PERIOD_MS);
}

/* One of the clocks runs 5 % slow: no run comes early by more than a tenth, nor is a slot lost. */
static void c14_a_clock_that_is_5_percent_slow_doubles_and_loses_nothing(void **state)
{
    struct fleet f;

    (void)state;
    run(&f, PERIOD_MS + PERIOD_MS / 20, 0);
    check_gaps(&f, PERIOD_MS / 10 * 9, PERIOD_MS + PERIOD_MS / 20);
    if (f.runs < PERIODS - 3 || f.runs > PERIODS + 3)
        fail_msg("%zu runs in %d periods", f.runs, PERIODS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(c14_crons_that_are_5_percent_apart_run_once_a_period),
        cmocka_unit_test(c14_a_clock_that_is_5_percent_slow_doubles_and_loses_nothing),
    };

    return cmocka_run_group_tests_name("every", tests, NULL, NULL);
}
