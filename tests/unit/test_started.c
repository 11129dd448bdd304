/* Bids and releases that are started, and end with an event. */
#include <dirent.h>
#include <malloc.h>
#include <poll.h>
#include <unistd.h>

#include "unit/bid_stage.h"

static hf_event next(hf_client *client)
{
    hf_event event = {.size = sizeof event};
    int r = hf_event_next(client, 10000, &event);

    if (r != 0)
        fail_msg("no event: %s", hf_code_name(r));
    return event;
}

static void begin(hf_client *client, int64_t wait_ms, uint64_t tag)
{
    hf_options opt = HF_OPTIONS_INIT;

    opt.wait_ms = wait_ms;
    assert_int_equal(hf_acquire_start(client, "x", HF_NTS, &opt, tag, NULL), 0);
}

static void check_event(const hf_event *event, hf_event_kind kind, uint64_t tag, int code)
{
    assert_int_equal(event->kind, kind);
    assert_int_equal(event->tag, tag);
    assert_int_equal(event->err.code, code);
}

static void release(hf_client *client, hf_lock *lock, uint64_t tag, int code)
{
    assert_int_equal(hf_release_start(lock, tag, NULL), 0);
    hf_event event = next(client);
    check_event(&event, HF_EVENT_RELEASED, tag, code);
}

static bool is_readable(hf_client *client)
{
    struct pollfd fd = {.fd = hf_event_fd(client), .events = POLLIN};

    assert_true(fd.fd >= 0);
    return poll(&fd, 1, 0) == 1;
}

static void a_free_lock_is_told_and_given_back_by_events(void **state)
{
    struct stage *s = *state;
    hf_event event = {.size = sizeof event};

    assert_int_equal(hf_event_next(s->client, 0, &event), HF_TIMEOUT);
    assert_false(is_readable(s->client));
    begin(s->client, 0, 7);
    event = next(s->client);
    check_event(&event, HF_EVENT_ACQUIRED, 7, HF_OK);
    assert_false(is_readable(s->client));
    assert_int_equal(hf_lock_state(event.lock), HF_STATE_HELD);
    assert_int_equal(in_store(s), 1);
    release(s->client, event.lock, 8, HF_OK);
    assert_int_equal(in_store(s), 0);
}

static int two_in_store(void *arg)
{
    return in_store(arg) == 2;
}

static void c5_a_started_bid_waits_and_is_handed_the_lock(void **state)
{
    struct stage *s = *state;
    hf_lock *lock = take(s->other);

    begin(s->client, HF_FOREVER, 1);
    assert_true(fake_clock_stand(two_in_store, s));
    assert_false(is_readable(s->client));
    assert_int_equal(hf_lock_release(lock, NULL), 0);
    hf_event event = next(s->client);
    check_event(&event, HF_EVENT_ACQUIRED, 1, HF_OK);
    assert_int_equal(hf_lock_release(event.lock, NULL), 0); /* either way of giving back will do */
    assert_int_equal(in_store(s), 0);
}

static int is_about_to_listen(void *arg)
{
    return atomic_load(&((struct stage *)arg)->store->held[PUPPET_LISTEN]) == 1;
}

/* Its place was taken before anybody listened, and no time passes by which to ask again. */
static void c12_a_lock_given_while_the_client_begins_to_listen_is_not_missed(void **state)
{
    struct stage *s = *state;
    hf_lock *lock = take(s->other);

    atomic_store(&s->store->hold[PUPPET_LISTEN], 1);
    begin(s->client, HF_FOREVER, 1);
    assert_true(fake_clock_stand(is_about_to_listen, s));
    assert_int_equal(hf_lock_release(lock, NULL), 0);
    struct pollfd fd = {.fd = hf_event_fd(s->client), .events = POLLIN};
    atomic_store(&s->store->hold[PUPPET_LISTEN], 0);
    assert_int_equal(poll(&fd, 1, 20000), 1);
    hf_event event = next(s->client);
    check_event(&event, HF_EVENT_ACQUIRED, 1, HF_OK);
    release(s->client, event.lock, 9, HF_OK);
}

