/* Calls over a connection whose server resets, leaves, is silent or says too much: each ends in time,
 * and is known as surely not received, perhaps received, or answered. */
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "grpc/server.h"
#include "lib/check.h"

static struct server *server;
static struct hf__grpc_conn *conn;

static int64_t after_ms(int64_t ms)
{
    return hf__now_ns(&hf__system_env) + ms * HF__NS_PER_MS;
}

static struct hf__grpc_conn *dial(const struct server *to)
{
    struct hf__grpc_route route = {.address = {.host = "127.0.0.1", .port = server_port(to)},
                                   .env = &hf__system_env};
    struct hf__grpc_conn *ret = NULL;
    hf_error err = {0};

    if (hf__grpc_dial(&route, after_ms(5000), &ret, &err) != 0)
        fail_msg("%s", err.text);
    return ret;
}

static void start(const struct server_options *options)
{
    server = server_start(options);
    conn = dial(server);
}

static int set_up(void **state)
{
    (void)state;
    start(&(struct server_options){0});
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    hf__grpc_unref(conn);
    server_stop(server);
    return 0;
}

static struct hf__grpc_call *begin(const char *path)
{
    struct hf__buffer body = {0};
    struct hf__grpc_request request = {.path = path, .body = &body};
    size_t place = hf__grpc_begin_message(&body);

    hf__buffer_add(&body, "hello", 5);
    hf__grpc_end_message(&body, place);
    return hf__grpc_begin(conn, &request, NULL);
}

/* How it ended; the call is to be released. */
static enum hf__grpc_end ask(const char *path, int64_t ms, struct hf__grpc_call **ret_call)
{
    hf_error err = {0};

    *ret_call = begin(path);
    assert_non_null(*ret_call);
    return hf__grpc_finish(conn, *ret_call, after_ms(ms), &err);
}

static enum hf__grpc_end end_of(const char *path, int64_t ms)
{
    struct hf__grpc_call *call;
    enum hf__grpc_end end = ask(path, ms, &call);

    hf__grpc_release(conn, call);
    return end;
}

static void assert_works(void)
{
    struct hf__grpc_call *call;
    struct hf__slice message;

    assert_int_equal(ask("/t/ok", 5000, &call), HF__GRPC_END_ANSWERED);
    assert_int_equal(call->status, HF__GRPC_STATUS_OK);
    struct hf__slice rest = {call->in.data, call->in.len};

    assert_int_equal(hf__grpc_take(&rest, &message), 1);
    assert_int_equal(rest.len, 0);
    assert_int_equal(message.len, 5);
    assert_memory_equal(message.data, "hello", 5);
    hf__grpc_release(conn, call);
}

static void c6_answers_and_refusals_are_read(void **state)
{
    struct hf__grpc_call *call;
    (void)state;

    assert_works();
    assert_int_equal(ask("/t/status", 5000, &call), HF__GRPC_END_ANSWERED);
    assert_int_equal(call->status, HF__GRPC_STATUS_UNAVAILABLE);
    assert_string_equal(call->message, "a b");
    hf__grpc_release(conn, call);
    assert_int_equal(ask("/t/web", 5000, &call), HF__GRPC_END_ANSWERED);
    assert_int_equal(call->http_status, 503);
    assert_false(call->is_grpc);
    hf__grpc_release(conn, call);
    assert_works();
}

static void c6_reset_call_may_have_been_applied_unless_it_was_refused(void **state)
{
    (void)state;

    for (int i = 0; i < 100; i++) {
        assert_int_equal(end_of("/t/reset", 5000), HF__GRPC_END_CUT_OFF);
        assert_int_equal(end_of("/t/refuse", 5000), HF__GRPC_END_NOT_RECEIVED);
    }
    assert_works();
}

/* What was asked before is answered; what it has not looked at is known as such; nothing is asked of
 * it any more. */
static void c6_server_that_goes_away_is_asked_no_more(void **state)
{
    struct hf__grpc_call *before, *after;
    hf_error err = {0};
    (void)state;

    before = begin("/t/silent");
    assert_int_equal(end_of("/t/goaway", 5000), HF__GRPC_END_NOT_RECEIVED);
    assert_false(hf__grpc_is_usable(conn));
    after = begin("/t/ok");
    assert_null(after);
    assert_int_equal(hf__grpc_finish(conn, before, after_ms(100), &err), HF__GRPC_END_TOO_LATE);
    hf__grpc_release(conn, before);
}

static void c6_end_of_the_connection_ends_every_call(void **state)
{
    struct hf__grpc_call *others[20];
    hf_error err = {0};
    (void)state;

    for (int i = 0; i < 20; i++)
        others[i] = begin("/t/silent");
    assert_int_equal(end_of("/t/end", 5000), HF__GRPC_END_CUT_OFF);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(hf__grpc_finish(conn, others[i], after_ms(5000), &err),
                         HF__GRPC_END_CUT_OFF);
        hf__grpc_release(conn, others[i]);
    }
    assert_false(hf__grpc_is_usable(conn));
    assert_null(begin("/t/ok"));
}

