/* hold=session and hold=advisory on either server: what a lock that lives as long as a connection
 * owes its user. */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "holdfast.h"
#include "lib/check.h"
#include "sql/server.h"

struct fixture {
    struct server *admin;
    const char *hold;
    hf_error err;
};

static hf_client *open_at(struct fixture *f, const char *server, const char *options)
{
    hf_client *client = NULL;
    char url[200];

    snprintf(url, sizeof url, "%s://%s@%s/%s?hold=%s%s", server_scheme, server_account, server,
             server_database, f->hold, options);
    if (hf_open(url, NULL, &client, &f->err) != 0)
        fail_msg("%s", f->err.text);
    return client;
}

static hf_client *open_client(struct fixture *f)
{
    return open_at(f, server_address(), "&op_timeout=2s");
}

static int take(struct fixture *f, hf_client *client, const char *name, int64_t wait_ms,
                hf_lock **ret_lock)
{
    static uint64_t owner = 100;
    hf_options opt = HF_OPTIONS_INIT;

    opt.wait_ms = wait_ms;
    opt.owner = ++owner;
    return hf_acquire(client, name, HF_NTS, &opt, ret_lock, &f->err);
}

static void check_code(const struct fixture *f, int got, int wanted)
{
    if (got != wanted)
        fail_msg("got %d, wanted %d: %s", got, wanted, f->err.text);
}

struct waiting {
    struct fixture *f;
    hf_client *client;
    const char *name;
    int64_t wait_ms;
    pthread_t thread;
    int code;
};

static void *wait_for_it(void *arg)
{
    struct waiting *w = arg;
    hf_lock *lock = NULL;

    w->code = take(w->f, w->client, w->name, w->wait_ms, &lock);
    return NULL;
}

static void c7_lost_connection_is_lost_at_once_and_told_by_the_descriptor(void **state)
{
    struct fixture *f = *state;
    hf_client *client = open_client(f);
    hf_lock *lock;

    check_code(f, take(f, client, "lost", 0, &lock), 0);
    struct pollfd fd = {.fd = hf_lock_fd(lock), .events = POLLIN};
    server_end_sessions(f->admin);
    check_number("told", poll(&fd, 1, AWAIT_MS), 1);
    check_number("state", hf_lock_state(lock), HF_STATE_LOST);
    check_code(f, hf_lock_release(lock, &f->err), HF_STALE);
    check_code(f, take(f, client, "lost", 0, &lock), 0);
    check_code(f, hf_lock_release(lock, &f->err), 0);
    hf_close(client);
}

/* Nobody can be asked to end what the server may keep of it, and that must not hold up the word. */
static void c7_loss_is_told_although_the_server_takes_no_new_connections(void **state)
{
    struct fixture *f = *state;

    if (strcmp(server_scheme, "postgres") != 0)
        skip(); /* one process: if it does not move, nothing is lost */
    hf_client *client = open_at(f, server_address(), "&op_timeout=20s");
    pid_t postmaster = (pid_t)strtol(getenv("HOLDFAST_TEST_POSTGRES_PID"), NULL, 10);
    hf_lock *locks[2];

    check_code(f, take(f, client, "mute", 0, &locks[0]), 0);
    check_code(f, take(f, client, "mute too", 0, &locks[1]), 0);
    assert_int_equal(kill(postmaster, SIGSTOP), 0);
    server_end_sessions(f->admin);
    for (int i = 0; i < 2; i++) {
        struct pollfd fd = {.fd = hf_lock_fd(locks[i]), .events = POLLIN};
        int told = poll(&fd, 1, 10000);
        if (told != 1)
            kill(postmaster, SIGCONT);
        check_number("told", told, 1);
    }
    assert_int_equal(kill(postmaster, SIGCONT), 0);
    check_code(f, hf_lock_release(locks[0], &f->err), HF_STALE);
    check_code(f, hf_lock_release(locks[1], &f->err), HF_STALE);
    hf_close(client);
}

static int64_t processor_ms(void)
{
    struct timespec used;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return used.tv_sec * 1000 + used.tv_nsec / 1000000;
}

/* The child has a copy of the connection, so it is not over for the kernel when it is closed. */
static void c13_lost_connection_keeps_nobody_busy_although_a_child_has_a_copy(void **state)
{
    struct fixture *f = *state;
    hf_client *client = open_client(f);
    hf_lock *lock;

    check_code(f, take(f, client, "forked", 0, &lock), 0);
    pid_t child = fork();
    if (child == 0) {
        pause();
        _exit(0);
    }
    struct pollfd fd = {.fd = hf_lock_fd(lock), .events = POLLIN};
    server_end_sessions(f->admin);
    int told = poll(&fd, 1, AWAIT_MS);
    int64_t before_ms = processor_ms();
    poll(NULL, 0, 400);
    int64_t used_ms = processor_ms() - before_ms;
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    check_number("told", told, 1);
    if (used_ms > 50)
        fail_msg("of 400 ms it was busy for %d", (int)used_ms);
    check_code(f, hf_lock_release(lock, &f->err), HF_STALE);
    hf_close(client);
}