static int has_event(void *arg)
{
    return is_readable(arg);
}

static int acquire_or_start(hf_client *client, int64_t wait_ms, uint64_t tag, hf_lock **ret_lock)
{
    hf_options opt = HF_OPTIONS_INIT;

    opt.wait_ms = wait_ms;
    opt.by_hand = 1;
    return hf_acquire_or_start(client, "x", HF_NTS, &opt, tag, ret_lock, NULL);
}

static void what_is_free_is_had_at_once_and_its_loss_is_told(void **state)
{
    struct stage *s = *state;
    hf_lock *lock = NULL;

    assert_int_equal(acquire_or_start(s->client, HF_FOREVER, 5, &lock), 0);
    assert_non_null(lock);
    assert_false(is_readable(s->client));
    assert_int_equal(hf_acquire_stop(s->client, 5), HF_NOT_FOUND);
    assert_true(fake_clock_run(&s->clock, 60000, has_event, s->client));
    hf_event event = next(s->client);
    check_event(&event, HF_EVENT_AT_RISK, 5, HF_OK);
    assert_true(fake_clock_run(&s->clock, 60000, has_event, s->client));
    event = next(s->client);
    check_event(&event, HF_EVENT_LOST, 5, HF_OK);
    assert_ptr_equal(event.lock, lock);
    release(s->client, lock, 6, HF_STALE);
}

static void c5_what_is_not_free_is_refused_or_goes_on_as_started(void **state)
{
    struct stage *s = *state;
    hf_lock *held = take(s->other), *lock = held;

    assert_int_equal(acquire_or_start(s->client, 0, 1, &lock), HF_BUSY);
    assert_int_equal(acquire_or_start(s->client, HF_FOREVER, 2, &lock), 0);
    assert_null(lock);
    assert_int_equal(in_store(s), 2); /* its first attempt is made */
    assert_int_equal(acquire_or_start(s->client, HF_FOREVER, 3, &lock), 0); /* another owner */
    assert_int_equal(hf_acquire_stop(s->client, 2), 0);
    hf_event event = next(s->client);
    check_event(&event, HF_EVENT_FAILED, 2, HF_CANCELLED);
    assert_int_equal(hf_lock_release(held, NULL), 0);
    event = next(s->client);
    check_event(&event, HF_EVENT_ACQUIRED, 3, HF_OK);
    release(s->client, event.lock, 9, HF_OK);
    assert_int_equal(in_store(s), 0);
}

static void closing_ends_what_was_left_waiting(void **state)
{
    struct stage *s = *state;
    hf_lock *held = take(s->other), *lock;
    hf_client *third;

    assert_int_equal(hf__open(s->url, NULL, &s->clock.env, &third, NULL), 0);
    assert_int_equal(acquire_or_start(third, HF_FOREVER, 1, &lock), 0);
    assert_null(lock);
    hf_close(third);
    assert_int_equal(in_store(s), 1);
    assert_int_equal(hf_lock_release(held, NULL), 0);
}

static void c5_a_started_bid_ends_by_the_clock_and_leaves_nothing(void **state)
{
    struct stage *s = *state;
    hf_lock *lock = take(s->other);

    begin(s->client, 20000, 1);
    assert_true(fake_clock_stand(two_in_store, s));
    assert_false(fake_clock_run(&s->clock, 15000, has_event, s->client));
    assert_int_equal(in_store(s), 2); /* its signs of life kept it in the queue */
    assert_true(fake_clock_run(&s->clock, 60000, has_event, s->client));
    hf_event event = next(s->client);
    check_event(&event, HF_EVENT_FAILED, 1, HF_TIMEOUT);
    assert_non_null(strstr(event.err.text, "acquire 'x'"));
    assert_null(event.lock);
    assert_int_equal(in_store(s), 1);
    assert_int_equal(hf_lock_release(lock, NULL), 0);
}

