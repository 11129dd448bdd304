/* What the stores' `diagnose` have in common. Levels are those of hf_diagnose(). */
#ifndef HF_BASE_REPORT_H
#define HF_BASE_REPORT_H

#include "base_env.h"
#include "base_error.h"

enum hf__level { HF__LEVEL_FINE, HF__LEVEL_NOTE, HF__LEVEL_WARNING, HF__LEVEL_PROBLEM };

struct hf__report {
    hf_finding_callback *found;
    void *arg;
    const struct hf_env *env;
};

void hf__say(const struct hf__report *r, int level, const char *clause, const char *format, ...)
    HF__PRINTF(4, 5);

/* The store's clock against this machine's, which was `before_us` when the store was asked.
 * `more` follows in the same sentence. */
void hf__say_clock(const struct hf__report *r, int64_t store_us, int64_t before_us,
                   const char *more);

/* The median of a few round trips; `ask` gives 0 if it was answered. */
void hf__say_latency(const struct hf__report *r, int (*ask)(void *ctx), void *ctx);

/* For stores where the records of names stay that nobody uses any more. */
void hf__say_gc(const struct hf__report *r);

#endif
