/* The connection on which a server calls: what is polled must fall silent when it is lost. */
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/check.h"
#include "lib/fake_clock.h"
#include "net/listener.h"

/* A server that is the other end of a pair of sockets. */
struct caller {
    struct fake_clock clock;
    struct hf__listener listener;
    int ours, theirs;
    bool closed; /* `ours` is, by the library that the connection belongs to */
};

static int dial(void *owner, int64_t deadline_ns, struct hf__line *ret_line)
{
    struct caller *c = owner;
    int pair[2];

    (void)deadline_ns;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return HF_UNAVAILABLE;
    c->ours = pair[0];
    c->theirs = pair[1];
    c->closed = false;
    *ret_line = (struct hf__line){.conn = c, .fd = c->ours};
    return 0;
}

static void hang_up(void *conn, bool lost)
{
    struct caller *c = conn;

    (void)lost;
    if (!c->closed)
        close(c->ours);
}

static const struct hf__listener_type type = {.dial = dial, .hang_up = hang_up};

static int set_up(void **state)
{
    static struct caller c;
    hf_error err;

    c = (struct caller){0};
    fake_clock_init(&c.clock);
    assert_int_equal(hf__listener_init(&c.listener, &type, &c, &c.clock.env, &err), 0);
    assert_true(hf__listener_open(&c.listener) >= 0);
    assert_true(hf__listener_start(&c.listener, INT64_MAX));
    *state = &c;
    return 0;
}

static int tear_down(void **state)
{
    struct caller *c = *state;

    hf__listener_clear(&c->listener);
    return 0;
}

static bool is_calling(const struct caller *c)
{
    struct pollfd p = {.fd = c->listener.epoll_fd, .events = POLLIN};

    return poll(&p, 1, 0) > 0;
}

static void wake(struct caller *c)
{
    bool missed;

    assert_ptr_equal(hf__listener_wake(&c->listener, &missed), c);
}

static void c12_it_calls_when_there_is_something_to_read(void **state)
{
    struct caller *c = *state;
    char byte = 'x';

    wake(c);
    assert_false(is_calling(c));
    assert_int_equal(write(c->theirs, &byte, 1), 1);
    assert_true(is_calling(c));
    assert_int_equal(read(c->ours, &byte, 1), 1);
    assert_false(is_calling(c));
    close(c->theirs);
}

/* Closing takes a descriptor out of an epoll only if nobody else has it. */
static void c13_lost_line_that_a_forked_child_has_too_falls_silent(void **state)
{
    for (int by_library = 0; by_library < 2; by_library++) {
        struct caller *c = *state;
        int childs = dup(c->ours);

        wake(c);
        close(c->theirs);
        assert_true(is_calling(c));
        if (by_library) {
            close(c->ours);
            c->closed = true;
        }
        hf__listener_lost(&c->listener);
        assert_false(is_calling(c));
        assert_true(hf__listener_again(&c->listener, INT64_MAX, NULL));
        close(childs);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(c12_it_calls_when_there_is_something_to_read),
        TEST(c13_lost_line_that_a_forked_child_has_too_falls_silent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
