/* Giving locks back while something else goes on: callbacks, a close, a re-entry, withdrawals that
 * hang. */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "live.h"

/* A callback that takes its time. */
struct slow_callback {
    atomic_int begun, ended;
    int ms;
};

static void call_slowly(hf_lock *lock, hf_cause cause, void *arg)
{
    struct slow_callback *slow = arg;

    (void)lock, (void)cause;
    atomic_fetch_add(&slow->begun, 1);
    pause_ms(slow->ms);
    atomic_fetch_add(&slow->ended, 1);
}

static void c2_a_detached_lock_is_not_released_by_the_close(void **state)
{
    hf_client *client = open_store("g1", "fail=renew:*"), *other = open_store("g1", NULL);
    static struct slow_callback slow = {.ms = 700};
    hf_options opt = HF_OPTIONS_INIT;

    (void)state;
    opt.ttl_ms = 6000;
    opt.on_at_risk = call_slowly;
    opt.arg = &slow;
    hf_lock *first = take(client, "first", &opt), *second = take(client, "second", &opt);
    AWAIT(atomic_load(&slow.begun) == 1);
    pause_ms(100); /* the other one's callback waits for its turn */
    hf_lock *detached = hf_lock_state(second) == HF_STATE_LOST ? first : second;
    assert_int_equal(hf_lock_detach(detached, NULL), 0);
    hf_close(client);
    assert_int_equal(in_store(other, "second"), 1);
    assert_int_equal(in_store(other, "first"), 0);
    hf_lock_release(first, NULL);
    hf_close(other);
}

/* A callback that releases another lock, or its own. */
struct releases {
    hf_lock *other; /* NULL: its own */
    atomic_int begun, go_on, result;
};

static void release_in_callback(hf_lock *lock, hf_cause cause, void *arg)
{
    struct releases *r = arg;

    (void)cause;
    atomic_store(&r->begun, 1);
    while (!atomic_load(&r->go_on))
        pause_ms(2);
    atomic_store(&r->result, hf_lock_release(r->other != NULL ? r->other : lock, NULL));
}

static void close_while_a_callback_releases(const char *store, bool own, int wanted)
{
    hf_client *client = open_store(store, NULL), *other = open_store(store, NULL);
    struct releases releases = {.result = 1};
    struct call closing = {.client = client};
    hf_options opt = HF_OPTIONS_INIT;

    if (!own)
        releases.other = take(client, "b", NULL);
    opt.max_hold_ms = 100;
    opt.on_lost = release_in_callback;
    opt.arg = &releases;
    hf_lock *lock = take(client, "a", &opt);
    AWAIT(atomic_load(&releases.begun));
    start(&closing, call_close);
    pause_ms(100); /* it is closing now */
    atomic_store(&releases.go_on, 1);
    finish(&closing);
    assert_int_equal(atomic_load(&releases.result), wanted);
    assert_int_equal(in_store(other, "b"), 0);
    assert_int_equal(hf_lock_release(lock, NULL), HF_CLOSED);
    hf_close(other);
}

static void c13_a_close_does_not_wait_for_a_callback_that_waits_for_it(void **state)
{
    (void)state;
    close_while_a_callback_releases("g2", false, HF_CLOSED);
}

static void c13_a_callback_never_releases_its_own_lock(void **state)
{
    (void)state;
    close_while_a_callback_releases("g3", true, HF_DEADLOCK);
}

/* on_wait that releases another lock of its client while that is being closed. */
static void release_in_on_wait(size_t position, void *arg)
{
    struct releases *r = arg;

    (void)position;
    if (atomic_exchange(&r->begun, 1))
        return;
    while (!atomic_load(&r->go_on))
        pause_ms(2);
    atomic_store(&r->result, hf_lock_release(r->other, NULL));
}

static void c13_nor_for_an_on_wait(void **state)
{
    hf_client *client = open_store("g4", NULL), *other = open_store("g4", NULL);
    struct releases releases = {.result = 1};
    struct call closing = {.client = client};
    struct call waits = {.client = client, .name = "a", .opt = HF_OPTIONS_INIT};
    hf_lock *held = take(other, "a", NULL);

    (void)state;
    releases.other = take(client, "b", NULL);
    waits.opt.on_wait = release_in_on_wait;
    waits.opt.arg = &releases;
    start(&waits, call_acquire);
    AWAIT(atomic_load(&releases.begun));
    start(&closing, call_close);
    pause_ms(100);
    atomic_store(&releases.go_on, 1);
    finish(&closing);
    finish(&waits);
    assert_int_equal(waits.r, HF_CLOSED);
    assert_int_equal(atomic_load(&releases.result), HF_CLOSED);
    assert_int_equal(in_store(other, "b"), 0);
    hf_lock_release(held, NULL);
    hf_close(other);
}

