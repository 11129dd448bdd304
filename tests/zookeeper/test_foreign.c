/* Beside other clients: what they have written into the lock's own node stays as it is, and those
 * that do not see our nodes are told of. */
#include <stdlib.h>

#include "zookeeper/live.h"

static const char owner[] = "{\"owner\":\"billing\"}";

static zhandle_t *zh;

static int set_up(void **state)
{
    (void)state;
    zh = stranger();
    zoo_create(zh, "/locks", NULL, -1, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    zookeeper_close(zh);
    return 0;
}

static void read_data(const char *path, char data[200])
{
    int len = 199;

    assert_int_equal(zoo_get(zh, path, 0, data, &len, NULL), ZOK);
    data[len > 0 ? len : 0] = '\0';
}

static void assert_data(const char *path, const char *expected)
{
    char data[200];

    read_data(path, data);
    assert_string_equal(data, expected);
}

static int has_left(void *path)
{
    char data[200];

    read_data(path, data);
    return strcmp(data, "holdfast1 left=2") == 0;
}

/* Two of ours wait for `first` and release, one after the other. */
static void let_two_through(const char *name, void (*first)(const char *name))
{
    hf_client *client = open_at(servers(), "");
    struct waiter w[2];

    for (int i = 0; i < 2; i++) {
        send_visitor(&w[i], client, name, 5000);
        await_queued(&w[i]);
    }
    first(name);
    for (int i = 0; i < 2; i++)
        assert_int_equal(join_waiter(&w[i]), HF_OK);
    hf_close(client);
}

static hf_lock *held;
static char foreign[200];

static void release_held(const char *name)
{
    (void)name;
    assert_int_equal(hf_lock_release(held, NULL), HF_OK);
}

static void c2_data_of_the_lock_node_stays_what_its_owner_wrote(void **state)
{
    hf_client *client = open_at(servers(), "");

    (void)state;
    assert_int_equal(
        zoo_create(zh, "/locks/noted", owner, sizeof owner - 1, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0),
        ZOK);
    held = take(client, "noted", 5000);
    let_two_through("noted", release_held);
    assert_data("/locks/noted", owner);
    hf_close(client);
}

/* A program that notes there that it is the owner, once it is. */
static void note_and_leave(const char *name)
{
    char path[100];

    snprintf(path, sizeof path, "/locks/%s", name);
    assert_int_equal(zoo_set(zh, path, owner, sizeof owner - 1, -1), ZOK);
    assert_int_equal(zoo_delete(zh, foreign, -1), ZOK);
}

static void c2_data_that_was_written_while_we_waited_stays(void **state)
{
    (void)state;
    assert_int_equal(zoo_create(zh, "/locks/later", NULL, -1, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0),
                     ZOK);
    assert_int_equal(zoo_create(zh, "/locks/later/_c_00000000-0000-0000-0000-00000000000a-lock-",
                                "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL | ZOO_SEQUENCE, foreign,
                                sizeof foreign),
                     ZOK);
    let_two_through("later", note_and_leave);
    assert_data("/locks/later", owner);
}

/* Where nobody has written, ours tell those behind them that they have left. */
static void c12_number_of_who_left_is_in_a_node_without_data(void **state)
{
    hf_client *client = open_at(servers(), "");

    (void)state;
    held = take(client, "ours", 5000);
    let_two_through("ours", release_held);
    await("the number", has_left, (void *)"/locks/ours"); /* the stranger's server may lag */
    hf_close(client);
}

static void look_for_warning(int level, const char *clause, const char *text, void *arg)
{
    if (level == 2 && clause != NULL && strcmp(clause, "C1") == 0 &&
        strstr(text, "/locks/blind is used by kazoo") != NULL)
        *(int *)arg += 1;
}

/* Its holder's note, and how often doctor warns of it. */
static int ask_about_blind(const char *options, char note[HF_NOTE_MAX + 1])
{
    hf_client *client = open_at(servers(), options);
    hf_query query = {.size = sizeof query, .name = "blind", .name_len = HF_NTS};
    hf_view *view = NULL;
    int warnings = 0;

    assert_int_equal(hf_inspect(client, &query, &view, NULL), HF_OK);
    assert_int_equal(hf_view_count(view), 1);
    snprintf(note, HF_NOTE_MAX + 1, "%s", hf_view_entry(view, 0)->note);
    hf_view_free(view);
    assert_int_equal(hf_diagnose(client, look_for_warning, &warnings, NULL), HF_OK);
    hf_close(client);
    return warnings;
}

/* kazoo looks for names of its own: it would enter beside us, unless we write those. */
static void c1_client_that_does_not_see_us_is_told_of(void **state)
{
    char note[HF_NOTE_MAX + 1];

    (void)state;
    zoo_create(zh, "/locks/blind", NULL, -1, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0);
    assert_int_equal(zoo_create(zh, "/locks/blind/00112233445566778899aabbccddeeff__lock__", "me",
                                2, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL | ZOO_SEQUENCE, foreign,
                                sizeof foreign),
                     ZOK);
    assert_int_equal(ask_about_blind("", note), 1);
    assert_non_null(strstr(note, "layout=kazoo"));
    assert_int_equal(ask_about_blind("layout=kazoo", note), 0);
    assert_string_equal(note, "");
    assert_int_equal(zoo_delete(zh, foreign, -1), ZOK);
}

/* Ours exclude each other whatever names they write. */
static void c1_layouts_exclude_each_other(void **state)
{
    static const char *const layouts[] = {"layout=curator", "layout=curator-rw", "layout=kazoo"};

    (void)state;
    for (size_t i = 0; i < COUNT(layouts); i++) {
        hf_client *holder = open_at(servers(), layouts[i]);
        hf_client *rival = open_at(servers(), layouts[(i + 1) % COUNT(layouts)]);
        hf_lock *lock = take(holder, "mixed", 5000), *none;
        struct waiter w;
        assert_int_equal(try_lock(rival, "mixed", 5000, &none), HF_BUSY);
        send_visitor(&w, rival, "mixed", 5000);
        await_queued(&w);
        assert_int_equal(hf_lock_release(lock, NULL), HF_OK);
        assert_int_equal(join_waiter(&w), HF_OK);
        hf_close(holder);
        hf_close(rival);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(c2_data_of_the_lock_node_stays_what_its_owner_wrote),
        cmocka_unit_test(c2_data_that_was_written_while_we_waited_stays),
        cmocka_unit_test(c1_client_that_does_not_see_us_is_told_of),
        cmocka_unit_test(c1_layouts_exclude_each_other),
        cmocka_unit_test(c12_number_of_who_left_is_in_a_node_without_data),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
