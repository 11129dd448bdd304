/* Connections that break, hang or deliver late, between a client and a real server. */
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "etcd/live.h"
#include "lib/proxy.h"

static struct proxy *proxy;
static hf_client *client, *plain; /* one whose way can be broken, and one beside it */

static int set_up(void **state)
{
    (void)state;
    proxy = proxy_start(server_address());
    assert_non_null(proxy);
    client = NULL;
    plain = open_live("");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    hf_close(client);
    hf_close(plain);
    proxy_stop(proxy);
    return 0;
}

static hf_client *open_behind(const char *options)
{
    return open_url(url_of(proxy_port(proxy), options));
}

/* Ends the present connection after so many bytes of the server, and lets the next one pass. */
struct cut {
    size_t connections;
    atomic_bool over;
    pthread_t thread;
};

static void *pass_again(void *arg)
{
    struct cut *cut = arg;

    while (!cut->over && proxy_connections(proxy) == cut->connections)
        usleep(200);
    proxy_set(proxy, PROXY_PASS, 0);
    return NULL;
}

static void cut_once(struct cut *cut, int64_t bytes)
{
    *cut = (struct cut){.connections = proxy_connections(proxy)};
    proxy_set(proxy, PROXY_CUT, bytes);
    assert_int_equal(pthread_create(&cut->thread, NULL, pass_again, cut), 0);
}

static void cut_end(struct cut *cut)
{
    cut->over = true;
    pthread_join(cut->thread, NULL);
}

/* Wherever the connection ends, between two bytes of any answer. */
static void c6_answer_cut_at_any_byte_is_asked_for_again(void **state)
{
    hf_error err = {0};
    (void)state;

    client = open_behind("op_timeout=3s");
    for (int64_t bytes = 0; bytes < 2000; bytes += 61) {
        struct cut cut;
        cut_once(&cut, bytes);
        hf_lock *lock = take_free(client, "cut", 20000);
        cut_end(&cut);
        cut_once(&cut, bytes);
        int code = hf_lock_release(lock, &err); /* both its tries may have met the cut */
        if (code != HF_OK && code != HF_UNKNOWN)
            fail_msg("release after %d bytes: %s", (int)bytes, err.text);
        cut_end(&cut);
        await_free(plain, "cut");
    }
}

/* The same for one who must queue: it has one place, and is served in its turn. */
static void c6_place_whose_answer_was_lost_is_found_again(void **state)
{
    (void)state;

    client = open_behind("op_timeout=3s");
    for (int64_t bytes = 50; bytes < 1200; bytes += 190) {
        struct waiter first = {0}, second = {0};
        struct cut cut;
        hf_lock *lock = take_free(plain, "queue", 20000);
        cut_once(&cut, bytes);
        wait_in_thread(&first, client, "queue");
        await_waiting(plain, "queue", 1);
        cut_end(&cut);
        wait_in_thread(&second, plain, "queue");
        await_waiting(plain, "queue", 2);
        assert_int_equal(hf_lock_release(lock, NULL), HF_OK);
        assert_int_equal(join_waiter(&first), HF_OK);
        assert_int_equal(hf_lock_release(first.lock, NULL), HF_OK);
        assert_int_equal(join_waiter(&second), HF_OK);
        assert_int_equal(hf_lock_release(second.lock, NULL), HF_OK);
        assert_int_equal(count_entries(plain, "queue"), 0);
    }
}

static void c7_holder_that_hears_nothing_is_lost_before_the_next_enters(void **state)
{
    struct waiter next = {0};
    (void)state;

    client = open_behind("op_timeout=1s");
    hf_lock *lock = take_free(client, "hole", 2000);
    proxy_set(proxy, PROXY_HOLE, 0);
    wait_in_thread(&next, plain, "hole");
    assert_int_equal(join_waiter(&next), HF_OK);
    assert_int_equal(hf_lock_state(lock), HF_STATE_LOST);
    assert_int_equal(hf_lock_cause(lock), HF_CAUSE_EXPIRED);
    assert_int_equal(hf_lock_release(next.lock, NULL), HF_OK);
    proxy_set(proxy, PROXY_RST, 0);
    hf_lock_release(lock, NULL);
}

/* Requests that the network kept, and delivers after the same was asked again and is over. */
static void c5_requests_that_arrive_late_hold_nothing(void **state)
{
    hf_error err;
    (void)state;

    for (int i = 0; i < 3; i++) {
        client = open_behind("op_timeout=3s");
        hf_lock *lock = take_free(client, "late", 20000);
        proxy_set(proxy, PROXY_C2S_HOLE, 0);
        int code = hf_lock_release(lock, &err); /* the first one is kept, the next arrives */
        if (code != HF_OK && code != HF_UNKNOWN)
            fail_msg("release: %s", err.text);
        await_free(plain, "late");
        lock = take_free(plain, "late", 20000);
        proxy_set(proxy, PROXY_PASS, 0); /* and now the first one comes */
        hf_lock *other = take_free(client, "other", 20000);
        assert_int_equal(hf_lock_renew(lock, NULL), HF_OK); /* it was not for us */
        assert_int_equal(hf_lock_release(lock, NULL), HF_OK);
        assert_int_equal(count_entries(plain, "late"), 0);
        hf_close(client);
        client = NULL;
        hf_lock_release(other, NULL);
    }
}

