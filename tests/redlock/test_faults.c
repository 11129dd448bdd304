/* Redlock with nodes that are frozen, killed, restarted, emptied and shared: on real servers. */
#include <stdlib.h>

#include "lib/live.h"
#include "lib/proxy.h"
#include "redlock/nodes.h"

#define LONG_MS 20000

static hf_error last;

static hf_client *open_with(const char *options)
{
    char url[600];

    snprintf(url, sizeof url, "redlock://%s?%s", nodes_list(), options);
    return open_url(url);
}

static hf_client *open_plain(void)
{
    return open_with("restart_guard=off&op_timeout=2s");
}

static int try_take(hf_client *client, int64_t ttl_ms, hf_lock **lock)
{
    hf_options opt = HF_OPTIONS_INIT;

    opt.ttl_ms = ttl_ms;
    opt.wait_ms = 0;
    *lock = NULL;
    return hf_acquire(client, "a", HF_NTS, &opt, lock, &last);
}

static bool is_empty(size_t node)
{
    return strcmp(node_ask(node, "EXISTS", "holdfast:a"), "0") == 0;
}

static int has_emptied(void *node)
{
    return is_empty(*(size_t *)node);
}

static void await_empty(size_t node)
{
    await("the node to be empty", has_emptied, &node);
}

static int set_up(void **state)
{
    (void)state;
    nodes_reset();
    return 0;
}

/* A node that was waited for would cost a node_timeout each time, and forty of them more time than
 * the test has. */
static void c1_two_frozen_nodes_slow_nobody(void **state)
{
    (void)state;
    node_freeze(1);
    node_freeze(4);
    hf_client *client = open_with("restart_guard=off&node_timeout=60s&op_timeout=60s");
    for (int i = 0; i < 40; i++)
        assert_int_equal(hf_lock_release(take_free(client, "a", LONG_MS), &last), 0);
    hf_close(client);
    node_thaw(1);
    node_thaw(4);
    await_empty(1);
    await_empty(4);
}

static void c1_two_dead_nodes_are_done_without(void **state)
{
    (void)state;
    node_kill(0);
    node_kill(3);
    hf_client *client = open_plain();
    hf_lock *lock = take_free(client, "a", 2000), *none;
    for (int64_t began_ms = now_ms(); now_ms() - began_ms < 3000;)
        assert_int_equal(try_take(client, 2000, &none), HF_DEADLOCK);
    assert_int_not_equal(hf_lock_state(lock), HF_STATE_LOST); /* renewed by the other three */
    assert_int_equal(hf_lock_release(lock, &last), 0);
    for (size_t i = 1; i < NODES; i++)
        assert_true(i == 3 || is_empty(i));
    hf_close(client);
}

static void c1_node_that_dies_and_comes_back_is_dialled_again(void **state)
{
    hf_client *client = open_plain();

    (void)state;
    assert_int_equal(hf_lock_release(take_free(client, "a", LONG_MS), &last), 0);
    for (size_t i = 0; i < 3; i++)
        node_restart(i);
    assert_int_equal(hf_lock_release(take_free(client, "a", LONG_MS), &last), 0);
    hf_close(client);
}

static void c6_three_frozen_nodes_refuse_and_keep_nothing(void **state)
{
    hf_client *client = open_plain();
    hf_lock *none;

    (void)state;
    assert_int_equal(hf_lock_release(take_free(client, "a", LONG_MS), &last), 0);
    for (size_t i = 0; i < 3; i++)
        node_freeze(i);
    assert_int_equal(try_take(client, LONG_MS, &none), HF_UNAVAILABLE);
    assert_true(is_empty(3) && is_empty(4));
    for (size_t i = 0; i < 3; i++)
        node_thaw(i);
    for (size_t i = 0; i < NODES; i++)
        await_empty(i); /* the attempts it had not read yet are followed by their release */
    assert_int_equal(hf_lock_release(take_free(client, "a", LONG_MS), &last), 0);
    hf_close(client);
}

