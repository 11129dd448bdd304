/* Three nodes, some of which freeze, die, or have another idea of the time. The tests build on each
 * other in their order: what was frozen thaws again, what was killed stays dead. */
#include <stdatomic.h>
#include <stdlib.h>

#include "cassandra/live.h"

#define LEASE_MS 3000
#define LONG_MS  8000 /* for a lock that is held while others keep the cluster busy */

/* A lock that is held across a fault, longer than its lease, while others try. */
static void hold_on(hf_client *client, hf_lock *lock, const char *name, int64_t until_ms)
{
    hf_lock *other;

    do {
        if (hf_lock_state(lock) == HF_STATE_LOST)
            fail_msg("'%s' was lost", name);
        sleep_ms(100);
    } while (now_ms() < until_ms);
    check_code(take(client, name, options(LEASE_MS, 0), &other), HF_BUSY);
}

static void one_frozen_node_of_three_is_borne(void **state)
{
    hf_client *client = open_at(NULL, "node_timeout=400ms");
    hf_lock *lock, *next;

    (void)state;
    check_code(take(client, "frozen", options(LEASE_MS, 0), &lock), HF_OK);
    node_signal(1, SIGSTOP); /* the one that is asked first */
    hold_on(client, lock, "frozen", now_ms() + 2 * LEASE_MS);
    check_code(release(lock), HF_OK);
    check_code(take(client, "frozen", options(LEASE_MS, 0), &next), HF_OK);
    node_signal(1, SIGCONT);
    check_code(release(next), HF_OK);
    hf_close(client);
}

/* Without a majority there is no lock to be had and none to be kept, and nothing is left of it. */
static void two_frozen_nodes_of_three_are_not(void **state)
{
    hf_client *client = open_at(NULL, "op_timeout=2s&node_timeout=400ms");
    hf_lock *lock, *none;

    (void)state;
    check_code(take(client, "majority", options(LEASE_MS, 0), &lock), HF_OK);
    node_signal(1, SIGSTOP);
    node_signal(2, SIGSTOP);
    await_lost(lock); /* without a word from the store: they thaw only afterwards */
    check_number("cause", hf_lock_cause(lock), HF_CAUSE_EXPIRED);
    int code = take(client, "refused", options(LEASE_MS, 0), &none);
    if (code != HF_UNAVAILABLE && code != HF_UNKNOWN)
        fail_msg("got %d: %s", code, last_error());
    check_code(release(lock), HF_STALE);
    node_signal(1, SIGCONT);
    node_signal(2, SIGCONT);
    await_free(client, "refused");
    await_free(client, "majority");
    check_code(take(client, "refused", options(LEASE_MS, AWAIT_MS), &lock), HF_OK);
    check_code(release(lock), HF_OK);
    hf_close(client);
}

/* Takes and gives back one lock, again and again, and notes whoever else is inside. */
struct worker {
    hf_client *client;
    pthread_t thread;
    unsigned cycles, failures;
};
static atomic_int inside, overlaps;
static atomic_bool over;
static _Atomic(uint64_t) highest;

static void *work(void *arg)
{
    struct worker *w = arg;

    while (!atomic_load(&over)) {
        hf_lock *lock;
        uint64_t generation = 0;
        if (take(w->client, "busy", options(20000, AWAIT_MS), &lock) != HF_OK) {
            w->failures++;
            continue;
        }
        hf_lock_generation(lock, &generation);
        if (atomic_fetch_add(&inside, 1) != 0 ||
            atomic_exchange(&highest, generation) >= generation)
            atomic_fetch_add(&overlaps, 1);
        atomic_fetch_sub(&inside, 1);
        w->failures += release(lock) != HF_OK;
        w->cycles++;
    }
    return NULL;
}

static unsigned cycles_of(const struct worker *workers, size_t count)
{
    unsigned sum = 0;

    for (size_t i = 0; i < count; i++)
        sum += __atomic_load_n(&workers[i].cycles, __ATOMIC_RELAXED);
    return sum;
}

static void await_cycles(const struct worker *workers, size_t count, unsigned more)
{
    unsigned wanted = cycles_of(workers, count) + more;
    int64_t until = now_ms() + AWAIT_MS;

    while (cycles_of(workers, count) < wanted && now_ms() < until)
        sleep_ms(10);
    assert_true(cycles_of(workers, count) >= wanted);
}

/* The node that is asked first dies while swaps are under way. */
static void coordinator_killed_in_the_middle_of_swaps(void **state)
{
    hf_client *client = open_at(NULL, "node_timeout=400ms");
    struct worker workers[4] = {0};
    hf_lock *lock;

    (void)state;
    check_code(take(client, "kept", options(LONG_MS, 0), &lock), HF_OK);
    for (size_t i = 0; i < COUNT(workers); i++) {
        workers[i].client = open_at(NULL, "node_timeout=400ms");
        pthread_create(&workers[i].thread, NULL, work, &workers[i]);
    }
    await_cycles(workers, COUNT(workers), 10);
    node_kill(1);
    int64_t killed_ms = now_ms();
    await_cycles(workers, COUNT(workers), 20);
    atomic_store(&over, true);
    for (size_t i = 0; i < COUNT(workers); i++) {
        pthread_join(workers[i].thread, NULL);
        check_number("failures", workers[i].failures, 0);
        hf_close(workers[i].client);
    }
    check_number("overlaps", atomic_load(&overlaps), 0);
    hold_on(client, lock, "kept", killed_ms + LONG_MS + 1000);
    check_code(release(lock), HF_OK);
    check_number("entries", count_entries(client, "busy"), 0);
    hf_close(client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_frozen_node_of_three_is_borne),
        cmocka_unit_test(two_frozen_nodes_of_three_are_not),
        cmocka_unit_test(coordinator_killed_in_the_middle_of_swaps),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
