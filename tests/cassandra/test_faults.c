/* Replies that are lost on the way, a queue that is long, and what is missing on the server: one
 * real node, reached directly and through a proxy. */
#include <stdlib.h>

#include "cassandra/live.h"
#include "core/client.h"
#include "lib/proxy.h"
#include "stores/cassandra/cassandra.h"

#define CROWD 20

/* Both contact points are the same node; the first one is reached through the proxy. */
struct fixture {
    struct proxy *proxy;
    char hosts[100];
    hf_client *client, *plain;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    assert_non_null(f);
    f->proxy = proxy_start(node_address(1));
    snprintf(f->hosts, sizeof f->hosts, "127.0.0.1:%d,%s", proxy_port(f->proxy), node_address(1));
    f->client = open_at(f->hosts, "");
    f->plain = open_at(NULL, "");
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    hf_close(f->client);
    hf_close(f->plain);
    proxy_stop(f->proxy);
    free(f);
    return 0;
}

static unsigned long swaps_of(const hf_client *client)
{
    return atomic_load(&((struct hf__cs *)client->store)->swaps);
}

/* One acquire, or one release, whose replies end after so many bytes of the server. A new client
 * each time: one whose first node failed stays with the second. Whether they were cut at all. */
static bool cut_one(struct fixture *f, int cut, bool at_release)
{
    char name[40];
    hf_lock *lock, *other;
    hf_client *client = open_at(f->hosts, "");

    snprintf(name, sizeof name, "cut/%d/%d", cut, at_release);
    proxy_set(f->proxy, PROXY_PASS, 0);
    check_code(take(client, "warm", options(20000, 0), &lock), HF_OK);
    check_code(release(lock), HF_OK);
    unsigned long before = swaps_of(client);
    if (!at_release)
        proxy_set(f->proxy, PROXY_CUT, cut);
    check_code(take(client, name, options(20000, 0), &lock), HF_OK);
    check_number("swaps of an acquire", (int64_t)(swaps_of(client) - before), 1);
    check_number("entries", count_entries(f->plain, name), 1);
    check_code(take(f->plain, name, options(20000, 0), &other), HF_BUSY);
    if (at_release)
        proxy_set(f->proxy, PROXY_CUT, cut);
    check_code(release(lock), HF_OK);
    check_number("entries", count_entries(f->plain, name), 0);
    proxy_set(f->proxy, PROXY_PASS, 0);
    size_t connections = proxy_connections(f->proxy), sent = proxy_sent(f->proxy);
    check_code(take(client, "warm", options(20000, 0), &lock), HF_OK);
    check_code(release(lock), HF_OK);
    bool whole = proxy_connections(f->proxy) == connections && proxy_sent(f->proxy) > sent;
    hf_close(client);
    return !whole;
}

/* The reply to the read is cut off at every byte, then that to the swap, until nothing is cut any
 * more: wherever the connection ends, the outcome is one and is known, and no swap is made
 * twice. */
static void c6_reply_cut_anywhere_leaves_one_outcome(void **state)
{
    for (int at_release = 0; at_release < 2; at_release++) {
        int cut = 1;
        while (cut < 2000 && cut_one(*state, cut, at_release))
            cut += cut < 9 ? 4 : 7;
        print_message("the replies to %s have about %d bytes\n",
                      at_release ? "a release" : "an acquire", cut);
        assert_true(cut > 50 && cut < 2000);
    }
}

static void c6_silent_node_is_not_waited_for(void **state)
{
    struct fixture *f = *state;
    hf_lock *lock;

    proxy_set(f->proxy, PROXY_HOLE, 0);
    check_code(take(f->client, "silent", options(20000, 0), &lock), HF_OK);
    check_code(release(lock), HF_OK);
    proxy_set(f->proxy, PROXY_PASS, 0);
}

