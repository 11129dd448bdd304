/* The machine's own clock, timers and randomness. */
#include <fcntl.h>
#include <poll.h>
#include <time.h>
#include <unistd.h>

#include "base/env.h"
#include "lib/check.h"

static const struct hf_env *env = &hf__system_env;

static bool fires(int fd, int timeout_ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    uint64_t count;

    return poll(&p, 1, timeout_ms) == 1 && read(fd, &count, sizeof count) == sizeof count;
}

static void the_clock_is_boottime_and_does_not_go_back(void **state)
{
    struct timespec before, after;
    int64_t last = 0;

    (void)state;
    clock_gettime(CLOCK_BOOTTIME, &before);
    for (int i = 0; i < 1000; i++) {
        int64_t now = hf__now_ns(env);
        assert_true(now >= last);
        last = now;
    }
    clock_gettime(CLOCK_BOOTTIME, &after);
    assert_true(last >= before.tv_sec * INT64_C(1000000000) + before.tv_nsec);
    assert_true(last <= after.tv_sec * INT64_C(1000000000) + after.tv_nsec);
}

static void wall_time_is_in_microseconds(void **state)
{
    time_t before = time(NULL);
    uint64_t now = env->wall_us(env->ctx);

    (void)state;
    assert_true(now / 1000000 + 1 >= (uint64_t)before); /* time() may lag a tick behind */
    assert_true(now / 1000000 <= (uint64_t)time(NULL) + 1);
}

static void random_bits_differ_and_fill_it_all(void **state)
{
    unsigned char a[1000] = {0}, b[1000] = {0}, ored[1000] = {0};

    (void)state;
    for (int i = 0; i < 16; i++) {
        assert_int_equal(env->random(env->ctx, a, sizeof a), 0);
        for (size_t j = 0; j < sizeof a; j++)
            ored[j] |= a[j];
    }
    assert_int_equal(env->random(env->ctx, b, sizeof b), 0);
    assert_memory_not_equal(a, b, sizeof a);
    for (size_t j = 0; j < sizeof ored; j++)
        assert_int_not_equal(ored[j], 0);
    assert_int_equal(env->random(env->ctx, a, 0), 0);
}

static void a_timer_fires_at_its_moment_and_at_once_for_the_past(void **state)
{
    int fd = env->timer_open(env->ctx);

    (void)state;
    assert_true(fd >= 0);
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);

    int64_t when = hf__now_ns(env) + 20 * HF__NS_PER_MS;
    env->timer_set(env->ctx, fd, when);
    assert_true(fires(fd, 10000));
    assert_true(hf__now_ns(env) >= when);

    static const int64_t past[] = {1, 0, -5, INT64_MIN};
    for (size_t i = 0; i < COUNT(past); i++) {
        env->timer_set(env->ctx, fd, past[i]);
        assert_true(fires(fd, 10000));
    }
    close(fd);
}

static void a_timer_can_be_disarmed(void **state)
{
    int fd = env->timer_open(env->ctx);

    (void)state;
    env->timer_set(env->ctx, fd, 1);
    env->timer_set(env->ctx, fd, INT64_MAX);
    assert_false(fires(fd, 0));
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_clock_is_boottime_and_does_not_go_back),
        cmocka_unit_test(wall_time_is_in_microseconds),
        cmocka_unit_test(random_bits_differ_and_fill_it_all),
        cmocka_unit_test(a_timer_fires_at_its_moment_and_at_once_for_the_past),
        cmocka_unit_test(a_timer_can_be_disarmed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