static void take_and_release(hf_client *by, const char *name, int times)
{
    for (int i = 0; i < times; i++)
        assert_int_equal(hf_lock_release(take_free(by, name, 20000), NULL), HF_OK);
}

/* Bids take the lease over that the one before them left: an attempt that comes late must not find
 * it alive, or it would hold for as long as somebody renews it. */
static void c5_late_attempt_does_not_hold_by_a_lease_that_goes_on(void **state)
{
    char url[200]; /* two ways: what hangs on the first is asked on the second */
    snprintf(url, sizeof url, "etcd://127.0.0.1:%d,%s/test?op_timeout=3s", proxy_port(proxy),
             server_address());
    (void)state;

    client = open_url(url);
    double grants = metric(GRANTS);
    take_and_release(client, "late attempt", 20);
    assert_true(metric(GRANTS) - grants < 5); /* they do take it over */
    proxy_set(proxy, PROXY_C2S_HOLE, 0);
    take_and_release(client, "late attempt", 1);
    grants = metric(GRANTS);
    hf_lock *other = take_free(client, "another", 20000);
    assert_int_equal(metric(GRANTS) - grants, 1); /* not from one with a request on its way */
    proxy_set(proxy, PROXY_PASS, 0);              /* and now the first attempt comes */
    take_and_release(client, "late attempt", 20);
    assert_int_equal(count_entries(plain, "late attempt"), 0);
    assert_int_equal(hf_lock_release(other, NULL), HF_OK);
}

/* A stream that broke, and whose revisions are gone: it asks, and is woken all the same. */
static void c12_watch_survives_a_broken_stream_and_a_compaction(void **state)
{
    struct waiter w = {0};
    (void)state;

    client = open_behind("");
    hf_lock *lock = take_free(plain, "compact", 60000);
    wait_in_thread(&w, client, "compact");
    await_waiting(plain, "compact", 1);
    await_watchers(1);
    take_and_release(plain, "something else", 3); /* revisions to throw away */
    proxy_set(proxy, PROXY_RST, 0);
    compact();
    proxy_set(proxy, PROXY_PASS, 0);
    await_watchers(1);
    int64_t released_ms = now_ms();
    assert_int_equal(hf_lock_release(lock, NULL), HF_OK);
    assert_int_equal(join_waiter(&w), HF_OK);
    assert_true(w.got_ms - released_ms < 9000); /* by the watch: asking would take eleven seconds */
    assert_int_equal(hf_lock_release(w.lock, NULL), HF_OK);
}

/* The connection ends while nobody has anything to ask: as when its server stops, or without a word,
 * as when it is frozen or the network is cut. The watch is made anew, before anybody misses a call. */
static void watch_is_made_anew(enum proxy_mode mode, const char *name)
{
    struct waiter w = {0};

    client = open_behind("");
    hf_lock *lock = take_free(plain, name, 60000);
    wait_in_thread(&w, client, name);
    await_waiting(plain, name, 1);
    await_watchers(1);
    double begun = metric(WATCHES_BEGUN);
    proxy_set(proxy, mode, 0);
    await_more(WATCHES_BEGUN, begun);
    await_watchers(1);
    assert_int_equal(hf_lock_release(lock, NULL), HF_OK);
    assert_int_equal(join_waiter(&w), HF_OK);
    assert_int_equal(hf_lock_release(w.lock, NULL), HF_OK);
}

static void c12_watch_is_made_anew_when_its_server_stops(void **state)
{
    (void)state;
    watch_is_made_anew(PROXY_END, "stops");
}

static void c12_watch_is_made_anew_when_its_server_is_silent(void **state)
{
    (void)state;
    watch_is_made_anew(PROXY_S2C_HOLE, "silent");
}

/* The same for one who holds, and would renew after twenty seconds: it is called when it is broken. */
static void holder_listens_again(enum proxy_mode mode, const char *name)
{
    client = open_behind("");
    hf_lock *lock = take_free(client, name, 60000);
    char ticket[HF_TICKET_SIZE];

    snprintf(ticket, sizeof ticket, "%s", hf_lock_ticket(lock));
    await_streams(1);
    double begun = metric(WATCHES_BEGUN);
    proxy_set(proxy, mode, 0);
    await_more(WATCHES_BEGUN, begun);
    int64_t broken_ms = now_ms();
    assert_int_equal(hf_break(plain, name, HF_NTS, ticket, 1, NULL), HF_OK);
    await_lost(lock);
    assert_true(now_ms() - broken_ms < 10000);
    hf_lock_release(lock, NULL);
}

