/* What goes wrong on a real server, and what the caller sees of it. */
#include <mysql.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "holdfast.h"
#include "lib/check.h"

#define AWAIT_MS 15000

struct fixture {
    MYSQL *admin; /* root, in the database of the locks */
    hf_client *client;
    hf_error err;
};

static void run(struct fixture *f, const char *sql)
{
    if (mysql_query(f->admin, sql) != 0)
        fail_msg("%.200s: %s", sql, mysql_error(f->admin));
}

static int64_t number(struct fixture *f, const char *sql)
{
    run(f, sql);
    MYSQL_RES *result = mysql_store_result(f->admin);
    assert_non_null(result);
    MYSQL_ROW row = mysql_fetch_row(result);
    int64_t n = row != NULL && row[0] != NULL ? strtoll(row[0], NULL, 10) : 0;
    mysql_free_result(result);
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

static hf_client *open_at(struct fixture *f, const char *login, const char *rest)
{
    char url[300];
    hf_client *client = NULL;

    snprintf(url, sizeof url, "mysql://%s@%s/%s", login, getenv("HOLDFAST_TEST_MARIADB"), rest);
    if (hf_open(url, NULL, &client, &f->err) != 0)
        fail_msg("%s", f->err.text);
    return client;
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    assert_non_null(f);
    f->admin = mysql_init(NULL);
    if (mysql_real_connect(f->admin, NULL, "root", NULL, "locks", 0,
                           getenv("HOLDFAST_TEST_MARIADB_SOCKET"), 0) == NULL)
        fail_msg("%s", mysql_error(f->admin));
    f->client = open_at(f, "app:secret", "locks");
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    hf_close(f->client);
    mysql_close(f->admin);
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

static int take(struct fixture *f, hf_client *client, const char *name, hf_lock **ret_lock)
{
    hf_options opt = options(20000, 0);

    return hf_acquire(client, name, HF_NTS, &opt, ret_lock, &f->err);
}

static void check_code(const struct fixture *f, int got, int wanted)
{
    if (got != wanted)
        fail_msg("got %d, wanted %d: %s", got, wanted, f->err.text);
}

struct waiter {
    hf_client *client;
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

    w->code = hf_acquire(w->client, w->name, HF_NTS, &opt, &w->lock, &err);
    return NULL;
}

/* KILL takes no list. */
static void kill_connections(struct fixture *f)
{
    run(f, "SELECT CONCAT('KILL CONNECTION ', id) FROM information_schema.processlist WHERE"
           " user = 'app'");
    MYSQL_RES *result = mysql_store_result(f->admin);
    for (MYSQL_ROW row; (row = mysql_fetch_row(result)) != NULL;)
        mysql_query(f->admin, row[0]);
    mysql_free_result(result);
}

static void await_no_connection(struct fixture *f)
{
    await(f, "SELECT COUNT(*) FROM information_schema.processlist WHERE user = 'app'", 0);
}

static void c7_killed_connections_lose_no_lock(void **state)
{
    struct fixture *f = *state;
    hf_lock *lock;

    check_code(f, take(f, f->client, "kill", &lock), 0);
    kill_connections(f);
    await_no_connection(f);
    check_code(f, hf_lock_renew(lock, &f->err), 0);
    kill_connections(f);
    await_no_connection(f);
    check_code(f, hf_lock_release(lock, &f->err), 0);
    check_number("rows", number(f, "SELECT COUNT(*) FROM holdfast_now WHERE name = 'kill'"), 0);
}

static void c12_waiter_whose_listener_was_killed_still_gets_it(void **state)
{
    struct fixture *f = *state;
    struct waiter w = {.client = f->client, .name = "ear"};
    hf_lock *lock;

    check_code(f, take(f, f->client, "ear", &lock), 0);
    pthread_create(&w.thread, NULL, wait_for_it, &w);
    await(f, "SELECT COUNT(*) FROM holdfast_waiter WHERE name = 'ear' AND wake IS NOT NULL", 1);
    kill_connections(f);
    check_code(f, hf_lock_release(lock, &f->err), 0);
    pthread_join(w.thread, NULL);
    check_number("waiter", w.code, 0);
    check_code(f, hf_lock_release(w.lock, &f->err), 0);
}

/* Numbers of connections begin anew with the server: whoever has ours now must be left alone. */
static void c12_a_strangers_statement_is_not_ended(void **state)
{
    struct fixture *f = *state;
    char sql[200];

    snprintf(sql, sizeof sql, "CALL holdfast_call('%lu 00112233445566778899aabbccddeeff,')",
             mysql_thread_id(f->admin));
    MYSQL *other = mysql_init(NULL);
    assert_non_null(mysql_real_connect(other, NULL, "root", NULL, "locks", 0,
                                       getenv("HOLDFAST_TEST_MARIADB_SOCKET"), 0));
    assert_int_equal(mysql_send_query(f->admin, "SELECT SLEEP(0.3)", 17), 0);
    assert_int_equal(mysql_query(other, sql), 0);
    assert_int_equal(mysql_read_query_result(f->admin), 0);
    MYSQL_RES *result = mysql_store_result(f->admin);
    assert_string_equal(mysql_fetch_row(result)[0], "0");
    mysql_free_result(result);
    mysql_close(other);
}

/* When somebody is let in, which is in the middle of the transaction. */
static void refuse(struct fixture *f, const char *how)
{
    char sql[300];

    snprintf(sql, sizeof sql,
             "CREATE TRIGGER refuse BEFORE UPDATE ON holdfast_lock FOR EACH ROW"
             " IF NEW.inside IS NOT NULL THEN %s; END IF",
             how);
    run(f, "DROP TABLE IF EXISTS refusals");
    run(f, "CREATE TABLE refusals (n INT NOT NULL) ENGINE = Aria"); /* counts what is rolled back */
    run(f, "INSERT INTO refusals VALUES (0)");
    run(f, sql);
}

static void c6_deadlocks_are_tried_again(void **state)
{
    struct fixture *f = *state;
    hf_lock *lock = NULL;

    refuse(f, "BEGIN UPDATE refusals SET n = n + 1; IF (SELECT n FROM refusals) <= 5 THEN"
              " SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = 1213, MESSAGE_TEXT = 'x'; END IF; END");
    int code = take(f, f->client, "again", &lock);
    run(f, "DROP TRIGGER refuse");
    check_code(f, code, 0);
    check_number("tries", number(f, "SELECT n FROM refusals"), 6);
    check_code(f, hf_lock_release(lock, &f->err), 0);
}

static void c6_refusals_of_the_server_are_told_and_leave_nothing(void **state)
{
    static const struct {
        const char *number;
        int code;
        const char *text;
    } cases[] = {
        {"1021", HF_FULL, "full"},
        {"1114", HF_FULL, "full"},
        {"1142", HF_DENIED, "rights"},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < COUNT(cases); i++) {
        hf_client *hasty = open_at(f, "app:secret", "locks?op_timeout=300ms");
        hf_lock *lock = NULL;
        char how[160];
        snprintf(how, sizeof how,
                 "SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = %s, MESSAGE_TEXT = 'x'",
                 cases[i].number);
        refuse(f, how);
        int code = take(f, hasty, "refused", &lock);
        run(f, "DROP TRIGGER refuse");
        check_code(f, code, cases[i].code);
        check_contains(cases[i].number, f->err.text, cases[i].text);
        hf_close(hasty);
        check_number("rows", number(f, "SELECT COUNT(*) FROM holdfast_now WHERE name = 'refused'"),
                     0);
    }
}

static void a_missing_or_older_schema_says_what_to_do(void **state)
{
    struct fixture *f = *state;
    hf_client *client;
    hf_lock *lock;

    run(f, "CREATE DATABASE bare");
    client = open_at(f, "root", "bare");
    check_code(f, take(f, client, "x", &lock), HF_DENIED);
    check_contains("missing", f->err.text, "holdfast setup");
    check_code(f, hf_setup(client, &f->err), 0);
    check_code(f, hf_setup(client, &f->err), 0);
    check_code(f, take(f, client, "x", &lock), 0);
    check_code(f, hf_lock_release(lock, &f->err), 0);
    hf_close(client);
    run(f, "UPDATE bare.holdfast_schema SET version = 0");
    client = open_at(f, "root", "bare");
    check_code(f, take(f, client, "x", &lock), HF_DENIED);
    check_contains("older", f->err.text, "version 0");
    hf_close(client);
}

static void note_finding(int level, const char *clause, const char *text, void *arg)
{
    char *all = arg;
    size_t used = strlen(all);

    (void)level, (void)clause;
    snprintf(all + used, 8000 - used, "%s\n", text);
}

static void without_procedures_plain_statements_keep_the_rules(void **state)
{
    struct fixture *f = *state;
    struct waiter w = {.name = "plain"};
    char all[8000] = "";
    hf_lock *lock;

    run(f, "CREATE USER plain IDENTIFIED BY 'secret'");
    run(f, "GRANT SELECT, INSERT, UPDATE, DELETE ON locks.* TO plain");
    w.client = open_at(f, "plain:secret", "locks");
    check_code(f, take(f, w.client, "plain", &lock), 0);
    pthread_create(&w.thread, NULL, wait_for_it, &w);
    await(f, "SELECT COUNT(*) FROM holdfast_waiter WHERE name = 'plain'", 1);
    check_code(f, hf_lock_release(lock, &f->err), 0);
    pthread_join(w.thread, NULL);
    check_number("waiter", w.code, 0);
    check_code(f, hf_lock_release(w.lock, &f->err), 0);
    check_code(f, hf_diagnose(w.client, note_finding, all, &f->err), 0);
    check_contains("doctor", all, "plain statements");
    hf_close(w.client);
}

static void a_wrong_server_login_or_option_is_told(void **state)
{
    static const struct {
        const char *url;
        int code;
        const char *text;
    } cases[] = {
        {"mysql://app:secret@%s/nowhere", HF_DENIED, "rights"},
        {"mysql://app:wrong@%s/locks", HF_DENIED, "check user and password"},
        {"mysql://app:secret@%s/locks?tls=maybe", HF_INVALID, "verify, insecure, off"},
        {"mysql://app:secret@%s/locks?tls=verify", HF_DENIED, "tls=off"},
        {"mysql://app:secret@%s/locks?tls=insecure", HF_DENIED, "tls=off"},
        {"mysql://app:secret@%s/", HF_INVALID, "name a database"},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < COUNT(cases); i++) {
        char url[300];
        hf_client *client = NULL;
        hf_lock *lock = NULL;
        snprintf(url, sizeof url, cases[i].url, getenv("HOLDFAST_TEST_MARIADB"));
        int code = hf_open(url, NULL, &client, &f->err);
        if (code == 0)
            code = take(f, client, "x", &lock);
        check_code(f, code, cases[i].code);
        check_contains(cases[i].url, f->err.text, cases[i].text);
        check_lacks("secret", f->err.text, "secret");
        hf_close(client);
    }
}

static void a_dead_first_host_is_passed_over(void **state)
{
    struct fixture *f = *state;
    hf_client *client = NULL;
    hf_lock *lock;
    char url[300];

    snprintf(url, sizeof url, "mysql://app:secret@127.0.0.1:1,%s/locks",
             getenv("HOLDFAST_TEST_MARIADB"));
    check_code(f, hf_open(url, NULL, &client, &f->err), 0);
    check_code(f, take(f, client, "hosts", &lock), 0);
    check_code(f, hf_lock_release(lock, &f->err), 0);
    hf_close(client);
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(c7_killed_connections_lose_no_lock),
        CASE(c12_waiter_whose_listener_was_killed_still_gets_it),
        CASE(c12_a_strangers_statement_is_not_ended),
        CASE(c6_deadlocks_are_tried_again),
        CASE(c6_refusals_of_the_server_are_told_and_leave_nothing),
        CASE(a_missing_or_older_schema_says_what_to_do),
        CASE(without_procedures_plain_statements_keep_the_rules),
        CASE(a_wrong_server_login_or_option_is_told),
        CASE(a_dead_first_host_is_passed_over),
    };

    return cmocka_run_group_tests_name("mysql_faults", tests, NULL, NULL);
}
