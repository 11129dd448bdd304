/* Replies of another shape, of no sense, or without end: every call comes back, with an error, and
 * nobody is told that a lock is free or his because of them. And servers that must be refused by what
 * they say of themselves. */
#include <stdlib.h>
#include <sys/resource.h>

#include "redis/live.h"
#include "redis/scripted.h"

#define PLAIN "# Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\n"

/* A list of the inspect script's shape; the parts are RESP. */
#define ROOM(parts) "*2\r\n:1700000000000\r\n" parts
#define LINE        "IXY 1700000000000 1700000030000 1700000000000000 30000 0 60000"
#define TICKET      "$32\r\n00112233445566778899aabbccddeeff\r\n"

static const char *const odd[] = {
    ":42\r\n",
    "$-1\r\n",
    "*-1\r\n",
    "*0\r\n",
    "+OK\r\n",
    "$0\r\n\r\n",
    "*1\r\n$-1\r\n",
    "*1\r\n:1\r\n",
    "*1\r\n*0\r\n",
    "*2\r\n:1\r\n:2\r\n",
    "*2\r\n$1\r\nx\r\n*0\r\n",
    "*2\r\n$1\r\n7\r\n*0\r\n", /* a page that leads to itself */
    "*3\r\n:1\r\n:2\r\n:3\r\n",
    "$7\r\ngranted\r\n",
    "$15\r\ngranted 5 0 1 9\r\n",
    "$13\r\ngranted 5 0 1\r\n", /* a lease of nothing */
    "$16\r\ngranted 0 1000 1\r\n",
    "$15\r\ngranted 5 -7 1 \r\n",
    "$31\r\ngranted 99999999999999999999 1 1\r\n",
    "$18\r\ngranted 5 1000 1 2\r\n", /* somebody waits: 1, or not told */
    "*5\r\n$4\r\ndone\r\n$1\r\n1\r\n$1\r\n1\r\n$1\r\n2\r\n$0\r\n\r\n",
    "*5\r\n$4\r\ndone\r\n$1\r\n1\r\n$2\r\n-1\r\n$1\r\n0\r\n$0\r\n\r\n",
    "$6\r\nqueued\r\n",
    "$12\r\nqueued 1 2 3\r\n",
    "$4\r\n1234\r\n",
    "$33\r\n111111111111111111111111111111111\r\n",
    "*1\r\n$13\r\ngranted 5 0 1\r\n",
    /* what `show` gets, with one part of it wrong */
    ROOM("*3\r\n$-1\r\n$-1\r\n$2\r\n-2\r\n"),
    ROOM("*4\r\n$-1\r\n$-1\r\n:-2\r\n:7\r\n"),
    ROOM("*7\r\n" TICKET TICKET ":30000\r\n" TICKET TICKET ":1\r\n:2\r\n"),
    ROOM("*7\r\n" TICKET TICKET ":30000\r\n" TICKET ":1\r\n:2\r\n:3\r\n"),
    ROOM("*7\r\n" TICKET TICKET ":30000\r\n$-1\r\n" TICKET "*0\r\n$0\r\n\r\n"),
    ROOM("*6\r\n:1\r\n:2\r\n:3\r\n*0\r\n*0\r\n*0\r\n"),
    "*2\r\n$1\r\n1\r\n*3\r\n$-1\r\n$-1\r\n:-2\r\n",
    "*2\r\n$-1\r\n*4\r\n$-1\r\n$-1\r\n:-2\r\n$-1\r\n",
};

static int is_error(int code)
{
    return code == HF_CORRUPT || code == HF_UNKNOWN || code == HF_UNAVAILABLE;
}

static void expect_error(const char *what, size_t i, int code)
{
    if (!is_error(code))
        fail_msg("%s: %s was answered by %s", odd[i], what, hf_code_name(code));
}

static struct scripted *server;
static hf_client *client;