static void c7_holder_listens_again_when_its_server_stops(void **state)
{
    (void)state;
    holder_listens_again(PROXY_END, "held, stops");
}

static void c7_holder_listens_again_when_its_server_is_silent(void **state)
{
    (void)state;
    holder_listens_again(PROXY_S2C_HOLE, "held, silent");
}

/* Renewals are twenty seconds apart. The client listens since it has renewed something. */
static void c7_holder_of_a_broken_lock_is_called(void **state)
{
    (void)state;

    client = open_live("");
    hf_lock *renewed = take_free(client, "renewed", 1000);
    await_streams(1);
    for (int now = 0; now < 2; now++) {
        char ticket[HF_TICKET_SIZE];
        hf_lock *lock = take_free(client, "broken", 60000);
        snprintf(ticket, sizeof ticket, "%s", hf_lock_ticket(lock));
        int64_t broken_ms = now_ms();
        assert_int_equal(hf_break(plain, "broken", HF_NTS, ticket, now, NULL), HF_OK);
        await_lost(lock);
        assert_true(now_ms() - broken_ms < 10000);
        hf_lock_release(lock, NULL);
        if (!now) /* it stays closed until the lease is over; --now opens it */
            assert_int_equal(hf_break(plain, "broken", HF_NTS, ticket, 1, NULL), HF_OK);
    }
    assert_int_equal(hf_lock_release(renewed, NULL), HF_OK);
    assert_int_equal(count_entries(plain, "broken"), 0);
}

#define LOCKS 20

/* The server begins to answer the first watch long before it has read the last. */
static void c12_no_watch_is_lost_on_a_slow_way(void **state)
{
    struct waiter all[LOCKS] = {0};
    hf_lock *locks[LOCKS];
    char names[LOCKS][16];
    (void)state;

    client = open_behind("");
    for (int i = 0; i < LOCKS; i++) {
        snprintf(names[i], sizeof names[i], "slow %d", i);
        locks[i] = take_free(plain, names[i], 60000);
        wait_in_thread(&all[i], client, names[i]);
    }
    await_watchers(LOCKS);
    double begun = metric(WATCHES_BEGUN);
    proxy_set(proxy, PROXY_RST, 0); /* all at once, from here */
    proxy_set(proxy, PROXY_SPLIT, 0);
    await_more(WATCHES_BEGUN, begun);
    await_watchers(LOCKS);
    proxy_set(proxy, PROXY_PASS, 0);
    for (int i = 0; i < LOCKS; i++) {
        assert_int_equal(hf_lock_release(locks[i], NULL), HF_OK);
        assert_int_equal(join_waiter(&all[i]), HF_OK);
        assert_int_equal(hf_lock_release(all[i].lock, NULL), HF_OK);
    }
}

#define CROWD 200

/* One watch a waiter on one connection, and a few requests a hand-over, however many wait. */
static void c12_two_hundred_waiters_are_no_herd(void **state)
{
    struct waiter *all = calloc(CROWD, sizeof *all);
    (void)state;

    assert_non_null(all);
    client = open_live("");
    hf_lock *lock = take_free(plain, "herd", 60000);
    for (int i = 0; i < CROWD; i++) {
        all[i].releases = true;
        wait_in_thread(&all[i], client, "herd");
    }
    await_waiting(plain, "herd", CROWD);
    await_watchers(CROWD);
    assert_int_equal(metric(STREAMS), 2); /* one a client */
    double events = metric("etcd_debugging_mvcc_events_total");
    double txns = metric(TXNS);
    assert_int_equal(hf_lock_release(lock, NULL), HF_OK);
    for (int i = 0; i < CROWD; i++)
        assert_int_equal(join_waiter(&all[i]), HF_OK);
    events = metric("etcd_debugging_mvcc_events_total") - events;
    txns = metric(TXNS) - txns;
    print_message("%d hand-overs: %.2f events and %.2f transactions each\n", CROWD, events / CROWD,
                  txns / CROWD);
    assert_true(events / CROWD <= 2);
    assert_true(txns / CROWD <= 2);
    free(all);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(c6_answer_cut_at_any_byte_is_asked_for_again),
        TEST(c6_place_whose_answer_was_lost_is_found_again),
        TEST(c7_holder_that_hears_nothing_is_lost_before_the_next_enters),
        TEST(c5_requests_that_arrive_late_hold_nothing),
        TEST(c5_late_attempt_does_not_hold_by_a_lease_that_goes_on),
        TEST(c12_watch_survives_a_broken_stream_and_a_compaction),
        TEST(c12_watch_is_made_anew_when_its_server_stops),
        TEST(c12_watch_is_made_anew_when_its_server_is_silent),
        TEST(c7_holder_listens_again_when_its_server_stops),
        TEST(c7_holder_listens_again_when_its_server_is_silent),
        TEST(c7_holder_of_a_broken_lock_is_called),
        TEST(c12_no_watch_is_lost_on_a_slow_way),
        TEST(c12_two_hundred_waiters_are_no_herd),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
