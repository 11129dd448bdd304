/* What the two halves of the ledger share. */
#ifndef TESTS_SIM_LEDGER_INSIDE_H
#define TESTS_SIM_LEDGER_INSIDE_H

#include <stdio.h>

#include "ledger.h"

#define CALLS_MAX  8192
#define GRANTS_MAX 1024
#define BUCKETS    4096
#define FIRED_MAX  1024
#define ASKED_MAX  100 /* requests about one ticket in a second */
#define SLACK_NS   (500 * SIM_MS)

/* How many op_timeouts a call may go on after its time was up. hf_acquire: asked, asked again, told
 * to forget it, and a claim among them. */
#define PATIENCE(kind) ((kind) == CALL_CLOSE ? 9 : (kind) <= CALL_ADOPT ? 4 : 3)

struct ledger {
    struct call calls[CALLS_MAX];
    size_t call_count, first_open;
    struct grant *grants[GRANTS_MAX];
    size_t grant_count;
    struct bid *bids[BUCKETS];
    bool closing[64]; /* by process */
    int64_t closing_ns[64];
    int callbacks[64];
    const hf_cancel *fired[FIRED_MAX]; /* so far in this seed */
    size_t fired_count;
    int64_t callback_ns[64], callback_ended_ns[64];
    int64_t quiet_ns;
};
extern struct ledger ledger;

/* When its caller would like it to return, and by when it must have; SIM_NEVER. */
int64_t ledger_time_up_ns(const struct call *call);
int64_t ledger_limit_ns(const struct call *call);
void ledger_check_over(const struct bid *bid);

#endif
