/* Faults that the server itself raises: deadlocks, a statement that takes too long, a full disk. */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "holdfast.h"
#include "lib/check.h"
#include "sql/server.h"

#define STORM_MS 1000 /* after the first deadlock */

struct fixture {
    struct server *admin;
    hf_client *client;
    hf_error err;
};

static hf_client *open_client(struct fixture *f, const char *options)
{
    char url[200];
    hf_client *client = NULL;

    snprintf(url, sizeof url, "%s://%s@%s/%s?%s", server_scheme, server_account, server_address(),
             server_database, options);
    if (hf_open(url, NULL, &client, &f->err) != 0)
        fail_msg("%s", f->err.text);
    return client;
}

static int take(struct fixture *f, hf_client *client, const char *name, int64_t ttl_ms,
                hf_lock **ret_lock)
{
    static uint64_t owner = 100;
    hf_options opt = HF_OPTIONS_INIT;

    opt.owner = ++owner;
    opt.ttl_ms = ttl_ms;
    opt.note =
        "two hundred bytes of note, two hundred bytes of note, two hundred bytes of note, two "
        "hundred bytes of note, two hundred bytes of note, two hundred bytes of note, that is "
        "more or less two hundred";
    return hf_acquire(client, name, HF_NTS, &opt, ret_lock, &f->err);
}

static void must(const struct fixture *f, int code)
{
    if (code != 0)
        fail_msg("%s", f->err.text);
}

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

static void lock_row(struct server *s, const char *name)
{
    char sql[120];

    snprintf(sql, sizeof sql, "SELECT 1 FROM holdfast_lock WHERE name = '%s' FOR UPDATE", name);
    server_try(s, sql);
}

struct storm {
    atomic_bool over;
    bool forward; /* in the order of the names: a deadlock with those who go back is certain */
    bool delays; /* keeps the first row for a while: then the keeper has the others to do at once */
    pthread_t thread;
};

/* Locks the rows in one order or the other; the store goes forward. */
static void *make_storm(void *arg)
{
    struct storm *storm = arg;
    struct server *s = server_open(server_database);

    while (!storm->over) {
        server_try(s, "BEGIN");
        lock_row(s, storm->delays ? "storm-10" : storm->forward ? "storm-11" : "storm-19");
        pause_ms(storm->delays ? 150 : 20);
        if (!storm->delays)
            lock_row(s, storm->forward ? "storm-19" : "storm-11");
        server_try(s, "ROLLBACK");
        pause_ms(storm->delays ? 20 : 1);
    }
    server_close(s);
    return NULL;
}

/* The keeper renews them all, several in one transaction, in the midst of others who end each
 * other's transactions, and ours. */
static void c6_deadlocks_cost_no_lock(void **state)
{
    struct fixture *f = *state;
    struct storm storms[5] = {{.delays = true}, {.forward = true}};
    hf_lock *locks[10];
    char name[20];

    server_run(f->admin, server_quick_deadlocks);
    hf_client *client = open_client(f, "op_timeout=5s");
    int64_t before = server_number(f->admin, server_deadlocks);
    for (size_t i = 0; i < COUNT(locks); i++) {
        snprintf(name, sizeof name, "storm-%zu", 10 + i);
        must(f, take(f, client, name, 3000, &locks[i]));
    }
    for (size_t i = 0; i < COUNT(storms); i++)
        pthread_create(&storms[i].thread, NULL, make_storm, &storms[i]);
    server_await_more(f->admin, server_deadlocks, before);
    pause_ms(STORM_MS);
    for (size_t i = 0; i < COUNT(storms); i++)
        storms[i].over = true;
    for (size_t i = 0; i < COUNT(storms); i++)
        pthread_join(storms[i].thread, NULL);
    for (size_t i = 0; i < COUNT(locks); i++) {
        check_number("lost", hf_lock_state(locks[i]) == HF_STATE_LOST, 0);
        must(f, hf_lock_release(locks[i], &f->err));
    }
    hf_close(client);
}

/* Somebody keeps the row locked for longer than the server lets a statement run. */
static void c6_statement_that_the_server_ends_in_the_middle_leaves_nothing(void **state)
{
    struct fixture *f = *state;
    hf_lock *lock = NULL;

    must(f, take(f, f->client, "slow", 20000, &lock));
    must(f, hf_lock_release(lock, &f->err));
    server_run(f->admin, server_limit_statements);
    hf_client *client = open_client(f, "op_timeout=600ms");
    struct server *other = server_open(server_database);
    server_run(other, server_no_limit);
    server_run(other, "BEGIN");
    lock_row(other, "slow");
    int code = take(f, client, "slow", 20000, &lock);
    server_run(other, "ROLLBACK");
    server_close(other);
    assert_true(code == HF_UNAVAILABLE || code == HF_UNKNOWN);
    check_contains("why", f->err.text, server_limit_text);
    server_run(f->admin, server_unlimit_statements);
    server_await(f->admin, "SELECT COUNT(*) FROM holdfast_now WHERE name = 'slow'", 0);
    must(f, take(f, f->client, "slow", 20000, &lock));
    must(f, hf_lock_release(lock, &f->err));
    hf_close(client);
}

/* Takes what is left of the disk. */
static int fill_disk(char *path, size_t size)
{
    static char block[4096];

    snprintf(path, size, "%s/filler", getenv("HOLDFAST_TEST_DISK"));
    int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    while (write(fd, block, sizeof block) > 0)
        continue;
    return fd;
}

static void c6_full_disk_is_told_and_leaves_nothing(void **state)
{
    struct fixture *f = *state;
    hf_lock *lock = NULL;
    char path[200], name[40], sql[120];
    int code = 0;

    if (getenv("HOLDFAST_TEST_DISK") == NULL)
        skip();
    int fd = fill_disk(path, sizeof path);
    for (int i = 0; code == 0 && i < 100000; i++) {
        snprintf(name, sizeof name, "full-%d", i);
        code = take(f, f->client, name, 600000, &lock);
    }
    print_message("%s: %s\n", name, f->err.text);
    check_number("code", code, HF_FULL);
    close(fd);
    unlink(path);
    snprintf(sql, sizeof sql, "SELECT COUNT(*) FROM holdfast_now WHERE name = '%s'", name);
    check_number("rows", server_number(f->admin, sql), 0);
    must(f, take(f, f->client, name, 20000, &lock));
    must(f, hf_lock_release(lock, &f->err));
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    assert_non_null(f);
    f->admin = server_open(server_database);
    f->client = open_client(f, "op_timeout=5s");
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    hf_close(f->client);
    server_close(f->admin);
    free(f);
    return 0;
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(c6_deadlocks_cost_no_lock),
        CASE(c6_statement_that_the_server_ends_in_the_middle_leaves_nothing),
        CASE(c6_full_disk_is_told_and_leaves_nothing),
    };

    return cmocka_run_group_tests_name("sql_faults", tests, NULL, NULL);
}