static int start(void **state)
{
    char options[] = "op_timeout=400ms";

    (void)state;
    server = scripted_start(PLAIN);
    client = open_url(url_of(scripted_port(server), options));
    return 0;
}

static int stop(void **state)
{
    (void)state;
    hf_close(client);
    scripted_stop(server);
    return 0;
}

static void say(const char *command, const char *bytes)
{
    scripted_answer(server, command, bytes, strlen(bytes));
}

static void c6_odd_answer_is_no_grant(void **state)
{
    hf_options opt = HF_OPTIONS_INIT;
    hf_lock *lock = NULL;
    hf_error err;

    (void)state;
    opt.wait_ms = 0;
    for (size_t i = 0; i < COUNT(odd); i++) {
        say("EVALSHA", odd[i]);
        expect_error("acquire", i, hf_acquire(client, "a", HF_NTS, &opt, &lock, &err));
        opt.mode = opt.mode == HF_SHARED ? HF_EXCLUSIVE : HF_SHARED;
    }
}

/* A wait with an end comes to it, whatever is said. */
static void c5_odd_answer_does_not_outlast_the_wait(void **state)
{
    static const char *const stubborn[] = {
        "$13\r\ngranted 5 0 1\r\n",
        ":42\r\n",
        "$24\r\nqueued 1 30000 1 100 0 0\r\n",
        "$22\r\nqueued 1 30000 1 100 0\r\n",
    };
    hf_options opt = HF_OPTIONS_INIT;
    hf_lock *lock = NULL;

    (void)state;
    opt.wait_ms = 500;
    for (size_t i = 0; i < COUNT(stubborn); i++) {
        say("EVALSHA", stubborn[i]);
        int64_t from_ms = now_ms();
        assert_int_not_equal(hf_acquire(client, "a", HF_NTS, &opt, &lock, NULL), HF_OK);
        assert_true(now_ms() - from_ms < AWAIT_MS);
    }
}

static void c5_queued_is_no_answer_to_a_bid_that_does_not_wait(void **state)
{
    hf_options opt = HF_OPTIONS_INIT;
    hf_lock *lock = NULL;

    (void)state;
    opt.wait_ms = 0;
    say("EVALSHA", "$22\r\nqueued 1 30000 1 100 0\r\n");
    assert_int_equal(hf_acquire(client, "a", HF_NTS, &opt, &lock, NULL), HF_CORRUPT);
}

static void odd_answer_is_not_shown_as_free(void **state)
{
    hf_query one = {.size = sizeof one, .name = "a", .name_len = HF_NTS};
    hf_query all = {.size = sizeof all};
    hf_view *view;

    (void)state;
    for (size_t i = 0; i < COUNT(odd); i++) {
        say("EVALSHA", odd[i]);
        expect_error("show", i, hf_inspect(client, &one, &view, NULL));
        say("SCAN", odd[i]);
        expect_error("ls", i, hf_inspect(client, &all, &view, NULL));
    }
}

/* A server that grants, and then says anything about the value. */
static void c15_odd_answer_is_no_value(void **state)
{
    static const char grant[] = "$35\r\ngranted 1700000000000000 30000000 1\r\n";
    hf_options opt = HF_OPTIONS_INIT;
    char bytes[HF_VALUE_MAX];
    hf_lock *lock = NULL;
    size_t len;

    (void)state;
    opt.wait_ms = 0;
    opt.by_hand = 1;
    opt.ttl_ms = 30000000;
    say("EVALSHA", grant);
    assert_int_equal(hf_acquire(client, "a", HF_NTS, &opt, &lock, NULL), HF_OK);
    for (size_t i = 0; i < COUNT(odd); i++) {
        say("EVALSHA", odd[i]);
        expect_error("read", i, hf_lock_value(lock, bytes, sizeof bytes, &len, NULL, NULL));
        expect_error("write", i, hf_lock_set_value(lock, "x", 1, NULL));
    }
    say("EVALSHA", "$4\r\ndone\r\n");
    assert_int_equal(hf_lock_release(lock, NULL), HF_OK);
}