static void count_expired(hf_lock *lock, hf_cause cause, void *arg)
{
    (void)lock;
    if (cause == HF_CAUSE_EXPIRED)
        atomic_fetch_add((atomic_int *)arg, 1);
}

static void c13_a_close_that_takes_longer_than_the_leases_loses_none(void **state)
{
    enum { LOCKS = 120 }; /* at 10 ms a release, longer than their lease and their lock-delay */
    hf_client *client = open_store("g5", "slow=release:*:10ms"), *other = open_store("g5", NULL);
    hf_options opt = HF_OPTIONS_INIT;
    atomic_int expired = 0;
    hf_lock *locks[LOCKS];

    (void)state;
    opt.ttl_ms = 800;
    opt.lock_delay_ms = 60000;
    opt.on_lost = count_expired;
    opt.arg = &expired;
    for (int i = 0; i < LOCKS; i++) {
        char name[16];
        snprintf(name, sizeof name, "n%d", i);
        locks[i] = take(client, name, &opt);
    }
    hf_close(client);
    assert_int_equal(atomic_load(&expired), 0);
    assert_int_equal(in_store(other, NULL), 0); /* nobody inside, and no lock-delay runs */
    for (int i = 0; i < LOCKS; i++)
        assert_int_equal(hf_lock_release(locks[i], NULL), HF_CLOSED);
    hf_close(other);
}

static void *detach(void *arg)
{
    struct call *call = arg;

    call->r = hf_lock_detach(call->lock, &call->err);
    atomic_store(&call->done, 1);
    return NULL;
}

static void c11_a_lock_that_is_entered_again_is_not_detached(void **state)
{
    hf_client *client = open_store("g6", "slow=renew:*:500ms"), *other = open_store("g6", NULL);
    struct call call = {.client = client, .name = "a", .opt = HF_OPTIONS_INIT};
    hf_lock *held = take(other, "a", NULL);

    (void)state;
    call.opt.reentrant = 1;
    call.opt.owner = 7;
    start(&call, call_acquire);
    AWAIT(in_store(other, "a") == 2);
    hf_lock_release(held, NULL); /* a hand-over: detaching has to claim it first */
    finish(&call);
    assert_int_equal(call.r, 0);

    struct call detaching = {.lock = call.lock};
    start(&detaching, detach);
    pause_ms(100);
    hf_lock *again = take(client, "a", &call.opt);
    assert_ptr_equal(again, call.lock);
    finish(&detaching);
    if (detaching.r != HF_INVALID) /* it was claimed in the background, and detached before */
        skip();
    assert_int_not_equal(hf_lock_state(again), HF_STATE_LOST);
    assert_int_equal(hf_lock_release(again, NULL), 0);
    assert_int_equal(hf_lock_release(call.lock, NULL), 0);
    hf_close(client);
    hf_close(other);
}

static void count_risk(hf_lock *lock, hf_cause cause, void *arg)
{
    (void)lock, (void)cause;
    atomic_fetch_add((atomic_int *)arg, 1);
}

static void c7_each_time_at_risk_is_told_by_hand_too(void **state)
{
    hf_client *client = open_store("g7", NULL);
    hf_options opt = HF_OPTIONS_INIT;
    atomic_int risks = 0;

    (void)state;
    opt.ttl_ms = 3000;
    opt.by_hand = 1;
    opt.on_at_risk = count_risk;
    opt.arg = &risks;
    hf_lock *lock = take(client, "a", &opt);
    for (int i = 1; i <= 2; i++) {
        AWAIT(atomic_load(&risks) == i);
        assert_int_equal(hf_lock_renew(lock, NULL), 0);
    }
    hf_lock_release(lock, NULL);
    hf_close(client);
}