/* It gives signs of life: only the call is late. */
static void c6_late_answer_ends_no_connection(void **state)
{
    (void)state;

    assert_int_equal(end_of("/t/silent", 1500), HF__GRPC_END_TOO_LATE);
    assert_works();
}

static void c12_frozen_server_is_given_up_before_the_deadline(void **state)
{
    (void)state;

    start(&(struct server_options){.frozen = true});
    assert_int_equal(end_of("/t/ok", 60000), HF__GRPC_END_CUT_OFF);
    assert_false(hf__grpc_is_usable(conn));
}

/* It was never sent, so it was never received. */
static void c6_request_that_finds_no_window_is_not_received(void **state)
{
    (void)state;

    start(&(struct server_options){.no_window = true});
    assert_int_equal(end_of("/t/ok", 300), HF__GRPC_END_NOT_RECEIVED);
}

static void c6_answer_beyond_all_bounds_is_cut_off(void **state)
{
    (void)state;

    assert_int_equal(end_of("/t/long", 60000), HF__GRPC_END_CUT_OFF);
    assert_works();
}

struct caller {
    pthread_t thread;
    int answered;
};

static void *call_often(void *arg)
{
    struct caller *c = arg;
    static const char *const paths[] = {"/t/ok", "/t/reset", "/t/status", "/t/refuse"};

    for (int i = 0; i < 200; i++)
        c->answered += end_of(paths[i % 4], 20000) == HF__GRPC_END_ANSWERED;
    return NULL;
}

/* Whoever waits reads for all, and hands on. */
static void c12_many_threads_share_a_connection(void **state)
{
    struct caller callers[16] = {0};
    (void)state;

    for (int i = 0; i < 16; i++)
        assert_int_equal(pthread_create(&callers[i].thread, NULL, call_often, &callers[i]), 0);
    for (int i = 0; i < 16; i++) {
        pthread_join(callers[i].thread, NULL);
        assert_int_equal(callers[i].answered, 100);
    }
    assert_works();
}

/* Waits until so much has come for the open call. */
static void hear(struct hf__grpc_call *open, int epoll_fd, struct hf__buffer *in, size_t len)
{
    while (in->len < len) {
        struct pollfd p = {.fd = epoll_fd, .events = POLLIN};
        assert_int_equal(poll(&p, 1, 20000), 1);
        assert_true(hf__grpc_hear(conn, open, in));
    }
    assert_int_equal(in->len, len);
}

/* Also what another thread has read, for itself, is heard of; and the end. */
static void c12_open_call_is_heard_whoever_reads(void **state)
{
    int epoll_fd = epoll_create1(EPOLL_CLOEXEC), bell_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct epoll_event event = {.events = EPOLLIN};
    struct hf__buffer body = {0}, in = {0};
    struct hf__grpc_request request = {.path = "/t/echo", .body = &body, .open = true};
    struct caller other = {0};
    (void)state;

    epoll_ctl(epoll_fd, EPOLL_CTL_ADD, bell_fd, &event);
    hf__buffer_add(&body, "first", 5);
    struct hf__grpc_call *open = hf__grpc_begin(conn, &request, NULL);
    assert_non_null(open);
    hf__grpc_listen(conn, epoll_fd, bell_fd);
    hear(open, epoll_fd, &in, 5);
    assert_int_equal(pthread_create(&other.thread, NULL, call_often, &other), 0);
    for (size_t i = 1; i <= 300; i++) {
        hf__grpc_say(conn, open, "more", 4);
        hf__grpc_flush(conn);
        hear(open, epoll_fd, &in, 5 + 4 * i);
    }
    pthread_join(other.thread, NULL);
    assert_memory_equal(in.data, "firstmoremore", 13);
    assert_int_equal(end_of("/t/end", 5000), HF__GRPC_END_CUT_OFF);
    struct pollfd p = {.fd = epoll_fd, .events = POLLIN};
    assert_int_equal(poll(&p, 1, 20000), 1);
    assert_false(hf__grpc_hear(conn, open, &in));
    assert_int_equal(poll(&p, 1, 0), 0); /* and that is all there is to hear */
    hf__grpc_deafen(conn);
    hf__grpc_release(conn, open);
    hf__buffer_clear(&in);
    close(epoll_fd);
    close(bell_fd);
}

#define TEST(name)  cmocka_unit_test_setup_teardown(name, set_up, tear_down)
#define ALONE(name) cmocka_unit_test_teardown(name, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(c6_answers_and_refusals_are_read),
        TEST(c6_reset_call_may_have_been_applied_unless_it_was_refused),
        TEST(c6_server_that_goes_away_is_asked_no_more),
        TEST(c6_end_of_the_connection_ends_every_call),
        TEST(c6_late_answer_ends_no_connection),
        ALONE(c12_frozen_server_is_given_up_before_the_deadline),
        ALONE(c6_request_that_finds_no_window_is_not_received),
        TEST(c6_answer_beyond_all_bounds_is_cut_off),
        TEST(c12_many_threads_share_a_connection),
        TEST(c12_open_call_is_heard_whoever_reads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