static void c5_a_stopped_bid_leaves_nothing_and_others_go_on(void **state)
{
    struct stage *s = *state;
    hf_lock *lock = take(s->other);

    begin(s->client, HF_FOREVER, 1);
    begin(s->client, HF_FOREVER, 2); /* of one thread: each is an owner of its own */
    assert_int_equal(hf_acquire_stop(s->client, 3), HF_NOT_FOUND);
    assert_int_equal(hf_acquire_stop(s->client, 1), 0);
    hf_event event = next(s->client);
    check_event(&event, HF_EVENT_FAILED, 1, HF_CANCELLED);
    assert_int_equal(hf_acquire_stop(s->client, 1), HF_NOT_FOUND);
    assert_int_equal(hf_lock_release(lock, NULL), 0);
    event = next(s->client);
    check_event(&event, HF_EVENT_ACQUIRED, 2, HF_OK);
    release(s->client, event.lock, 9, HF_OK);
    assert_int_equal(in_store(s), 0);
}

static int an_attempt_hangs(void *arg)
{
    return atomic_load(&((struct stage *)arg)->store->held[PUPPET_ATTEMPT]) == 1;
}

/* It is not asleep yet, and so cannot be woken; and no time passes that would. */
static void c5_a_bid_stopped_while_it_asks_does_not_fall_asleep(void **state)
{
    struct stage *s = *state;
    hf_lock *lock = take(s->other);

    atomic_store(&s->store->hold[PUPPET_ATTEMPT], 1);
    begin(s->client, HF_FOREVER, 1);
    assert_true(fake_clock_stand(an_attempt_hangs, s));
    assert_int_equal(hf_acquire_stop(s->client, 1), 0);
    atomic_store(&s->store->hold[PUPPET_ATTEMPT], 0);
    hf_event event = next(s->client);
    check_event(&event, HF_EVENT_FAILED, 1, HF_CANCELLED);
    assert_int_equal(in_store(s), 1);
    assert_int_equal(hf_lock_release(lock, NULL), 0);
}

static void c7_risk_and_loss_are_events(void **state)
{
    struct stage *s = *state;
    hf_options opt = HF_OPTIONS_INIT;

    opt.by_hand = 1;
    assert_int_equal(hf_acquire_start(s->client, "x", HF_NTS, &opt, 5, NULL), 0);
    hf_event event = next(s->client);
    hf_lock *lock = event.lock;
    assert_true(fake_clock_run(&s->clock, 60000, has_event, s->client));
    event = next(s->client);
    check_event(&event, HF_EVENT_AT_RISK, 5, HF_OK);
    assert_ptr_equal(event.lock, lock);
    assert_true(fake_clock_run(&s->clock, 60000, has_event, s->client));
    event = next(s->client);
    check_event(&event, HF_EVENT_LOST, 5, HF_OK);
    assert_int_equal(event.cause, HF_CAUSE_EXPIRED);
    release(s->client, lock, 6, HF_STALE);
}

static void what_is_given_back_tells_nothing_more(void **state)
{
    struct stage *s = *state;
    hf_options opt = HF_OPTIONS_INIT;
    hf_event event = {.size = sizeof event};

    opt.by_hand = 1;
    assert_int_equal(hf_acquire_start(s->client, "x", HF_NTS, &opt, 5, NULL), 0);
    hf_lock *lock = next(s->client).lock;
    assert_true(
        fake_clock_run(&s->clock, 60000, has_event, s->client)); /* at risk, and not taken */
    assert_int_equal(hf_lock_release(lock, NULL), 0);
    assert_int_equal(hf_event_next(s->client, 0, &event), HF_TIMEOUT);
    assert_false(is_readable(s->client));
}

static void closing_ends_what_was_started(void **state)
{
    struct stage *s = *state;
    hf_lock *lock = take(s->other);
    hf_client *third;

    assert_int_equal(hf__open(s->url, NULL, &s->clock.env, &third, NULL), 0);
    begin(third, HF_FOREVER, 1);
    assert_int_equal(hf_acquire_start(third, "free", HF_NTS, NULL, 2, NULL), 0); /* never taken */
    assert_true(fake_clock_stand(has_event, third));
    hf_close(third);
    assert_int_equal(in_store(s), 1);
    assert_int_equal(hf_lock_release(lock, NULL), 0);
}

