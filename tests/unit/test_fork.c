/* C13: a child can open a client of its own, whatever the threads of its parent were doing when it
 * was forked, in the stores that are inside the process. */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "holdfast.h"
#include "lib/check.h"
#include "lib/scratch.h"

enum { CHILDREN = 20, FORKERS = 3, THREADS = 2, LOCKS = 3 };

struct busy {
    hf_client *client;
    atomic_bool stop;
    pthread_t thread;
};

static int take_and_release(hf_client *client)
{
    hf_options opt = HF_OPTIONS_INIT;
    hf_lock *lock;

    opt.wait_ms = 20000;
    int r = hf_acquire(client, "x", HF_NTS, &opt, &lock, NULL);
    return r == HF_OK ? hf_lock_release(lock, NULL) : r;
}

static void *be_busy(void *arg)
{
    struct busy *b = arg;

    while (!atomic_load(&b->stop))
        assert_int_equal(take_and_release(b->client), HF_OK);
    return NULL;
}

/* The status of a child that works with a client of its own; 0: all went well. */
static int in_child(const char *url)
{
    hf_client *client;
    int r = hf_open(url, NULL, &client, NULL);

    for (int i = 0; r == HF_OK && i < LOCKS; i++)
        r = take_and_release(client);
    if (r == HF_OK)
        hf_close(client);
    return -r;
}

/* A thread that forks; asserts belong to the main thread. */
struct forker {
    const char *url;
    pthread_t thread;
    int failed;
};

static void *fork_children(void *arg)
{
    struct forker *f = arg;

    for (int i = 0; i < CHILDREN; i++) {
        int status = -1;
        pid_t pid = fork();
        if (pid == 0)
            _exit(in_child(f->url));
        f->failed += pid < 0 || waitpid(pid, &status, 0) != pid || status != 0;
    }
    return NULL;
}

static void check_children(const char *url, size_t forkers)
{
    struct busy busy[THREADS] = {{0}};
    struct forker fork_threads[FORKERS] = {{0}};

    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(hf_open(url, NULL, &busy[i].client, NULL), HF_OK);
        assert_int_equal(pthread_create(&busy[i].thread, NULL, be_busy, &busy[i]), 0);
    }
    for (size_t i = 0; i < forkers; i++) {
        fork_threads[i].url = url;
        assert_int_equal(
            pthread_create(&fork_threads[i].thread, NULL, fork_children, &fork_threads[i]), 0);
    }
    for (size_t i = 0; i < forkers; i++) {
        pthread_join(fork_threads[i].thread, NULL);
        assert_int_equal(fork_threads[i].failed, 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        atomic_store(&busy[i].stop, true);
        pthread_join(busy[i].thread, NULL);
        hf_close(busy[i].client);
    }
}

static void c13_children_of_a_busy_parent_can_lock_in_memory(void **state)
{
    (void)state;
    check_children("memory://fork", 1);
}

static void c13_children_of_a_busy_parent_can_lock_in_sqlite(void **state)
{
    char url[300];

    snprintf(url, sizeof url, "sqlite:%s/locks.db", (const char *)*state);
    check_children(url, 1);
}

static void c13_and_so_can_children_that_are_forked_at_the_same_time(void **state)
{
    char url[300];

    snprintf(url, sizeof url, "sqlite:%s/locks2.db", (const char *)*state);
    check_children(url, FORKERS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(c13_children_of_a_busy_parent_can_lock_in_memory),
        cmocka_unit_test(c13_children_of_a_busy_parent_can_lock_in_sqlite),
        cmocka_unit_test(c13_and_so_can_children_that_are_forked_at_the_same_time),
    };

    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
