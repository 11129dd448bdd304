/* cmocka with the headers it wants, and what its table-driven users share. */
#ifndef TESTS_LIB_CHECK_H
#define TESTS_LIB_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* NULL equals NULL only. `what` names the case of a table. */
static inline void check_text(const char *what, const char *got, const char *wanted)
{
    if (got == wanted || (got != NULL && wanted != NULL && strcmp(got, wanted) == 0))
        return;
    fail_msg("%s: got '%s', wanted '%s'", what, got != NULL ? got : "(null)",
             wanted != NULL ? wanted : "(null)");
}

static inline void check_number(const char *what, int64_t got, int64_t wanted)
{
    if (got != wanted)
        fail_msg("%s: got %lld, wanted %lld", what, (long long)got, (long long)wanted);
}

static inline void check_contains(const char *what, const char *text, const char *part)
{
    if (strstr(text, part) == NULL)
        fail_msg("%s: '%s' does not contain '%s'", what, text, part);
}

static inline void check_lacks(const char *what, const char *text, const char *part)
{
    if (strstr(text, part) != NULL)
        fail_msg("%s: '%s' contains '%s'", what, text, part);
}

#endif