static void c6_three_dead_nodes_refuse_and_keep_nothing(void **state)
{
    hf_client *client = open_plain();
    hf_lock *none;

    (void)state;
    for (size_t i = 2; i < NODES; i++)
        node_kill(i);
    assert_int_equal(try_take(client, LONG_MS, &none), HF_UNAVAILABLE);
    assert_non_null(strstr(last.text, "2 of 5"));
    assert_true(is_empty(0) && is_empty(1));
    hf_close(client);
}

static void c7_lock_is_lost_in_time_when_the_majority_freezes(void **state)
{
    hf_client *client = open_plain();

    (void)state;
    hf_lock *lock = take_free(client, "a", 1000);
    for (size_t i = 0; i < 3; i++)
        node_freeze(i);
    await_lost(lock);
    assert_int_equal(hf_lock_cause(lock), HF_CAUSE_EXPIRED);
    hf_lock_release(lock, NULL);
    hf_close(client);
}

static void c3_extension_sets_no_key_again(void **state)
{
    hf_client *client = open_plain();

    (void)state;
    hf_lock *lock = take_free(client, "a", LONG_MS);
    node_ask(0, "DEL", "holdfast:a");
    node_ask(1, "DEL", "holdfast:a");
    assert_int_equal(hf_lock_renew(lock, &last), 0); /* three are a majority */
    assert_true(is_empty(0) && is_empty(1));
    node_ask(2, "DEL", "holdfast:a");
    assert_int_equal(hf_lock_renew(lock, &last), HF_LOST);
    assert_int_equal(hf_lock_cause(lock), HF_CAUSE_GONE);
    assert_int_equal(hf_lock_release(lock, &last), HF_STALE);
    hf_close(client);
}

static void c2_release_reaches_every_node(void **state)
{
    hf_client *client = open_plain();

    (void)state;
    hf_lock *lock = take_free(client, "a", LONG_MS);
    assert_int_equal(hf_lock_release(lock, &last), 0);
    for (size_t i = 0; i < NODES; i++) {
        await_empty(i);
        assert_string_equal(node_ask(i, "DBSIZE", NULL), "0");
    }
    hf_close(client);
}

static void c1_strangers_on_the_majority_keep_us_out(void **state)
{
    hf_client *client = open_plain();
    hf_lock *lock;

    (void)state;
    for (size_t i = 0; i < 2; i++)
        node_ask(i, "SET holdfast:a stranger NX PX 20000", NULL);
    assert_int_equal(hf_lock_release(take_free(client, "a", LONG_MS), &last), 0);
    node_ask(2, "SET holdfast:a stranger NX PX 20000", NULL);
    assert_int_equal(try_take(client, LONG_MS, &lock), HF_BUSY);
    assert_true(is_empty(3) && is_empty(4));
    assert_string_equal(node_ask(0, "GET", "holdfast:a"), "stranger");
    hf_close(client);
}

/* The release of a lock that was passed on remembers its ticket, which takes memory. */
static void c2_full_servers_still_release(void **state)
{
    hf_client *client = open_plain();
    hf_options opt = HF_OPTIONS_INIT;
    hf_lock *lock = take_free(client, "a", LONG_MS);
    char ticket[64];

    (void)state;
    snprintf(ticket, sizeof ticket, "%s", hf_lock_ticket(lock));
    assert_int_equal(hf_lock_detach(lock, &last), 0);
    assert_int_equal(hf_adopt(client, "a", HF_NTS, ticket, &opt, &lock, &last), 0);
    for (size_t i = 0; i < NODES; i++)
        node_ask(i, "CONFIG SET maxmemory 1", NULL);
    int released = hf_lock_release(lock, &last);
    for (size_t i = 0; i < NODES; i++)
        node_ask(i, "CONFIG SET maxmemory 0", NULL);
    assert_int_equal(released, 0);
    for (size_t i = 0; i < NODES; i++)
        await_empty(i);
    hf_close(client);
}

