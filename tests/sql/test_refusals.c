/* What goes wrong on a real server, and what the caller sees of it. */
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "lib/check.h"
#include "sql/refusals.h"

#define OWN_CASES_MAX 8

static hf_client *open_url(struct refusals *f, const char *account, const char *hosts,
                           const char *rest)
{
    char url[300];
    hf_client *client = NULL;

    snprintf(url, sizeof url, "%s://%s@%s%s/%s", server_scheme, account, hosts, server_address(),
             rest);
    if (hf_open(url, NULL, &client, &f->err) != 0)
        fail_msg("%s", f->err.text);
    return client;
}

hf_client *refusals_open(struct refusals *f, const char *account, const char *rest)
{
    return open_url(f, account, "", rest);
}

static int setup(void **state)
{
    struct refusals *f = calloc(1, sizeof *f);

    assert_non_null(f);
    f->admin = server_open(server_database);
    f->client = refusals_open(f, server_account, server_database);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct refusals *f = *state;

    hf_close(f->client);
    server_close(f->admin);
    free(f);
    return 0;
}

static hf_options options(int64_t wait_ms)
{
    hf_options opt = HF_OPTIONS_INIT;
    static uint64_t owner = 1000;

    opt.ttl_ms = 20000;
    opt.wait_ms = wait_ms;
    opt.owner = __atomic_add_fetch(&owner, 1, __ATOMIC_RELAXED);
    return opt;
}

int refusals_take(struct refusals *f, hf_client *client, const char *name, hf_lock **ret_lock)
{
    hf_options opt = options(0);

    return hf_acquire(client, name, HF_NTS, &opt, ret_lock, &f->err);
}

void refusals_check(const struct refusals *f, int got, int wanted)
{
    if (got != wanted)
        fail_msg("got %d, wanted %d: %s", got, wanted, f->err.text);
}

static void take(struct refusals *f, hf_client *client, const char *name, hf_lock **ret_lock)
{
    refusals_check(f, refusals_take(f, client, name, ret_lock), 0);
}

static void release(struct refusals *f, hf_lock *lock)
{
    refusals_check(f, hf_lock_release(lock, &f->err), 0);
}

static void *wait_for_it(void *arg)
{
    struct refusals_waiter *w = arg;
    hf_options opt = options(AWAIT_MS);
    hf_error err;

    w->code = hf_acquire(w->client, w->name, HF_NTS, &opt, &w->lock, &err);
    return NULL;
}

void refusals_wait(struct refusals_waiter *w)
{
    assert_int_equal(pthread_create(&w->thread, NULL, wait_for_it, w), 0);
}

