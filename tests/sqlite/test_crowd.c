/* Very many processes and threads on one database, through the public API. The crowds are of 300, so
 * that this takes seconds; HOLDFAST_TEST_CROWD=2000 makes them larger. */
#include <holdfast.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "sqlite/fixture.h"

#define DEADLINE_MS (100 * SECOND)

struct crowd {
    struct fixture *f;
    int size, gate[2];
    bool hurried; /* operations may take too little time for all the others to have theirs */
    atomic_int waiting, had_it, failed, inside, overlaps;
    char text[400]; /* of the first failure */
};

static int setup_crowd(void **state)
{
    const char *size = getenv("HOLDFAST_TEST_CROWD");
    struct crowd *c =
        mmap(NULL, sizeof *c, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    assert_true(c != MAP_FAILED);
    c->f = make_fixture();
    c->size = size != NULL ? (int)strtol(size, NULL, 10) : 300;
    assert_int_equal(pipe2(c->gate, O_CLOEXEC), 0);
    *state = c;
    return 0;
}

static int teardown_crowd(void **state)
{
    struct crowd *c = *state;

    close(c->gate[0]);
    free_fixture(c->f);
    munmap(c, sizeof *c);
    return 0;
}

static void note_failure(struct crowd *c, const hf_error *err)
{
    if (atomic_fetch_add(&c->failed, 1) == 0)
        snprintf(c->text, sizeof c->text, "%s", err->text);
}

struct member {
    struct crowd *crowd;
    hf_client *client;
    bool waits;
};

static void on_wait(size_t position, void *arg)
{
    struct member *m = arg;

    (void)position;
    if (!m->waits)
        atomic_fetch_add(&m->crowd->waiting, 1);
    m->waits = true;
}

static void take_turn(struct member *m)
{
    struct crowd *c = m->crowd;
    hf_options opt = HF_OPTIONS_INIT;
    hf_lock *lock;
    hf_error err;

    opt.on_wait = on_wait;
    opt.arg = m;
    if (hf_acquire(m->client, "one", HF_NTS, &opt, &lock, &err) != HF_OK) {
        note_failure(c, &err);
        return;
    }
    if (atomic_fetch_add(&c->inside, 1) != 0)
        atomic_fetch_add(&c->overlaps, 1);
    atomic_fetch_sub(&c->inside, 1);
    int r = hf_lock_release(lock, &err);
    if (r == HF_OK || (c->hurried && r == HF_UNKNOWN)) /* the client goes on with it */
        atomic_fetch_add(&c->had_it, 1);
    else
        note_failure(c, &err);
}

static void wait_for_gate(struct crowd *c)
{
    char nothing;

    if (read(c->gate[0], &nothing, 1) != 0)
        abort();
}

static void process(struct crowd *c)
{
    struct member m = {.crowd = c};
    hf_error err;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(c->gate[1]);
    wait_for_gate(c);
    if (hf_open(c->f->url, NULL, &m.client, &err) == HF_OK) {
        take_turn(&m);
        hf_close(m.client);
    } else {
        note_failure(c, &err);
    }
    _exit(0);
}

static void wait_until(struct crowd *c, atomic_int *value, int wanted)
{
    int64_t until_ns = hf__now_ns(&hf__system_env) + DEADLINE_MS * HF__NS_PER_MS;

    while (atomic_load(value) + atomic_load(&c->failed) < wanted &&
           hf__now_ns(&hf__system_env) < until_ns)
        usleep(2000);
    if (atomic_load(&c->failed) > 0)
        fail_msg("%d failed: %s", atomic_load(&c->failed), c->text);
    check_number("all of them", atomic_load(value), wanted);
}

/* A holder with a short lease keeps it while all others come, then all have their turn. */
static void check_turns(struct crowd *c)
{
    hf_options opt = HF_OPTIONS_INIT;
    hf_client *client = NULL;
    hf_lock *lock = NULL;
    hf_error err;

    opt.ttl_ms = 15 * SECOND;
    if (hf_open(c->f->url, NULL, &client, &err) != HF_OK ||
        hf_acquire(client, "one", HF_NTS, &opt, &lock, &err) != HF_OK)
        fail_msg("%s", err.text);
    close(c->gate[1]);
    wait_until(c, &c->waiting, c->size);
    check_number("the holder's state", hf_lock_state(lock), HF_STATE_HELD);
    assert_int_equal(hf_lock_release(lock, &err), HF_OK);
    wait_until(c, &c->had_it, c->size);
    check_number("overlaps", atomic_load(&c->overlaps), 0);
    hf_close(client);
}

static void c5_every_process_of_a_crowd_gets_its_turn(void **state)
{
    struct crowd *c = *state;

    for (int i = 0; i < c->size; i++) {
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0)
            process(c);
    }
    check_turns(c);
    while (wait(NULL) > 0)
        continue;
}

static void *thread(void *arg)
{
    wait_for_gate(((struct member *)arg)->crowd);
    take_turn(arg);
    return NULL;
}

static void c5_every_thread_of_a_crowd_gets_its_turn(void **state)
{
    struct crowd *c = *state;
    struct member *members = calloc((size_t)c->size, sizeof *members);
    pthread_t *threads = calloc((size_t)c->size, sizeof *threads);
    pthread_attr_t attr;
    hf_client *client;
    hf_error err;

    assert_true(members != NULL && threads != NULL);
    if (hf_open(c->f->url, NULL, &client, &err) != HF_OK)
        fail_msg("%s", err.text);
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 256 * 1024);
    for (int i = 0; i < c->size; i++) {
        members[i] = (struct member){.crowd = c, .client = client};
        assert_int_equal(pthread_create(&threads[i], &attr, thread, &members[i]), 0);
    }
    check_turns(c);
    for (int i = 0; i < c->size; i++)
        pthread_join(threads[i], NULL);
    hf_close(client);
    free(threads);
    free(members);
}

static void c5_a_crowd_waits_for_longer_than_one_operation_may_take(void **state)
{
    struct crowd *c = *state;
    size_t used = strlen(c->f->url);

    snprintf(c->f->url + used, sizeof c->f->url - used, "?op_timeout=400ms");
    c->hurried = true;
    c->size *= 15;
    c5_every_thread_of_a_crowd_gets_its_turn(state);
}

int main(void)
{
#define CROWD(test) cmocka_unit_test_setup_teardown(test, setup_crowd, teardown_crowd)
    const struct CMUnitTest tests[] = {
        CROWD(c5_every_process_of_a_crowd_gets_its_turn),
        CROWD(c5_every_thread_of_a_crowd_gets_its_turn),
        CROWD(c5_a_crowd_waits_for_longer_than_one_operation_may_take),
    };

    return cmocka_run_group_tests_name("sqlite_crowd", tests, NULL, NULL);
}
