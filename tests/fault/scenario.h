/* One tour through the library, for tests that make something fail on the way.
 *
 * It opens a store, acquires, is refused, waits in a second thread and is handed the lock over,
 * re-enters, shares with a limit, inspects, checks, renews, detaches, adopts, breaks, releases and
 * closes. Every call must succeed, be refused as it should be, or fail with one of the codes that
 * the failure allows; the tour goes on with what it has. Afterwards nothing may be left in the
 * store. */
#ifndef TESTS_FAULT_SCENARIO_H
#define TESTS_FAULT_SCENARIO_H

#include <stdbool.h>

#include "holdfast.h"

struct scenario {
    const char *url;       /* what is opened */
    const char *clean_url; /* the same store, without what makes it fail */
    const int *allowed;    /* codes that may be seen, ends with 0 */
    void (*stop)(void);    /* ends the failures; NULL: they need no ending */
    bool stop_early;       /* before the client is closed, so that it can clean up */
    bool may_leave;        /* something may stay in the store until its lease ends */
};

/* Gives the first code that was not as in a tour without failures, or 0. */
int scenario_run(const struct scenario *scenario);

#endif
