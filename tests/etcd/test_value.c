/* What a holder asks of etcd beside the lock: its value (C15), to be told that somebody waits (C16), and
 * that it stays closed (C14). Who asks for nothing pays nothing: counted in transactions of the servers. */
#include "etcd/line.h"

#define LONG_MS 600000 /* no renewal comes between */

static hf_lock *take_long(hf_client *client, const char *name, int wanted)
{
    hf_options opt = HF_OPTIONS_INIT;
    hf_lock *lock = NULL;

    opt.ttl_ms = LONG_MS;
    opt.wait_ms = 20000;
    opt.wanted = wanted;
    assert_int_equal(hf_acquire(client, name, HF_NTS, &opt, &lock, NULL), HF_OK);
    return lock;
}

static int write_text(hf_lock *lock, const char *text)
{
    return hf_lock_set_value(lock, text, strlen(text), NULL);
}

static void assert_value(hf_lock *lock, const char *text, int doubt)
{
    char value[HF_VALUE_MAX];
    size_t len = 0;
    int is_in_doubt = -1;

    assert_int_equal(hf_lock_value(lock, value, sizeof value, &len, &is_in_doubt, NULL), HF_OK);
    assert_int_equal(len, strlen(text));
    assert_memory_equal(value, text, len);
    assert_int_equal(is_in_doubt, doubt);
}

static void c15_release_closes_what_was_opened(void **state)
{
    struct line line = {0};
    (void)state;

    line_up(&line, "opened"); /* it is handed over in the same step */
    assert_int_equal(write_text(line.held, "text"), HF_OK);
    assert_int_equal(count_keys("test/.holdfast/opened/opened/"), 1);
    assert_int_equal(hf_lock_release(line.held, NULL), HF_OK);
    release_all(&line);
    hf_lock *lock = take_long(line.clients[0], "opened", 0);
    assert_int_equal(count_keys("test/.holdfast/opened/opened/"), 0);
    assert_value(lock, "text", 0);
    assert_int_equal(count_keys("test/.holdfast/opened/opened/"), 1);
    assert_int_equal(hf_lock_release(lock, NULL), HF_OK);
    assert_int_equal(count_keys("test/.holdfast/opened/opened/"), 0);
    assert_int_equal(count_keys("test/.holdfast/value/opened"), 1);
    disperse(&line);
}

/* Whatever many left open, the next write puts in order. */
static void c15_write_clears_what_the_vanished_left(void **state)
{
    hf_client *client = open_live("");
    char ticket[HF_TICKET_SIZE];
    (void)state;

    for (int i = 0; i < 5; i++) {
        hf_lock *lock = take_long(client, "crash", 0);
        assert_value(lock, "", i > 0);
        snprintf(ticket, sizeof ticket, "%s", hf_lock_ticket(lock));
        assert_int_equal(hf_break(client, "crash", HF_NTS, ticket, 1, NULL), HF_OK);
        hf_lock_release(lock, NULL);
    }
    hf_lock *lock = take_long(client, "crash", 0);
    assert_int_equal(count_keys("test/.holdfast/opened/crash/"), 5);
    assert_int_equal(write_text(lock, "whole"), HF_OK);
    assert_int_equal(count_keys("test/.holdfast/opened/crash/"), 1);
    assert_value(lock, "whole", 0);
    assert_int_equal(hf_lock_release(lock, NULL), HF_OK);
    hf_close(client);
}

/* Its client has not heard of the break, and its lease goes on: the store refuses it. */
static void c15_broken_holder_cannot_write(void **state)
{
    hf_client *deaf = open_deaf(), *other = open_live("");
    hf_lock *lock = take_long(deaf, "broken value", 0);
    (void)state;

    assert_int_equal(write_text(lock, "before"), HF_OK);
    assert_int_equal(hf_break(other, "broken value", HF_NTS, hf_lock_ticket(lock), 0, NULL), HF_OK);
    assert_int_equal(write_text(lock, "after"), HF_LOST);
    assert_int_equal(hf_break(other, "broken value", HF_NTS, hf_lock_ticket(lock), 1, NULL), HF_OK);
    hf_lock *next = take_long(other, "broken value", 0);
    assert_value(next, "before", 1);
    assert_int_equal(hf_lock_release(next, NULL), HF_OK);
    hf_lock_release(lock, NULL);
    hf_close(deaf);
    hf_close(other);
}

static void c15_value_that_is_known_is_written_by_one_request(void **state)
{
    hf_client *client = open_live("");
    hf_lock *lock = take_long(client, "requests", 0);
    (void)state;

    assert_value(lock, "", 0);
    double before = metric(TXNS);
    assert_int_equal(write_text(lock, "one"), HF_OK);
    assert_true(metric(TXNS) - before == 1);
    assert_int_equal(write_text(lock, "two"), HF_OK);
    assert_true(metric(TXNS) - before == 2);
    assert_value(lock, "two", 0);
    assert_true(metric(TXNS) - before == 3);
    assert_int_equal(hf_lock_release(lock, NULL), HF_OK);
    assert_true(metric(TXNS) - before == 4);
    hf_close(client);
}

