/* What the comparison with the doorman has to know of each server: rules_postgres.c, rules_mysql.c.
 * The store is linked in, with a clock that is a row of a table. */
#ifndef TESTS_SQL_RULES_H
#define TESTS_SQL_RULES_H

#include "stores/store.h"

extern const char *const rules_account;  /* with a password if need be */
extern const unsigned rules_by_routines; /* operations */

/* An instant for people, to be set as holdfast_test_clock.at. */
void rules_write_clock(int64_t now_us, char *sql, size_t size);

/* Whether the store's short way, if it has one, was gone often enough in so many operations. */
void rules_check_short_way(unsigned operations);

#endif