static void *take_one(void *arg)
{
    hf_event event = {.size = sizeof event};

    return (void *)(intptr_t)hf_event_next(arg, HF_FOREVER, &event);
}

static void closing_wakes_who_waits_for_an_event(void **state)
{
    struct stage *s = *state;
    hf_client *third;
    pthread_t thread;
    void *r;

    assert_int_equal(hf__open(s->url, NULL, &s->clock.env, &third, NULL), 0);
    assert_true(hf_event_fd(third) >= 0);
    assert_int_equal(pthread_create(&thread, NULL, take_one, third), 0);
    for (bool inside = false; !inside; usleep(1000)) {
        hf__lock_client(third);
        inside = third->users == 1;
        hf__unlock_client(third);
    }
    hf_close(third);
    pthread_join(thread, &r);
    assert_int_equal((intptr_t)r, HF_CLOSED);
}

static void *close_it(void *arg)
{
    hf_close(arg);
    return NULL;
}

/* Whoever sleeps there may not have seen it yet: who takes the last event must not take it away. */
static void closing_goes_on_waking_when_the_last_event_is_gone(void **state)
{
    struct stage *s = *state;
    hf_client *third;
    struct puppet *store = puppet_open(s->url, &s->clock.env, &third);
    struct pollfd fd = {.events = POLLIN};
    struct asker a;
    pthread_t closer;
    hf_lock *lock;

    assert_int_equal(acquire_or_start(third, HF_FOREVER, 5, &lock), 0);
    fd.fd = hf_event_fd(third);
    assert_true(fake_clock_run(&s->clock, 60000, has_event, third)); /* it is at risk */
    atomic_store(&store->hold[PUPPET_ATTEMPT], 1);
    start(&a, third, 0);
    while (atomic_load(&store->held[PUPPET_ATTEMPT]) == 0)
        usleep(1000);
    assert_int_equal(pthread_create(&closer, NULL, close_it, third), 0); /* it waits for that one */
    while (hf_event_fd(third) != HF_CLOSED)
        usleep(1000);
    assert_int_equal(hf_lock_release(lock, NULL), HF_CLOSED); /* and its event is gone */
    assert_int_equal(poll(&fd, 1, 0), 1);
    atomic_store(&store->hold[PUPPET_ATTEMPT], 0);
    pthread_join(a.thread, NULL);
    pthread_join(closer, NULL);
}

static int a_release_hangs(void *arg)
{
    return atomic_load(&((struct stage *)arg)->store->held[PUPPET_RELEASE]) == 1;
}

static void what_hangs_delays_no_other_bid(void **state)
{
    struct stage *s = *state;

    begin(s->client, 0, 1);
    hf_lock *lock = next(s->client).lock;
    atomic_store(&s->store->hold[PUPPET_RELEASE], 1);
    assert_int_equal(hf_release_start(lock, 2, NULL), 0);
    assert_true(fake_clock_stand(a_release_hangs, s));
    assert_int_equal(hf_acquire_start(s->client, "y", HF_NTS, NULL, 3, NULL), 0);
    hf_event event = next(s->client);
    check_event(&event, HF_EVENT_ACQUIRED, 3, HF_OK);
    atomic_store(&s->store->hold[PUPPET_RELEASE], 0);
    lock = event.lock;
    event = next(s->client);
    check_event(&event, HF_EVENT_RELEASED, 2, HF_OK);
    release(s->client, lock, 4, HF_OK);
}

static int count_threads(void)
{
    DIR *dir = opendir("/proc/self/task");
    int count = 0;

    assert_non_null(dir);
    for (const struct dirent *e; (e = readdir(dir)) != NULL;)
        count += e->d_name[0] != '.';
    closedir(dir);
    return count;
}

#define CROWD 3000

