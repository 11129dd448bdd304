/* What is in the file of the SQLite store: what is refused and kept, and what it means when the file
 * goes away or changes. */
#include "lib/operate.h"
#include "sqlite/fixture.h"

static void another_programs_database_is_refused_and_kept(void **state)
{
    struct fixture *f = *state;

    meddle(f, "CREATE TABLE customers (id INTEGER PRIMARY KEY); INSERT INTO customers VALUES (7)");
    assert_int_equal(chmod(f->path, 0600), 0);
    check_refused(f, "tables", HF_CORRUPT, "another program");
    meddle(f, "PRAGMA application_id = 77");
    check_refused(f, "application", HF_CORRUPT, "another program");
    check_number("customers", ask(f, "SELECT id FROM customers"), 7);
    check_number("tables", ask(f, "SELECT count(*) FROM sqlite_schema"), 1);
    check_number("not wal", ask(f, "SELECT journal_mode = 'delete' FROM pragma_journal_mode"), 1);
}

static void a_newer_schema_is_refused(void **state)
{
    struct fixture *f = *state;

    open_store(f);
    close_store(f);
    meddle(f, "PRAGMA user_version = 99");
    check_refused(f, "version", HF_CORRUPT, "newer holdfast");
}

/* As a program of before has left it: without what came later, and with locks in it. */
static void a_database_of_before_is_upgraded_with_its_locks_held(void **state)
{
    struct fixture *f = *state;
    struct hf__bid holder = make_bid(f, "x"), waiter = make_bid(f, "x");

    waiter.queue = true;
    open_store(f);
    uint64_t generation = attempt(f, &holder).generation;
    assert_int_equal(attempt(f, &waiter).verdict, HF__VERDICT_QUEUED);
    close_store(f);
    meddle(f, "ALTER TABLE holdfast_entry DROP COLUMN flags; DROP TABLE holdfast_value");
    open_store(f);
    assert_int_equal(renew(f, &holder, generation).verdict, HF__VERDICT_GRANTED);
    release(f, &holder);
    assert_int_equal(attempt(f, &waiter).verdict, HF__VERDICT_GRANTED);
    check_number("number", ask(f, "SELECT user_version FROM pragma_user_version"), 1);
    check_number("values", ask(f, "SELECT count(*) FROM holdfast_value"), 0);
}

/* A program of before names the columns it knows, and takes the number of the schema for its own. */
static void a_program_of_before_goes_on(void **state)
{
    struct fixture *f = *state;
    struct hf__bid next = make_bid(f, "x");

    open_store(f);
    meddle(f, "INSERT INTO holdfast_lock (name, generation, last_seq, waiting, retired, touched)"
              " VALUES (CAST('x' AS BLOB), 7, 1, 0, 0, 0);"
              "INSERT INTO holdfast_entry (lock, seq, ticket, place, mode, room, generation, ttl,"
              " delay, retire, since, until, lease, claimed, wake, host, user, program, pid, note)"
              " VALUES (1, 1, CAST('0123456789abcdef' AS BLOB), 2, 0, 0, 7, 1000, 0, 0, 1000000000,"
              " 1000001000, 1000, 1, NULL, 'h', 'u', 'p', 1, '')");
    assert_int_equal(attempt(f, &next).verdict, HF__VERDICT_BUSY);
    pass_time(f, SECOND);
    assert_int_equal(attempt(f, &next).verdict, HF__VERDICT_GRANTED);
}

static void a_value_of_another_size_is_refused(void **state)
{
    struct fixture *f = *state;
    struct hf__bid bid = make_bid(f, "x");
    struct hf__value value;
    struct hf__answer a = {0};

    open_store(f);
    meddle(f, "INSERT INTO holdfast_value VALUES (CAST('x' AS BLOB), 1, 1, 0, zeroblob(1025))");
    assert_int_equal(ask_store(f->store, op_read(&bid, 0, &value), soon(f), &a, &f->err),
                     HF_CORRUPT);
    meddle(f, "UPDATE holdfast_value SET bytes = x'00', generation = -1");
    assert_int_equal(ask_store(f->store, op_read(&bid, 0, &value), soon(f), &a, &f->err),
                     HF_CORRUPT);
}

static void what_is_no_database_is_refused_and_kept(void **state)
{
    struct fixture *f = *state;
    struct stat st;
    FILE *file = fopen(f->path, "w");

    assert_non_null(file);
    for (int i = 0; i < 1000; i++)
        fputs("this is a diary\n", file);
    fclose(file);
    assert_int_equal(chmod(f->path, 0600), 0);
    check_refused(f, "text", HF_CORRUPT, "not an SQLite database");
    assert_int_equal(f->err.store_code & 0xff, SQLITE_NOTADB);
    assert_int_equal(stat(f->path, &st), 0);
    check_number("size", st.st_size, 16000);
}

