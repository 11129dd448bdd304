/* The connection on which a server calls, with one end of a socket pair as the server. */
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/check.h"
#include "lib/fake_clock.h"
#include "net/listener.h"

struct line {
    struct fake_clock clock;
    struct hf__listener listener;
    int ours, servers;
};

static int dial(void *owner, int64_t deadline_ns, struct hf__line *ret_line)
{
    struct line *line = owner;
    int ends[2];

    (void)deadline_ns;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    line->ours = ends[0];
    line->servers = ends[1];
    *ret_line = (struct hf__line){.conn = line, .fd = line->ours};
    return 0;
}

static void hang_up(void *conn, bool lost)
{
    (void)lost;
    close(((struct line *)conn)->ours);
}

static const struct hf__listener_type type = {.dial = dial, .hang_up = hang_up};

static bool is_readable(const struct line *line)
{
    struct pollfd fd = {.fd = line->listener.epoll_fd, .events = POLLIN};

    return poll(&fd, 1, 0) == 1;
}

static void begin(struct line *line)
{
    hf_error err = {0};
    bool missed;

    *line = (struct line){0};
    fake_clock_init(&line->clock);
    assert_int_equal(hf__listener_init(&line->listener, &type, line, &line->clock.env, &err), 0);
    assert_true(hf__listener_open(&line->listener) >= 0);
    assert_true(hf__listener_start(&line->listener, 0));
    assert_true(is_readable(line));
    assert_ptr_equal(hf__listener_wake(&line->listener, &missed), line);
    assert_false(is_readable(line));
}

static void hear_three_calls(struct line *line)
{
    bool missed;
    char byte;

    for (int i = 0; i < 3; i++) {
        assert_int_equal(write(line->servers, "xy", 2), 2);
        assert_true(is_readable(line));
        assert_ptr_equal(hf__listener_wake(&line->listener, &missed), line);
        assert_int_equal(read(line->ours, &byte, 1), 1);
        assert_true(is_readable(line)); /* of two bytes one is left */
        assert_ptr_equal(hf__listener_wake(&line->listener, &missed), line);
        assert_int_equal(read(line->ours, &byte, 1), 1);
        assert_false(is_readable(line));
    }
}

static void c12_every_call_is_heard(void **state)
{
    struct line line;

    (void)state;
    begin(&line);
    hear_three_calls(&line);
    close(line.servers);
    hf__listener_clear(&line.listener);
}

/* A child that was forked keeps a copy of the socket, and so the kernel does not forget it when
 * ours is closed. */
static void c13_lost_line_is_quiet_although_a_child_has_a_copy_of_it(void **state)
{
    struct line line;
    bool missed;

    (void)state;
    begin(&line);
    int childs = dup(line.ours);
    close(line.servers);
    assert_true(is_readable(&line));
    assert_ptr_equal(hf__listener_wake(&line.listener, &missed), &line);
    hf__listener_lost(&line.listener);
    if (is_readable(&line)) /* once more does no harm */
        assert_null(hf__listener_wake(&line.listener, &missed));
    assert_false(is_readable(&line));

    assert_true(hf__listener_again(&line.listener, 0, NULL));
    assert_ptr_equal(hf__listener_wake(&line.listener, &missed), &line);
    assert_true(missed);
    assert_false(is_readable(&line));
    hear_three_calls(&line);
    close(childs);
    close(line.servers);
    hf__listener_clear(&line.listener);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(c12_every_call_is_heard),
        cmocka_unit_test(c13_lost_line_is_quiet_although_a_child_has_a_copy_of_it),
    };

    return cmocka_run_group_tests_name("listener", tests, NULL, NULL);
}
