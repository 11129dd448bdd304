/* The pool of connections, with connections that are nothing but numbers and a clock of the
 * test's. */
#include <stdlib.h>

#include "lib/check.h"
#include "lib/fake_clock.h"
#include "net/pool.h"

#define MS INT64_C(1000000)

struct conn {
    struct hf__pooled pooled;
    int number;
    bool dead;
};

/* What the store of these connections has done so far. */
struct store {
    struct fake_clock clock;
    struct hf__pool pool;
    int dialled, hung_up;
    size_t down; /* so many hosts, from the first, cannot be reached */
};
static struct store *store; /* hang_up() gets the connection only */

static int dial(void *owner, size_t host, int64_t deadline_ns, struct hf__pooled **ret_conn,
                hf_error *err)
{
    struct store *s = owner;

    (void)deadline_ns;
    s->dialled++;
    if (host < s->down)
        return hf__fail(err, HF_UNAVAILABLE, "host %zu is down", host);
    struct conn *c = calloc(1, sizeof *c);
    assert_non_null(c);
    c->number = s->dialled;
    c->pooled.epoch = s->pool.epoch;
    *ret_conn = &c->pooled;
    return 0;
}

static void hang_up(struct hf__pooled *conn)
{
    store->hung_up++;
    free(conn);
}

static bool is_alive(void *owner, struct hf__pooled *conn, int64_t idle_ns, int64_t deadline_ns)
{
    (void)owner, (void)idle_ns, (void)deadline_ns;
    return !((struct conn *)conn)->dead;
}

static const struct hf__pool_type type = {
    .store = "test", .dial = dial, .hang_up = hang_up, .is_alive = is_alive};

static int set_up(void **state)
{
    static struct store s;
    hf_error err;

    s = (struct store){0};
    fake_clock_init(&s.clock);
    assert_int_equal(hf__pool_init(&s.pool, &type, &s, &s.clock.env, &err), 0);
    s.pool.limits = (struct hf__pool_limits){
        .max_active = 2, .max_idle = 2, .idle_timeout_ms = 1000, .fail_at_once = true};
    s.pool.host_count = 1;
    *state = store = &s;
    return 0;
}

static int tear_down(void **state)
{
    struct store *s = *state;

    hf__pool_clear(&s->pool);
    return 0;
}

static int take(struct store *s, struct conn **ret_conn, hf_error *err)
{
    struct hf__pooled *conn = NULL;
    int r = hf__pool_take(&s->pool, hf__now_ns(s->pool.env) + 1000 * MS, &conn, err);

    *ret_conn = (struct conn *)conn;
    return r;
}

static struct conn *must_take(struct store *s)
{
    struct conn *c;
    assert_int_equal(take(s, &c, NULL), HF_OK);
    return c;
}

static void give(struct store *s, struct conn *c)
{
    hf__pool_give(&s->pool, &c->pooled, true);
}

static void the_last_one_given_back_is_lent_first(void **state)
{
    struct store *s = *state;
    struct conn *a = must_take(s), *b = must_take(s);

    give(s, a);
    give(s, b);
    assert_ptr_equal(must_take(s), b);
    assert_ptr_equal(must_take(s), a);
    assert_int_equal(s->dialled, 2);
    give(s, a);
    give(s, b);
}

static void no_more_are_lent_than_may_be(void **state)
{
    struct store *s = *state;
    struct conn *a = must_take(s), *b = must_take(s), *none;
    hf_error err;

    assert_int_equal(take(s, &none, &err), HF_UNAVAILABLE);
    assert_string_equal(err.text,
                        "test: all 2 connections are in use; raise max_active in the URL");
    give(s, a);
    assert_ptr_equal(must_take(s), a);
    give(s, a);
    give(s, b);
}

static void what_is_old_dead_or_broken_is_hung_up(void **state)
{
    struct store *s = *state;
    struct conn *c = must_take(s);

    give(s, c);
    fake_clock_advance(&s->clock, 1001);
    c = must_take(s); /* another one: the first was idle for too long */
    assert_int_equal(c->number, 2);
    c->dead = true;
    give(s, c);
    c = must_take(s);
    assert_int_equal(c->number, 3);
    hf__pool_give(&s->pool, &c->pooled, false);
    assert_int_equal(s->hung_up, 3);
}

static void no_more_are_kept_than_may_be(void **state)
{
    struct store *s = *state;
    struct conn *a = must_take(s), *b = must_take(s);

    s->pool.limits.max_idle = 1;
    give(s, a);
    give(s, b);
    assert_int_equal(s->hung_up, 1);
    assert_ptr_equal(must_take(s), b);
    give(s, b);
}

static void a_flush_ends_those_that_are_lent_too(void **state)
{
    struct store *s = *state;
    struct conn *lent = must_take(s), *idle = must_take(s);

    give(s, idle);
    hf__pool_flush(&s->pool);
    assert_int_equal(s->hung_up, 1);
    give(s, lent);
    assert_int_equal(s->hung_up, 2);
    struct conn *anew = must_take(s);
    assert_int_equal(anew->number, 3);
    give(s, anew);
}

static void a_server_that_is_down_is_left_alone_for_a_while(void **state)
{
    struct store *s = *state;
    struct conn *c;
    hf_error err;

    s->down = 1;
    assert_int_equal(take(s, &c, &err), HF_UNAVAILABLE);
    assert_int_equal(take(s, &c, &err), HF_UNAVAILABLE);
    assert_string_equal(err.text, "host 0 is down");
    assert_int_equal(s->dialled, 1);
    fake_clock_advance(&s->clock, 400);
    assert_int_equal(take(s, &c, &err), HF_UNAVAILABLE);
    assert_int_equal(s->dialled, 2);
    s->down = 0;
    fake_clock_advance(&s->clock, 400);
    give(s, must_take(s));
}

static void the_next_host_is_tried_and_kept_to(void **state)
{
    struct store *s = *state;

    s->pool.host_count = 3;
    s->down = 2;
    hf__pool_give(&s->pool, &must_take(s)->pooled, false);
    assert_int_equal(s->dialled, 3);
    hf__pool_give(&s->pool, &must_take(s)->pooled, false);
    assert_int_equal(s->dialled, 4);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_last_one_given_back_is_lent_first),
        TEST(no_more_are_lent_than_may_be),
        TEST(what_is_old_dead_or_broken_is_hung_up),
        TEST(no_more_are_kept_than_may_be),
        TEST(a_flush_ends_those_that_are_lent_too),
        TEST(a_server_that_is_down_is_left_alone_for_a_while),
        TEST(the_next_host_is_tried_and_kept_to),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
