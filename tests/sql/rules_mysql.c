/* See rules.h. */
#include <inttypes.h>
#include <stdio.h>

#include "sql/rules.h"
#include "stores/mysql/mysql.h"

const char *const rules_account = "root";
const unsigned rules_by_routines = 22000;

void rules_write_clock(int64_t now_us, char *sql, size_t size)
{
    snprintf(sql, size,
             "UPDATE holdfast_test_clock SET at = '1970-01-01' + INTERVAL %" PRId64 " MICROSECOND",
             now_us);
}

bool rules_uses_routines(const struct hf__store *store)
{
    return ((const struct hf__my *)store)->sql.way == HF__SQL_ROUTINES;
}
