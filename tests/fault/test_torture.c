/* Out of memory anywhere: a whole tour through the library, with every allocation failing in turn,
 * alone and with all that follow. Nothing crashes or leaks, every code is a clean one, and once
 * there is memory again the client leaves an empty store behind. */
#include <stdlib.h>

#include "lib/check.h"
#include "lib/torture.h"
#include "scenario.h"

static const int allowed[] = {HF_NO_MEMORY, HF_UNKNOWN, 0};

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

static void c6_memory_is_left_empty_if_closing_finds_memory(void **state)
{
    bool stop_early = true;

    (void)state;
    torture_run(tour_memory, &stop_early, 1);
}

static void closing_survives_every_failed_allocation(void **state)
{
    bool stop_early = false;

    (void)state;
    torture_run(tour_memory, &stop_early, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(c6_memory_is_left_empty_if_closing_finds_memory),
        cmocka_unit_test(closing_survives_every_failed_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
