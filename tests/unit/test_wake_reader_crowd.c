/* The ear among many (C12): threads that wait, give up, are cancelled, struck by signals and closed
 * upon, on the system's clock. Whoever reads, nobody else reads at the same time, nobody sleeps
 * through its turn, and nobody spins. With a URL it does the same on another store. */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "lib/check.h"
#include "lib/puppet.h"

#define CLIENTS 2
#define EACH    6 /* threads of a client */
#define NAMES   3
#define ROUNDS  150
#define TURN_S  20 /* nobody waits for so long if everybody is called */

static const char *url = "memory://ear-crowd";

struct crowd {
    hf_client *clients[CLIENTS];
    struct puppet *stores[CLIENTS];
    atomic_int inside[NAMES];
    atomic_int overlaps, late, working;
};

struct member {
    struct crowd *crowd;
    hf_client *client;
    hf_cancel *cancel;
    pthread_t thread;
    unsigned seed;
    bool lasts; /* waits for as long as it takes */
};

static void ignore(int number)
{
    (void)number;
}

static void ignore_signals(void)
{
    struct sigaction action = {.sa_handler = ignore}; /* without SA_RESTART */

    assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
}

static void open_crowd(struct crowd *crowd)
{
    *crowd = (struct crowd){0};
    for (size_t i = 0; i < CLIENTS; i++) {
        crowd->stores[i] = puppet_open(url, NULL, &crowd->clients[i]);
        assert_non_null(crowd->stores[i]);
    }
}

static void close_crowd(struct crowd *crowd)
{
    for (size_t i = 0; i < CLIENTS; i++) {
        assert_int_equal(atomic_load(&crowd->stores[i]->crossed), 0);
        puppet_close(crowd->clients[i]);
    }
}

