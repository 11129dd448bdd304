/* What goes wrong on a real server, and what the caller sees of it. */
#include <libpq-fe.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "holdfast.h"
#include "lib/check.h"

#define AWAIT_MS 15000

struct fixture {
    PGconn *admin; /* of the database that the clients use */
    hf_client *client;
    char url[200];
    hf_error err;
};

static PGresult *ask(struct fixture *f, const char *sql)
{
    PGresult *result = PQexec(f->admin, sql);
    ExecStatusType status = PQresultStatus(result);

    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK)
        fail_msg("%.200s: %s", sql, PQerrorMessage(f->admin));
    return result;
}

static void run(struct fixture *f, const char *sql)
{
    PQclear(ask(f, sql));
}

static int64_t number(struct fixture *f, const char *sql)
{
    PGresult *result = ask(f, sql);
    int64_t n = strtoll(PQgetvalue(result, 0, 0), NULL, 10);

    PQclear(result);
    return n;
}

static void await(struct fixture *f, const char *sql, int64_t wanted)
{
    for (int i = 0; i < AWAIT_MS / 5; i++) {
        if (number(f, sql) == wanted)
            return;
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
    fail_msg("waited for %lld from %s", (long long)wanted, sql);
}

static PGconn *connect_to(const char *database)
{
    const char *port = strchr(getenv("HOLDFAST_TEST_POSTGRES"), ':') + 1;
    const char *keywords[] = {"host", "port", "user", "dbname", "options", NULL};
    const char *values[] = {getenv("HOLDFAST_TEST_POSTGRES_DIR"), port, "postgres", database,
                            "-c client_min_messages=error",       NULL};
    PGconn *pg = PQconnectdbParams(keywords, values, 0);

    assert_int_equal(PQstatus(pg), CONNECTION_OK);
    return pg;
}

static void open_at(struct fixture *f, const char *database, const char *options)
{
    snprintf(f->url, sizeof f->url, "postgres://postgres@%s/%s?op_timeout=5s%s",
             getenv("HOLDFAST_TEST_POSTGRES"), database, options);
    if (hf_open(f->url, NULL, &f->client, &f->err) != 0)
        fail_msg("%s", f->err.text);
    f->admin = connect_to(database);
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    assert_non_null(f);
    open_at(f, "postgres", "");
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    hf_close(f->client);
    PQfinish(f->admin);
    free(f);
    return 0;
}

static hf_options options(int64_t ttl_ms, int64_t wait_ms)
{
    hf_options opt = HF_OPTIONS_INIT;
    static uint64_t owner = 1000;

    opt.ttl_ms = ttl_ms;
    opt.wait_ms = wait_ms;
    opt.owner = __atomic_add_fetch(&owner, 1, __ATOMIC_RELAXED);
    return opt;
}

static int take(struct fixture *f, const char *name, hf_options opt, hf_lock **ret_lock)
{
    return hf_acquire(f->client, name, HF_NTS, &opt, ret_lock, &f->err);
}

static void check_code(const struct fixture *f, int got, int wanted)
{
    if (got != wanted)
        fail_msg("got %d, wanted %d: %s", got, wanted, f->err.text);
}

struct waiter {
    struct fixture *f;
    const char *name;
    pthread_t thread;
    int code;
    hf_lock *lock;
};

static void *wait_for_it(void *arg)
{
    struct waiter *w = arg;
    hf_options opt = options(20000, AWAIT_MS);
    hf_error err;

    w->code = hf_acquire(w->f->client, w->name, HF_NTS, &opt, &w->lock, &err);
    return NULL;
}

#define OTHERS                                                                    \
    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE pid <> " \
    "pg_backend_pid() AND datname = current_database() AND application_name LIKE 'holdfast%'"

#define LEFT                                                                               \
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> " \
    "pg_backend_pid() AND application_name LIKE 'holdfast%'"

static void c7_terminated_connections_lose_no_lock(void **state)
{
    struct fixture *f = *state;
    hf_lock *lock;

    check_code(f, take(f, "kill", options(60000, 0), &lock), 0);
    assert_true(number(f, OTHERS) > 0);
    await(f, LEFT, 0);
    check_code(f, hf_lock_renew(lock, &f->err), 0);
    assert_true(number(f, OTHERS) > 0);
    await(f, LEFT, 0);
    check_code(f, hf_lock_release(lock, &f->err), 0);
    check_number("rows", number(f, "SELECT count(*) FROM holdfast_holder WHERE name = 'kill'"), 0);
}

static void c12_waiter_whose_listener_was_terminated_still_gets_it(void **state)
{
    struct fixture *f = *state;
    struct waiter w = {.f = f, .name = "ear"};
    hf_lock *lock;

    check_code(f, take(f, "ear", options(20000, 0), &lock), 0);
    pthread_create(&w.thread, NULL, wait_for_it, &w);
    await(f, "SELECT count(*) FROM holdfast_waiter WHERE name = 'ear' AND wake IS NOT NULL", 1);
    assert_true(number(f, OTHERS) > 0);
    check_code(f, hf_lock_release(lock, &f->err), 0);
    pthread_join(w.thread, NULL);
    check_number("waiter", w.code, 0);
    check_code(f, hf_lock_release(w.lock, &f->err), 0);
}

/* A trigger that refuses so many times with a state of our choice. */
static void refuse(struct fixture *f, const char *state, int times)
{
    char sql[800];

    snprintf(
        sql, sizeof sql,
        "CREATE SEQUENCE refusals; CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$"
        " BEGIN IF nextval('refusals') <= %d THEN RAISE EXCEPTION 'refused' USING ERRCODE = '%s';"
        " END IF; RETURN NEW; END $$; CREATE TRIGGER refuse BEFORE INSERT ON holdfast_holder"
        " FOR EACH ROW EXECUTE FUNCTION refuse()",
        times, state);
    run(f, sql);
}

static void stop_refusing(struct fixture *f)
{
    run(f, "DROP TRIGGER refuse ON holdfast_holder; DROP FUNCTION refuse; DROP SEQUENCE refusals");
}

static void c6_deadlocks_and_serialization_failures_are_tried_again(void **state)
{
    static const char *const states[] = {"40001", "40P01"};
    struct fixture *f = *state;

    for (size_t i = 0; i < COUNT(states); i++) {
        hf_lock *lock;
        refuse(f, states[i], 5);
        int code = take(f, "again", options(5000, 0), &lock);
        int64_t tries = number(f, "SELECT last_value FROM refusals");
        stop_refusing(f);
        check_code(f, code, 0);
        check_number("tries", tries, 6);
        check_code(f, hf_lock_release(lock, &f->err), 0);
    }
}

static void c6_refusals_of_the_server_are_told_and_leave_nothing(void **state)
{
    static const struct {
        const char *state;
        int code;
        const char *text;
    } cases[] = {
        {"53100", HF_FULL, "the server's disk is full"},
        {"57014", HF_UNAVAILABLE, "statement_timeout"},
        {"42501", HF_DENIED, "rights"},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < COUNT(cases); i++) {
        hf_lock *lock = NULL;
        hf_client *hasty = NULL;
        char url[300];
        snprintf(url, sizeof url, "postgres://postgres@%s/postgres?op_timeout=300ms",
                 getenv("HOLDFAST_TEST_POSTGRES"));
        check_code(f, hf_open(url, NULL, &hasty, &f->err), 0);
        refuse(f, cases[i].state, 1000000);
        hf_options opt = options(5000, 0);
        int code = hf_acquire(hasty, "refused", HF_NTS, &opt, &lock, &f->err);
        stop_refusing(f);
        check_code(f, code, cases[i].code);
        check_contains(cases[i].state, f->err.text, cases[i].text);
        hf_close(hasty);
        check_number("rows",
                     number(f, "SELECT count(*) FROM holdfast_holder WHERE name = 'refused'"), 0);
    }
}

static void a_missing_schema_says_what_to_do_and_setup_makes_it(void **state)
{
    struct fixture *f = *state, other = {0};
    hf_lock *lock;

    run(f, "CREATE DATABASE bare");
    open_at(&other, "bare", "");
    check_code(&other, take(&other, "x", options(5000, 0), &lock), HF_DENIED);
    check_contains("missing", other.err.text, "holdfast setup");
    check_code(&other, hf_setup(other.client, &other.err), 0);
    check_code(&other, hf_setup(other.client, &other.err), 0);
    check_code(&other, take(&other, "x", options(5000, 0), &lock), 0);
    check_code(&other, hf_lock_release(lock, &other.err), 0);
    hf_close(other.client);
    run(&other, "UPDATE holdfast_schema SET version = 0");
    check_code(&other, hf_open(other.url, NULL, &other.client, &other.err), 0);
    check_code(&other, take(&other, "x", options(5000, 0), &lock), HF_DENIED);
    check_contains("older", other.err.text, "version 0");
    hf_close(other.client);
    PQfinish(other.admin);
}

static void c1_another_default_isolation_does_no_harm(void **state)
{
    struct fixture *f = *state, other = {0};
    hf_lock *lock;

    run(f, "CREATE DATABASE strict TEMPLATE template0");
    run(f, "ALTER DATABASE strict SET default_transaction_isolation = 'serializable'");
    open_at(&other, "strict", "");
    check_code(&other, hf_setup(other.client, &other.err), 0);
    for (int i = 0; i < 3; i++) {
        check_code(&other, take(&other, "x", options(5000, 0), &lock), 0);
        check_code(&other, hf_lock_renew(lock, &other.err), 0);
        check_code(&other, hf_lock_release(lock, &other.err), 0);
    }
    hf_close(other.client);
    PQfinish(other.admin);
}

struct findings {
    char text[8000];
};

static void note_finding(int level, const char *clause, const char *text, void *arg)
{
    struct findings *all = arg;
    size_t used = strlen(all->text);

    (void)level, (void)clause;
    snprintf(all->text + used, sizeof all->text - used, "%s\n", text);
}

/* A role with no more than the rights that the schema names, and no functions. */
static void without_functions_plain_statements_keep_the_rules(void **state)
{
    struct fixture *f = *state, app = {0};
    struct findings all = {""};
    struct waiter w = {.f = &app, .name = "plain"};
    hf_lock *lock;

    run(f, "CREATE ROLE app LOGIN; GRANT SELECT, INSERT, UPDATE, DELETE ON holdfast_lock,"
           " holdfast_holder, holdfast_waiter, holdfast_retired TO app; GRANT SELECT ON"
           " holdfast_schema, holdfast_now TO app; GRANT USAGE ON SEQUENCE holdfast_line TO app;"
           " REVOKE EXECUTE ON FUNCTION holdfast_attempt FROM public");
    snprintf(app.url, sizeof app.url, "postgres://app@%s/postgres",
             getenv("HOLDFAST_TEST_POSTGRES"));
    check_code(&app, hf_open(app.url, NULL, &app.client, &app.err), 0);
    check_code(&app, take(&app, "plain", options(5000, 0), &lock), 0);
    pthread_create(&w.thread, NULL, wait_for_it, &w);
    await(f, "SELECT count(*) FROM holdfast_waiter WHERE name = 'plain' AND wake IS NOT NULL", 1);
    check_code(&app, hf_lock_release(lock, &app.err), 0);
    pthread_join(w.thread, NULL);
    check_number("waiter", w.code, 0);
    check_code(&app, hf_lock_release(w.lock, &app.err), 0);
    check_code(&app, hf_diagnose(app.client, note_finding, &all, &app.err), 0);
    check_contains("doctor", all.text, "plain statements");
    check_contains("doctor", all.text, "may read and write all tables");

    run(f, "GRANT EXECUTE ON FUNCTION holdfast_attempt TO public");
    check_code(&app, hf_diagnose(app.client, note_finding, &all, &app.err), 0);
    check_contains("doctor", all.text, "one round trip an operation");
    check_code(&app, take(&app, "plain", options(5000, 0), &lock), 0);
    check_code(&app, hf_lock_release(lock, &app.err), 0);
    hf_close(app.client);
}

static void a_wrong_server_database_or_option_is_told(void **state)
{
    static const struct {
        const char *url;
        int code;
        const char *text;
    } cases[] = {
        {"postgres://postgres@%s/nowhere", HF_DENIED, "does not exist"},
        {"postgres://nobody-at-all@%s/postgres", HF_DENIED, "check user and password"},
        {"postgres://postgres@127.0.0.1:1/postgres?op_timeout=300ms&x=%s", HF_INVALID, "x"},
        {"postgres://postgres@%s/postgres?hold=tight", HF_INVALID, "lease, session, advisory"},
        {"postgres://postgres@%s/postgres?tls=maybe", HF_INVALID, "verify, insecure, off"},
        {"postgres://postgres@%s/postgres?tls=verify", HF_UNAVAILABLE, "SSL"},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < COUNT(cases); i++) {
        char url[300];
        hf_client *client = NULL;
        hf_lock *lock = NULL;
        hf_options opt = options(5000, 0);
        snprintf(url, sizeof url, cases[i].url, getenv("HOLDFAST_TEST_POSTGRES"));
        int code = hf_open(url, NULL, &client, &f->err);
        if (code == 0)
            code = hf_acquire(client, "x", HF_NTS, &opt, &lock, &f->err);
        check_code(f, code, cases[i].code);
        check_contains(cases[i].url, f->err.text, cases[i].text);
        hf_close(client);
    }
}

static void a_dead_first_host_is_passed_over(void **state)
{
    struct fixture *f = *state;
    hf_client *client = NULL;
    hf_lock *lock;
    hf_options opt = options(5000, 0);
    char url[300];

    snprintf(url, sizeof url, "postgres://postgres@127.0.0.1:1,%s/postgres",
             getenv("HOLDFAST_TEST_POSTGRES"));
    check_code(f, hf_open(url, NULL, &client, &f->err), 0);
    check_code(f, hf_acquire(client, "hosts", HF_NTS, &opt, &lock, &f->err), 0);
    check_number("named",
                 number(f, "SELECT count(*) FROM pg_stat_activity WHERE application_name"
                           " LIKE 'holdfast: test_postgres%'") > 0,
                 1);
    check_code(f, hf_lock_release(lock, &f->err), 0);
    hf_close(client);
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(c7_terminated_connections_lose_no_lock),
        CASE(c12_waiter_whose_listener_was_terminated_still_gets_it),
        CASE(c6_deadlocks_and_serialization_failures_are_tried_again),
        CASE(c6_refusals_of_the_server_are_told_and_leave_nothing),
        CASE(a_missing_schema_says_what_to_do_and_setup_makes_it),
        CASE(c1_another_default_isolation_does_no_harm),
        CASE(without_functions_plain_statements_keep_the_rules),
        CASE(a_wrong_server_database_or_option_is_told),
        CASE(a_dead_first_host_is_passed_over),
    };

    return cmocka_run_group_tests_name("postgres_faults", tests, NULL, NULL);
}