static void c7_withdrawals_that_hang_lose_no_other_lock(void **state)
{
    enum { BIDS = 12 };
    hf_client *client = open_store("g8", "hang=withdraw:*&op_timeout=800ms");
    hf_client *other = open_store("g8", NULL);
    hf_lock *stuck = take(other, "stuck", NULL);
    struct call calls[BIDS];
    hf_options opt = HF_OPTIONS_INIT;

    (void)state;
    opt.ttl_ms = 2000;
    hf_lock *mine = take(client, "mine", &opt);
    for (int i = 0; i < BIDS; i++) {
        calls[i] = (struct call){.client = client, .name = "stuck", .opt = HF_OPTIONS_INIT};
        calls[i].opt.wait_ms = 100;
        start(&calls[i], call_acquire);
    }
    for (int i = 0; i < BIDS; i++) {
        finish(&calls[i]);
        assert_int_equal(calls[i].r, HF_UNKNOWN);
    }
    int64_t until_ms = now_ms() + 5000; /* of which each of them hangs for some */
    while (now_ms() < until_ms) {
        assert_int_not_equal(hf_lock_state(mine), HF_STATE_LOST);
        pause_ms(20);
    }
    hf_lock_release(mine, NULL);
    hf_lock_release(stuck, NULL);
    hf_close(client);
    hf_close(other);
}

static void c7_a_renewal_that_hangs_loses_no_other_lock(void **state)
{
    hf_client *client = open_store("g9", "hang=renew:1&op_timeout=10s");
    hf_options opt = HF_OPTIONS_INIT;

    (void)state;
    opt.ttl_ms = 6000; /* renewed after 2 s, which then hangs for about 2 s */
    hf_lock *longer = take(client, "longer", &opt);
    pause_ms(2200);
    opt.ttl_ms = 600;
    hf_lock *shorter = take(client, "shorter", &opt);
    pause_ms(1500);
    assert_int_not_equal(hf_lock_state(shorter), HF_STATE_LOST);
    hf_lock_release(shorter, NULL);
    hf_lock_release(longer, NULL);
    hf_close(client);
}

static void *short_locks(void *arg)
{
    struct call *call = arg;
    hf_options opt = HF_OPTIONS_INIT;

    opt.ttl_ms = 300;
    while (!atomic_load(&call->done)) {
        hf_lock *lock;
        if (hf_acquire(call->client, call->name, HF_NTS, &opt, &lock, NULL) == 0) {
            pause_ms(150); /* long enough to be renewed */
            hf_lock_release(lock, NULL);
        }
    }
    return NULL;
}

static void c7_a_long_lease_is_kept_beside_short_ones(void **state)
{
    /* Renewals take longer than half of what a short lease has left when it is renewed. */
    hf_client *client = open_store("g10", "slow=renew:*:120ms");
    struct call calls[4];
    hf_options opt = HF_OPTIONS_INIT;

    (void)state;
    opt.ttl_ms = 1500;
    hf_lock *longer = take(client, "longer", &opt);
    for (size_t i = 0; i < COUNT(calls); i++) {
        static const char *const names[] = {"a", "b", "c", "d"};
        calls[i] = (struct call){.client = client, .name = names[i]};
        start(&calls[i], short_locks);
    }
    pause_ms(4000);
    assert_int_not_equal(hf_lock_state(longer), HF_STATE_LOST);
    for (size_t i = 0; i < COUNT(calls); i++) {
        atomic_store(&calls[i].done, 1);
        pthread_join(calls[i].thread, NULL);
    }
    hf_lock_release(longer, NULL);
    hf_close(client);
}

/* "No call is a cancellation point": a thread that is to be cancelled comes out of each. */
struct cancelled {
    hf_client *client;
    hf_lock *lock;
    hf_cancel *cancel;
    int calls; /* that it came out of */
};

static void *call_everything(void *arg)
{
    struct cancelled *c = arg;
    hf_client *opened = NULL;

    pthread_cancel(pthread_self());
    hf_cancel_fire(c->cancel);
    c->calls++;
    hf_close(c->client);
    c->calls++;
    hf_lock_release(c->lock, NULL);
    c->calls++;
    if (hf_open("memory://g11b", NULL, &opened, NULL) == 0)
        hf_close(opened);
    c->calls++;
    hf_cancel_free(c->cancel);
    c->calls++;
    pthread_testcancel();
    return NULL;
}

static void c13_no_call_is_a_cancellation_point(void **state)
{
    struct cancelled c = {.client = open_store("g11", NULL)};
    pthread_t thread;
    void *result;

    (void)state;
    c.lock = take(c.client, "a", NULL);
    assert_true(hf_lock_fd(c.lock) >= 0);
    assert_int_equal(hf_cancel_new(&c.cancel), 0);
    assert_int_equal(pthread_create(&thread, NULL, call_everything, &c), 0);
    pthread_join(thread, &result);
    assert_ptr_equal(result, PTHREAD_CANCELED);
    assert_int_equal(c.calls, 5);
}