/* Scripts that the third node has run. */
static long count_scripts(void)
{
    const char *calls = strstr(node_ask(2, "INFO commandstats", NULL), "cmdstat_evalsha:calls=");

    return calls != NULL ? strtol(strchr(calls, '=') + 1, NULL, 10) : 0;
}

static int has_run_two_more(void *before)
{
    return count_scripts() >= *(long *)before + 2;
}

static struct proxy *proxy;

static int has_dialled_again(void *before)
{
    return proxy_connections(proxy) > *(size_t *)before;
}

/* A bid that waits asks with the same ticket again. What it took back before, on a connection that was
 * given up meanwhile, may arrive after it was let in. */
static void c1_clean_up_that_comes_late_takes_no_vote_away(void **state)
{
    char url[300], target[32];
    struct waiter w = {0};
    hf_lock *rival;
    int ports[3];
    const char *at = nodes_list();

    (void)state;
    for (size_t i = 0; i < 3; i++)
        ports[i] = (int)strtol(strchr(at, ':') + 1, (char **)&at, 10);
    snprintf(target, sizeof target, "127.0.0.1:%d", ports[2]);
    proxy = proxy_start(target);
    snprintf(url, sizeof url,
             "redlock://127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d?restart_guard=off&op_timeout=500ms",
             ports[0], ports[1], proxy_port(proxy));
    hf_client *client = open_url(url), *other = open_url(url);

    assert_int_equal(hf_lock_release(take_free(client, "a", LONG_MS), &last), 0);
    await_empty(2);
    for (size_t i = 0; i < 2; i++)
        node_ask(i, "SET holdfast:a stranger", NULL);
    proxy_set(proxy, PROXY_C2S_HOLE, 0);
    size_t dialled = proxy_connections(proxy);
    w.opt = (hf_options)HF_OPTIONS_INIT;
    w.opt.ttl_ms = LONG_MS;
    wait_in_thread(&w, client, "a");
    await("the bid to come on another connection", has_dialled_again, &dialled);
    node_ask(1, "DEL", "holdfast:a");
    assert_int_equal(join_waiter(&w), HF_OK); /* by the second and the third */

    long ran = count_scripts();
    proxy_set(proxy, PROXY_PASS, 0);
    await("what was held back", has_run_two_more, &ran);
    node_ask(0, "DEL", "holdfast:a");
    assert_int_equal(try_take(other, LONG_MS, &rival), HF_BUSY);
    assert_int_equal(hf_lock_release(w.lock, &last), 0);
    hf_close(other);
    hf_close(client);
    proxy_stop(proxy);
}

static void c1_scripts_that_were_flushed_are_taught_again(void **state)
{
    hf_client *client = open_plain();

    (void)state;
    hf_lock *lock = take_free(client, "a", LONG_MS);
    for (size_t i = 0; i < NODES; i++)
        node_ask(i, "SCRIPT FLUSH", NULL);
    assert_int_equal(hf_lock_renew(lock, &last), 0);
    assert_int_equal(hf_lock_release(lock, &last), 0);
    hf_close(client);
}

static void await_uptime(long seconds)
{
    for (size_t i = 0; i < NODES; i++) {
        long up = 0;
        for (int k = 0; k < 6000 && up < seconds; k++) {
            const char *at = strstr(node_ask(i, "INFO", "server"), "uptime_in_seconds:");
            up = at != NULL ? strtol(strchr(at, ':') + 1, NULL, 10) : 0;
            if (up < seconds)
                sleep_ms(10);
        }
        assert_true(up >= seconds);
    }
}

