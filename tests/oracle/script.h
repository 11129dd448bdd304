/* A store whose server is a script: see scripted.c. For one process a test. */
#ifndef TESTS_ORACLE_SCRIPT_H
#define TESTS_ORACLE_SCRIPT_H

#include "lib/check.h"
#include "lib/store_walk.h"
#include "stores/oracle/oracle.h"

extern const struct hf__store_type hf_store_type_v1;

struct world {
    struct store_walk walk; /* for its host, and the last error */
    struct hf__store *store;
    char dir[64], script[100], log[100];
    int scripts;
};

int world_setup(void **state);
int world_teardown(void **state);

/* Opens a store whose server does what these lines say. */
void script(struct world *w, const char *options, const char *lines);

#define AMPLE_MS 20000 /* for what is answered: the machine may be slow */

/* An attempt within so many milliseconds. */
int attempt(struct world *w, int64_t ms, struct hf__answer *answer);

/* How often a line of the log begins so. */
int count(const struct world *w, const char *begins);

#endif
