/* Failing every allocation, or every system call of some kinds, in turn.
 *
 * A test that links with torture_dep has malloc, calloc, realloc, strdup, strndup and asprintf of
 * our own code (not those inside other libraries) counted, and the one it asks for fails. The
 * counting is over all threads, so with a thread of the library behind it a number does not always
 * mean the same call; the runs go on until one gets by without a failure. Run under
 * AddressSanitizer to see leaks. */
#ifndef TESTS_LIB_TORTURE_H
#define TESTS_LIB_TORTURE_H

#include <stdbool.h>
#include <stddef.h>

enum torture_aim { TORTURE_MEMORY, TORTURE_SYSTEM };

/* What is counted and fails; memory unless told. Not while a scenario runs. */
void torture_at(enum torture_aim aim);

/* The nth allocation (or call) from now on fails; `forever`: all after it too. */
void torture_start(size_t nth, bool forever);

/* From now on none does. */
void torture_stop(void);

/* Since the start: whether one has failed, and how many there were until the stop. */
bool torture_failed(void);
size_t torture_count(void);

/* Does what is to be tortured and gives the first error code, or 0. It must leave nothing behind,
 * whatever fails. It may call torture_stop() to look at what is left in peace. */
typedef int torture_scenario(void *arg);

/* Runs it with the first, the second, ... allocation failing, once alone and once with all that
 * follow, until a run needs no more. Each must give 0, HF_NO_MEMORY or, of a store, HF_UNKNOWN, and
 * not all of them 0 (else fail_msg); without a failure it must give 0. Gives the number of runs.
 * `step`: only every so manieth, for what takes long; HOLDFAST_TORTURE_STEP in the environment
 * overrides it. */
size_t torture_run(torture_scenario *scenario, void *arg, size_t step);

#endif
