/* trace+: a line for each call, that tells what was asked and answered, and no secret. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "wrapped.h"

static char path[] = "/tmp/holdfast-trace-XXXXXX";

static int make_file(void **state)
{
    int fd = mkstemp(path);

    (void)state;
    return fd < 0 ? -1 : close(fd);
}

static int remove_file(void **state)
{
    (void)state;
    return unlink(path);
}

static struct hf__store *open_traced(const char *before, const char *after)
{
    char url[200];

    assert_int_equal(truncate(path, 0), 0);
    snprintf(url, sizeof url, "%s?trace=%s%s", before, path, after);
    return wrapped_open(url);
}

static void read_back(char *text, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = read(fd, text, size - 1);

    assert_true(n >= 0);
    text[n] = '\0';
    close(fd);
}

static void each_call_has_a_line_with_its_answer(void **state)
{
    struct hf__store *store = open_traced("trace+memory://t1", "");
    struct hf__bid bid = wrapped_bid(0xab, false), other = wrapped_bid(0xcd, false);
    struct hf__renewal item = {.name = "a", .name_len = 1, .ticket = bid.ticket};
    char text[4000];

    (void)state;
    bid.name = other.name = "a b\n";
    bid.name_len = other.name_len = 4;
    assert_int_equal(wrapped_attempt(store, &bid), GRANTED);
    assert_int_equal(wrapped_attempt(store, &other), BUSY);
    assert_int_equal(store->type->renew(store, &item, 1, wrapped_in(300), NULL), 0);
    assert_int_equal(wrapped_release(store, &bid), DONE);
    wrapped_close(store);
    read_back(text, sizeof text);
    check_contains("attempt", text, " attempt 'a b%0A' abababab exclusive nowait -> granted ");
    check_contains("attempt", text, " attempt 'a b%0A' cdcdcdcd exclusive nowait -> busy (");
    check_contains("renew", text, " renew 1 'a' abababab -> gone (");
    check_contains("release", text, " release 'a b%0A' abababab -> done (");
    check_lacks("the whole ticket", text, "ababababab");
}

static void error_is_told_even_to_a_caller_who_does_not_ask(void **state)
{
    struct hf__store *store = open_traced("trace+fault+memory://t2", "&fail=attempt:1");
    struct hf__bid bid = wrapped_bid(1, false);
    char text[4000];

    (void)state;
    assert_int_equal(wrapped_attempt(store, &bid), HF_UNAVAILABLE);
    wrapped_close(store);
    read_back(text, sizeof text);
    check_contains("error", text, "-> HF_UNAVAILABLE: made to fail (");
}

static void long_lines_are_cut_and_stay_lines(void **state)
{
    struct hf__store *store = open_traced("trace+memory://t3", "");
    struct hf__renewal items[100];
    char name[HF_NAME_MAX], text[4000];

    (void)state;
    memset(name, 'x', sizeof name);
    for (size_t i = 0; i < COUNT(items); i++)
        items[i] = (struct hf__renewal){.name = name, .name_len = sizeof name};
    assert_int_equal(store->type->renew(store, items, COUNT(items), wrapped_in(300), NULL), 0);
    wrapped_close(store);
    read_back(text, sizeof text);
    assert_true(strlen(text) <= 1000);
    assert_true(strchr(text, '\n') == text + strlen(text) - 1);
}

static void place_for_the_lines_must_be_good(void **state)
{
    struct hf__store *store;
    hf_error err;

    (void)state;
    assert_int_equal(hf__store_open(&wrapped_host, "trace+memory://x?trace=fd:999", &store, &err),
                     HF_INVALID);
    assert_int_equal(hf__store_open(&wrapped_host, "trace+memory://x?trace=fd:x", &store, &err),
                     HF_INVALID);
    assert_int_equal(
        hf__store_open(&wrapped_host, "trace+memory://x?trace=/no/such/dir/t", &store, &err),
        HF_DENIED);
    check_contains("place", err.text, "/no/such/dir/t: No such file");
}

static void made_file_is_private(void **state)
{
    struct stat st;

    (void)state;
    assert_int_equal(unlink(path), 0);
    char url[200];
    snprintf(url, sizeof url, "trace+memory://t4?trace=%s", path);
    wrapped_close(wrapped_open(url));
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 077, 0);
}

static void fill(int fd)
{
    static const char much[4096];

    fcntl(fd, F_SETFL, O_NONBLOCK);
    while (write(fd, much, sizeof much) > 0)
        continue;
    fcntl(fd, F_SETFL, 0);
}

/* Nobody reads the pipe, and then nobody could: SIGPIPE, or the alarm, would end this process. */
static void reader_that_stands_still_or_has_gone_does_not_hold_up_the_store(void **state)
{
    struct hf__bid bid = wrapped_bid(2, false);
    char url[100];
    int ends[2];

    (void)state;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    snprintf(url, sizeof url, "trace+memory://t5?trace=fd:%d", ends[1]);
    struct hf__store *store = wrapped_open(url);
    fill(ends[1]);
    alarm(20);
    assert_int_equal(wrapped_attempt(store, &bid), GRANTED);
    close(ends[0]);
    assert_int_equal(wrapped_release(store, &bid), DONE);
    alarm(0);
    wrapped_close(store);
    close(ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_call_has_a_line_with_its_answer),
        cmocka_unit_test(error_is_told_even_to_a_caller_who_does_not_ask),
        cmocka_unit_test(long_lines_are_cut_and_stay_lines),
        cmocka_unit_test(place_for_the_lines_must_be_good),
        cmocka_unit_test(made_file_is_private),
        cmocka_unit_test(reader_that_stands_still_or_has_gone_does_not_hold_up_the_store),
    };

    return cmocka_run_group_tests(tests, make_file, remove_file);
}
