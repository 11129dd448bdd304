/* What a holder asks of ZooKeeper beside the lock: its value (C15), and to be told that somebody waits
 * (C16). Who asks for neither pays nothing: counted in requests by the server. */
#include <stdlib.h>

#include "zookeeper/live.h"

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
    hf_client *client = open_at(servers(), "");
    zhandle_t *zh = stranger();
    hf_lock *lock = take_long(client, "opened", 0);
    (void)state;

    assert_int_equal(write_text(lock, "text"), HF_OK);
    assert_int_equal(child_count(zh, "/locks/%value/opened"), 1);
    assert_int_equal(hf_lock_release(lock, NULL), HF_OK);
    assert_int_equal(child_count(zh, "/locks/%value/opened"), 0);
    lock = take_long(client, "opened", 0);
    assert_value(lock, "text", 0);
    assert_int_equal(child_count(zh, "/locks/%value/opened"), 1);
    assert_int_equal(hf_lock_release(lock, NULL), HF_OK);
    assert_int_equal(child_count(zh, "/locks/%value/opened"), 0);
    zookeeper_close(zh);
    hf_close(client);
}

/* Whatever many left open, the next write puts in order. */
static void c15_write_clears_what_the_vanished_left(void **state)
{
    hf_client *client = open_at(servers(), "");
    zhandle_t *zh = stranger();
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
    assert_int_equal(child_count(zh, "/locks/%value/crash"), 5);
    assert_int_equal(write_text(lock, "whole"), HF_OK);
    assert_int_equal(child_count(zh, "/locks/%value/crash"), 1);
    assert_value(lock, "whole", 0);
    assert_int_equal(hf_lock_release(lock, NULL), HF_OK);
    zookeeper_close(zh);
    hf_close(client);
}

/* By a claim the node of a waiter moves into another session, and the value is still its own. */
static void c15_value_survives_the_claim(void **state)
{
    hf_client *client = open_at(servers(), ""), *other = open_at(servers(), "");
    hf_lock *lock = take_long(other, "claim", 0);
    struct waiter w;
    (void)state;

    send_waiter(&w, client, "claim", LONG_MS, NULL);
    await_queued(&w);
    assert_int_equal(hf_lock_release(lock, NULL), HF_OK);
    assert_int_equal(join_waiter(&w), HF_OK);
    assert_int_equal(write_text(w.lock, "before"), HF_OK);
    assert_int_equal(hf_lock_renew(w.lock, NULL), HF_OK);
    assert_int_equal(write_text(w.lock, "after"), HF_OK);
    assert_value(w.lock, "after", 0);
    assert_int_equal(hf_lock_release(w.lock, NULL), HF_OK);
    lock = take_long(other, "claim", 0);
    assert_value(lock, "after", 0);
    assert_int_equal(hf_lock_release(lock, NULL), HF_OK);
    hf_close(client);
    hf_close(other);
}

/* Another client adopts it: what its former holder had opened is closed by the release. */
static void c15_lock_that_never_expires_is_released_elsewhere(void **state)
{
    hf_client *client = open_at(servers(), ""), *other = open_at(servers(), "");
    zhandle_t *zh = stranger();
    hf_options opt = HF_OPTIONS_INIT;
    hf_lock *lock = take(client, "never", HF_NEVER);
    char ticket[HF_TICKET_SIZE];
    (void)state;

    assert_int_equal(hf_lock_renew(lock, NULL), HF_OK); /* claimed: it is permanent */
    assert_int_equal(write_text(lock, "kept"), HF_OK);
    snprintf(ticket, sizeof ticket, "%s", hf_lock_ticket(lock));
    assert_int_equal(hf_lock_detach(lock, NULL), HF_OK);
    hf_close(client);
    assert_int_equal(hf_adopt(other, "never", HF_NTS, ticket, &opt, &lock, NULL), HF_OK);
    assert_value(lock, "kept", 0);
    assert_int_equal(write_text(lock, "on"), HF_OK);
    assert_int_equal(hf_lock_release(lock, NULL), HF_OK);
    assert_int_equal(child_count(zh, "/locks/%value/never"), 0);
    assert_int_equal(child_count(zh, "/locks/never"), 0);
    zookeeper_close(zh);
    hf_close(other);
}

/* With those on children, which a summary of the server's leaves out. */
static int watches_so_far(void)
{
    char text[20000];

    ask_server_at(servers(), "mntr", text, sizeof text);
    const char *at = strstr(text, "zk_watch_count");
    assert_non_null(at);
    return (int)strtol(at + strlen("zk_watch_count"), NULL, 10);
}

/* Two watches of a client that holds: on requests to break, and on those who come. */
static void c16_who_does_not_ask_sets_no_watch(void **state)
{
    hf_client *client = open_at(servers(), "");
    (void)state;

    hf_lock *lock = take_long(client, "watches", 0);
    int plain = watches_so_far();
    assert_true(plain > 0);
    assert_int_equal(hf_lock_release(lock, NULL), HF_OK);
    lock = take_long(client, "watches", 1);
    assert_int_equal(watches_so_far(), plain + 1);
    assert_int_equal(hf_lock_renew(lock, NULL), HF_OK);
    assert_int_equal(hf_lock_renew(lock, NULL), HF_OK);
    assert_int_equal(watches_so_far(), plain + 1);
    assert_int_equal(hf_lock_release(lock, NULL), HF_OK);
    hf_close(client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(c15_release_closes_what_was_opened),
        cmocka_unit_test(c15_write_clears_what_the_vanished_left),
        cmocka_unit_test(c15_value_survives_the_claim),
        cmocka_unit_test(c15_lock_that_never_expires_is_released_elsewhere),
        cmocka_unit_test(c16_who_does_not_ask_sets_no_watch),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
