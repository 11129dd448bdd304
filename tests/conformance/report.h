/* What the suite prints: a line for each case, and the store's row of the capability table. */
#ifndef CONFORMANCE_REPORT_H
#define CONFORMANCE_REPORT_H

#include "harness.h"

void report_name(const struct conformance_case *c); /* clause and name, for --list */
void report_case(const char *result, const struct conformance_case *c, const char *text);
void report_skip(const struct conformance_case *c, uint32_t missing);
void report_stacks(int process_group); /* on stderr, if there is a debugger */

/* A Markdown table, as docs/GUARANTEES.md has it. `broken`: capabilities of cases that failed. */
void report_table_head(void);
void report_row(const char *url, uint32_t can, uint32_t broken);

#endif
