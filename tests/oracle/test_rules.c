/* The store against the doorman, on the server that HOLDFAST_TEST_ORACLE names: see
 * lib/store_walk.h.
 *
 * The store here is the real one with one replacement made at build: the clock is a row of a table.
 * Where the dialect has routines, all operations go through them first, then each goes through them
 * or through plain statements, on the same locks; elsewhere all are plain statements. */
#include <inttypes.h>
#include <stdlib.h>

#include "lib/check.h"
#include "lib/store_walk.h"
#include "stores/oracle/oracle.h"

extern const struct hf__store_type hf_store_type_v1;

struct world {
    struct store_walk walk;
    struct hf__store *routines, *plain;
};

static void run(struct world *w, const char *sql)
{
    struct hf__ora *s = (struct hf__ora *)w->plain;
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

    if (w->routines == w->plain) {
        print_message("no routines in this dialect\n");
        skip();
    }
    store_walk(&w->walk, w->routines, w->routines, 22000);
    assert_true(w->walk.base.let_in > 1000 && w->walk.base.queued > 1000);
    assert_true(w->walk.base.went_back > 100);
    check_number("way", ((struct hf__ora *)w->routines)->sql.way, HF__SQL_ROUTINES);
}

static void plain_statements_answer_like_the_doorman(void **state)
{
    struct world *w = *state;

    store_walk(&w->walk, w->plain, w->plain, 4000);
    check_number("way", ((struct hf__ora *)w->plain)->sql.way, HF__SQL_PLAIN);
}

static void plain_statements_and_the_package_share_locks(void **state)
{
    struct world *w = *state;

    if (w->routines == w->plain)
        skip();
    store_walk(&w->walk, w->routines, w->plain, 4000);
}

static struct hf__store *open_store(struct world *w, const char *options)
{
    char text[400];

    snprintf(text, sizeof text, "%s&poll=60s%s", getenv("HOLDFAST_TEST_ORACLE"), options);
    return store_walk_open(&w->walk, &hf_store_type_v1, text);
}

static int setup(void **state)
{
    struct world *w = calloc(1, sizeof *w);

    assert_non_null(w);
    store_walk_init(&w->walk, set_clock, w);
    w->plain = open_store(w, "&routines=no");
    w->routines = strstr(getenv("HOLDFAST_TEST_ORACLE"), "dialect=hsqldb") == NULL
                      ? open_store(w, "")
                      : w->plain;
    run(w, "CREATE TABLE holdfast_test_clock (at_us NUMBER(19) NOT NULL)");
    run(w, "INSERT INTO holdfast_test_clock VALUES (0)");
    for (int again = 0; again < 2; again++) { /* what is there already is no error */
        if (hf_store_type_v1.upkeep(w->plain, HF__UPKEEP_SETUP, 0, store_walk_soon(), NULL,
                                    &w->walk.err) != 0)
            fail_msg("setup: %s", w->walk.err.text);
    }
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;

    if (w->routines != w->plain)
        hf_store_type_v1.close(w->routines);
    hf_store_type_v1.close(w->plain);
    free(w);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_package_answers_like_the_doorman),
        cmocka_unit_test(plain_statements_answer_like_the_doorman),
        cmocka_unit_test(plain_statements_and_the_package_share_locks),
    };

    return cmocka_run_group_tests_name("oracle_rules", tests, setup, teardown);
}
