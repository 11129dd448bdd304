/* See rules.h. */
#include <inttypes.h>
#include <stdio.h>

#include "lib/check.h"
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

/* How operations went that may go the short way; --wrap puts this in between. Each is made to try
 * it, crowded or not. */
static unsigned taken, freed, missed;

int __real_hf__my_quick(struct hf__my *s, struct hf__my_conn *c, const struct hf__sql_operation *op,
                        int64_t deadline_ns, struct hf__answer *ret_answer, bool *ret_done,
                        hf_error *err);
int __wrap_hf__my_quick(struct hf__my *s, struct hf__my_conn *c, const struct hf__sql_operation *op,
                        int64_t deadline_ns, struct hf__answer *ret_answer, bool *ret_done,
                        hf_error *err);

int __wrap_hf__my_quick(struct hf__my *s, struct hf__my_conn *c, const struct hf__sql_operation *op,
                        int64_t deadline_ns, struct hf__answer *ret_answer, bool *ret_done,
                        hf_error *err)
{
    for (size_t i = 0; i < HF__MY_HINTS; i++)
        atomic_store(&s->crowded[i], false);
    int r = __real_hf__my_quick(s, c, op, deadline_ns, ret_answer, ret_done, err);
    if (!*ret_done)
        missed++;
    else if (op->kind == HF__OPERATION_ATTEMPT)
        taken++;
    else
        freed++;
    return r;
}

void rules_check_short_way(unsigned operations)
{
    print_message("the short way: %u taken, %u freed, %u not matched\n", taken, freed, missed);
    assert_true(taken > operations / 20 && freed > operations / 40 && missed > operations / 20);
    taken = freed = missed = 0;
}
