/* What a hand-over costs does not depend on how many wait (C12), nor on the ttl: counted in
 * requests by the server and in bytes by a proxy, from the first release of a crowd to its last. */
#include <stdlib.h>

#include "lib/proxy.h"
#include "zookeeper/live.h"

#define CLIENTS 4
#define CROWD   500 /* at most */

struct toll {
    size_t requests, bytes; /* of one hand-over */
};

static struct proxy *proxy;

static int set_up(void **state)
{
    (void)state;
    proxy = proxy_start(servers());
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    proxy_stop(proxy);
    return 0;
}

static size_t requests_so_far(void)
{
    char text[20000];

    ask_server_at(servers(), "mntr", text, sizeof text);
    const char *at = strstr(text, "zk_packets_received");
    assert_non_null(at);
    return (size_t)strtoll(at + strlen("zk_packets_received"), NULL, 10);
}

static size_t bytes_so_far(void)
{
    return proxy_sent(proxy) + proxy_answered(proxy);
}

static struct toll toll_of(size_t crowd, int64_t ttl_ms)
{
    struct waiter *visitors = calloc(crowd, sizeof *visitors);
    hf_client *clients[CLIENTS];
    char behind[40];

    assert_non_null(visitors);
    snprintf(behind, sizeof behind, "127.0.0.1:%d", proxy_port(proxy));
    for (size_t i = 0; i < CLIENTS; i++)
        make_listen(clients[i] = open_at(behind, ""));
    hf_lock *lock = take(clients[0], "toll", ttl_ms);
    for (size_t i = 0; i < crowd; i++)
        send_visitor(&visitors[i], clients[i % CLIENTS], "toll", ttl_ms);
    for (size_t i = 0; i < crowd; i++)
        await_queued(&visitors[i]);
    struct toll toll = {requests_so_far(), bytes_so_far()};
    assert_int_equal(hf_lock_release(lock, NULL), HF_OK);
    for (size_t i = 0; i < crowd; i++)
        assert_int_equal(join_waiter(&visitors[i]), HF_OK);
    toll.requests = (requests_so_far() - toll.requests) / crowd;
    toll.bytes = (bytes_so_far() - toll.bytes) / crowd;
    for (size_t i = 0; i < CLIENTS; i++)
        hf_close(clients[i]);
    free(visitors);
    print_message("%zu wait, ttl of %lld ms: %zu requests and %zu bytes a hand-over\n", crowd,
                  (long long)ttl_ms, toll.requests, toll.bytes);
    return toll;
}

/* A release, and one question of the next but one; the rest is room for pings and renewals. A list
 * of 500 children is 30,000 bytes. */
static void c12_toll_is_the_same_for_a_ttl_of(int64_t ttl_ms)
{
    static const size_t crowds[] = {10, 100, CROWD};

    for (size_t i = 0; i < COUNT(crowds); i++) {
        struct toll toll = toll_of(crowds[i], ttl_ms);
        assert_in_range(toll.requests, 1, 4);
        assert_in_range(toll.bytes, 100, 2500);
    }
}

static void c12_hand_over_costs_the_same_in_a_long_queue(void **state)
{
    (void)state;
    c12_toll_is_the_same_for_a_ttl_of(10000);
}

static void c12_hand_over_costs_the_same_with_a_long_lease(void **state)
{
    (void)state;
    c12_toll_is_the_same_for_a_ttl_of(30000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(c12_hand_over_costs_the_same_in_a_long_queue),
        cmocka_unit_test(c12_hand_over_costs_the_same_with_a_long_lease),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