/* A writer queues, and its net is cut off for good: readers inside, readers that come later. */
static void c9_dead_writer_does_not_keep_readers_out(void **state)
{
    struct fixture *f = *state;
    char host[40];
    hf_options reader = options(20000, AWAIT_MS), no_wait = options(20000, 0);
    hf_lock *inside, *later, *last;

    reader.mode = no_wait.mode = HF_SHARED;
    snprintf(host, sizeof host, "127.0.0.1:%d", proxy_port(f->proxy));
    hf_client *dying = open_at(host, "op_timeout=300ms");
    struct waiter writer = {.opt = options(1000, AWAIT_MS)};
    check_code(take(f->plain, "writer", reader, &inside), HF_OK);
    wait_in_thread(&writer, dying, "writer");
    await_waiting(f->plain, "writer", 1);
    check_code(take(f->plain, "writer", no_wait, &later), HF_BUSY);
    proxy_set(f->proxy, PROXY_RST, 0);
    assert_int_not_equal(join_waiter(&writer), HF_OK);
    reader.owner = 1; /* another one */
    check_code(take(f->plain, "writer", reader, &later), HF_OK);
    check_code(take(f->plain, "writer", no_wait, &last), HF_OK);
    check_number("inside", count_entries(f->plain, "writer"), 3);
    check_code(release(inside), HF_OK);
    check_code(release(later), HF_OK);
    check_code(release(last), HF_OK);
    proxy_set(f->proxy, PROXY_PASS, 0);
    hf_close(dying);
}

/* Twenty wait while one holds, some time or longer; then each has it for a moment. */
static double swaps_per_hand_over(struct fixture *f, const char *name, int64_t held_ms)
{
    struct waiter waiters[CROWD];
    hf_client *clients[CROWD];
    unsigned long swaps = 0;
    hf_lock *lock;

    check_code(take(f->plain, name, options(60000, 0), &lock), HF_OK);
    for (int i = 0; i < CROWD; i++) {
        clients[i] = open_at(NULL, "");
        waiters[i] = (struct waiter){.opt = options(20000, AWAIT_MS), .releases = true};
        wait_in_thread(&waiters[i], clients[i], name);
        await_waiting(f->plain, name, i + 1);
    }
    sleep_ms(held_ms);
    unsigned long before = swaps_of(f->plain);
    check_code(release(lock), HF_OK);
    swaps = swaps_of(f->plain) - before;
    for (int i = 0; i < CROWD; i++) {
        check_number("waiter", join_waiter(&waiters[i]), HF_OK);
        if (i > 0 && waiters[i].generation < waiters[i - 1].generation)
            fail_msg("waiter %d came in before waiter %d", i, i - 1);
    }
    for (int i = 0; i < CROWD; i++) {
        swaps += swaps_of(clients[i]);
        hf_close(clients[i]);
    }
    check_number("entries", count_entries(f->plain, name), 0);
    return (double)swaps / CROWD;
}

static void c5_swaps_per_hand_over_do_not_depend_on_the_time_held(void **state)
{
    double brief = swaps_per_hand_over(*state, "crowd/brief", 0);
    double lengthy = swaps_per_hand_over(*state, "crowd/lengthy", 12000);

    print_message("conditional writes per hand-over, %d waiting: %.2f, and %.2f after 12 s\n",
                  CROWD, brief, lengthy);
    assert_true(brief < 4 && lengthy < 4);
}

static void missing_tables_are_told_with_the_cure(void **state)
{
    char hosts[100], url[200];
    hf_client *client = NULL;
    hf_lock *lock;
    hf_error err;

    (void)state;
    snprintf(hosts, sizeof hosts, "%s", node_address(1));
    snprintf(url, sizeof url, "cassandra://%s/elsewhere", hosts);
    assert_int_equal(hf_open(url, NULL, &client, &err), HF_OK);
    check_code(take(client, "a", options(20000, 0), &lock), HF_DENIED);
    check_contains("text", last_error(), "holdfast setup");
    hf_close(client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(c6_reply_cut_anywhere_leaves_one_outcome),
        cmocka_unit_test(c6_silent_node_is_not_waited_for),
        cmocka_unit_test(c9_dead_writer_does_not_keep_readers_out),
        cmocka_unit_test(c5_swaps_per_hand_over_do_not_depend_on_the_time_held),
        cmocka_unit_test(missing_tables_are_told_with_the_cure),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