static void odd_answer_to_purge_break_and_adopt_is_an_error(void **state)
{
    uint64_t count;
    hf_lock *lock;

    (void)state;
    for (size_t i = 0; i < COUNT(odd); i++) {
        const char *ticket = "00112233445566778899aabbccddeeff";
        say("SCAN", odd[i]);
        expect_error("gc", i, hf_purge(client, 1, &count, NULL));
        say("EVALSHA", odd[i]);
        expect_error("break", i, hf_break(client, "a", HF_NTS, ticket, 1, NULL));
        expect_error("adopt", i, hf_adopt(client, "a", HF_NTS, ticket, NULL, &lock, NULL));
    }
}

static void note(int level, const char *clause, const char *text, void *arg)
{
    (void)level, (void)clause, (void)text, (void)arg;
}

static void odd_answers_do_not_stop_the_doctor(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(odd); i++) {
        say(NULL, odd[i]);
        hf_diagnose(client, note, NULL, NULL);
    }
}

/* What a server sends without end is not kept without end. */
static void reply_without_end_is_cut_off(void **state)
{
    const char *heads[] = {"$536870912\r\n", "*1000000000\r\n", "*2\r\n$1\r\n0\r\n*900000000\r\n",
                           "*1000000\r\n*1000000\r\n*1000000\r\n*1000000\r\n"};
    const size_t size = 40 << 20;
    struct rusage before, after;
    char *bytes = malloc(size);
    hf_query one = {.size = sizeof one, .name = "a", .name_len = HF_NTS};
    hf_view *view;

    (void)state;
    assert_non_null(bytes);
    getrusage(RUSAGE_SELF, &before);
    for (size_t i = 0; i < COUNT(heads); i++) {
        for (size_t at = 0; at + 4 <= size; at += 4)
            memcpy(bytes + at, ":1\r\n", 4);
        memcpy(bytes, heads[i], strlen(heads[i]));
        scripted_answer(server, "EVALSHA", bytes, size);
        assert_true(is_error(hf_inspect(client, &one, &view, NULL)));
    }
    getrusage(RUSAGE_SELF, &after);
    free(bytes);
    print_message("%ld MiB more were used\n", (after.ru_maxrss - before.ru_maxrss) / 1024);
    assert_true(after.ru_maxrss - before.ru_maxrss < 700 << 10); /* the test's own copies, too */
}

static void servers_that_share_no_locks_are_refused(void **state)
{
    static const struct {
        const char *info, *text;
    } cases[] = {
        {"redis_version:7.0.15\r\nredis_mode:cluster\r\n", "Cluster"},
        {"redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:9.1.2\r\nserver_mode:"
         "cluster\r\n",
         "Cluster"},
        {"redis_version:6.3.4\r\nredis_mode:standalone\r\nrole:active-replica\r\n",
         "active-replica"},
        {"redis_version:7.0.15\r\nredis_mode:standalone\r\nrole:slave\r\nslave_read_only:0\r\n",
         "writable replica"},
    };
    hf_client *none = NULL;
    hf_error err = {0};

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct scripted *other = scripted_start(cases[i].info);
        check_number(cases[i].info, hf_open(url_of(scripted_port(other), ""), NULL, &none, &err),
                     HF_UNSUPPORTED);
        check_contains(cases[i].info, err.text, cases[i].text);
        scripted_stop(other);
    }
}

