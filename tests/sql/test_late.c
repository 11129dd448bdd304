/* A request that the server takes up only after its sender has given up (C6): whoever was told
 * HF_UNKNOWN, and for how long the store may hold it, must not be let in later.
 *
 * The bidder is a process of its own that is gone by then, so that nothing but the server's rules
 * can keep its bid out. Every grant raises the lock's generation, so that shows it for good. */
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "holdfast.h"
#include "lib/check.h"
#include "sql/server.h"

struct fixture {
    struct server *admin;
    pid_t bidder;
    int go, come; /* the pipes to it and from it */
};

static hf_client *open_client(void)
{
    char url[200];
    hf_client *client = NULL;
    hf_error err;

    snprintf(url, sizeof url, "%s://%s@%s/%s?op_timeout=400ms", server_scheme, server_account,
             server_address(), server_database);
    if (hf_open(url, NULL, &client, &err) != 0)
        fail_msg("%s", err.text);
    return client;
}

static int take(hf_client *client, hf_lock **ret_lock)
{
    hf_options opt = HF_OPTIONS_INIT;
    hf_error err;

    opt.wait_ms = 0;
    return hf_acquire(client, "late", HF_NTS, &opt, ret_lock, &err);
}

/* Takes the lock once, so that it has a connection; bids for it when it is told to, and goes. */
static void bid(int go, int come)
{
    hf_client *client = open_client();
    hf_lock *lock = NULL;
    char word = 0;

    if (take(client, &lock) != 0 || hf_lock_release(lock, NULL) != 0 ||
        write(come, &word, 1) != 1 || read(go, &word, 1) != 1)
        _exit(1);
    _exit(take(client, &lock) == HF_UNKNOWN ? 0 : 2);
}

static void start_bidder(struct fixture *f)
{
    int there[2], back[2];
    char word;

    assert_int_equal(pipe(there), 0);
    assert_int_equal(pipe(back), 0);
    f->bidder = fork();
    if (f->bidder == 0)
        bid(there[0], back[1]);
    close(there[0]);
    close(back[1]);
    f->go = there[1];
    f->come = back[0];
    assert_int_equal(read(f->come, &word, 1), 1);
}

/* It was told that the outcome is not known, and has ended. */
static void let_it_bid(struct fixture *f)
{
    int status = 0;

    assert_int_equal(write(f->go, "x", 1), 1);
    assert_int_equal(waitpid(f->bidder, &status, 0), f->bidder);
    close(f->go);
    close(f->come);
    check_number("the bidder's status", WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0);
}

static int64_t generation(struct fixture *f)
{
    return server_number(f->admin, "SELECT generation FROM holdfast_lock WHERE name = 'late'");
}

static void c6_attempt_that_waited_for_others_for_too_long_is_not_let_in(void **state)
{
    struct fixture *f = *state;

    start_bidder(f);
    int64_t before = generation(f);
    struct server *other = server_open(server_database);
    server_run(other, "BEGIN");
    server_try(other, "SELECT 1 FROM holdfast_lock WHERE name = 'late' FOR UPDATE");
    let_it_bid(f);
    server_run(other, "ROLLBACK");
    server_close(other);
    server_await(f->admin, server_sessions, 0);
    check_number("generation", generation(f), before);
}

/* As long as it stands in a socket's buffer, or in that of a pooler, no limit of the server counts. */
static void c6_attempt_that_the_server_reads_too_late_is_not_let_in(void **state)
{
    struct fixture *f = *state;

    start_bidder(f);
    int64_t before = generation(f);
    server_stop(f->admin);
    let_it_bid(f);
    server_go_on();
    server_await(f->admin, server_sessions, 0);
    check_number("generation", generation(f), before);
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    assert_non_null(f);
    f->admin = server_open(server_database);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    server_go_on();
    server_close(f->admin);
    free(f);
    return 0;
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(c6_attempt_that_waited_for_others_for_too_long_is_not_let_in),
        CASE(c6_attempt_that_the_server_reads_too_late_is_not_let_in),
    };

    return cmocka_run_group_tests_name("sql_late", tests, NULL, NULL);
}
