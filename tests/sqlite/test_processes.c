/* Several processes on one database, on the machine's own clock. */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>

#include "lib/operate.h"
#include "sqlite/fixture.h"

#define PROCESSES 3
#define ROUNDS    400

/* In a child: the real clock, a store of its own. */
static void open_own(struct fixture *f)
{
    f->env = hf__system_env;
    f->random.state ^= (uint64_t)getpid() * 0x9e3779b97f4a7c15U;
    f->env.ctx = f;
    f->env.random = fixture_random;
    f->host.op_timeout_ms = 60 * SECOND;
    if (try_open(f, f->url) != 0) {
        fprintf(stderr, "open: %s\n", f->err.text);
        _exit(1);
    }
}

static int64_t real_deadline(void)
{
    return hf__now_ns(&hf__system_env) + 60 * SECOND * HF__NS_PER_MS;
}

static int wait_all(const pid_t *children, size_t count)
{
    int failed = 0, status;

    for (size_t i = 0; i < count; i++) {
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        failed += status != 0;
    }
    return failed;
}

/* Reads, lets others run, writes: wrong as soon as two do it at once. */
static bool increment(const char *path)
{
    int64_t value = 0;
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    bool ok = fd >= 0 && pread(fd, &value, sizeof value, 0) >= 0;

    sched_yield();
    value++;
    ok = ok && pwrite(fd, &value, sizeof value, 0) == sizeof value;
    close(fd);
    return ok;
}

static bool take_turn(struct fixture *f, const char *counter)
{
    struct hf__bid bid = make_bid(f, "counter");
    struct hf__answer a = {0};
    int64_t until_ns = real_deadline();

    bid.queue = true;
    do {
        if (ask_store(f->store, op_attempt(&bid), until_ns, &a, &f->err) != 0)
            return false;
        if (a.verdict == HF__VERDICT_QUEUED)
            usleep((useconds_t)hf__now_ns(&hf__system_env) % 300);
    } while (a.verdict == HF__VERDICT_QUEUED && hf__now_ns(&hf__system_env) < until_ns);
    return a.verdict == HF__VERDICT_GRANTED && increment(counter) &&
           ask_store(f->store, op_release(&bid, 0), real_deadline(), &a, &f->err) == 0 &&
           a.verdict == HF__VERDICT_DONE;
}

static void hammer(struct fixture *f, const char *counter)
{
    open_own(f);
    for (int i = 0; i < ROUNDS; i++) {
        if (!take_turn(f, counter)) {
            fprintf(stderr, "turn: %s\n", f->err.text);
            _exit(1);
        }
    }
    close_store(f);
    _exit(0);
}

static void c1_only_one_process_is_inside(void **state)
{
    struct fixture *f = *state;
    pid_t children[PROCESSES];
    char counter[200];
    int64_t value = 0;

    snprintf(counter, sizeof counter, "%s/counter", f->dir);
    for (int i = 0; i < PROCESSES; i++) { /* all of them also race to create the database */
        children[i] = fork();
        if (children[i] == 0)
            hammer(f, counter);
    }
    check_number("failed", wait_all(children, PROCESSES), 0);
    int fd = open(counter, O_RDONLY);
    assert_int_equal(read(fd, &value, sizeof value), sizeof value);
    close(fd);
    check_number("counter", value, PROCESSES * ROUNDS);
}

static void many_processes_may_create_it_at_once(void **state)
{
    struct fixture *f = *state;
    pid_t children[12];

    for (size_t i = 0; i < COUNT(children); i++) {
        children[i] = fork();
        if (children[i] == 0) {
            struct hf__answer a = {0};
            open_own(f);
            struct hf__bid bid = make_bid(f, "x");
            bid.mode = HF_SHARED;
            int code = ask_store(f->store, op_attempt(&bid), real_deadline(), &a, &f->err);
            _exit(code == 0 && a.verdict == HF__VERDICT_GRANTED ? 0 : 1);
        }
    }
    check_number("failed", wait_all(children, COUNT(children)), 0);
    check_number("holders", ask(f, "SELECT count(*) FROM holdfast_entry"), COUNT(children));
}

