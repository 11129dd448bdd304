/* Names that nobody uses any more leave nothing behind (C13): the directory of a lock is a container,
 * which the server takes away some time after its last child. This server looks five times a second;
 * by default it does every minute. */
#include <stdlib.h>

#include "zookeeper/live.h"

static zhandle_t *zh;

static int set_up(void **state)
{
    (void)state;
    zh = stranger();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    zookeeper_close(zh);
    return 0;
}

static int is_gone(void *path)
{
    return zoo_exists(zh, path, 0, NULL) == ZNONODE;
}

static void c13_names_that_are_not_used_go_by_themselves(void **state)
{
    hf_client *client = open_at(servers(), ""), *other = open_at(servers(), "layout=kazoo");
    hf_lock *lock = take(client, "unused", 5000);
    struct waiter w;

    (void)state;
    send_visitor(&w, other, "unused", 5000); /* so that there is data in it, too */
    await_queued(&w);
    assert_int_equal(hf_lock_release(lock, NULL), HF_OK);
    assert_int_equal(join_waiter(&w), HF_OK);
    await("the lock's node to go", is_gone, (void *)"/locks/unused");
    lock = take(client, "unused", 5000); /* and it comes again */
    assert_int_equal(hf_lock_release(lock, NULL), HF_OK);
    hf_close(client);
    hf_close(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(c13_names_that_are_not_used_go_by_themselves),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