/* In a child, so that only what is the library's is closed. */
static int wait_without_descriptors(void)
{
    hf_client *client = open_store("g12", NULL);
    hf_lock *lock = take(client, "a", NULL);
    struct call call = {.client = client, .name = "a", .opt = HF_OPTIONS_INIT};

    call.opt.wait_ms = 500;
    start(&call, call_acquire);
    pause_ms(200);
    for (int fd = 3; fd < 64; fd++)
        close(fd);
    finish(&call);
    hf_lock_release(lock, NULL);
    hf_close(client);
    return call.r == HF_TIMEOUT ? 0 : 1;
}

static void c5_a_wait_ends_although_the_program_closed_our_descriptors(void **state)
{
    int status = -1;
    pid_t pid = fork();

    (void)state;
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(wait_without_descriptors());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void c3_max_hold_is_refused_for_an_adopted_lock_that_never_expires(void **state)
{
    hf_client *client = open_store("g13", NULL);
    hf_options opt = HF_OPTIONS_INIT;
    char ticket[HF_TICKET_SIZE];
    hf_lock *lock;

    (void)state;
    opt.ttl_ms = HF_NEVER;
    lock = take(client, "a", &opt);
    snprintf(ticket, sizeof ticket, "%s", hf_lock_ticket(lock));
    assert_int_equal(hf_lock_detach(lock, NULL), 0);
    opt = (hf_options)HF_OPTIONS_INIT;
    opt.max_hold_ms = 100;
    assert_int_equal(hf_adopt(client, "a", HF_NTS, ticket, &opt, &lock, NULL), HF_INVALID);
    opt.max_hold_ms = 0;
    assert_int_equal(hf_adopt(client, "a", HF_NTS, ticket, &opt, &lock, NULL), 0);
    assert_int_equal(hf_lock_release(lock, NULL), 0);
    hf_close(client);
}

/* Somebody's callback asks for the lock to stay closed, and is refused. */
static void keep_closed_in_callback(hf_lock *lock, hf_cause cause, void *arg)
{
    (void)cause;
    atomic_store((atomic_int *)arg, hf_lock_release_after(lock, 3600000, NULL));
}

static void c14_a_release_that_was_refused_keeps_nothing_closed(void **state)
{
    hf_client *client = open_store("g14", NULL), *other = open_store("g14", NULL);
    hf_options opt = HF_OPTIONS_INIT;
    hf_event event = {.size = sizeof event};
    static atomic_int result = 1;

    (void)state;
    opt.on_wanted = keep_closed_in_callback;
    opt.arg = &result;
    hf_lock *lock = take(client, "x", &opt);
    assert_int_equal(hf_acquire_start(other, "x", HF_NTS, NULL, 1, NULL), 0);
    AWAIT(atomic_load(&result) != 1);
    assert_int_equal(atomic_load(&result), HF_DEADLOCK);
    assert_int_equal(hf_lock_release(lock, NULL), 0);
    assert_int_equal(hf_event_next(other, PATIENCE_MS, &event), 0);
    assert_int_equal(event.kind, HF_EVENT_ACQUIRED);
    hf_close(client);
    hf_close(other);
    hf_lock_release(event.lock, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(c14_a_release_that_was_refused_keeps_nothing_closed),
        cmocka_unit_test(c2_a_detached_lock_is_not_released_by_the_close),
        cmocka_unit_test(c13_a_close_does_not_wait_for_a_callback_that_waits_for_it),
        cmocka_unit_test(c13_a_callback_never_releases_its_own_lock),
        cmocka_unit_test(c13_nor_for_an_on_wait),
        cmocka_unit_test(c13_a_close_that_takes_longer_than_the_leases_loses_none),
        cmocka_unit_test(c11_a_lock_that_is_entered_again_is_not_detached),
        cmocka_unit_test(c7_each_time_at_risk_is_told_by_hand_too),
        cmocka_unit_test(c7_withdrawals_that_hang_lose_no_other_lock),
        cmocka_unit_test(c7_a_renewal_that_hangs_loses_no_other_lock),
        cmocka_unit_test(c7_a_long_lease_is_kept_beside_short_ones),
        cmocka_unit_test(c13_no_call_is_a_cancellation_point),
        cmocka_unit_test(c5_a_wait_ends_although_the_program_closed_our_descriptors),
        cmocka_unit_test(c3_max_hold_is_refused_for_an_adopted_lock_that_never_expires),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