/* As Redis 6.2 and older say it: the error of a command inside a script is wrapped. */
static void c6_wrapped_errors_mean_what_they_say(void **state)
{
#define WRAPPED(error)                                                                 \
    "-ERR Error running script (call to f_0123456789012345678901234567890123456789): " \
    "@user_script:12: "                                                                \
    "@user_script: 12: -" error "\r\n"
    static const struct {
        const char *error;
        int code;
    } cases[] = {
        {WRAPPED("READONLY You can't write against a read only replica."), HF_UNAVAILABLE},
        {WRAPPED("NOREPLICAS Not enough good replicas to write."), HF_UNAVAILABLE},
        {WRAPPED(
             "MISCONF Redis is configured to save RDB snapshots, but it is currently not able to "
             "persist on disk."),
         HF_UNAVAILABLE},
        {WRAPPED("OOM command not allowed when used memory > 'maxmemory'."), HF_FULL},
        {"-ERR Error running script (call to f_0123456789012345678901234567890123456789): "
         "@user_script:4: @user_script: 4: The user executing the script can't run this command or "
         "subcommand \r\n",
         HF_DENIED},
        {"-READONLY You can't write against a read only replica. script: 0123, on "
         "@user_script:9.\r\n",
         HF_UNAVAILABLE},
        {"-ERR Error running script (call to f_0123456789012345678901234567890123456789): "
         "@user_script:4: user_script:4: attempt to index a nil value\r\n",
         HF_CORRUPT},
    };
    hf_options opt = HF_OPTIONS_INIT;
    hf_lock *lock = NULL;

    (void)state;
    opt.wait_ms = 0;
    for (size_t i = 0; i < COUNT(cases); i++) {
        say("EVALSHA", cases[i].error);
        check_number(cases[i].error, hf_acquire(client, "a", HF_NTS, &opt, &lock, NULL),
                     cases[i].code);
    }
}

/* A server that restarts while its clock is stepped says that it has been up for long. */
static void c1_restart_guard_does_not_believe_a_stepped_clock(void **state)
{
    static const char old[] = PLAIN "run_id:aaaa\r\nuptime_in_seconds:1000\r\n";
    static const char new[] = PLAIN "run_id:bbbb\r\nuptime_in_seconds:500000\r\n";
    struct scripted *node = scripted_start(old);
    hf_options opt = HF_OPTIONS_INIT;
    hf_lock *lock = NULL;
    hf_error err = {0};
    char url[100];

    (void)state;
    scripted_answer(node, "EVALSHA", ":1\r\n", 4);
    snprintf(url, sizeof url, "redlock://127.0.0.1:%d?op_timeout=500ms", scripted_port(node));
    hf_client *one = open_url(url);
    opt.wait_ms = 0;
    opt.ttl_ms = 10000;
    assert_int_equal(hf_acquire(one, "a", HF_NTS, &opt, &lock, NULL), HF_OK);
    assert_int_equal(hf_lock_release(lock, NULL), HF_OK);
    scripted_restart(node, new);
    int code;
    int64_t until_ms = now_ms() + AWAIT_MS; /* the first may meet the end of the connection */
    do
        code = hf_acquire(one, "a", HF_NTS, &opt, &lock, &err);
    while (code != HF_OK && strstr(err.text, "no vote yet") == NULL && now_ms() < until_ms);
    assert_int_equal(code, HF_UNAVAILABLE);
    check_contains("text", err.text, "no vote yet");
    hf_close(one);
    scripted_stop(node);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(c6_odd_answer_is_no_grant),
        TEST(c5_queued_is_no_answer_to_a_bid_that_does_not_wait),
        TEST(c5_odd_answer_does_not_outlast_the_wait),
        TEST(c15_odd_answer_is_no_value),
        TEST(odd_answer_is_not_shown_as_free),
        TEST(odd_answer_to_purge_break_and_adopt_is_an_error),
        TEST(odd_answers_do_not_stop_the_doctor),
        TEST(reply_without_end_is_cut_off),
        cmocka_unit_test(servers_that_share_no_locks_are_refused),
        TEST(c6_wrapped_errors_mean_what_they_say),
        cmocka_unit_test(c1_restart_guard_does_not_believe_a_stepped_clock),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
