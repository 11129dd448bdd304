/* Whom the nodes belong to (C2): to their creator alone unless the URL says otherwise, and what
 * cannot be had is refused when the client is opened. */
#include <stdlib.h>

#include "zookeeper/live.h"

static void c2_url_that_promises_too_much_is_refused(void **state)
{
    static const struct {
        const char *url;
        int code;
        const char *says;
    } cases[] = {
        {"zookeeper://h/x", HF_INVALID, "zookeeper://user:password@..., or acl=world"},
        {"zookeeper://h/x?acl=creator", HF_INVALID, "zookeeper://user:password@..., or acl=world"},
        {"zookeeper://h/x?acl=all", HF_INVALID, "creator or world"},
        {"zookeeper://user@h/x", HF_INVALID, "needs a password"},
        {"zookeeper://user@h/x?password_file=/tmp", HF_DENIED, "Is a directory"},
        {"zookeeper://h/x?password_env=HOME", HF_INVALID, "a password needs a user"},
        {"zookeeper://h/x?tls=verify", HF_UNSUPPORTED, "without TLS"},
        {"zookeeper://h/x?sasl=GSSAPI", HF_UNSUPPORTED, "without SASL"},
        {"zookeeper:///x", HF_INVALID, "name the servers as in zookeeper://"},
        {"zookeeper://h//x", HF_INVALID, "empty part"},
        {"zookeeper://:word@h/x", HF_INVALID, "a password needs a user"},
        {"zookeeper://a%3Ab:word@h/x", HF_INVALID, "cannot have a ':'"},
        {"zookeeper://u:w@h/x/..", HF_INVALID, "empty part"},
        {"zookeeper://u:w@h/./x", HF_INVALID, "empty part"},
        {"zookeeper://u:w@h/x%FF", HF_INVALID, "UTF-8"},
        {"zookeeper://u:w@h/zookeeper", HF_INVALID, "own"},
        {"zookeeper://u:w@h/zookeeper/quota", HF_INVALID, "own"},
    };
    hf_client *client;
    hf_error err;

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        check_number(cases[i].url, hf_open(cases[i].url, NULL, &client, &err), cases[i].code);
        check_contains(cases[i].url, err.text, cases[i].says);
    }
}

static void c2_url_that_is_unusual_is_accepted(void **state)
{
    static const char *const urls[] = {
        "zookeeper://u:w@h/x/",         "zookeeper://u:w@h/..x/y..",     "zookeeper://u:a%3Ab@h/x",
        "zookeeper://u:w@h/zookeepers", "zookeeper://u:w@h/x/zookeeper", "zookeeper://u:w@h"};
    hf_client *client;
    hf_error err;

    (void)state;
    for (size_t i = 0; i < COUNT(urls); i++) {
        if (hf_open(urls[i], NULL, &client, &err) != HF_OK)
            fail_msg("%s: %s", urls[i], err.text);
        hf_close(client);
    }
}

static void server_that_nobody_knows_is_told(void **state)
{
    hf_client *client;
    hf_lock *lock;
    hf_error err;

    (void)state;
    assert_int_equal(
        hf_open("zookeeper://u:w@no.such.host.invalid/x?op_timeout=1s", NULL, &client, &err),
        HF_OK);
    assert_int_equal(hf_acquire(client, "a", HF_NTS, NULL, &lock, &err), HF_UNAVAILABLE);
    check_contains("unknown", err.text, "no.such.host.invalid:2181 can be looked up");
    check_lacks("unknown", err.text, "file");
    hf_close(client);
}

/* The library dials for ever; whoever does not wait is told at once all the same. */
static void server_that_refuses_is_told(void **state)
{
    hf_options at_once = HF_OPTIONS_INIT;
    hf_client *client;
    hf_lock *lock;
    hf_error err;

    (void)state;
    at_once.wait_ms = 0;
    assert_int_equal(hf_open("zookeeper://u:w@127.0.0.1:1,localhost:1/x", NULL, &client, &err),
                     HF_OK);
    assert_int_equal(hf_acquire(client, "a", HF_NTS, &at_once, &lock, &err), HF_UNAVAILABLE);
    check_contains("refused", err.text, "connect to 127.0.0.1:1,localhost:1: Connection refused");
    hf_close(client);
}

