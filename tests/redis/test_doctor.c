/* What `holdfast doctor` finds on a live server, and on one that should not be used like this. */
#include <stdlib.h>

#include "redis/live.h"

struct findings {
    char text[8000]; /* "level clause text" a line */
    size_t len;
};

static void note(int level, const char *clause, const char *text, void *arg)
{
    struct findings *f = arg;
    int n = snprintf(f->text + f->len, sizeof f->text - f->len, "%d %s %s\n", level,
                     clause != NULL ? clause : "-", text);

    f->len += (size_t)n;
    assert_true(f->len < sizeof f->text);
}

static void look(const char *url, struct findings *f)
{
    hf_client *client = open_url(url);

    *f = (struct findings){0};
    assert_int_equal(hf_diagnose(client, note, f, NULL), HF_OK);
    hf_close(client);
}

static void plain_server_is_told_as_it_is(void **state)
{
    struct findings f;

    (void)state;
    look(url_of(0, ""), &f);
    bool valkey = info_number("server", "valkey_version:") > 0;
    check_contains("version", f.text, valkey ? "0 - Valkey " : "0 - Redis ");
    check_contains("uptime", f.text, " s, database 0");
    check_contains("eviction", f.text, "0 C1 maxmemory-policy is noeviction");
    check_contains("persistence", f.text, "2 C1 no append-only file");
    check_contains("latency", f.text, "- a round trip takes ");
    check_contains("clock", f.text, "C4 the server's clock is 0 ms ");
    check_contains("lock", f.text, "0 C4 a lock was taken and let go in ");
    check_contains("call", f.text, "0 C12 a waiter is called: that took ");
    check_contains("watch", f.text,
                   "0 C12 the server tells when another client lets go: that took ");
    check_lacks("problems", f.text, "\n3 ");
}

static void what_is_wrong_is_told(void **state)
{
    struct findings f;

    (void)state;
    freeReplyObject(ask(redis, "CONFIG SET maxmemory-policy allkeys-lru"));
    freeReplyObject(ask(redis, "CONFIG SET appendonly yes"));
    look(url_of(0, "force=evicting&mode=poll"), &f);
    freeReplyObject(ask(redis, "CONFIG SET appendonly no"));
    freeReplyObject(ask(redis, "CONFIG SET maxmemory-policy noeviction"));
    check_contains("eviction", f.text, "3 C1 maxmemory-policy is allkeys-lru");
    check_contains("fsync", f.text, "1 C1 append-only file, fsync everysec");
    check_contains("mode", f.text, "1 C12 mode=poll");
}

static void missing_rights_are_told(void **state)
{
    struct findings f;
    char url[200];

    (void)state;
    freeReplyObject(ask(redis,
                        "ACL SETUSER few on >s3cret resetchannels ~holdfast* -@all +@read +@write "
                        "+@scripting +@connection +time"));
    snprintf(url, sizeof url, "redis://few:s3cret@%s/0", getenv("HOLDFAST_TEST_REDIS"));
    look(url, &f);
    ask_number(redis, "ACL DELUSER few");
    check_contains("INFO", f.text, "2 - INFO is not allowed");
    check_contains("PUBLISH", f.text, "3 C12 no right to PUBLISH");
    check_contains("SUBSCRIBE", f.text, "2 C12 nobody can subscribe here");
    check_lacks("what did not work", f.text, "0 C12");
}

static void replicas_are_told(void **state)
{
    struct server replica = {0};
    const char *port = strchr(getenv("HOLDFAST_TEST_REDIS"), ':') + 1;
    struct findings f = {0};

    (void)state;
    server_start(&replica, (const char *const[]){"--replicaof", "127.0.0.1", port, NULL});
    for (int64_t from_ms = now_ms(); strstr(f.text, "1 replicas") == NULL;) {
        assert_true(now_ms() - from_ms < 20000);
        look(url_of(0, ""), &f);
    }
    check_contains("replication", f.text, "2 C1 1 replicas: replication is asynchronous");
    check_contains("min-replicas", f.text, "1 C1 min-replicas-to-write is 0");
    look(url_of(replica.port, ""), &f);
    check_contains("role", f.text, "3 C1 this is a replica");
    check_contains("lock", f.text, "3 C1 a lock could not be taken and let go: READONLY");
    server_clear(&replica);
}

static void setup_says_so_when_nobody_is_there(void **state)
{
    static const char *const nobody[] = {"redis://127.0.0.1:1/0", "redis+sentinel://127.0.0.1:1/m",
                                         "redlock://127.0.0.1:1,127.0.0.1:2,127.0.0.1:3"};
    hf_client *client;
    hf_error err;

    (void)state;
    for (size_t i = 0; i < COUNT(nobody); i++) {
        assert_int_equal(hf_open(nobody[i], NULL, &client, &err), 0);
        assert_int_equal(hf_setup(client, &err), HF_UNAVAILABLE);
        hf_close(client);
    }
    assert_int_equal(hf_open(url_of(0, ""), NULL, &client, &err), 0);
    assert_int_equal(hf_setup(client, &err), 0);
    hf_close(client);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(plain_server_is_told_as_it_is),
        TEST(what_is_wrong_is_told),
        TEST(missing_rights_are_told),
        TEST(replicas_are_told),
        TEST(setup_says_so_when_nobody_is_there),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
