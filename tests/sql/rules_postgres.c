/* See rules.h. The functions are compared by tests/postgres/test_rules.c, with all their calls; here it is
 * about how the store calls them. */
#include <inttypes.h>
#include <stdio.h>

#include "sql/rules.h"

const char *const rules_account = "postgres";
const unsigned rules_by_routines = 3000;

void rules_write_clock(int64_t now_us, char *sql, size_t size)
{
    snprintf(sql, size,
             "UPDATE holdfast_test_clock SET at = timestamptz 'epoch' + %" PRId64
             "::float8 * interval '1 microsecond'",
             now_us);
}

void rules_check_short_way(unsigned operations)
{
    (void)operations; /* there is none */
}