/* The trace that breaks every Redlock without the guard: a majority forgets. */
static void c1_restarted_nodes_have_no_vote(void **state)
{
    (void)state;
    await_uptime(LONG_MS / 1000);
    hf_client *holder = open_with("op_timeout=2s&max_ttl=20s"),
              *guarded = open_with("op_timeout=2s&max_ttl=20s");
    hf_client *careless = open_with("op_timeout=2s&max_ttl=20s&restart_guard=off&node_timeout=2s");
    hf_options opt = HF_OPTIONS_INIT;
    hf_lock *lock, *none;

    opt.ttl_ms = LONG_MS;
    opt.by_hand = 1;
    assert_int_equal(hf_acquire(holder, "a", HF_NTS, &opt, &lock, &last), 0);
    for (size_t i = 0; i < 3; i++)
        node_restart(i);
    int r = try_take(guarded, LONG_MS, &none);
    assert_true(r == HF_UNAVAILABLE || r == HF_BUSY);
    assert_non_null(strstr(last.text, "have no vote yet"));
    assert_non_null(strstr(last.text, "max_ttl"));
    /* What it is for: without it two hold the same lock. All three must answer in time for that,
     * which on a busy machine they may not do at once. */
    do {
        r = try_take(careless, LONG_MS, &none);
    } while (r != 0 && hf_lock_state(lock) != HF_STATE_LOST);
    assert_int_equal(r, 0);
    assert_int_not_equal(hf_lock_state(lock), HF_STATE_LOST);
    assert_int_equal(hf_lock_release(none, &last), 0);
    hf_lock_release(lock, NULL);
    hf_close(holder);
    hf_close(guarded);
    hf_close(careless);
}

static void c3_bids_beyond_max_ttl_are_refused(void **state)
{
    hf_client *client = open_with("restart_guard=off&max_ttl=5s");
    hf_lock *none;

    (void)state;
    assert_int_equal(try_take(client, 5001, &none), HF_INVALID);
    assert_non_null(strstr(last.text, "max_ttl"));
    assert_int_equal(try_take(client, HF_NEVER, &none), HF_UNSUPPORTED);
    assert_int_equal(hf_lock_release(take_free(client, "a", 5000), &last), 0);
    hf_close(client);
}

static void what_it_cannot_do_is_said_in_good_english(void **state)
{
    hf_client *client = open_with("restart_guard=off");
    hf_options opt = {.size = sizeof opt, .lock_delay_ms = 1000};
    hf_lock *none = NULL;

    (void)state;
    assert_int_equal(hf_acquire(client, "a", HF_NTS, &opt, &none, &last), HF_UNSUPPORTED);
    assert_string_equal(last.text, "acquire 'a': redlock has no lock-delay");
    hf_close(client);
}

static void c1_password_is_given_to_every_node(void **state)
{
    char url[600];
    hf_client *client;

    (void)state;
    for (size_t i = 0; i < NODES; i++)
        node_ask(i, "CONFIG SET requirepass sesame", NULL);
    snprintf(url, sizeof url, "redlock://%s?restart_guard=off", nodes_list());
    assert_int_equal(hf_open(url, NULL, &client, &last), HF_DENIED);
    snprintf(url, sizeof url, "redlock://:sesame@%s?restart_guard=off", nodes_list());
    assert_int_equal(hf_open(url, NULL, &client, &last), 0);
    assert_int_equal(hf_lock_release(take_free(client, "a", LONG_MS), &last), 0);
    hf_close(client);
    for (size_t i = 0; i < NODES; i++) {
        node_kill(i); /* the next test restarts it, without a password */
    }
}

/* Not even a node that is full, or a renewal that comes late, opens or extends it. */
static void c14_released_lock_is_nobodys_until_its_time(void **state)
{
    hf_client *client = open_plain(), *other = open_plain();
    hf_options opt = HF_OPTIONS_INIT;
    char ticket[64];
    hf_lock *lock = take_free(client, "a", LONG_MS), *again;

    (void)state;
    snprintf(ticket, sizeof ticket, "%s", hf_lock_ticket(lock));
    for (size_t i = 0; i < NODES; i++)
        node_ask(i, "CONFIG SET maxmemory 1", NULL);
    int64_t from_ms = now_ms();
    int released = hf_lock_release_after(lock, 3000, &last);
    for (size_t i = 0; i < NODES; i++)
        node_ask(i, "CONFIG SET maxmemory 0", NULL);
    check_number(last.text, released, HF_OK);
    assert_int_equal(hf_adopt(client, "a", HF_NTS, ticket, &opt, &again, &last), HF_STALE);
    int code;
    do
        code = try_take(other, LONG_MS, &again);
    while (code == HF_BUSY && now_ms() - from_ms < AWAIT_MS);
    check_number(last.text, code, HF_OK);
    assert_true(now_ms() - from_ms > 2000);                          /* it was taken before that */
    assert_int_equal(hf_lock_release_after(again, 1, &last), HF_OK); /* that is over */
    for (size_t i = 0; i < NODES; i++)
        await_empty(i);
    hf_close(other);
    hf_close(client);
}

