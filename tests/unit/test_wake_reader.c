/* Who reads what the store calls out (C12): one of those who wait, or the keeper. */
#include <signal.h>

#include "unit/bid_stage.h"

/* Three locks of the other client, for three waiters of this one. */
static void take_all(struct stage *s, hf_lock *ret_locks[3])
{
    static const char *const names[] = {"x", "y", "z"};

    for (size_t i = 0; i < 3; i++)
        assert_int_equal(hf_acquire(s->other, names[i], HF_NTS, NULL, &ret_locks[i], NULL), 0);
}

struct crowd {
    struct stage *stage;
    size_t count; /* holders and waiters of all names */
    bool heeds;   /* one of them has the ear */
};

static int is_settled(void *arg)
{
    const struct crowd *crowd = arg;
    hf_client *client = crowd->stage->client;

    hf__lock_client(client);
    bool heeds = client->wake_reader.caller != NULL;
    hf__unlock_client(client);
    return heeds == crowd->heeds && in_store(crowd->stage) == crowd->count;
}

static void settle(struct stage *s, size_t count, bool heeds)
{
    struct crowd crowd = {.stage = s, .count = count, .heeds = heeds};

    assert_true(fake_clock_stand(is_settled, &crowd));
}

static void wait_for(struct stage *s, struct asker *a, const char *name, int64_t wait_ms)
{
    *a = (struct asker){.client = s->client, .name = name, .opt = HF_OPTIONS_INIT};
    a->opt.wait_ms = wait_ms;
    assert_int_equal(pthread_create(&a->thread, NULL, ask, a), 0);
}

/* Releases what it waits for. */
static void let_in(struct stage *s, struct asker *a, hf_lock **held)
{
    assert_int_equal(hf_lock_release(*held, NULL), 0);
    *held = NULL;
    finish(s, a);
    assert_int_equal(a->r, 0);
}

static void release_rest(hf_lock *locks[3])
{
    for (size_t i = 0; i < 3; i++)
        hf_lock_release(locks[i], NULL);
}

static bool was_heard_by(const struct stage *s, pthread_t thread)
{
    return pthread_equal(atomic_load(&s->store->heard_by), thread);
}

static void c12_a_call_is_heard_by_the_thread_it_is_for(void **state)
{
    struct stage *s = *state;
    hf_lock *held[3];
    struct asker a;

    take_all(s, held);
    wait_for(s, &a, "x", HF_FOREVER);
    settle(s, 4, true);
    let_in(s, &a, &held[0]);
    assert_true(was_heard_by(s, a.thread));
    settle(s, 3, false);
    hf_lock_release(a.lock, NULL);
    release_rest(held);
}

static void c12_it_passes_on_the_calls_for_others(void **state)
{
    struct stage *s = *state;
    hf_lock *held[3];
    struct asker first, second;

    take_all(s, held);
    wait_for(s, &first, "x", HF_FOREVER);
    settle(s, 4, true);
    wait_for(s, &second, "y", HF_FOREVER);
    settle(s, 5, true);
    let_in(s, &second, &held[1]);
    assert_true(was_heard_by(s, first.thread));
    let_in(s, &first, &held[0]);
    hf_lock_release(first.lock, NULL);
    hf_lock_release(second.lock, NULL);
    release_rest(held);
}

static void c12_when_it_is_gone_the_keeper_hears_and_then_the_next(void **state)
{
    struct stage *s = *state;
    hf_lock *held[3];
    struct asker first, second, third;

    take_all(s, held);
    wait_for(s, &first, "x", 500);
    settle(s, 4, true);
    wait_for(s, &second, "y", HF_FOREVER);
    settle(s, 5, true);
    finish(s, &first); /* its time is up */
    assert_int_equal(first.r, HF_TIMEOUT);
    settle(s, 4, false);
    let_in(s, &second, &held[1]);
    assert_true(was_heard_by(s, s->client->keeper.thread));

    wait_for(s, &third, "z", HF_FOREVER);
    settle(s, 4, true);
    let_in(s, &third, &held[2]);
    assert_true(was_heard_by(s, third.thread));
    hf_lock_release(second.lock, NULL);
    hf_lock_release(third.lock, NULL);
    release_rest(held);
}

static void ignore(int number)
{
    (void)number;
}

static void a_signal_does_not_end_the_wait(void **state)
{
    struct stage *s = *state;
    struct sigaction action = {.sa_handler = ignore}; /* without SA_RESTART */
    hf_lock *held[3];
    struct asker a;

    assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
    take_all(s, held);
    wait_for(s, &a, "x", HF_FOREVER);
    settle(s, 4, true);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(pthread_kill(a.thread, SIGUSR1), 0);
        sched_yield();
    }
    assert_false(has_ended(&a));
    let_in(s, &a, &held[0]);
    hf_lock_release(a.lock, NULL);
    release_rest(held);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(c12_a_call_is_heard_by_the_thread_it_is_for),
        CASE(c12_it_passes_on_the_calls_for_others),
        CASE(c12_when_it_is_gone_the_keeper_hears_and_then_the_next),
        CASE(a_signal_does_not_end_the_wait),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
