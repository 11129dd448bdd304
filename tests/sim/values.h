/* What a holder does besides holding, and what must be true of it: values (C15), releases that keep the
 * lock closed (C14), and being told that somebody waits (C16). */
#ifndef TESTS_SIM_VALUES_H
#define TESTS_SIM_VALUES_H

#include "program.h"

/* Reads or writes the value. */
void values_use(struct grant *grant);

/* Its release was acknowledged, and asked for this. */
void values_check_closed(const struct grant *grant, int64_t at_least_ms);

void values_check_wanted(struct grant *grant);

#endif