/* Sockets that a program would have after exec. */
static int inherited_sockets(void)
{
    struct stat is;
    int count = 0;

    for (int fd = 3; fd < 1024; fd++) {
        int flags = fcntl(fd, F_GETFD);
        count += flags >= 0 && !(flags & FD_CLOEXEC) && fstat(fd, &is) == 0 && S_ISSOCK(is.st_mode);
    }
    return count;
}

/* It could ask the server whatever we may, and would keep the lock after our death. */
static void c13_program_that_is_executed_inherits_no_connection(void **state)
{
    struct fixture *f = *state;
    int before = inherited_sockets();
    hf_client *client = open_client(f);
    hf_lock *lock;

    check_code(f, take(f, client, "exec", 0, &lock), 0);
    check_number("sockets", inherited_sockets(), before);
    check_code(f, hf_lock_release(lock, &f->err), 0);
    hf_close(client);
}

static void c5_waiter_that_was_killed_is_not_granted(void **state)
{
    struct fixture *f = *state;
    int ready[2];
    hf_lock *lock;

    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        struct fixture own = {.hold = f->hold};
        hf_client *waiter = open_client(&own);
        char go;
        if (read(ready[0], &go, 1) == 1)
            take(&own, waiter, "dead", HF_FOREVER, &lock);
        _exit(0);
    }
    hf_client *client = open_client(f);
    check_code(f, take(f, client, "dead", 0, &lock), 0);
    assert_int_equal(write(ready[1], "x", 1), 1);
    server_await(f->admin, server_waiters, 1);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    server_await(f->admin, server_waiters, 0);
    check_code(f, hf_lock_release(lock, &f->err), 0);
    check_code(f, take(f, client, "dead", AWAIT_MS, &lock), 0);
    check_code(f, hf_lock_release(lock, &f->err), 0);
    hf_close(client);
    close(ready[0]);
    close(ready[1]);
}

/* The server's side does not move, so nobody can say that the wait is over: then it is not said. It
 * goes on being ended, and when it moves again it is ended before it can be granted. */
static void c5_wait_that_the_server_does_not_end_is_unknown_until_it_has(void **state)
{
    struct fixture *f = *state;

    if (strcmp(server_scheme, "postgres") != 0)
        skip(); /* one process, whose threads cannot be stopped one by one */
    hf_client *holder = open_client(f), *waiter = open_at(f, server_address(), "&op_timeout=600ms");
    hf_lock *lock, *none;
    struct waiting w = {.f = f, .client = waiter, .name = "stuck", .wait_ms = 1500};

    check_code(f, take(f, waiter, "warm", 0, &none), 0);
    check_code(f, hf_lock_release(none, &f->err), 0);
    check_code(f, take(f, holder, "stuck", 0, &lock), 0);
    pthread_create(&w.thread, NULL, wait_for_it, &w);
    server_await(f->admin, server_waiters, 1);
    pid_t backend =
        (pid_t)server_number(f->admin, "SELECT l.pid FROM pg_locks l WHERE NOT l.granted");
    assert_int_equal(kill(backend, SIGSTOP), 0);
    pthread_join(w.thread, NULL);
    assert_int_equal(kill(backend, SIGCONT), 0);
    check_number("outcome", w.code, HF_UNKNOWN);
    server_await(f->admin, server_waiters, 0);
    check_code(f, hf_lock_release(lock, &f->err), 0);
    check_code(f, take(f, holder, "stuck", 0, &lock), 0);
    check_code(f, hf_lock_release(lock, &f->err), 0);
    hf_close(waiter);
    hf_close(holder);
}

/* What a DBA allows an idle session, or a statement, is not meant for one that keeps a lock. */
static void limits_of_the_server_end_neither_lock_nor_wait(void **state)
{
    struct fixture *f = *state;

    for (const char *const *limit = server_hold_limits; *limit != NULL; limit++)
        server_run(f->admin, *limit);
    hf_client *holder = open_client(f), *waiter = open_client(f);
    hf_lock *lock;
    struct waiting w = {.f = f, .client = waiter, .name = "idle", .wait_ms = AWAIT_MS};

    check_code(f, take(f, holder, "idle", 0, &lock), 0);
    pthread_create(&w.thread, NULL, wait_for_it, &w);
    server_await(f->admin, server_waiters, 1);
    struct pollfd fd = {.fd = hf_lock_fd(lock), .events = POLLIN};
    int lost = poll(&fd, 1, 1800);
    for (const char *const *limit = server_hold_unlimits; *limit != NULL; limit++)
        server_run(f->admin, *limit);
    check_code(f, hf_lock_release(lock, &f->err), lost ? HF_STALE : 0);
    pthread_join(w.thread, NULL);
    check_number("lost", lost, 0);
    check_number("waiter", w.code, 0);
    hf_close(waiter);
    hf_close(holder);
}