static void take_and_give_back(hf_client *client, int wanted, int pairs)
{
    for (int i = 0; i < pairs; i++)
        assert_int_equal(hf_lock_release(take_long(client, "pairs", wanted), NULL), HF_OK);
}

/* The lease of one serves the next. */
static void c13_who_asks_for_nothing_pays_nothing(void **state)
{
    hf_client *client = open_live("");
    (void)state;

    take_and_give_back(client, 0, 1);
    double txns = metric(TXNS), grants = metric(GRANTS);
    take_and_give_back(client, 0, 10);
    assert_true(metric(TXNS) - txns == 20);
    assert_true(metric(GRANTS) - grants == 0);
    assert_int_equal(count_keys("test/.holdfast/value/pairs"), 0);
    assert_int_equal(count_keys("test/.holdfast/opened/pairs/"), 0);
    hf_close(client);
}

/* A free lock needs no look: nobody was there. A renewal looks once. */
static void c16_who_wants_to_know_pays_one_request_a_renewal(void **state)
{
    hf_client *client = open_live("");
    (void)state;

    take_and_give_back(client, 1, 1);
    double txns = metric(TXNS);
    take_and_give_back(client, 1, 10);
    assert_true(metric(TXNS) - txns == 20);
    hf_lock *lock = take_long(client, "pairs", 0);
    txns = metric(TXNS);
    assert_int_equal(hf_lock_renew(lock, NULL), HF_OK);
    double plain = metric(TXNS) - txns;
    assert_int_equal(hf_lock_release(lock, NULL), HF_OK);
    lock = take_long(client, "pairs", 1);
    txns = metric(TXNS);
    assert_int_equal(hf_lock_renew(lock, NULL), HF_OK);
    assert_true(metric(TXNS) - txns == plain + 1);
    assert_int_equal(hf_lock_release(lock, NULL), HF_OK);
    hf_close(client);
}

static int is_wanted(void *lock)
{
    return hf_lock_wanted(lock);
}

/* Those who come behind the first are no news: the holder listens no longer. */
static void c16_crowd_is_told_once(void **state)
{
    hf_client *client = open_live(""), *others = open_live("");
    hf_lock *lock = take_long(client, "crowd", 1);
    static struct waiter waiters[20];
    (void)state;

    assert_int_equal(hf_lock_renew(lock, NULL), HF_OK); /* claimed */
    wait_in_thread(&waiters[0], others, "crowd");
    await("it to be wanted", is_wanted, lock);
    await_waiting(others, "crowd", 1);
    double renewals = metric("grpc_server_started_total{grpc_method=\"LeaseKeepAlive\"");
    for (size_t i = 1; i < COUNT(waiters); i++) {
        wait_in_thread(&waiters[i], others, "crowd");
        await_waiting(others, "crowd", i + 1); /* they are let in in this order */
    }
    /* Waiters renew as well, every third of what they may be silent: all in one call. */
    assert_true(metric("grpc_server_started_total{grpc_method=\"LeaseKeepAlive\"") - renewals < 15);
    assert_int_equal(hf_lock_release(lock, NULL), HF_OK);
    for (size_t i = 0; i < COUNT(waiters); i++) {
        assert_int_equal(join_waiter(&waiters[i]), HF_OK);
        assert_int_equal(hf_lock_release(waiters[i].lock, NULL), HF_OK);
    }
    hf_close(client);
    hf_close(others);
}

static int is_empty(void *root)
{
    return count_keys(root) == 0;
}

/* Who waits behind it is not handed the lock, and gets it when the time is over. */
static void c14_lock_that_stayed_closed_leaves_nothing(void **state)
{
    struct line line = {0};
    int64_t began_ms = now_ms();
    (void)state;

    line_up(&line, "closed");
    assert_int_equal(write_text(line.held, "text"), HF_OK);
    assert_int_equal(hf_lock_release_after(line.held, 4000, NULL), HF_OK);
    assert_int_equal(join_waiter(&line.first), HF_OK);
    assert_true(line.first.got_ms - began_ms >= 4000);
    assert_true(line.first.generation > line.generation);
    assert_value(line.first.lock, "text", 0); /* it was released, in good order */
    assert_int_equal(hf_lock_release(line.first.lock, NULL), HF_OK);
    assert_int_equal(join_waiter(&line.second), HF_OK);
    assert_int_equal(hf_lock_release(line.second.lock, NULL), HF_OK);
    await("no place to be left", is_empty, (void *)"test/closed/");
    await("no mark to be left", is_empty, (void *)"test/.holdfast/inside/closed/");
    await("no break to be left", is_empty, (void *)"test/.holdfast/broken/closed/");
    assert_int_equal(count_keys("test/.holdfast/opened/closed/"), 0);
    disperse(&line);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(c13_who_asks_for_nothing_pays_nothing),
        cmocka_unit_test(c14_lock_that_stayed_closed_leaves_nothing),
        cmocka_unit_test(c15_release_closes_what_was_opened),
        cmocka_unit_test(c15_write_clears_what_the_vanished_left),
        cmocka_unit_test(c15_broken_holder_cannot_write),
        cmocka_unit_test(c15_value_that_is_known_is_written_by_one_request),
        cmocka_unit_test(c16_who_wants_to_know_pays_one_request_a_renewal),
        cmocka_unit_test(c16_crowd_is_told_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