static void an_empty_file_is_filled(void **state)
{
    struct fixture *f = *state;
    struct hf__bid bid = make_bid(f, "x");

    assert_int_equal(mknod(f->path, S_IFREG | 0600, 0), 0);
    open_store(f);
    assert_int_equal(attempt(f, &bid).verdict, HF__VERDICT_GRANTED);
}

/* Numbers that no client writes: nothing is reckoned with them, and nobody is let in. */
static void numbers_out_of_range_are_refused(void **state)
{
    static const char *const changes[] = {
        "UPDATE holdfast_entry SET until = -9223372036854775808",
        "UPDATE holdfast_entry SET ttl = 9223372036854775807, delay = 9223372036854775807",
        "UPDATE holdfast_entry SET retire = -1",
        "UPDATE holdfast_entry SET lease = 0",
        "UPDATE holdfast_entry SET generation = 0",
        "UPDATE holdfast_entry SET place = 4294967298", /* INSIDE, if it is cut to 32 bits */
        "UPDATE holdfast_entry SET room = 4294967296",
        "UPDATE holdfast_entry SET since = 9223372036854775807",
        "UPDATE holdfast_lock SET last_seq = 9223372036854775807",
        "UPDATE holdfast_lock SET generation = 9223372036854775807",
        "UPDATE holdfast_lock SET waiting = -1",
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        struct hf__bid holder = make_bid(f, "x"), other = make_bid(f, "x");
        struct hf__answer a = {0};
        assert_int_equal(attempt(f, &holder).verdict, HF__VERDICT_GRANTED);
        meddle(f, changes[i]);
        int code = ask_store(f->store, op_attempt(&other), INT64_MAX, &a, &f->err);
        check_number(changes[i], code, HF_CORRUPT);
        meddle(f, "DELETE FROM holdfast_entry; DELETE FROM holdfast_lock");
    }
}

static void check_lost(struct fixture *f)
{
    struct hf__bid bid = make_bid(f, "x");
    struct hf__answer a = {0};

    check_number("attempt", ask_store(f->store, op_attempt(&bid), soon(f), &a, &f->err),
                 HF_UNAVAILABLE);
    check_contains("attempt", f->err.text, "replaced or deleted");
    assert_true(f->store->data_lost);
}

static void c7_a_deleted_file_loses_everything(void **state)
{
    struct fixture *f = *state;
    struct hf__search search = {0};

    assert_false(f->store->data_lost);
    unlink(f->path);
    check_lost(f);
    check_number("inspect", f->store->type->inspect(f->store, &search, soon(f), &f->err),
                 HF_UNAVAILABLE);
}

static void c7_a_replaced_file_loses_everything_for_good(void **state)
{
    struct fixture *f = *state;
    struct fixture *other = make_fixture();
    char kept[200];

    open_store(other);
    close_store(other);
    snprintf(kept, sizeof kept, "%s/kept.db", f->dir);
    assert_int_equal(rename(f->path, kept), 0);
    assert_int_equal(rename(other->path, f->path), 0);
    check_lost(f);
    assert_int_equal(rename(kept, f->path), 0); /* too late: somebody may have used the other one */
    check_lost(f);
    free_fixture(other);
}

static void c7_a_deleted_wal_loses_everything(void **state)
{
    struct fixture *f = *state;
    struct hf__bid bid = make_bid(f, "x");
    char wal[200];

    assert_int_equal(attempt(f, &bid).verdict, HF__VERDICT_GRANTED);
    snprintf(wal, sizeof wal, "%s-wal", f->path);
    assert_int_equal(unlink(wal), 0);
    pass_time(f, 30);
    check_lost(f);
}

int main(void)
{
#define FRESH(test) cmocka_unit_test_setup_teardown(test, setup_fixture, teardown)
#define OPEN(test)  cmocka_unit_test_setup_teardown(test, setup_open, teardown)
    const struct CMUnitTest tests[] = {
        FRESH(another_programs_database_is_refused_and_kept),
        FRESH(a_newer_schema_is_refused),
        FRESH(a_database_of_before_is_upgraded_with_its_locks_held),
        FRESH(a_program_of_before_goes_on),
        FRESH(a_value_of_another_size_is_refused),
        FRESH(what_is_no_database_is_refused_and_kept),
        FRESH(an_empty_file_is_filled),
        OPEN(numbers_out_of_range_are_refused),
        OPEN(c7_a_deleted_file_loses_everything),
        OPEN(c7_a_replaced_file_loses_everything_for_good),
        OPEN(c7_a_deleted_wal_loses_everything),
    };

    return cmocka_run_group_tests_name("sqlite_contents", tests, NULL, NULL);
}