static void setup_wants_a_majority(void **state)
{
    hf_client *client = open_plain();

    (void)state;
    node_kill(0);
    node_kill(1);
    assert_int_equal(hf_setup(client, &last), 0);
    node_kill(2);
    assert_int_equal(hf_setup(client, &last), HF_UNAVAILABLE);
    hf_close(client);
}

static void c1_server_named_twice_is_refused(void **state)
{
    hf_client *client;

    (void)state;
    assert_int_equal(hf_open("redlock://127.0.0.1:1,127.0.0.1:2,127.0.0.1:1", NULL, &client, &last),
                     HF_INVALID);
}

static void c1_server_with_two_names_votes_once(void **state)
{
    int port = (int)strtol(strchr(nodes_list(), ':') + 1, NULL, 10);
    char url[200];
    hf_client *client = NULL;
    hf_lock *lock;

    (void)state;
    snprintf(url, sizeof url,
             "redlock://127.0.0.1:%d,localhost:%d,127.0.0.1:1?restart_guard=off&op_timeout=2s",
             port, port);
    int r = hf_open(url, NULL, &client, &last);
    if (r == HF_OK)
        r = try_take(client, LONG_MS, &lock);
    assert_int_equal(r, HF_INVALID);
    check_contains("text", last.text, "this is the same server as");
    hf_close(client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(c1_restarted_nodes_have_no_vote, set_up),
        cmocka_unit_test_setup(c1_two_frozen_nodes_slow_nobody, set_up),
        cmocka_unit_test_setup(c1_two_dead_nodes_are_done_without, set_up),
        cmocka_unit_test_setup(c1_node_that_dies_and_comes_back_is_dialled_again, set_up),
        cmocka_unit_test_setup(c6_three_frozen_nodes_refuse_and_keep_nothing, set_up),
        cmocka_unit_test_setup(c6_three_dead_nodes_refuse_and_keep_nothing, set_up),
        cmocka_unit_test_setup(c7_lock_is_lost_in_time_when_the_majority_freezes, set_up),
        cmocka_unit_test_setup(c3_extension_sets_no_key_again, set_up),
        cmocka_unit_test_setup(c2_release_reaches_every_node, set_up),
        cmocka_unit_test_setup(c1_strangers_on_the_majority_keep_us_out, set_up),
        cmocka_unit_test_setup(c2_full_servers_still_release, set_up),
        cmocka_unit_test_setup(c1_clean_up_that_comes_late_takes_no_vote_away, set_up),
        cmocka_unit_test_setup(c1_scripts_that_were_flushed_are_taught_again, set_up),
        cmocka_unit_test_setup(c3_bids_beyond_max_ttl_are_refused, set_up),
        cmocka_unit_test_setup(c14_released_lock_is_nobodys_until_its_time, set_up),
        cmocka_unit_test_setup(setup_wants_a_majority, set_up),
        cmocka_unit_test_setup(what_it_cannot_do_is_said_in_good_english, set_up),
        cmocka_unit_test_setup(c1_server_named_twice_is_refused, set_up),
        cmocka_unit_test_setup(c1_server_with_two_names_votes_once, set_up),
        cmocka_unit_test_setup(c1_password_is_given_to_every_node, set_up),
    };

    if (!nodes_find())
        return 77;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    nodes_stop();
    return failed;
}