static double seconds(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static hf_options any_wait(struct member *m)
{
    hf_options opt = HF_OPTIONS_INIT;
    int kind = m->lasts ? 0 : rand_r(&m->seed) % 4;

    opt.wait_ms = kind == 0 ? HF_FOREVER : kind == 1 ? 0 : 1 + rand_r(&m->seed) % 4;
    if (kind == 3)
        opt.cancel = m->cancel;
    return opt;
}

static void *live(void *arg)
{
    struct member *m = arg;
    struct crowd *crowd = m->crowd;

    for (int i = 0; i < ROUNDS; i++) {
        int number = rand_r(&m->seed) % NAMES;
        char name[] = {'e', (char)('0' + number), '\0'};
        hf_options opt = any_wait(m);
        hf_lock *lock;
        double began = seconds(CLOCK_MONOTONIC);
        int r = hf_acquire(m->client, name, HF_NTS, &opt, &lock, NULL);
        if (seconds(CLOCK_MONOTONIC) - began > TURN_S || (r != 0 && opt.wait_ms == HF_FOREVER))
            atomic_fetch_add(&crowd->late, 1);
        if (r != 0)
            continue;
        if (atomic_fetch_add(&crowd->inside[number], 1) != 0)
            atomic_fetch_add(&crowd->overlaps, 1);
        if (rand_r(&m->seed) % 2)
            sched_yield();
        atomic_fetch_sub(&crowd->inside[number], 1);
        hf_lock_release(lock, NULL);
    }
    atomic_fetch_sub(&crowd->working, 1);
    return NULL;
}

static void *strike(void *arg)
{
    struct member *members = arg;
    unsigned seed = 1;

    while (atomic_load(&members[0].crowd->working) > 0) {
        struct member *m = &members[(unsigned)rand_r(&seed) % (CLIENTS * EACH)];
        pthread_kill(m->thread, SIGUSR1);
        if (rand_r(&seed) % 8 == 0)
            hf_cancel_fire(m->cancel);
        usleep(200);
    }
    return NULL;
}

static void c12_nobody_sleeps_through_its_turn(void **state)
{
    struct crowd crowd;
    struct member members[CLIENTS * EACH];
    pthread_t striker;

    (void)state;
    ignore_signals();
    open_crowd(&crowd);
    crowd.working = CLIENTS * EACH;
    for (size_t i = 0; i < CLIENTS * EACH; i++) {
        members[i] = (struct member){.crowd = &crowd,
                                     .client = crowd.clients[i % CLIENTS],
                                     .seed = (unsigned)i + 1,
                                     .lasts = i % 3 == 0};
        assert_int_equal(hf_cancel_new(&members[i].cancel), 0);
    }
    for (size_t i = 0; i < CLIENTS * EACH; i++)
        assert_int_equal(pthread_create(&members[i].thread, NULL, live, &members[i]), 0);
    assert_int_equal(pthread_create(&striker, NULL, strike, members), 0);
    pthread_join(striker, NULL); /* it ends when they have, but are not joined: it strikes them */
    for (size_t i = 0; i < CLIENTS * EACH; i++)
        pthread_join(members[i].thread, NULL);
    assert_int_equal(crowd.overlaps, 0);
    assert_int_equal(crowd.late, 0);
    close_crowd(&crowd);
    for (size_t i = 0; i < CLIENTS * EACH; i++)
        hf_cancel_free(members[i].cancel);
}

struct waiter {
    hf_client *client;
    hf_cancel *cancel;
    pthread_t thread;
    atomic_bool begun;
    int r;
};

static void on_wait(size_t position, void *arg)
{
    (void)position;
    atomic_store(&((struct waiter *)arg)->begun, true);
}

static void *wait_for_ever(void *arg)
{
    struct waiter *w = arg;
    hf_options opt = HF_OPTIONS_INIT;
    hf_lock *lock = NULL;

    opt.wait_ms = HF_FOREVER;
    opt.cancel = w->cancel;
    opt.on_wait = on_wait;
    opt.arg = w;
    w->r = hf_acquire(w->client, "e0", HF_NTS, &opt, &lock, NULL);
    if (w->r == 0)
        hf_lock_release(lock, NULL);
    atomic_store(&w->begun, true); /* and over */
    return NULL;
}

static void start_waiting(struct waiter *w, hf_client *client, hf_cancel *cancel)
{
    *w = (struct waiter){.client = client, .cancel = cancel};
    assert_int_equal(pthread_create(&w->thread, NULL, wait_for_ever, w), 0);
    while (!atomic_load(&w->begun))
        sched_yield();
}

/* At whatever moment it is closed: before the ear is taken, while it is, while it goes round. */
static void c5_closing_ends_the_wait_of_whoever_listens(void **state)
{
    (void)state;
    for (int round = 0; round < 60; round++) {
        struct crowd crowd;
        struct waiter waiters[EACH];
        hf_lock *held;
        open_crowd(&crowd);
        assert_int_equal(hf_acquire(crowd.clients[1], "e0", HF_NTS, NULL, &held, NULL), 0);
        for (size_t i = 0; i < EACH; i++)
            start_waiting(&waiters[i], crowd.clients[0], NULL);
        if (round % 3 == 1)
            usleep((useconds_t)round * 20);
        if (round % 3 == 2)
            hf_lock_release(held, NULL);
        puppet_close(crowd.clients[0]);
        for (size_t i = 0; i < EACH; i++) {
            pthread_join(waiters[i].thread, NULL);
            assert_true(waiters[i].r == HF_CLOSED || (round % 3 == 2 && waiters[i].r == 0));
        }
        if (round % 3 != 2)
            assert_int_equal(hf_lock_release(held, NULL), 0);
        puppet_close(crowd.clients[1]);
    }
}

/* While the lock is let go, or not. */
static void c5_one_cancel_ends_every_wait(void **state)
{
    struct crowd crowd;

    (void)state;
    open_crowd(&crowd);
    for (int round = 0; round < 60; round++) {
        struct waiter waiters[EACH];
        hf_cancel *cancel;
        hf_lock *held;
        assert_int_equal(hf_cancel_new(&cancel), 0);
        assert_int_equal(hf_acquire(crowd.clients[1], "e0", HF_NTS, NULL, &held, NULL), 0);
        for (size_t i = 0; i < EACH; i++)
            start_waiting(&waiters[i], crowd.clients[0], cancel);
        usleep((useconds_t)(round % 4) * 100);
        if (round % 2)
            assert_int_equal(hf_lock_release(held, NULL), 0);
        hf_cancel_fire(cancel);
        for (size_t i = 0; i < EACH; i++) {
            pthread_join(waiters[i].thread, NULL);
            assert_true(waiters[i].r == HF_CANCELLED || (round % 2 && waiters[i].r == 0));
        }
        if (round % 2 == 0)
            assert_int_equal(hf_lock_release(held, NULL), 0);
        hf_cancel_free(cancel);
    }
    close_crowd(&crowd);
}

static double idle_for(unsigned ms)
{
    double before = seconds(CLOCK_PROCESS_CPUTIME_ID);

    usleep(ms * 1000);
    return seconds(CLOCK_PROCESS_CPUTIME_ID) - before;
}

/* Some programs take all descriptors from themselves when they have what they need; then there is
 * no poll() of two. */
static void c12_whoever_cannot_poll_leaves_the_ear_to_the_keeper(void **state)
{
    struct rlimit before, none;
    struct crowd crowd;
    struct waiter first, second;
    hf_lock *held;

    (void)state;
    if (strncmp(url, "memory:", 7) != 0)
        skip(); /* it may need another connection */
    open_crowd(&crowd);
    assert_int_equal(hf_acquire(crowd.clients[1], "e0", HF_NTS, NULL, &held, NULL), 0);
    start_waiting(&first, crowd.clients[0], NULL); /* everything is opened by now */
    assert_int_equal(hf_lock_release(held, NULL), 0);
    pthread_join(first.thread, NULL);
    assert_int_equal(hf_acquire(crowd.clients[1], "e0", HF_NTS, NULL, &held, NULL), 0);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = (struct rlimit){.rlim_cur = 1, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    start_waiting(&second, crowd.clients[0], NULL);
    idle_for(50);
    double spent = idle_for(200);
    int r = hf_lock_release(held, NULL);
    pthread_join(second.thread, NULL);
    setrlimit(RLIMIT_NOFILE, &before);
    assert_int_equal(r, 0);
    assert_int_equal(second.r, 0);
    assert_true(spent < 0.1);
    close_crowd(&crowd);
}

static void c12_nobody_spins_while_nothing_is_called(void **state)
{
    struct crowd crowd;
    struct waiter waiters[EACH];
    hf_lock *held;

    (void)state;
    open_crowd(&crowd);
    assert_int_equal(hf_acquire(crowd.clients[1], "e0", HF_NTS, NULL, &held, NULL), 0);
    for (size_t i = 0; i < EACH; i++)
        start_waiting(&waiters[i], crowd.clients[0], NULL);
    idle_for(300);
    assert_true(idle_for(400) < 0.2);
    assert_int_equal(hf_lock_release(held, NULL), 0);
    for (size_t i = 0; i < EACH; i++) {
        pthread_join(waiters[i].thread, NULL);
        assert_int_equal(waiters[i].r, 0);
    }
    close_crowd(&crowd);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(c12_nobody_sleeps_through_its_turn),
        cmocka_unit_test(c5_closing_ends_the_wait_of_whoever_listens),
        cmocka_unit_test(c5_one_cancel_ends_every_wait),
        cmocka_unit_test(c12_whoever_cannot_poll_leaves_the_ear_to_the_keeper),
        cmocka_unit_test(c12_nobody_spins_while_nothing_is_called),
    };

    if (argc > 1)
        url = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