static void c7_killed_connections_lose_no_lock(void **state)
{
    struct refusals *f = *state;
    hf_lock *lock;

    take(f, f->client, "kill", &lock);
    kill_connections(f->admin);
    server_await(f->admin, connections, 0);
    refusals_check(f, hf_lock_renew(lock, &f->err), 0);
    /* A new server may have forgotten it, so it is renewed once more in the background, perhaps on a
     * connection that is made only now. */
    for (int i = 0; i < AWAIT_MS / 5 && server_number(f->admin, connections) > 0; i++) {
        kill_connections(f->admin);
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
    release(f, lock);
    check_number("rows",
                 server_number(f->admin, "SELECT COUNT(*) FROM holdfast_now WHERE name = 'kill'"),
                 0);
}

/* Nobody would ask about the lock for a while, but something else reconnects. */
static void c7_lock_that_a_failover_forgot_is_told_lost_at_the_reconnect(void **state)
{
    struct refusals *f = *state;
    hf_options opt = options(0);
    hf_lock *lock, *other;

    opt.ttl_ms = 20 * AWAIT_MS;
    refusals_check(f, hf_acquire(f->client, "forgotten", HF_NTS, &opt, &lock, &f->err), 0);
    struct pollfd fd = {.fd = hf_lock_fd(lock), .events = POLLIN};
    for (size_t i = 0; forget_grants[i] != NULL; i++)
        server_run(f->admin, forget_grants[i]);
    kill_connections(f->admin);
    server_await(f->admin, connections, 0);
    check_number("not told yet", poll(&fd, 1, 0), 0);
    take(f, f->client, "reconnects", &other);
    check_number("told", poll(&fd, 1, AWAIT_MS), 1);
    check_number("state", hf_lock_state(lock), HF_STATE_LOST);
    release(f, other);
    hf_lock_release(lock, &f->err);
}

static void c12_waiter_whose_listener_was_killed_still_gets_it(void **state)
{
    struct refusals *f = *state;
    struct refusals_waiter w = {.client = f->client, .name = "ear"};
    hf_lock *lock;

    take(f, f->client, "ear", &lock);
    refusals_wait(&w);
    server_await(f->admin,
                 "SELECT COUNT(*) FROM holdfast_waiter WHERE name = 'ear' AND wake IS NOT NULL", 1);
    kill_connections(f->admin);
    release(f, lock);
    pthread_join(w.thread, NULL);
    check_number("waiter", w.code, 0);
    release(f, w.lock);
}

static void c6_conflicts_are_tried_again(void **state)
{
    struct refusals *f = *state;

    for (size_t i = 0; conflicts[i] != NULL; i++) {
        hf_lock *lock = NULL;
        refuse(f->admin, conflicts[i], 5);
        int code = refusals_take(f, f->client, "again", &lock);
        int64_t tries = server_number(f->admin, refusals_tried);
        stop_refusing(f->admin);
        refusals_check(f, code, 0);
        check_number("tries", tries, 6);
        release(f, lock);
    }
}

static void c6_refusals_of_the_server_are_told_and_leave_nothing(void **state)
{
    struct refusals *f = *state;
    char rest[80];

    snprintf(rest, sizeof rest, "%s?op_timeout=300ms", server_database);
    for (const struct refusal *r = refusals; r->what != NULL; r++) {
        hf_client *hasty = refusals_open(f, server_account, rest);
        hf_lock *lock = NULL;
        refuse(f->admin, r->what, 1000000);
        int code = refusals_take(f, hasty, "refused", &lock);
        stop_refusing(f->admin);
        refusals_check(f, code, r->code);
        check_contains(r->what, f->err.text, r->text);
        hf_close(hasty);
        check_number(
            "rows",
            server_number(f->admin, "SELECT COUNT(*) FROM holdfast_now WHERE name = 'refused'"), 0);
    }
}

/* After this statement a new client is told this, and what a DBA can do. */
static void check_refused_in_bare(struct refusals *f, struct server *bare, const char *sql,
                                  const char *part)
{
    hf_client *client = refusals_open(f, admin_account, "bare");
    hf_lock *lock;

    server_run(bare, sql);
    refusals_check(f, refusals_take(f, client, "x", &lock), HF_DENIED);
    check_contains("why", f->err.text, part);
    check_contains("what to do", f->err.text, "holdfast setup");
    hf_close(client);
}

static void missing_or_older_tables_and_routines_say_what_to_do(void **state)
{
    struct refusals *f = *state;
    hf_lock *lock;

    server_run(f->admin, "CREATE DATABASE bare");
    hf_client *client = refusals_open(f, admin_account, "bare");
    refusals_check(f, refusals_take(f, client, "x", &lock), HF_DENIED);
    check_contains("missing", f->err.text, "holdfast setup");
    refusals_check(f, hf_setup(client, &f->err), 0);
    refusals_check(f, hf_setup(client, &f->err), 0);
    take(f, client, "x", &lock);
    release(f, lock);
    struct server *bare = server_open("bare");
    check_refused_in_bare(f, bare, drop_version,
                          "or those of an older holdfast; run `holdfast setup`");
    check_refused_in_bare(f, bare, lower_version, "are of version 1");
    refusals_check(f, hf_setup(client, &f->err), 0);
    take(f, client, "x", &lock);
    release(f, lock);
    hf_close(client);
    check_refused_in_bare(f, bare, "UPDATE holdfast_schema SET version = 0", "version 0");
    server_close(bare);
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

static void check_doctor(struct refusals *f, hf_client *client, const char *part)
{
    struct findings all = {""};

    refusals_check(f, hf_diagnose(client, note_finding, &all, &f->err), 0);
    check_contains("doctor", all.text, part);
    check_contains("doctor", all.text, "may read and write all tables");
}

/* A DBA has run `holdfast setup`, or applied what it prints. */
static void an_account_that_may_create_nothing_can_lock(void **state)
{
    struct refusals *f = *state;
    struct refusals_waiter w = {.name = "least"};
    hf_lock *lock;

    make_least_account(f->admin);
    w.client = refusals_open(f, least_account, server_database);
    take(f, w.client, "least", &lock);
    refusals_wait(&w);
    server_await(f->admin,
                 "SELECT COUNT(*) FROM holdfast_waiter WHERE name = 'least' AND wake IS NOT NULL",
                 1);
    release(f, lock);
    pthread_join(w.thread, NULL);
    check_number("waiter", w.code, 0);
    release(f, w.lock);
    check_doctor(f, w.client, "one round trip an operation");
    refusals_check(f, hf_setup(w.client, &f->err), 0);
    hf_close(w.client);

    server_run(f->admin, revoke_routines);
    w.client = refusals_open(f, least_account, server_database);
    refusals_check(f, refusals_take(f, w.client, "least", &lock), HF_DENIED);
    check_contains("without the right", f->err.text, "holdfast setup --print");
    server_run(f->admin, grant_routines);
    take(f, w.client, "least", &lock); /* the same client */
    release(f, lock);
    hf_close(w.client);
}

static void a_wrong_server_login_or_option_is_told(void **state)
{
    struct refusals *f = *state;

    for (const struct refusal *r = refused_urls; r->what != NULL; r++) {
        char url[300];
        hf_client *client = NULL;
        hf_lock *lock = NULL;
        snprintf(url, sizeof url, r->what, server_address());
        int code = hf_open(url, NULL, &client, &f->err);
        if (code == 0)
            code = refusals_take(f, client, "x", &lock);
        refusals_check(f, code, r->code);
        check_contains(r->what, f->err.text, r->text);
        check_lacks("secret", f->err.text, "secret");
        hf_close(client);
    }
}

static void a_dead_first_host_is_passed_over(void **state)
{
    struct refusals *f = *state;
    hf_client *client = open_url(f, server_account, "127.0.0.1:1,", server_database);
    hf_lock *lock;

    take(f, client, "hosts", &lock);
    if (connections_by_name != NULL)
        assert_true(server_number(f->admin, connections_by_name) > 0);
    release(f, lock);
    hf_close(client);
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest common[] = {
        CASE(c7_killed_connections_lose_no_lock),
        CASE(c7_lock_that_a_failover_forgot_is_told_lost_at_the_reconnect),
        CASE(c12_waiter_whose_listener_was_killed_still_gets_it),
        CASE(c6_conflicts_are_tried_again),
        CASE(c6_refusals_of_the_server_are_told_and_leave_nothing),
        CASE(missing_or_older_tables_and_routines_say_what_to_do),
        CASE(an_account_that_may_create_nothing_can_lock),
        CASE(a_wrong_server_login_or_option_is_told),
        CASE(a_dead_first_host_is_passed_over),
    };
    struct CMUnitTest own[OWN_CASES_MAX];
    size_t count = 0;

    for (const struct own_case *c = own_cases; c->name != NULL && count < OWN_CASES_MAX; c++)
        own[count++] = (struct CMUnitTest){c->name, c->run, setup, teardown, NULL};
    int failed = cmocka_run_group_tests_name("sql_refusals", common, NULL, NULL);
    return failed + _cmocka_run_group_tests("own_refusals", own, count, NULL, NULL);
}
