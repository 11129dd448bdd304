/* What nobody has used for long goes: at once by a purge, little by little by itself. */
#include "sqlite/fixture.h"

#define DAY (24 * 3600 * SECOND)

static void c4_a_purged_lock_goes_on_above(void **state)
{
    struct fixture *f = *state;
    struct hf__bid first = make_bid(f, "x"), second = make_bid(f, "x");
    uint64_t before, removed = 0;

    before = attempt(f, &first).generation; /* left to expire */
    pass_time(f, 100 * SECOND);
    check_ok(f, "purge",
             f->store->type->upkeep(f->store, HF__UPKEEP_PURGE, 200 * SECOND, soon(f), &removed,
                                    &f->err));
    check_number("too early", (int64_t)removed, 0);
    pass_time(f, 200 * SECOND);
    check_ok(f, "purge",
             f->store->type->upkeep(f->store, HF__UPKEEP_PURGE, 200 * SECOND, soon(f), &removed,
                                    &f->err));
    check_number("purged", (int64_t)removed, 1);
    check_number("rows",
                 ask(f, "SELECT (SELECT count(*) FROM holdfast_lock) +"
                        " (SELECT count(*) FROM holdfast_entry) +"
                        " (SELECT count(*) FROM holdfast_retired)"),
                 0);
    assert_true(attempt(f, &second).generation > before);
}

static void purge_keeps_what_is_held(void **state)
{
    struct fixture *f = *state;
    struct hf__bid holder = make_bid(f, "x");
    uint64_t removed = 0;

    holder.ttl_ms = HF__NEVER;
    renew(f, &holder, attempt(f, &holder).generation);
    for (int i = 0; i < 450; i++) { /* more than a batch */
        char name[16];
        snprintf(name, sizeof name, "idle %d", i);
        struct hf__bid bid = make_bid(f, name);
        attempt(f, &bid);
        release(f, &bid);
    }
    pass_time(f, 1000 * SECOND);
    check_ok(
        f, "purge",
        f->store->type->upkeep(f->store, HF__UPKEEP_PURGE, SECOND, soon(f), &removed, &f->err));
    check_number("purged", (int64_t)removed, 450);
    assert_int_equal(release(f, &holder).verdict, HF__VERDICT_DONE);
}

/* Many more than fit into the time of one call: it says how many went, and the next goes on. */
static void a_purge_ends_in_time_and_the_next_goes_on(void **state)
{
    enum { ROWS = 20000 };
    struct fixture *f = *state;
    uint64_t removed = 1, total = 0;
    int calls = 0;

    f->env.now_ns = hf__system_env.now_ns;
    meddle(f, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)"
              " INSERT INTO holdfast_lock (name, generation, last_seq, waiting, retired, touched)"
              " SELECT CAST('idle ' || i AS BLOB), i, 1, 0, 0, 0 FROM n");
    for (; removed > 0; calls++, total += removed) {
        int64_t deadline_ns = hf__now_ns(&f->env) + 100 * HF__NS_PER_MS;
        check_ok(f, "purge",
                 f->store->type->upkeep(f->store, HF__UPKEEP_PURGE, DAY, deadline_ns, &removed,
                                        &f->err));
    }
    check_number("removed", (int64_t)total, ROWS);
    assert_true(calls > 2);
}

static int64_t use_names(struct fixture *f, const char *kind, int count)
{
    for (int i = 0; i < count; i++) {
        char name[40];
        snprintf(name, sizeof name, "%s %d", kind, i);
        struct hf__bid bid = make_bid(f, name);
        attempt(f, &bid);
        release(f, &bid);
    }
    return ask(f, "SELECT count(*) FROM holdfast_lock");
}

/* Without anybody who runs `gc`: whoever adds a name looks at a few others. */
static void idle_names_go_as_new_ones_come(void **state)
{
    struct fixture *f = *state;

    check_number("names", use_names(f, "job", 200), 200);
    pass_time(f, 31 * DAY);
    use_names(f, "later", 200);
    check_number("idle", ask(f, "SELECT count(*) FROM holdfast_lock WHERE name < x'6c'"), 0);
    check_number("names", ask(f, "SELECT count(*) FROM holdfast_lock"), 200);
}

static void idle_names_go_while_others_are_used(void **state)
{
    struct fixture *f = *state;

    use_names(f, "job", 20);
    pass_time(f, 31 * DAY);
    for (int i = 0; i < 2000; i++)
        use_names(f, "later", 1);
    check_number("names", ask(f, "SELECT count(*) FROM holdfast_lock"), 1);
}

static void what_is_held_or_in_use_stays(void **state)
{
    struct fixture *f = *state;
    struct hf__bid holder = make_bid(f, "held");

    holder.ttl_ms = HF__NEVER;
    renew(f, &holder, attempt(f, &holder).generation);
    pass_time(f, 20 * DAY);
    use_names(f, "in use", 20);
    pass_time(f, 11 * DAY);
    use_names(f, "later", 100);
    check_number("names", ask(f, "SELECT count(*) FROM holdfast_lock"), 1 + 20 + 100);
    assert_int_equal(release(f, &holder).verdict, HF__VERDICT_DONE);
}

/* Tidying up is a favour: no operation fails with it. */
static void a_damaged_name_holds_up_nobody(void **state)
{
    struct fixture *f = *state;

    use_names(f, "job", 20);
    pass_time(f, 31 * DAY);
    meddle(f,
           "UPDATE holdfast_lock SET waiting = 7 WHERE name = x'6a6f622033'"); /* job 3: damaged */
    use_names(f, "later", 50);
    check_number("the damaged one", ask(f, "SELECT count(*) FROM holdfast_lock WHERE waiting = 7"),
                 1);
    check_number("the others", ask(f, "SELECT count(*) FROM holdfast_lock WHERE name < x'6c'"), 1);
}

int main(void)
{
#define OPEN(test) cmocka_unit_test_setup_teardown(test, setup_open, teardown)
    const struct CMUnitTest tests[] = {
        OPEN(c4_a_purged_lock_goes_on_above),
        OPEN(purge_keeps_what_is_held),
        OPEN(a_purge_ends_in_time_and_the_next_goes_on),
        OPEN(idle_names_go_as_new_ones_come),
        OPEN(idle_names_go_while_others_are_used),
        OPEN(what_is_held_or_in_use_stays),
        OPEN(a_damaged_name_holds_up_nobody),
    };

    return cmocka_run_group_tests_name("sqlite_upkeep", tests, NULL, NULL);
}