static int all_wait(void *arg)
{
    return in_store(arg) == CROWD + 1;
}

/* Under a sanitizer this stays 0. */
static size_t bytes_in_use(void)
{
    struct mallinfo2 m = mallinfo2();

    return m.uordblks + m.hblkhd;
}

static void a_crowd_of_bids_needs_a_few_threads_and_little_memory(void **state)
{
    struct stage *s = *state;
    hf_lock *lock = take(s->other);
    int before = count_threads(), most = 0;
    size_t bytes_before = bytes_in_use();

    for (uint64_t i = 1; i <= CROWD; i++)
        begin(s->client, HF_FOREVER, i);
    assert_true(fake_clock_run(&s->clock, 30000, all_wait, s));
    assert_true(bytes_in_use() - bytes_before < CROWD * 1024);
    assert_int_equal(hf_lock_release(lock, NULL), 0);
    for (int released = 0; released < CROWD;) {
        hf_event event = next(s->client);
        int threads = count_threads() - before;
        most = threads > most ? threads : most;
        if (event.kind == HF_EVENT_ACQUIRED) {
            assert_int_equal(hf_release_start(event.lock, event.tag, NULL), 0);
            continue;
        }
        check_event(&event, HF_EVENT_RELEASED, event.tag, HF_OK);
        released++;
    }
    assert_true(most <= 12);
    assert_int_equal(in_store(s), 0);
}

static void mistakes_are_told_at_once(void **state)
{
    struct stage *s = *state;
    hf_options opt = HF_OPTIONS_INIT;
    hf_event event = {.size = 8};

    assert_int_equal(hf_acquire_start(s->client, "", HF_NTS, NULL, 1, NULL), HF_INVALID);
    opt.owner = 7;
    opt.reentrant = 1;
    assert_int_equal(hf_acquire_start(s->client, "x", HF_NTS, &opt, 1, NULL), 0);
    hf_lock *lock = next(s->client).lock, *again;
    assert_int_equal(hf_acquire_start(s->client, "x", HF_NTS, &opt, 1, NULL), HF_INVALID);
    assert_int_equal(hf_acquire(s->client, "x", HF_NTS, &opt, &again, NULL), 0);
    assert_ptr_equal(again, lock);
    assert_int_equal(hf_acquire_or_start(s->client, "x", HF_NTS, &opt, 4, &again, NULL), 0);
    assert_ptr_equal(again, lock);
    release(s->client, again, 5, HF_OK);
    release(s->client, again, 2, HF_OK); /* counts down */
    assert_int_equal(hf_lock_state(lock), HF_STATE_HELD);
    release(s->client, lock, 3, HF_OK);
    assert_int_equal(in_store(s), 0);
    assert_int_equal(hf_event_next(s->client, 0, &event), HF_INVALID);
    assert_int_equal(hf_release_start(NULL, 1, NULL), HF_INVALID);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(a_free_lock_is_told_and_given_back_by_events),
        CASE(c5_a_started_bid_waits_and_is_handed_the_lock),
        CASE(c5_a_started_bid_ends_by_the_clock_and_leaves_nothing),
        CASE(c12_a_lock_given_while_the_client_begins_to_listen_is_not_missed),
        CASE(c5_a_stopped_bid_leaves_nothing_and_others_go_on),
        CASE(c5_a_bid_stopped_while_it_asks_does_not_fall_asleep),
        CASE(c7_risk_and_loss_are_events),
        CASE(what_is_given_back_tells_nothing_more),
        CASE(what_is_free_is_had_at_once_and_its_loss_is_told),
        CASE(c5_what_is_not_free_is_refused_or_goes_on_as_started),
        CASE(closing_ends_what_was_left_waiting),
        CASE(closing_ends_what_was_started),
        CASE(closing_wakes_who_waits_for_an_event),
        CASE(closing_goes_on_waking_when_the_last_event_is_gone),
        CASE(what_hangs_delays_no_other_bid),
        CASE(a_crowd_of_bids_needs_a_few_threads_and_little_memory),
        CASE(mistakes_are_told_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