/* "user:password@" or "" in front of the servers. */
static hf_client *open_as(const char *user, const char *path_and_options)
{
    char url[300];
    hf_client *client = NULL;
    hf_error err;

    snprintf(url, sizeof url, "zookeeper://%s%s/%s", user, servers(), path_and_options);
    if (hf_open(url, NULL, &client, &err) != HF_OK)
        fail_msg("%s", err.text);
    return client;
}

static int is_told(void *rc)
{
    return *(_Atomic int *)rc != 1;
}

static void tell(int rc, const void *data)
{
    *(_Atomic int *)data = rc;
}

/* Another user, by the bare library. */
static zhandle_t *stranger_called(const char *credentials)
{
    zhandle_t *zh = stranger();
    static _Atomic int rc;

    rc = 1;
    assert_int_equal(
        zoo_add_auth(zh, "digest", credentials, (int)strlen(credentials), tell, (void *)&rc), ZOK);
    await("the user to be known", is_told, (void *)&rc);
    assert_int_equal(rc, ZOK);
    return zh;
}

/* What a user who is not the creator is answered when it deletes the only node of the lock. */
static int delete_node(const char *credentials, const char *directory, const char *child)
{
    zhandle_t *zh = stranger_called(credentials);
    char path[400];

    snprintf(path, sizeof path, "%s/%s", directory, child);
    int rc = zoo_delete(zh, path, -1);
    zookeeper_close(zh);
    return rc;
}

/* The name of the lock's only node, as the user sees it. */
static void only_child(const char *credentials, const char *directory, char name[200])
{
    zhandle_t *zh = stranger_called(credentials);
    struct String_vector names = {0};

    assert_int_equal(zoo_get_children(zh, directory, 0, &names), ZOK);
    assert_int_equal(names.count, 1);
    snprintf(name, 200, "%s", names.data[0]);
    deallocate_String_vector(&names);
    zookeeper_close(zh);
}

static void c2_creator_alone_may_touch_a_lock(void **state)
{
    hf_client *mine = open_as("ann:secret@", "private"), *other = open_as("bob:other@", "private");
    hf_lock *lock = NULL, *none = NULL;
    hf_options opt = HF_OPTIONS_INIT;
    char node[200];
    hf_error err;

    (void)state;
    opt.wait_ms = 0;
    assert_int_equal(hf_acquire(mine, "a", HF_NTS, &opt, &lock, &err), HF_OK);
    assert_int_equal(hf_acquire(other, "a", HF_NTS, &opt, &none, &err), HF_DENIED);
    check_lacks("the text", err.text, "other");
    assert_int_equal(hf_break(other, "a", HF_NTS, hf_lock_ticket(lock), 1, &err), HF_DENIED);
    only_child("ann:secret", "/private/a", node);
    assert_int_equal(delete_node("bob:other", "/private/a", node), ZNOAUTH);
    assert_int_equal(hf_lock_renew(lock, NULL), HF_OK);
    assert_int_equal(hf_lock_release(lock, NULL), HF_OK);
    hf_close(mine);
    hf_close(other);
}

/* Whoever says so has nodes that everybody may delete. */
static void c2_world_is_everybody_and_must_be_asked_for(void **state)
{
    static const char *const users[] = {"", "ann:secret@"};
    char node[200];

    (void)state;
    for (size_t i = 0; i < COUNT(users); i++) {
        hf_client *client = open_as(users[i], "open?acl=world");
        hf_lock *lock = take(client, "a", 10000);
        only_child("bob:other", "/open/a", node);
        assert_int_equal(delete_node("bob:other", "/open/a", node), ZOK);
        assert_int_equal(hf_lock_renew(lock, NULL), HF_LOST);
        hf_lock_release(lock, NULL);
        hf_close(client);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(c2_url_that_promises_too_much_is_refused),
        cmocka_unit_test(c2_url_that_is_unusual_is_accepted),
        cmocka_unit_test(server_that_nobody_knows_is_told),
        cmocka_unit_test(server_that_refuses_is_told),
        cmocka_unit_test(c2_creator_alone_may_touch_a_lock),
        cmocka_unit_test(c2_world_is_everybody_and_must_be_asked_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
