/* The store against the doorman, on the server that HOLDFAST_TEST_ORACLE names: see
 * lib/store_walk.h.
 *
 * The store here is the real one with one replacement made at build: the clock is a row of a table. */
#include <inttypes.h>
#include <stdlib.h>

#include "lib/check.h"
#include "lib/store_walk.h"
#include "stores/oracle/oracle.h"

extern const struct hf__store_type hf_store_type_v1;

struct world {
    struct store_walk walk;
    struct hf__store *store;
};

static void run(struct world *w, const char *sql)
{
    struct hf__ora *s = (struct hf__ora *)w->store;
    struct hf__ora_conn *c = NULL;
    hf_error *err = &w->walk.err;
    int r = hf__ora_borrow(s, store_walk_soon(), &c, err);

    if (r == 0) {
        hf__ora_start_once(c, strdup(sql));
        r = hf__ora_run(s, c, false, store_walk_soon(), err);
        if (r == 0)
            r = hf__ora_commit(s, c, store_walk_soon(), err);
        hf__ora_give_back(s, c);
    }
    if (r != 0)
        fail_msg("%.200s: %s", sql, err->text);
}

static void set_clock(void *ctx, int64_t now_us)
{
    char sql[160];

    snprintf(sql, sizeof sql, "UPDATE holdfast_test_clock SET at_us = %" PRId64, now_us);
    run(ctx, sql);
}

static void the_package_answers_like_the_doorman(void **state)
{
    struct world *w = *state;

    store_walk(&w->walk, w->store, w->store, 22000);
    assert_true(w->walk.base.let_in > 1000 && w->walk.base.queued > 1000);
    assert_true(w->walk.base.went_back > 100);
}

static int setup(void **state)
{
    struct world *w = calloc(1, sizeof *w);
    char url[400];

    assert_non_null(w);
    store_walk_init(&w->walk, set_clock, w);
    snprintf(url, sizeof url, "%s&poll=60s", getenv("HOLDFAST_TEST_ORACLE"));
    w->store = store_walk_open(&w->walk, &hf_store_type_v1, url);
    run(w, "CREATE TABLE holdfast_test_clock (at_us NUMBER(19) NOT NULL)");
    run(w, "INSERT INTO holdfast_test_clock VALUES (0)");
    for (int again = 0; again < 2; again++) { /* what is there already is no error */
        if (hf_store_type_v1.upkeep(w->store, HF__UPKEEP_SETUP, 0, store_walk_soon(), NULL,
                                    &w->walk.err) != 0)
            fail_msg("setup: %s", w->walk.err.text);
    }
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;

    hf_store_type_v1.close(w->store);
    free(w);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_package_answers_like_the_doorman),
    };

    return cmocka_run_group_tests_name("oracle_rules", tests, setup, teardown);
}
