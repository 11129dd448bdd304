/* The same tour over sqlite:, where SQLite's own allocations fail in turn as well: its memory is
 * made to come from malloc of this program, which is counted. */
#include <malloc.h>
#include <sqlite3.h>
#include <stdlib.h>

#include "lib/check.h"
#include "lib/scratch.h"
#include "lib/torture.h"
#include "scenario.h"

static const int allowed[] = {HF_NO_MEMORY, HF_UNKNOWN, 0};

static void *take_memory(int size)
{
    return malloc((size_t)size);
}

static void *resize_memory(void *block, int size)
{
    return realloc(block, (size_t)size);
}

static int size_of(void *block)
{
    return block != NULL ? (int)malloc_usable_size(block) : 0;
}

static int round_up(int size)
{
    return (size + 7) & ~7;
}

static int start(void *unused)
{
    (void)unused;
    return SQLITE_OK;
}

static void end(void *unused)
{
    (void)unused;
}

static int set_up(void **state)
{
    static const sqlite3_mem_methods methods = {
        .xMalloc = take_memory,
        .xFree = free,
        .xRealloc = resize_memory,
        .xSize = size_of,
        .xRoundup = round_up,
        .xInit = start,
        .xShutdown = end,
    };

    if (sqlite3_config(SQLITE_CONFIG_MALLOC, &methods) != SQLITE_OK)
        return -1;
    return scratch_make(state);
}

/* A file of its own for each run, so that its making is tortured too. */
static int tour_sqlite(void *arg)
{
    static unsigned runs;
    char url[80];
    struct scenario scenario = {
        .url = url, .clean_url = url, .allowed = allowed, .stop = torture_stop, .stop_early = true};

    snprintf(url, sizeof url, "sqlite:%s/%u.db", (const char *)arg, runs++);
    return scenario_run(&scenario);
}

static void c6_sqlite_is_left_empty_if_closing_finds_memory(void **state)
{
    torture_run(tour_sqlite, *state, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(c6_sqlite_is_left_empty_if_closing_finds_memory),
    };

    return cmocka_run_group_tests(tests, set_up, scratch_remove);
}
