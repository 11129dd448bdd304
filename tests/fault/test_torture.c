/* Out of memory anywhere: a whole tour through the library, with every allocation failing in turn,
 * alone and with all that follow. Nothing crashes or leaks, every code is a clean one, and once
 * there is memory again the client leaves an empty store behind. */
#include <stdlib.h>

#include "lib/check.h"
#include "lib/torture.h"
#include "scenario.h"

static const int allowed[] = {HF_NO_MEMORY, HF_SYSTEM, HF_UNKNOWN, 0};

/* A store of its own for each run, so that the making of records is tortured too. */
static int tour_memory(void *arg)
{
    static unsigned runs;
    const bool *stop_early = arg;
    char url[40];
    struct scenario scenario = {.url = url,
                                .clean_url = url,
                                .allowed = allowed,
                                .stop = torture_stop,
                                .stop_early = *stop_early,
                                .may_leave = !*stop_early};

    snprintf(url, sizeof url, "memory://torture-%u", runs++);
    return scenario_run(&scenario);
}

static void torture_tour(enum torture_aim aim, bool stop_early)
{
    torture_at(aim);
    torture_run(tour_memory, &stop_early, 1);
}

static void c6_nothing_is_left_if_closing_finds_memory(void **state)
{
    (void)state;
    torture_tour(TORTURE_MEMORY, true);
}

static void closing_survives_every_failed_allocation(void **state)
{
    (void)state;
    torture_tour(TORTURE_MEMORY, false);
}

static void c6_nothing_is_left_if_closing_finds_threads_and_descriptors(void **state)
{
    (void)state;
    torture_tour(TORTURE_SYSTEM, true);
}

static void closing_survives_every_failed_call(void **state)
{
    (void)state;
    torture_tour(TORTURE_SYSTEM, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(c6_nothing_is_left_if_closing_finds_memory),
        cmocka_unit_test(closing_survives_every_failed_allocation),
        cmocka_unit_test(c6_nothing_is_left_if_closing_finds_threads_and_descriptors),
        cmocka_unit_test(closing_survives_every_failed_call),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
