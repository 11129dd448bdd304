/* The store against the doorman: see lib/walk.h.
 *
 * The store here is the real one with one replacement made at build: SYSDATE(6) is a row of a
 * table. First all operations go through the procedures, then each goes through the procedures or
 * through plain statements, on the same locks. */
#include <inttypes.h>
#include <stdlib.h>

#include "lib/check.h"
#include "lib/walk.h"
#include "stores/mysql/mysql.h"

extern const struct hf__store_type hf_store_type_v1;

struct world {
    struct walk walk;
    MYSQL *my;
    struct hf__store *routines, *plain;
};

static void run(struct world *w, const char *sql)
{
    if (mysql_query(w->my, sql) != 0)
        fail_msg("%.200s: %s", sql, mysql_error(w->my));
}

static void set_clock(struct walk *walk)
{
    char sql[160];

    snprintf(sql, sizeof sql,
             "UPDATE holdfast_test_clock SET at = '1970-01-01' + INTERVAL %" PRId64 " MICROSECOND",
             walk->now_us);
    run(walk->ctx, sql);
}

static void procedures_answer_like_the_doorman(void **state)
{
    struct world *w = *state;

    walk(&w->walk, w->routines, w->routines, 22000);
    assert_true(w->walk.let_in > 1000 && w->walk.queued > 1000 && w->walk.went_back > 100);
    check_number("way", ((struct hf__my *)w->routines)->way, HF__MY_ROUTINES);
}

static void plain_statements_and_procedures_share_locks(void **state)
{
    struct world *w = *state;

    walk(&w->walk, w->routines, w->plain, 4000);
    check_number("way", ((struct hf__my *)w->plain)->way, HF__MY_PLAIN);
}

static struct hf__store *open_store(struct world *w, const char *options)
{
    char text[200];

    snprintf(text, sizeof text, "mysql://root@%s/empty?mode=poll&poll=60s%s",
             getenv("HOLDFAST_TEST_MARIADB"), options);
    return walk_open(&w->walk, &hf_store_type_v1, text);
}

static int setup(void **state)
{
    struct world *w = calloc(1, sizeof *w);

    assert_non_null(w);
    walk_init(&w->walk, set_clock, w);
    w->my = mysql_init(NULL);
    if (mysql_real_connect(w->my, NULL, "root", NULL, "empty", 0,
                           getenv("HOLDFAST_TEST_MARIADB_SOCKET"), 0) == NULL)
        fail_msg("%s", mysql_error(w->my));
    run(w, "CREATE TABLE holdfast_test_clock (at DATETIME(6) NOT NULL)");
    run(w, "INSERT INTO holdfast_test_clock VALUES ('2024-01-01')");
    w->routines = open_store(w, "");
    w->plain = open_store(w, "&routines=no");
    if (hf_store_type_v1.upkeep(w->routines, HF__SETUP, 0, walk_soon(), NULL, &w->walk.err) != 0)
        fail_msg("setup: %s", w->walk.err.text);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;

    hf_store_type_v1.close(w->routines);
    hf_store_type_v1.close(w->plain);
    mysql_close(w->my);
    free(w);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(procedures_answer_like_the_doorman),
        cmocka_unit_test(plain_statements_and_procedures_share_locks),
    };

    return cmocka_run_group_tests_name("mysql_rules", tests, setup, teardown);
}