static void a_killed_process_leaves_a_lease_that_ends(void **state)
{
    struct fixture *f = *state;
    struct hf__bid mine = make_bid(f, "x"), next = make_bid(f, "x");
    int status;

    pid_t child = fork();
    if (child == 0) {
        struct hf__answer a = {0};
        if (try_open(f, f->url) != 0)
            _exit(1);
        mine.queue = true;
        ask_store(f->store, op_attempt(&mine), soon(f), &a, &f->err);
        raise(SIGKILL);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    open_store(f);
    assert_int_equal(attempt(f, &next).verdict, HF__VERDICT_BUSY);
    pass_time(f, 10 * SECOND);
    assert_int_equal(attempt(f, &next).verdict, HF__VERDICT_GRANTED);
}

#define THREADS 4

struct worker {
    struct fixture *f;
    struct random random;
    int64_t *counter; /* plain on purpose: the lock guards it */
    bool ok;
};

static bool take_turn_in_thread(struct worker *w)
{
    struct hf__store *s = w->f->store;
    struct hf__bid bid = {
        .name = "x", .name_len = 1, .ttl_ms = 60 * SECOND, .queue = true, .who = &w->f->who};
    struct hf__answer a = {0};
    int64_t until_ns = real_deadline();

    random_fill(&w->random, bid.ticket.bits, sizeof bid.ticket.bits);
    do {
        if (ask_store(s, op_attempt(&bid), until_ns, &a, NULL) != 0)
            return false;
    } while (a.verdict == HF__VERDICT_QUEUED && hf__now_ns(&hf__system_env) < until_ns);
    if (a.verdict != HF__VERDICT_GRANTED)
        return false;
    ++*w->counter;
    return ask_store(s, op_release(&bid, 0), real_deadline(), &a, NULL) == 0 &&
           a.verdict == HF__VERDICT_DONE;
}

static void *work(void *arg)
{
    struct worker *w = arg;

    w->ok = w->f->store->type->wake_fd(w->f->store) >= 0;
    for (int i = 0; i < ROUNDS / 2 && w->ok; i++)
        w->ok = take_turn_in_thread(w);
    return NULL;
}

static void c1_only_one_thread_is_inside(void **state)
{
    struct fixture *f = *state;
    struct worker workers[THREADS];
    pthread_t threads[THREADS];
    int64_t counter = 0;

    open_own(f);
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.f = f, .random = {(uint64_t)i}, .counter = &counter};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_true(workers[i].ok);
    }
    check_number("counter", counter, THREADS * (ROUNDS / 2));
}

/* Fills the database until it says that it is full. */
static void fill_up(struct fixture *f)
{
    struct hf__answer a = {0};
    char name[HF_NAME_MAX];
    int code = 0;

    open_store(f);
    memset(name, 'n', sizeof name);
    for (int i = 0; i < 20000 && code == 0; i++) {
        struct hf__bid bid = make_bid(f, "");
        snprintf(name, sizeof name, "%d", i);
        bid.name = name;
        bid.name_len = sizeof name;
        code = ask_store(f->store, op_attempt(&bid), soon(f), &a, &f->err);
    }
    check_number("code", code, HF_FULL);
    check_contains("text", f->err.text, "disk is full");
}

static void a_full_file_system_is_told(void **state)
{
    struct fixture *f = *state;
    char dir[140];

    if (geteuid() != 0)
        skip(); /* only root can mount */
    snprintf(dir, sizeof dir, "%s/small", f->dir);
    assert_int_equal(mkdir(dir, 0700), 0);
    if (mount("tmpfs", dir, "tmpfs", 0, "size=512k,mode=0700") != 0)
        skip();
    snprintf(f->path, sizeof f->path, "%s/locks.db", dir);
    snprintf(f->url, sizeof f->url, "sqlite:%s", f->path);
    fill_up(f);
    close_store(f);
    assert_int_equal(umount(dir), 0);
}

int main(void)
{
#define FRESH(test) cmocka_unit_test_setup_teardown(test, setup_fixture, teardown)
    const struct CMUnitTest tests[] = {
        FRESH(c1_only_one_process_is_inside), FRESH(many_processes_may_create_it_at_once),
        FRESH(c1_only_one_thread_is_inside),  FRESH(a_killed_process_leaves_a_lease_that_ends),
        FRESH(a_full_file_system_is_told),
    };

    return cmocka_run_group_tests_name("sqlite_processes", tests, NULL, NULL);
}
