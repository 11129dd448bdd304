/* The store against the doorman: see lib/store_walk.h.
 *
 * The store here is the real one with one replacement made at build: the clock is a row of a table. */
#include <stdlib.h>

#include "lib/check.h"
#include "lib/store_walk.h"
#include "sql/rules.h"
#include "sql/server.h"

extern const struct hf__store_type hf_store_type_v1;

struct world {
    struct store_walk walk;
    struct server *server;
    struct hf__store *store;
};

static void set_clock(void *ctx, int64_t now_us)
{
    struct world *w = ctx;
    char sql[160];

    rules_write_clock(now_us, sql, sizeof sql);
    server_run(w->server, sql);
}

static void routines_answer_like_the_doorman(void **state)
{
    struct world *w = *state;

    store_walk(&w->walk, w->store, w->store, rules_by_routines);
    assert_true(w->walk.base.let_in > rules_by_routines / 25);
    assert_true(w->walk.base.queued > rules_by_routines / 20);
    assert_true(w->walk.base.went_back > rules_by_routines / 200);
}

static void the_short_way_answers_like_the_doorman(void **state)
{
    struct world *w = *state;

    w->walk.base.quiet = true;
    w->walk.base.bidders = 1;
    store_walk(&w->walk, w->store, w->store, 6000);
    rules_check_short_way(6000);
}

static int setup(void **state)
{
    struct world *w = calloc(1, sizeof *w);
    char url[200];

    assert_non_null(w);
    store_walk_init(&w->walk, set_clock, w);
    w->server = server_open("empty");
    server_run(w->server, server_create_clock);
    server_run(w->server, "INSERT INTO holdfast_test_clock VALUES (NULL)");
    set_clock(w, w->walk.base.now_us);
    snprintf(url, sizeof url, "%s://%s@%s/empty?mode=poll&poll=60s", server_scheme, rules_account,
             server_address());
    w->store = store_walk_open(&w->walk, &hf_store_type_v1, url);
    if (hf_store_type_v1.upkeep(w->store, HF__UPKEEP_SETUP, 0, store_walk_soon(), NULL,
                                &w->walk.err) != 0)
        fail_msg("setup: %s", w->walk.err.text);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;

    hf_store_type_v1.close(w->store);
    server_close(w->server);
    free(w);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(routines_answer_like_the_doorman),
        cmocka_unit_test(the_short_way_answers_like_the_doorman),
    };

    return cmocka_run_group_tests_name("sql_rules", tests, setup, teardown);
}