static void connections_are_bounded(void **state)
{
    struct fixture *f = *state;
    hf_client *client = open_at(f, server_address(), "&max_held=2&op_timeout=300ms");
    hf_lock *locks[3];

    check_code(f, take(f, client, "a", 0, &locks[0]), 0);
    check_code(f, take(f, client, "b", 0, &locks[1]), 0);
    check_code(f, take(f, client, "c", 0, &locks[2]), HF_UNAVAILABLE);
    check_contains("bound", f->err.text, "max_held");
    check_code(f, hf_lock_release(locks[0], &f->err), 0);
    check_code(f, take(f, client, "c", 0, &locks[2]), 0);
    hf_close(client);
    hf_lock_release(locks[1], NULL);
    hf_lock_release(locks[2], NULL);
}

static void a_pooler_is_refused(void **state)
{
    struct fixture *f = *state;

    if (getenv("HOLDFAST_TEST_PGBOUNCER") == NULL)
        skip();
    hf_client *client = open_at(f, getenv("HOLDFAST_TEST_PGBOUNCER"), "");
    hf_lock *lock;

    check_code(f, take(f, client, "x", 0, &lock), HF_DENIED);
    check_contains("pooler", f->err.text, "a pooler stands between");
    hf_close(client);
}

static void what_needs_a_lease_is_refused(void **state)
{
    struct fixture *f = *state;
    hf_client *client = open_client(f);
    hf_options opt = HF_OPTIONS_INIT;
    hf_lock *lock;

    opt.max_hold_ms = 1000;
    check_code(f, hf_acquire(client, "x", HF_NTS, &opt, &lock, &f->err), HF_UNSUPPORTED);
    check_code(f, take(f, client, "x", 0, &lock), 0);
    check_code(f, hf_lock_detach(lock, &f->err), HF_UNSUPPORTED);
    check_code(f, hf_lock_release(lock, &f->err), 0);
    hf_close(client);
}

static void c4_rollback_does_not_repeat_a_generation(void **state)
{
    struct fixture *f = *state;
    hf_client *client = open_client(f);
    uint64_t first = 0, second = 0;
    hf_lock *lock;

    check_code(f, take(f, client, "token", 0, &lock), 0);
    hf_lock_generation(lock, &first);
    struct pollfd fd = {.fd = hf_lock_fd(lock), .events = POLLIN};
    server_end_sessions(f->admin);
    check_number("told", poll(&fd, 1, AWAIT_MS), 1);
    hf_lock_release(lock, NULL);
    check_code(f, take(f, client, "token", AWAIT_MS, &lock), 0);
    hf_lock_generation(lock, &second);
    assert_true(second > first && first > 0);
    check_code(f, hf_lock_release(lock, &f->err), 0);
    hf_close(client);
}

/* The client still has it noted that the name is registered. */
static void
c4_names_that_nobody_wants_are_purged_and_come_back_with_higher_generations(void **state)
{
    struct fixture *f = *state;

    if (strcmp(server_scheme, "postgres") != 0)
        skip(); /* no rows of names */
    hf_client *client = open_client(f);
    uint64_t first = 0, second = 0, count = 0;
    hf_lock *held, *lock;

    check_code(f, take(f, client, "gc-held", 0, &held), 0);
    check_code(f, take(f, client, "gc-free", 0, &lock), 0);
    hf_lock_generation(lock, &first);
    check_code(f, hf_lock_release(lock, &f->err), 0);
    check_code(f, hf_purge(client, 1, &count, &f->err), 0);
    assert_true(count >= 1);
    check_number(
        "names",
        server_number(f->admin, "SELECT count(*) FROM holdfast_name WHERE name LIKE 'gc-%'"), 1);
    check_code(f, take(f, client, "gc-free", AWAIT_MS, &lock), 0);
    hf_lock_generation(lock, &second);
    assert_true(second > first && first > 0);
    check_code(f, take(f, client, "gc-free", 0, &lock), HF_BUSY);
    check_code(f, take(f, client, "gc-held", 0, &lock), HF_BUSY);
    hf_close(client);
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    assert_non_null(f);
    f->hold = getenv("HOLDFAST_TEST_HOLD");
    f->admin = server_open(server_database);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    server_close(f->admin);
    free(f);
    return 0;
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(c7_lost_connection_is_lost_at_once_and_told_by_the_descriptor),
        CASE(c7_loss_is_told_although_the_server_takes_no_new_connections),
        CASE(c13_lost_connection_keeps_nobody_busy_although_a_child_has_a_copy),
        CASE(c13_program_that_is_executed_inherits_no_connection),
        CASE(c5_waiter_that_was_killed_is_not_granted),
        CASE(c5_wait_that_the_server_does_not_end_is_unknown_until_it_has),
        CASE(limits_of_the_server_end_neither_lock_nor_wait),
        CASE(connections_are_bounded),
        CASE(a_pooler_is_refused),
        CASE(what_needs_a_lease_is_refused),
        CASE(c4_rollback_does_not_repeat_a_generation),
        CASE(c4_names_that_nobody_wants_are_purged_and_come_back_with_higher_generations),
    };

    return cmocka_run_group_tests_name("sql_hold", tests, NULL, NULL);
}
